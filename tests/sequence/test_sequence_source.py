"""What a crawl of ids asks next, as the engine sees it: shares, blame, questions, and where it ends."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import game_crawl
import pytest
from described_crawl import LOOK, URL, Followed, follow
from game_crawl import CountingNetwork, game, play
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.limit.breaker import State
from sanderling.sequence.inquiries import LOOK_EVERY
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.source import LONGEST
from sanderling.sequence.state import SequenceState
from sanderling.sequence.system import SequenceSystem
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_schedule import TimeSpan
from sanderling.worlds.game_weather import IdTrouble, WeatherRules

GIVEN = SequenceUpstream(url=URL, id_path="id", timestamp="at")
UNDATED = SequenceUpstream(url=URL, id_path="id")  # nobody knows when an id is due, so it is at once
RATE = 2.0  # ids a second that appear
SECONDS = 150.0
OLD = 10**6  # the first of the ids that were missed; no crawl comes so far
BEGAN = 1_800_000_000.0  # when a LoopClock begins

Says = Callable[[int, float], tuple[int, bytes]]


def record(number: int) -> tuple[int, bytes]:
    """It was made when its turn was."""
    return 200, json.dumps({"id": number, "at": BEGAN + number / RATE}).encode()


def says(number: int, now: float) -> tuple[int, bytes]:
    """Ids appear one after the other; those that were missed long ago never do."""
    return record(number) if number / RATE <= now else (404, b"")


def lags(followed: Followed) -> list[float]:
    """Seconds from when each id was made to when it was first asked for, ascending."""
    first: dict[int, float] = {}
    for at, number in followed.asked:
        if number < OLD:
            first.setdefault(number, at)
    return sorted(at - number / RATE for number, at in first.items() if number / RATE > 30)


def p95(values: list[float]) -> float:
    return values[int(0.95 * len(values))]


# Shares.


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Followed]:
    """A crawl with nothing but new ids: once for each number of permits."""

    @cache
    def alone(permits: float) -> Followed:
        rps = permits * RATE
        return follow(tmp_path_factory.mktemp("alone"), says, SECONDS, GIVEN, rps=rps)

    return alone


@settings(max_examples=3)
@given(permits=st.sampled_from([1.2, 1.5, 3.0]), exist=st.sampled_from([0, 3]), reason=st.sampled_from(list(Reason)))
def test_new_ids_have_what_they_need_and_missed_ones_a_twentieth(
    tmp_path_factory: pytest.TempPathFactory,
    undisturbed: Callable[[float], Followed],
    permits: float,
    exist: int,
    reason: Reason,
) -> None:
    """`permits` times as many as the head needs, beside 2,000 overdue ids of which every `exist`th exists."""

    def also(number: int, now: float) -> tuple[int, bytes]:
        return record(number) if number >= OLD and exist and number % exist == 0 else says(number, now)

    rps = permits * RATE
    gone = [Missed(OLD + 2 * each, OLD + 2 * each, reason, 0.0, 0.0, 3, 0.0) for each in range(2000)]

    alone = undisturbed(permits)
    followed = follow(tmp_path_factory.mktemp("beside"), also, SECONDS, GIVEN, rps=rps, missed=gone)

    new = sum(number < OLD for number in followed.records)
    assert new >= 0.97 * len(alone.records)
    assert p95(lags(followed)) <= 1.2 * p95(lags(alone)) + 1 / (permits * RATE)
    assert sum(number >= OLD for _, number in followed.asked) >= 0.05 * len(followed.asked)


def test_a_hundred_times_as_many_overdue_ids_cost_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither more is read for them, nor held in memory, nor do new ids come later."""
    due = SequenceState.due
    reads: list[int] = []  # entries, each time that the disk was read

    def noting(state: SequenceState, now: float, limit: int, *, failed: bool) -> list[Missed]:
        found = due(state, now, limit, failed=failed)
        reads.append(len(found))
        return found

    monkeypatch.setattr(SequenceState, "due", noting)
    times, late = [], []
    for many in (500, 50_000):
        folder = tmp_path / str(many)
        folder.mkdir()
        overdue(folder / "sequence.db", many)
        reads.clear()
        followed = follow(folder, says, SECONDS, GIVEN, rps=1.5 * RATE)
        times.append(len(reads))
        late.append(p95(lags(followed)))
        assert max(reads) <= 300

    assert late[1] <= 1.05 * late[0]
    assert times[1] <= times[0] + 2


