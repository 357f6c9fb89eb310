"""Servers that go away in the middle, and processes that are killed: nothing is lost, and nothing is there twice."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from service_crawl import (
    FAR,
    Own,
    Wire,
    crawl_flags,
    expected,
    finished,
    killed,
    own_names,
    playing,
    raids_in,
    rules,
    running,
    status_with,
)

from sanderling.observe.report import Report
from sanderling.sequence.report import SequenceFacts
from sanderling.sequence.state import SequenceState
from sanderling.stores.status_file import read_status
from sanderling.worlds.game import Game, GameRules
from sanderling.worlds.game_answers import TROUBLED, GameAnswer


@pytest.fixture
def own(rabbitmq: str, postgres: str) -> Iterator[Own]:
    with own_names(rabbitmq, postgres) as own:
        yield own


async def assert_stored_once(own: Own, game: Game, out: Path) -> int:
    """All raids of which the crawl in `out` knows; how many these are."""
    status = read_status(out, Report[SequenceFacts])
    assert status is not None
    raids = raids_in(game, game.first, status.facts.next)
    await own.stores_at_least(len(raids))
    assert await own.tables() == expected(game, raids)
    return len(raids)


def test_without_its_broker_a_crawl_says_so_and_waits_and_loses_nothing(own: Own, tmp_path: Path) -> None:
    async def main() -> None:
        wire, out = Wire(own.rabbitmq, 5672), tmp_path / "out"
        async with playing(rules()) as server, wire.laid(own.rabbitmq) as url:
            flags = crawl_flags(server, out, server.game.first + 249, *own.queue(url), *own.rows())
            async with running(*flags) as crawling:
                before = await status_with(out, lambda status: status.published >= 5)
                wire.cut()
                # A broker that is slow may have failed us before; two failures in a row are of the cut.
                failed = before.publish_failures + 2
                gone = await status_with(out, lambda status: status.queue_trouble and status.publish_failures >= failed)
                still = await status_with(out, lambda status: status.publish_failures >= gone.publish_failures + 1)
                wire.mend()
                done = await finished(crawling)

            assert "RabbitMQ" in gone.queue_trouble
            assert still.cursor == gone.cursor, "what is not in the queue has no fate"
            assert wire.turned_away > 0
            assert "Traceback" not in done.err
            assert (done.code, done.said["complete"], done.said["trouble"]) == (0, True, "")
            assert done.said["stored"] == await assert_stored_once(own, server.game, out)

    asyncio.run(main())


def test_ctrl_c_does_not_wait_for_a_broker_that_is_gone_and_the_next_run_has_it_all(own: Own, tmp_path: Path) -> None:
    async def main() -> None:
        wire, out = Wire(own.rabbitmq, 5672), tmp_path / "out"
        async with playing(rules()) as server, wire.laid(own.rabbitmq) as url:
            until, keeping = server.game.first + 99, (*own.queue(url), *own.rows())
            async with running(*crawl_flags(server, out, until, *keeping)) as crawling:
                await status_with(out, lambda status: status.published >= 2)
                wire.cut()
                await status_with(out, lambda status: status.publish_failures >= 1)
                crawling.send_signal(signal.SIGINT)
                stopped = await finished(crawling)
            assert (stopped.code, stopped.said) == (1, {})
            assert "RabbitMQ" in stopped.err
            assert "Traceback" not in stopped.err

            wire.mend()
            async with running(*crawl_flags(server, out, until, *keeping)) as crawling:
                done = await finished(crawling)
            assert (done.code, done.said["complete"]) == (0, True)
            await assert_stored_once(own, server.game, out)

    asyncio.run(main())


def test_a_database_that_goes_in_the_middle_of_a_batch_has_each_raid_once_when_it_is_back(
    own: Own, tmp_path: Path
) -> None:
    async def main() -> None:
        wire, out = Wire(own.postgres, 5432), tmp_path / "out"
        async with playing(rules()) as server, wire.laid(own.postgres) as url:
            crawl = crawl_flags(server, out, server.game.first + 299, "--no-store", *own.queue())
            alone = ["--workers", "1", "@max-workers", "1", "@batch", "10"]
            store = ["store", "--out", str(tmp_path / "store"), *alone, *own.queue(), *own.rows(url)]
            async with running(*crawl) as crawling, running(*store) as storing:
                await own.stores_at_least(10)
                # Of a batch that is written and not committed, and of one that is and of which it never hears.
                for last_words in (b"COMMIT;", b"COMMIT\0"):
                    await wire.cut_at(last_words)
                    wire.mend()
                    await own.stores_at_least(await own.count() + 10)
                crawled = await finished(crawling)
                raids = await assert_stored_once(own, server.game, out)
                storing.terminate()
                stored = await finished(storing)

            assert (crawled.code, crawled.said["complete"], crawled.said["published"]) == (0, True, raids)
            assert (stored.code, stored.said["outages"], stored.said["buried"]) == (0, 2, 0)
            # One batch was stored before it was said so: when it is told again, all of it is a duplicate.
            assert stored.said["stored"] + stored.said["duplicates"] == raids
            assert 0 < stored.said["duplicates"] <= 10

    asyncio.run(main())


class FailsAtFirst(Game):
    """Answers with an error the first time it is asked for one id in ten, until it is mended."""

    mended = False

    def __init__(self, rules: GameRules, seed: int, began: float) -> None:
        super().__init__(rules, seed, began)
        self._failed: set[int] = set()

    def _found(self, number: int, now: float) -> GameAnswer:
        if not self.mended and number % 10 == 3 and number not in self._failed:
            self._failed.add(number)
            return TROUBLED
        return super()._found(number, now)


def test_after_kill_9_of_both_each_raid_is_stored_once(own: Own, tmp_path: Path) -> None:
    """The crawl has no end until it is killed, and at all times some of its ids wait for another try."""

    async def main() -> None:
        out = tmp_path / "out"
        async with playing(rules(raids=0.5), FailsAtFirst) as server:
            game = server.game
            assert isinstance(game, FailsAtFirst)
            store = ["store", "--out", str(tmp_path / "store"), "@batch", "5", *own.queue(), *own.rows()]
            keeping = ("--rps", "20", "--no-store", *own.queue())
            async with running(*store) as storing:
                async with running(*crawl_flags(server, out, server.game.first + FAR, *keeping)) as crawling:
                    await own.stores_at_least(10)
                    async with own.batch_in_the_middle():
                        await killed(storing)
                    await status_with(out, lambda status: status.waiting and status.published >= 20)
                    await killed(crawling)
                with closing(SequenceState(out / "sequence.db")) as state:
                    saved = state.load()
                assert saved is not None
                assert saved.position.open, "ids that wait for another try"
            game.mended = True
            async with running(*store) as storing:
                until = saved.position.next + 50
                async with running(*crawl_flags(server, out, until, *keeping)) as crawling:
                    crawled = await finished(crawling)
                assert (crawled.code, crawled.said["complete"], crawled.said["missed"]) == (0, True, {})
                await assert_stored_once(own, server.game, out)
                storing.terminate()
                stored = await finished(storing)
            assert (stored.code, stored.said["buried"], stored.said["queue"]["ready"]) == (0, 0, 0)

    asyncio.run(main())
