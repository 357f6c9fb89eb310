"""Crawls that end and go on: by being stopped, by dying at any moment, by a disk that fails."""

import asyncio
from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import pytest
from game_crawl import RATE, GameCrawl, game, play, schedule
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_parts import WALL

from sanderling.sequence.cursor import Position
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.state import Fates, SavedCrawl
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import QueueError
from sanderling.worlds.game import GameRules
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_presets import born_at
from sanderling.worlds.game_schedule import Hole, Piece, TimeSpan
from sanderling.worlds.game_weather import Contest, WeatherRules

SETTLED = 45.0


def eventful() -> GameRules:
    """Within a minute: holes, a gap, maintenance, hidden raids and reports that are not whole."""
    plain = schedule(rate=4.0, history=30.0, hole_every=40)
    holes = (Hole(born_at(10.0, plain), 400),)
    weather = WeatherRules(maintenance=(TimeSpan(45.0, 10.0),), contests=(Contest(-20.0, 30.0, 60.0),))
    return game(schedule=replace(plain, holes=holes), weather=weather, late=0.05, late_seconds=20.0)


def assert_whole(crawled: GameCrawl) -> None:
    """Nothing is lost, nothing is both here and missed, and what could be fetched is here or will be asked for."""
    assert crawled.without_fate() == []
    assert not crawled.missed_ids & crawled.state.ended.keys()
    assert set(crawled.not_ended(SETTLED)) <= crawled.missed_ids
    kept = {number for number in crawled.state.ended if crawled.game.raid(number)}
    assert {str(number) for number in kept} <= set(crawled.queue.published)


# Stopped.


def test_a_crawl_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        for _ in range(8):
            await crawled.run(11)
            assert crawled.without_fate() == []
        await crawled.run(90)

    crawled = play(tmp_path, eventful(), script)

    assert_whole(crawled)
    # What was in flight came to its end, so nothing was queued twice.
    assert set(Counter(crawled.queue.published).values()) == {1}


def test_a_stop_leaves_nothing_in_flight_and_everything_written(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(), 30)

    saved = crawled.state.load()
    assert saved is not None
    assert saved.position == crawled.system.cursor.position()
    assert crawled.network.inflight == 0
    assert saved.position.next - crawled.first <= crawled.game.tally.asked


