"""Whole crawls of a game whose ids have gaps: what is skipped, what is accounted for, and what comes to light later."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from game_crawl import SMALL, GameCrawl, game, play, schedule

from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.scaling import ScaleRules
from sanderling.worlds.game import Game
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_presets import born_at
from sanderling.worlds.game_schedule import Hole, Piece, ScheduleRules

RATE = 10.0
SETTLED = 45.0
SIZE = 2000


def with_hole(
    size: int = SIZE, at: float = 40.0, *, jumped: bool = True, rate: float = RATE
) -> tuple[Hole, ScheduleRules]:
    """A schedule in which a block is missing after so many seconds."""
    plain = schedule(rate=rate)
    hole = Hole(born_at(at, plain), size, jumped)
    return hole, replace(plain, holes=(hole,))


def reasons(crawled: GameCrawl, numbers: range) -> Counter[Reason]:
    """Why each of these ids is missed."""
    found: Counter[Reason] = Counter()
    for each in crawled.missed:
        found[each.reason] += len(range(max(each.low, numbers.start), min(each.high + 1, numbers.stop)))
    return +found


# A gap is skipped.


@pytest.mark.parametrize("jumped", [True, False])
def test_a_gap_is_skipped_and_every_id_of_it_is_missed_and_no_other(tmp_path: Path, jumped: bool) -> None:  # noqa: FBT001 - a parameter
    """Whether the counter jumped, or all those records were lost."""
    hole, rules = with_hole(600, jumped=jumped)

    crawled = play(tmp_path, game(schedule=rules), 200)

    assert crawled.without_fate() == []
    assert crawled.missed_ids == set(range(hole.first, hole.end))
    assert crawled.not_ended(SETTLED) == []
    why = reasons(crawled, range(hole.first, hole.end))
    assert why.keys() <= {Reason.GAP, Reason.NOT_FOUND}
    # A few were asked one by one, before anyone suspected anything.
    assert why[Reason.GAP] > 300
    assert len(crawled.said("gap_skipped")) == 1


def test_what_was_in_flight_or_waiting_in_the_gap_is_accounted_for(tmp_path: Path) -> None:
    """Stopped at any moment around the skip, every id behind the cursor has a fate or is known to have none."""
    _, rules = with_hole(rate=5.0)

    async def script(crawled: GameCrawl) -> None:
        await crawled.run(40)
        while not crawled.said("gap_skipped") and len(seen) < 150:
            await crawled.run(0.7)
            assert crawled.without_fate() == []
            seen.append(crawled.system.cursor.next)
        await crawled.run(60)

    seen: list[int] = []
    crawled = play(tmp_path, game(schedule=rules), script)

    assert crawled.without_fate() == []
    assert crawled.not_ended(SETTLED) == []
    assert crawled.said("gap_skipped")


def test_a_gap_that_opens_during_a_pause_is_skipped_when_the_game_goes_on(tmp_path: Path) -> None:
    pieces = (Piece(-60.0, 100.0, 5.0), Piece(400.0, inf, 5.0))
    hole = Hole(born_at(40.0, ScheduleRules(pieces=pieces)), SIZE)

    crawled = play(tmp_path, game(schedule=schedule(pieces=pieces, holes=(hole,))), 560)

    assert crawled.without_fate() == []
    assert crawled.not_ended(SETTLED) == []
    assert crawled.missed_ids == set(range(hole.first, hole.end))
    # It was looked for far ahead every two minutes at most.
    assert crawled.state.ended[hole.end] < crawled.game.visible(hole.end) + 150


def test_holes_that_are_small_are_walked_through_and_not_skipped(tmp_path: Path) -> None:
    holes = tuple(Hole(born_at(at, schedule(rate=5.0)) + round(at) % 7, 60) for at in (10.0, 30.0, 50.0))

    crawled = play(tmp_path, game(schedule=schedule(rate=5.0, holes=holes)), 120)

    assert crawled.system.measures.gaps == 0
    assert crawled.not_ended(SETTLED) == []
    assert {each.reason for each in crawled.missed} == {Reason.NOT_FOUND}


# A gap of 10,000 ids, passed once and looked at from all sides.


@dataclass(frozen=True)
class Passed:
    """How that went; and what the gauges said meanwhile, beside how many requests were in flight."""

    hole: Hole
    crawled: GameCrawl
    seen: list[tuple[int, int, int]] = field(default_factory=list)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Passed:
    hole, rules = with_hole(10_000, rate=5.0)
    seen: list[tuple[int, int, int]] = []

    async def script(crawled: GameCrawl) -> None:
        async def look() -> None:
            while True:
                seen.append((crawled.system.inflight, crawled.system.workers, crawled.network.inflight))
                await crawled.true.sleep(0.2)

        await crawled.run(200, look())

    return Passed(hole, play(tmp_path_factory.mktemp("gap"), game(schedule=rules), script), seen)


def test_every_request_is_counted_once_and_probes_not_as_work(passed: Passed) -> None:
    system = passed.crawled.system
    probes, work = system.measures.probes.total(), system.measures.answers.total()
    windows = [made.readings.samples for made in system.scaler.made if made.readings]

    assert probes > 50
    assert probes + work + system.measures.rechecks.total() == passed.crawled.game.tally.asked
    assert sum(windows) + system.lookout.window.asked == work


# What a search like this gets wrong, and ours must not.


def test_flaw_a_a_gap_far_wider_than_what_lives_behind_it_is_found(tmp_path: Path) -> None:
    """100,000 ids are missing, and 2,000 live behind them: no id at a power of two is among those."""
    plain = schedule(rate=50.0, history=60.0)
    hole = Hole(born_at(-40.0, plain), 100_000)
    crawl = replace(SMALL, scale=ScaleRules(min_workers=2, workers=20, max_workers=40, period=600))

    crawled = play(tmp_path, game(schedule=replace(plain, holes=(hole,))), 45, crawl)

    assert crawled.without_fate() == []
    assert hole.end in crawled.state.ended
    assert crawled.missed_ids == set(range(hole.first, hole.end))


def test_flaw_b_the_first_live_id_behind_a_gap_is_crawled(passed: Passed) -> None:
    assert passed.hole.end in passed.crawled.state.ended
    assert passed.hole.end not in passed.crawled.missed_ids


def test_flaw_c_what_lives_between_two_gaps_is_not_lost(tmp_path: Path) -> None:
    """Whether the search sees them or steps over them: a sample of what was skipped has one of them, and then all."""
    plain = schedule()
    first = born_at(30.0, plain)
    holes = (Hole(first, 700), Hole(first + 800, 700))

    crawled = play(tmp_path, game(schedule=replace(plain, holes=holes)), 300)

    assert set(range(first + 700, first + 800)) <= crawled.state.ended.keys()
    assert crawled.not_ended(SETTLED) == []


def test_flaw_d_the_cursor_never_goes_back_and_never_jumps_over_what_is_not_missed(passed: Passed) -> None:
    positions = passed.crawled.state.positions

    assert all(earlier.next <= later.next and earlier.low <= later.low for earlier, later in pairwise(positions))
    assert passed.crawled.without_fate() == []


def test_flaw_e_the_last_id_before_a_gap_is_not_missed(passed: Passed) -> None:
    assert passed.hole.first - 1 in passed.crawled.state.ended
    assert passed.crawled.missed_ids == set(range(passed.hole.first, passed.hole.end))


def test_flaw_f_probes_are_in_flight_like_all_others_and_no_more_than_there_are_workers(passed: Passed) -> None:
    assert all(counted >= inflight for counted, _, inflight in passed.seen)
    assert all(counted <= workers <= SMALL.scale.workers for counted, workers, _ in passed.seen)


def test_flaw_g_a_gap_of_10_000_ids_is_passed_in_two_minutes_and_costs_few_requests(passed: Passed) -> None:
    """By asking every id of it with 500 workers it would be nine minutes, and 40,000 requests."""
    crawled, behind = passed.crawled, passed.hole.end

    assert crawled.state.ended[behind] < crawled.game.visible(behind) + 120
    assert crawled.game.tally.kinds[GameKind.MISSING] < 2000
    assert crawled.not_ended(SETTLED) == []


# What comes to light later.


class LateBlock(Game):
    """A block of ids that come seven minutes late, when others have long been there."""

    def visible(self, number: int) -> float:
        late = number - self.first in range(700, 1100)
        return max(super().visible(number), self.began + 420.0 if late else 0.0)


def test_ids_that_appear_late_in_a_skipped_range_are_found_and_stored(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        await crawled.run(300)
        skipped.extend(each for each in crawled.missed if each.reason is Reason.GAP)
        await crawled.run(600)

    skipped: list[Missed] = []
    crawled = play(tmp_path, game(schedule=schedule(rate=5.0)), script, kind=LateBlock)

    assert sum(len(each) for each in skipped) > 250
    for each in skipped:
        assert set(range(each.low, each.high + 1)) <= crawled.state.ended.keys()
    assert crawled.without_fate() == []
    assert set(Counter(crawled.queue.published).values()) == {1}
    # The few that were asked one by one are asked ever more rarely, and have not been forgotten.
    assert set(crawled.not_ended(SETTLED)) <= crawled.missed_ids
