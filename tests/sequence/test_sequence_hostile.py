"""Whole crawls against the grain: spoilt answers, ids that always fail, clocks that jump, a queue that is away."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from game_crawl import RATE, SMALL, GameCrawl, Script, game, play, schedule
from hostile_game import Hostile
from sequence_parts import WALL

from sanderling.sequence import sink
from sanderling.sequence.cursor import Position
from sanderling.sequence.retries import OFFLOAD, Missed, Reason
from sanderling.sequence.state import Fates, SavedCrawl
from sanderling.worlds.game import Game
from sanderling.worlds.game_answers import TROUBLED, GameAnswer, GameKind
from sanderling.worlds.game_schedule import Hole, Piece
from sanderling.worlds.game_weather import GameRefusal, IdTrouble, WeatherRules

FIRST = 16_000_000_000
SETTLED = 30.0

# What each is filed as, where every report is wanted. The last has a report each time, if not the same.
FILED = {
    Hostile.NOT_JSON: Reason.ERROR,
    Hostile.CUT: Reason.ERROR,
    Hostile.DEEP: Reason.ERROR,
    Hostile.NULL: Reason.BAD_FORMAT,
    Hostile.NO_ENTRIES: Reason.BAD_FORMAT,
    Hostile.NEGATIVE: Reason.BAD_FORMAT,
    Hostile.GIANT_IDS: Reason.BAD_FORMAT,
    Hostile.WRONG_ID: Reason.BAD_FORMAT,
    Hostile.HUGE: Reason.BAD_FORMAT,
    Hostile.CHANGING: None,
}


def test_each_kind_of_spoilt_answer_is_filed_and_everyone_else_is_stored(tmp_path: Path) -> None:
    places = {FIRST + 100 + 20 * place: kind for place, kind in enumerate(FILED)}

    crawled = play(tmp_path, game(raids=1.0, hostile=places), 120)

    filed = {number: each.reason for each in crawled.missed for number in range(each.low, each.high + 1)}
    assert FILED.keys() == set(Hostile)
    assert filed == {number: FILED[kind] for number, kind in places.items() if FILED[kind]}
    assert {number for number in crawled.not_ended(SETTLED) if number not in places} == set()
    assert crawled.without_fate() == []
    assert set(Counter(crawled.queue.published).values()) == {1}


def test_spoilt_answers_are_asked_in_other_words_and_ever_more_rarely(tmp_path: Path) -> None:
    """No cache should give the same again; and what is spoilt for good costs a dozen questions, not a thousand."""
    crawled = play(tmp_path, game(schedule=schedule(rate=0.5, history=120.0), hostile={FIRST + 50: Hostile.NULL}), 900)

    asked = crawled.game.tally.ids
    assert asked is not None
    assert 8 <= asked[FIRST + 50] <= 12


# Ids that fail while their neighbours are fine.


def test_ids_that_fail_for_hours_do_not_shut_the_host_for_the_others(tmp_path: Path) -> None:
    """Of a hundred ids eight fail all the time. They come again and again, but never in a row."""
    weather = WeatherRules(troubles=(IdTrouble(20.0, 300.0, 0.08),))

    crawled = play(tmp_path, game(schedule=schedule(rate=4.0), weather=weather), 300)

    failing = crawled.game.tally.kinds[GameKind.TROUBLED]
    assert failing > 60
    assert crawled.without_fate() == []
    assert crawled.behind() < 10
    left = crawled.not_ended(60.0)
    assert len(left) < 0.1 * len(list(crawled.live()))
    # Those that had all their tries are filed; the others are still at it.
    waiting = set(crawled.state.positions[-1].open)
    assert (
        set(left)
        <= {
            number
            for each in crawled.missed
            if each.reason is Reason.ERROR
            for number in range(each.low, each.high + 1)
        }
        | waiting
    )


def test_when_the_trouble_is_over_all_of_them_are_stored(tmp_path: Path) -> None:
    weather = WeatherRules(troubles=(IdTrouble(20.0, 90.0, 0.05),))

    crawled = play(tmp_path, game(schedule=schedule(rate=5.0), weather=weather), 330)

    assert crawled.state.given_up[Reason.ERROR] > 5
    assert crawled.not_ended(SETTLED) == []
    assert crawled.missed == []


class PoisonAtTheHead(Game):
    """The first ids after a pause fail for ever: those that everyone asks who waits at the head."""

    poison = range(round(120 * RATE), round(120 * RATE) + 4)

    def _found(self, number: int, now: float) -> GameAnswer:
        return TROUBLED if number - self.first in self.poison else super()._found(number, now)


def test_an_id_that_fails_for_ever_where_we_wait_does_not_keep_us_waiting(tmp_path: Path) -> None:
    pieces = (Piece(-60.0, 120.0, RATE), Piece(200.0, inf, RATE))

    crawled = play(tmp_path, game(schedule=schedule(pieces=pieces)), 400, kind=PoisonAtTheHead)

    assert crawled.without_fate() == []
    assert crawled.behind() < 10
    assert crawled.not_ended(SETTLED) == [FIRST + number for number in PoisonAtTheHead.poison]
    assert set(crawled.not_ended(SETTLED)) <= crawled.missed_ids


def test_a_host_that_breaks_down_now_and_then_costs_no_id(tmp_path: Path) -> None:
    weather = WeatherRules(bad_gateway=0.02, resets=0.02)

    crawled = play(tmp_path, game(weather=weather), 180)

    assert crawled.without_fate() == []
    assert crawled.not_ended(60.0) == []


@pytest.mark.parametrize("refusal", list(GameRefusal))
def test_however_a_host_says_slow_down_no_id_is_diverted_for_it(tmp_path: Path, refusal: GameRefusal) -> None:
    weather = WeatherRules(quota=15.0, window=10.0, refusals=(refusal,), retry_after=2.0)

    crawled = play(tmp_path, game(schedule=schedule(rate=5.0, history=120.0), weather=weather), 150)

    assert crawled.game.tally.kinds[GameKind.REFUSED] > 0
    assert crawled.state.given_up[Reason.RATE_LIMITED] == 0
    assert crawled.without_fate() == []
    assert crawled.not_ended(SETTLED) == []


# Clocks.


SLOW = game(schedule=schedule(rate=2.0))


async def _jump(crawled: GameCrawl, seconds: float, at: float, back: float | None = None) -> None:
    await crawled.true.sleep(at)
    crawled.clock.ahead = seconds
    if back is not None:
        await crawled.true.sleep(back)
        crawled.clock.ahead = 0.0
    await crawled.true.sleep(1e6)


@pytest.mark.parametrize("seconds", [86_400.0, -3600.0])
def test_a_clock_that_somebody_sets_costs_a_minute_and_no_id(tmp_path: Path, seconds: float) -> None:
    crawled = play(tmp_path, SLOW, lambda crawled: crawled.run(240, _jump(crawled, seconds, 60.0)))

    assert crawled.without_fate() == []
    # Held back by a line that is off, an id waits for a minute at most.
    noted = sorted(crawled.state.ended.values())
    assert max(later - earlier for earlier, later in pairwise(noted)) < 75
    assert crawled.now() - noted[-1] < 10
    assert set(crawled.not_ended(90.0)) <= crawled.missed_ids
    assert crawled.system.measures.skipped == 0
    # Records from the future prove that ours is behind, and the head is followed as closely as before.
    assert seconds > 0 or crawled.behind() < 20


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_clock_that_is_set_right_again_leaves_nothing_behind(tmp_path: Path, seconds: float) -> None:
    crawled = play(tmp_path, SLOW, lambda crawled: crawled.run(330, _jump(crawled, seconds, 60.0, back=90.0)))

    assert crawled.without_fate() == []
    assert set(crawled.not_ended(60.0)) <= crawled.missed_ids
    assert crawled.behind() < 20
    assert crawled.system.measures.skipped == 0


# The queue.


def test_while_the_queue_is_away_nothing_is_lost_and_the_cursor_stays(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        async def outage() -> None:
            await crawled.true.sleep(60)
            crawled.queue.down = "no broker"
            await crawled.true.sleep(1)  # what was being written is
            before = crawled.system.durable
            await crawled.true.sleep(59)
            assert crawled.system.durable == before
            crawled.queue.down = ""
            await crawled.true.sleep(1e6)

        await crawled.run(180, outage())

    crawled = play(tmp_path, game(raids=1.0), script)

    assert crawled.queue.refused > 2
    assert crawled.without_fate() == []
    assert crawled.not_ended(SETTLED) == []
    assert Counter(crawled.queue.published) == Counter(set(crawled.queue.published))


def test_a_queue_that_stays_away_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When enough waits for it nobody asks for more, and when it is back everyone does."""
    monkeypatch.setattr(sink, "RULES", replace(sink.RULES, most_bytes=500_000))

    async def script(crawled: GameCrawl) -> None:
        async def outage() -> None:
            await crawled.true.sleep(30)
            crawled.queue.down = "no broker"
            await crawled.true.sleep(60)
            asked.append(crawled.game.tally.asked)
            await crawled.true.sleep(60)
            asked.append(crawled.game.tally.asked)
            crawled.queue.down = ""
            await crawled.true.sleep(1e6)

        await crawled.run(210, outage())

    asked: list[int] = []
    crawled = play(tmp_path, game(raids=1.0), script)

    assert asked[0] == asked[1]
    assert crawled.without_fate() == []
    assert crawled.not_ended(SETTLED) == []
    assert crawled.behind() < 10
    assert SMALL.scale.workers >= crawled.network.most