def overdue(path: Path, many: int) -> None:
    """A state in which so many ids are missed, each by itself."""
    SequenceState(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute(
            """WITH RECURSIVE each (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n + 1 < :many)
            INSERT INTO missed SELECT :old + 2 * n, :old + 2 * n, 'not_found', 0.0, 0.0, 3, n FROM each""",
            {"old": OLD, "many": many},
        )
        db.commit()


# Blame.


def test_25_bad_ids_in_a_row_close_the_host_and_what_is_known_to_be_good_opens_it_at_once(tmp_path: Path) -> None:
    bad = range(200, 225)
    down: list[tuple[float, bool]] = []

    def poisoned(number: int, _: float) -> tuple[int, bytes]:
        return (500, b"") if number in bad else record(number)

    def watch(system: SequenceSystem, now: float) -> None:
        view = system.tools.limiter.snapshot().top
        down.append((now, any(host.state != State.CLOSED.value for host in view)))

    followed = follow(tmp_path, poisoned, 120.0, UNDATED, rps=20.0, watch=watch)

    times = {number: at for at, number in followed.asked}
    assert sum(each for _, each in down) * LOOK < 1.0  # of two minutes
    assert set(range(1, 600)) - followed.records.keys() == set(bad)
    assert times[230] - times[190] < 5.0
    assert set(followed.missed) >= set(bad)
    assert {followed.missed[number] for number in bad} == {Reason.ERROR}
    # And the cursor has not waited for them for longer than it should.
    first = min(at for at, number in followed.asked if number in bad)
    assert followed.report.facts.cursor > max(bad)
    tries = [at for at, number in followed.asked if number == 200 and at < first + LONGEST]
    assert 3 <= len(tries) <= 5


def test_a_host_that_fails_altogether_is_not_held_against_its_ids(tmp_path: Path) -> None:
    def outage(number: int, now: float) -> tuple[int, bytes]:
        return (500, b"") if 60 <= now < 360 else says(number, now)

    followed = follow(tmp_path, outage, 480.0, GIVEN, rps=20.0)

    assert set(followed.missed.values()) <= {Reason.ERROR.value}
    assert len(followed.missed) < 5
    assert len(followed.records) > RATE * 440
    assert sum(70 <= at < 350 for at, _ in followed.asked) < 40


# Questions.


def test_a_probe_that_fails_is_asked_as_any_id_that_fails_and_counts_as_missing_in_the_end(tmp_path: Path) -> None:
    """Behind the last id nothing is there, and the first of those that are asked about fails for ever."""
    last = 100

    def ends(number: int, _: float) -> tuple[int, bytes]:
        if number == last + 1:
            return 500, b""
        return record(number) if number <= last else (404, b"")

    waits: list[float] = []

    def watch(system: SequenceSystem, now: float) -> None:
        if system.lookout.waiting:
            waits.append(now)

    followed = follow(tmp_path, ends, 300.0, UNDATED, watch=watch)

    assert waits, "it knows that this is the head, though one of the ids fails"
    assert waits[0] < 120
    asked = [at for at, number in followed.asked if number == last + 1]
    assert len(asked) < 20
    assert len(followed.records) == last
    assert followed.report.facts.probes > 100


OFF = TimeSpan(100.0, 600.0)


class SilentSettings(CountingNetwork):
    """Says nothing of itself while it is switched off."""

    async def send(self, task: Task) -> Reply:
        if "Settings" in task.url and OFF.start <= self.now() < OFF.start + OFF.seconds:
            raise ConnectionResetError
        return await super().send(task)

    def now(self) -> float:
        return LoopClock().now()


@pytest.mark.parametrize("silent", [False, True])
def test_while_the_api_is_switched_off_nothing_but_that_is_asked_however_it_failed_before(
    tmp_path: Path,
    silent: bool,  # noqa: FBT001 - a column
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every id fails first, which closes the host; then it says that it is off, also of what was known to be good."""
    if silent:
        monkeypatch.setattr(game_crawl, "CountingNetwork", SilentSettings)
    troubles = () if silent else (IdTrouble(60.0, 100.0, 1.0),)

    crawled = play(tmp_path, game(weather=WeatherRules(troubles=troubles, maintenance=(OFF,))), 900)

    kinds = crawled.game.tally.kinds
    assert kinds[GameKind.DISABLED] < 30
    assert kinds[GameKind.SETTINGS] <= OFF.seconds / LOOK_EVERY + 1
    assert crawled.without_fate() == []
    assert crawled.not_ended(60.0) == []


# Where it ends.


def test_up_to_the_last_id_that_is_wanted_and_none_beyond(tmp_path: Path) -> None:
    followed = follow(tmp_path, lambda number, _: record(number), 60.0, UNDATED, until=50)

    assert max(number for _, number in followed.asked) == 50
    assert followed.report.facts.cursor == 51


def test_ids_beyond_are_asked_where_only_they_can_tell_why_the_last_are_not_there(tmp_path: Path) -> None:
    def ends(number: int, _: float) -> tuple[int, bytes]:
        return record(number) if number <= 40 else (404, b"")

    followed = follow(tmp_path, ends, 30.0, UNDATED, until=50)

    assert max(number for _, number in followed.asked) > 50
    assert followed.report.facts.at_head
    assert followed.report.facts.cursor == 41
