"""When permits are scarce, new ids come first, and what was missed has a tenth of them and what is left over."""

import json
from functools import partial
from pathlib import Path

import pytest
from described_crawl import URL, follow

from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.sequence.retries import Missed, Reason

GIVEN = SequenceUpstream(url=URL, id_path="id", timestamp="at")
RATE = 2.0  # ids a second that appear
SECONDS = 200.0
OLD = 10**6  # the first of the ids that were missed; no crawl comes so far
BEGAN = 1_800_000_000.0  # when a LoopClock begins


def says(number: int, now: float, ago: float = 0.0) -> tuple[int, bytes]:
    """Ids appear one after the other, the first so long ago; those that were missed never do."""
    made = number / RATE - ago
    return (200, json.dumps({"id": number, "at": BEGAN + made}).encode()) if made <= now else (404, b"")


def gone(count: int, reason: Reason = Reason.NOT_FOUND) -> list[Missed]:
    """Ids that were missed long ago, and are all due."""
    return [Missed(OLD + 2 * each, OLD + 2 * each, reason, 0.0, 0.0, 3, 0.0) for each in range(count)]


@pytest.mark.parametrize(
    ("permits", "reason"),
    [(1.2, Reason.NOT_FOUND), (1.5, Reason.NOT_FOUND), (3.0, Reason.NOT_FOUND), (1.2, Reason.ERROR)],
)
def test_new_ids_come_first_and_missed_ones_are_not_forgotten(tmp_path: Path, permits: float, reason: Reason) -> None:
    """`permits` times as many as the head needs."""
    rps = permits * RATE

    followed = follow(tmp_path, says, SECONDS, GIVEN, rps=rps, missed=gone(2000, reason))

    assert len(followed.records) > RATE * (SECONDS - 30)
    again = [at for at, number in followed.asked if number >= OLD]
    assert len(again) > 0.08 * len(followed.asked)
    if reason is Reason.NOT_FOUND:  # one that failed waits for good answers of others
        assert len(followed.asked) > 0.9 * permits * RATE * SECONDS


def test_behind_the_head_missed_ids_have_a_tenth_and_all_are_asked_in_the_end(tmp_path: Path) -> None:
    rps = 10.0

    followed = follow(tmp_path, partial(says, ago=86_400.0), 120.0, GIVEN, rps=rps, missed=gone(60))

    again = [at for at, number in followed.asked if number >= OLD]
    assert len({number for _, number in followed.asked if number >= OLD}) == 60
    before = [number for at, number in followed.asked if at <= again[59]]
    assert 0.09 < 60 / len(before) < 0.12