def test_a_crawl_can_be_stopped_before_it_begins(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        system = crawled.start()
        system.stop()
        await system.run()

    crawled = play(tmp_path, game(), script)

    assert crawled.game.tally.asked == 0


def test_a_stop_in_the_middle_of_a_look_or_of_maintenance_is_quick(tmp_path: Path) -> None:
    pieces = (Piece(-60.0, 80.0, RATE), Piece(1000.0, inf, RATE))
    rules = game(schedule=schedule(pieces=pieces), weather=WeatherRules(maintenance=(TimeSpan(150.0, 1000.0),)))

    async def script(crawled: GameCrawl) -> None:
        for until in (100.0, 140.0, 200.0):
            await crawled.run(until - crawled.true.now())
            late.append(crawled.true.now() - until)

    late: list[float] = []
    crawled = play(tmp_path, rules, script)

    assert max(late) < 1
    assert crawled.without_fate() == []


def test_a_stop_while_the_queue_is_away_says_so_and_loses_nothing(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        async def outage() -> None:
            await crawled.true.sleep(10)
            crawled.queue.down = "no broker"
            await crawled.true.sleep(1e6)

        with pytest.raises(ExceptionGroup) as raised:
            await crawled.run(20, outage())
        assert raised.group_contains(QueueError, match="no broker")
        assert crawled.true.now() < 22
        crawled.queue.down = ""
        await crawled.run(60)

    crawled = play(tmp_path, game(), script)

    assert_whole(crawled)
    assert crawled.not_ended(SETTLED) == []


# What the next one knows.


def test_it_remembers_the_newest_and_waits_at_the_head_after_a_restart_in_a_pause(tmp_path: Path) -> None:
    """One id below the newest is still open. Who took that for the end of what there is would find what lies behind it,
    again and again, and never wait."""
    pieces = (Piece(-60.0, 80.0, RATE), Piece(400.0, inf, RATE))

    async def script(crawled: GameCrawl) -> None:
        await crawled.run(60)
        saved = crawled.state.load()
        assert saved is not None
        assert saved.newest == crawled.first + round(80 * RATE) - 1
        position = Position(saved.position.next, tuple(sorted({crawled.first + 300, *saved.position.open})))
        crawled.state.record(SavedCrawl(saved.api, position, saved.newest), Fates())
        asked.append(crawled.game.tally.asked)
        await crawled.run(300)
        asked.append(crawled.game.tally.asked)
        assert crawled.system.lookout.waiting
        await crawled.run(120)

    asked: list[int] = []
    crawled = play(tmp_path, game(schedule=schedule(pieces=pieces)), script)

    assert asked[1] - asked[0] < 3000
    assert_whole(crawled)
    assert crawled.state.given_up[Reason.GAP] == 0


def test_one_that_is_sent_back_skips_the_same_gap_again(tmp_path: Path) -> None:
    hole = Hole(born_at(-30.0, schedule()), 3000)

    async def script(crawled: GameCrawl) -> None:
        await crawled.run(60)
        asked.append(crawled.game.tally.kinds[GameKind.MISSING])
        system = crawled.start(Position(crawled.first))
        async with asyncio.TaskGroup() as group:
            group.create_task(system.run())
            await crawled.true.sleep(60)
            system.stop()
        asked.append(crawled.game.tally.kinds[GameKind.MISSING])

    asked: list[int] = []
    crawled = play(tmp_path, game(schedule=schedule(holes=(hole,))), script)

    assert crawled.system.measures.gaps == 1
    assert asked[1] - asked[0] < 1500
    assert_whole(crawled)


# Died.


@settings(max_examples=5)
@given(moments=st.lists(st.floats(0.01, 20.0), min_size=1, max_size=6), slow=st.sampled_from([0.0, 0.05, 0.4]))
def test_whenever_it_dies_every_id_gets_its_fate_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, moments: list[float], slow: float
) -> None:
    async def script(crawled: GameCrawl) -> None:
        crawled.queue.slow = slow
        for moment in moments:
            await crawled.crash(moment)
            if crawled.state.load() is not None:
                assert crawled.without_fate() == []
        await crawled.run(200 - crawled.true.now())

    crawled = play(tmp_path_factory.mktemp("died"), eventful(), script)

    assert_whole(crawled)
    crawled.state.close()


def test_a_crawl_that_keeps_dying_gets_on_all_the_same(tmp_path: Path) -> None:
    rng = Random(5)

    async def script(crawled: GameCrawl) -> None:
        for _ in range(40):
            await crawled.crash(rng.uniform(1.0, 4.0))
        await crawled.run(60)

    crawled = play(tmp_path, game(), script)

    assert_whole(crawled)
    assert crawled.not_ended(SETTLED) == []
    # What a death makes us ask again is what came in since the last write, and no more.
    again = [number for number, asked in (crawled.game.tally.ids or {}).items() if asked > 1]
    assert len(again) < 40 * 30


def test_what_is_queued_but_not_noted_when_it_dies_is_queued_again(tmp_path: Path) -> None:
    """It dies in the moment between the two."""

    async def script(crawled: GameCrawl) -> None:
        running = asyncio.ensure_future(crawled.start().run())
        while not crawled.queue.published:
            await crawled.true.sleep(0.001)
        queued.update(crawled.queue.published)
        assert not queued & {str(number) for number in crawled.state.ended}
        running.cancel()
        await asyncio.wait([running])
        await crawled.run(60)

    queued: set[str] = set()
    crawled = play(tmp_path, game(), script)

    twice = {key for key, times in Counter(crawled.queue.published).items() if times > 1}
    assert twice == queued
    assert_whole(crawled)


def test_what_was_missed_is_asked_for_by_the_next_one(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        number = crawled.first + 50
        missed = Missed(number, number + 9, Reason.NOT_FOUND, WALL, WALL, 7, WALL)
        crawled.state.record(SavedCrawl("bungie", Position(crawled.first + 100), None), Fates(missed=[missed]))
        await crawled.run(30)

    crawled = play(tmp_path, game(), script)

    assert set(range(crawled.first + 50, crawled.first + 60)) <= crawled.state.ended.keys()
    assert crawled.missed == []


# The disk.


def test_a_disk_that_fails_ends_the_crawl_and_the_next_one_loses_nothing(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        async def full() -> None:
            await crawled.true.sleep(20)
            crawled.state.broken = True
            await crawled.true.sleep(1e6)

        with pytest.raises(ExceptionGroup) as raised:
            await crawled.run(60, full())
        assert raised.group_contains(FolderError)
        assert len(_leaves(raised.value)) == 1
        assert crawled.true.now() < 22
        crawled.state.broken = False
        await crawled.run(60)

    crawled = play(tmp_path, game(), script)

    assert_whole(crawled)
    assert crawled.not_ended(SETTLED) == []


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    nested = [_leaves(each) if isinstance(each, BaseExceptionGroup) else [each] for each in group.exceptions]
    return [leaf for leaves in nested for leaf in leaves]