# What is known to be spoilt, or to fail, is asked rarely also where it lies side by side.


def _with_known(missed: Missed) -> Script:
    async def script(crawled: GameCrawl) -> None:
        crawled.state.record(SavedCrawl("bungie", Position(crawled.first + 500), None), Fates(missed=[missed]))
        await crawled.run(300)

    return script


def test_neighbours_that_are_spoilt_for_good_are_sampled_and_not_taken_for_news(tmp_path: Path) -> None:
    known = Missed(FIRST + 50, FIRST + 59, Reason.BAD_FORMAT, WALL, WALL, OFFLOAD + 1, WALL)
    places = dict.fromkeys(range(known.low, known.high + 1), Hostile.NULL)

    crawled = play(tmp_path, game(schedule=schedule(rate=2.0), hostile=places), _with_known(known))

    asked = crawled.game.tally.ids
    assert asked is not None
    assert {asked[number] for number in places} == {1}
    (left,) = [each for each in crawled.missed if each.low <= known.high]
    assert (left.reason, left.tries) == (Reason.BAD_FORMAT, OFFLOAD + 2)


class PoisonInAGap(Game):
    """One id of a hole fails for ever, where the others are not there."""

    def _found(self, number: int, now: float) -> GameAnswer:
        return TROUBLED if number == FIRST + 150 else super()._found(number, now)


def test_a_gap_in_which_one_id_fails_for_ever_is_asked_ever_more_rarely(tmp_path: Path) -> None:
    hole = Hole(FIRST + 100, 200, jumped=False)
    known = Missed(hole.first, hole.end - 1, Reason.GAP, WALL, WALL, 0, WALL)

    crawled = play(tmp_path, game(schedule=schedule(rate=2.0, holes=(hole,))), _with_known(known), kind=PoisonInAGap)

    asked = crawled.game.tally.ids
    assert asked is not None
    assert {asked[number] for number in range(hole.first, hole.end)} == {1}
    assert crawled.missed_ids == set(range(hole.first, hole.end))
