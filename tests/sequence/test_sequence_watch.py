"""How a crawl of ids says that it stands, to the screen and to other processes."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from game_crawl import RATE, SMALL, GameCrawl, game, schedule

from sanderling.observe.report import Report
from sanderling.sequence.report import LATELY, SequenceFacts, SequenceWatch
from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.store import StoreTally
from sanderling.sequence.system import SequenceRules
from sanderling.stores.queue import Depth
from sanderling.testing import run_virtual
from sanderling.worlds.game import GameRules
from sanderling.worlds.game_schedule import Hole

HISTORY = 250.0


class Seen(NamedTuple):
    """A crawl that is over, and its statuses, one a second."""

    crawl: GameCrawl
    statuses: list[Report[SequenceFacts]]


def seen(
    folder: Path,
    seconds: float,
    rules: GameRules | None = None,
    crawl: SequenceRules = SMALL,
    store: StoreTally | None = None,
) -> Seen:
    """What is seen of a crawl of so many seconds."""

    async def main() -> Seen:
        running = GameCrawl(folder, rules or game(), crawl)
        statuses: list[Report[SequenceFacts]] = []

        async def look() -> None:
            watch = SequenceWatch(running.system, store, running.clock.wall())
            watch.depth = Depth(3, 2, 1, 0)
            while True:
                statuses.append(watch.report(running.clock.now(), running.clock.wall()))
                await running.clock.sleep(1.0)

        await running.run(seconds, look())
        return Seen(running, statuses)

    return run_virtual(main())


@pytest.fixture(scope="module")
def caught_up(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """A crawl that begins far behind, and comes to the head."""
    store = StoreTally(stored=7, workers=4)
    return seen(tmp_path_factory.mktemp("caught_up"), 150.0, game(schedule=schedule(history=HISTORY)), store=store)


def test_what_the_status_says_is_so(caught_up: Seen) -> None:
    crawl, (begun, *_, ended) = caught_up
    first, last = begun.facts, ended.facts

    assert (first.cursor, first.lag, first.rate, first.newest) == (crawl.first, None, 0.0, None)
    assert (last.api, last.host) == ("bungie", "game.example")
    assert ended.process.seconds == pytest.approx(149.0, abs=2)
    assert last.lag is not None
    assert last.lag < 20
    assert ended.doing.startswith("following the head")
    assert last.rate == pytest.approx(RATE, rel=0.3)
    assert last.head_rate == pytest.approx(RATE, rel=0.1)
    assert last.behind is not None
    assert last.behind < 20 * RATE
    assert last.head is not None
    assert abs(last.head - crawl.game.head(ended.process.wall)) < 20 * RATE
    assert last.answers["success"] + last.answers["skipped"] == pytest.approx(last.cursor - crawl.first, abs=60)
    assert last.published == pytest.approx(last.answers["success"], abs=20)
    assert ended.classes["new"] >= last.answers["success"]
    assert last.queue == {"ready": 3, "taken": 2, "delayed": 1, "dead": 0}
    assert last.stored == 7
    assert ended.hosts[0].requests >= last.asked


def test_the_lag_is_that_of_the_last_seconds(caught_up: Seen) -> None:
    lags = [each.facts.lag for each in caught_up.statuses[:60] if each.facts.lag is not None]

    assert lags[0] == pytest.approx(HISTORY, abs=10)
    assert lags[-1] < lags[0] - 60
    assert all(later < earlier + 2 for earlier, later in pairwise(lags))


def test_decisions_are_told_with_what_they_found(tmp_path: Path) -> None:
    often = ScaleRules(min_workers=2, workers=4, max_workers=40, period=50, min_period=50, max_period=50)
    many = game(schedule=schedule(rate=5.0, history=HISTORY))
    crawl, statuses = seen(tmp_path, 150.0, many, replace(SMALL, scale=often))
    told, made = statuses[-1].facts.decisions, crawl.system.scaler.made

    assert len(made) == made.maxlen, "some are forgotten"
    assert len(told) == len(made) - 1, "nobody knows what the oldest of them found"
    assert [each.before for each in told[1:]] == [each.workers for each in told[:-1]]
    early = next(each.facts.decisions for each in statuses if each.facts.decisions)
    assert early[0].before == 4
    assert (early[0].workers, early[0].lag is not None) == (early[0].workers, True)
    assert statuses[-1].facts.workers == told[-1].workers


def test_a_gap_is_not_counted_as_being_behind(tmp_path: Path) -> None:
    hole = Hole(16_000_000_300, 50_000)
    _, statuses = seen(tmp_path, 180.0, game(schedule=schedule(history=HISTORY, holes=(hole,))))

    assert statuses[-1].facts.gaps == 1
    assert statuses[-1].facts.skipped == pytest.approx(50_000, abs=300)
    assert max(each.facts.behind or 0 for each in statuses) < (HISTORY + 180) * RATE
    assert any(each.facts.looking for each in statuses)
    assert any(each.doing.startswith("looking for what is ahead") for each in statuses)


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    async def main() -> int:
        watch = SequenceWatch(GameCrawl(tmp_path, game()).start(), None, 0.0)
        for frame in range(1000):
            watch.report(frame / 4, 1_800_000_000.0)
        return len(watch._counts)

    assert run_virtual(main()) <= 4 * LATELY + 2
