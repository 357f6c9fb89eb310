"""A record that the queue never takes is one dead letter; the crawl and all other records go on."""

import json
from pathlib import Path

from command_line import called
from described_crawl import URL, follow

from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.stores.queue import LARGEST_BODY

GIVEN = SequenceUpstream(url=URL, id_path="id")
HUGE = 5


def says(number: int, _: float) -> tuple[int, bytes]:
    filling = "x" * LARGEST_BODY if number == HUGE else ""
    return (200, json.dumps({"id": number, "filling": filling}).encode()) if number <= 12 else (404, b"")


def test_a_record_over_the_limit_of_the_queue_is_one_dead_letter_on_each_start(tmp_path: Path) -> None:
    for _ in range(2):
        followed = follow(tmp_path, says, 20.0, GIVEN)

        assert sorted(followed.records) == [number for number in range(1, 13) if number != HUGE]
        assert HUGE not in followed.missed
        assert followed.report.facts.cursor > HUGE
        assert followed.report.texts() == ()

    listed = called("dead", "list", str(tmp_path), "--json")
    (dead,) = map(json.loads, listed.out.splitlines())
    assert (listed.code, dead["key"]) == (0, str(HUGE))
    assert "the record has 15,728," in dead["why"]
    assert " bytes, at most 15,728,640 are taken" in dead["why"]
    shown = called("dead", "show", str(tmp_path), str(HUGE))
    assert (shown.code, "sanderling sequence missed import" in shown.out) == (0, True)
