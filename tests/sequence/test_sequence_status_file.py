"""How a crawl of ids says that it stands, to the screen and to other processes."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from game_crawl import RATE, SMALL, GameCrawl, game, schedule
from hypothesis import given
from hypothesis import strategies as st

from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.status import LATELY, SequenceStatus, SequenceWatch, published
from sanderling.sequence.store import StoreTally
from sanderling.sequence.system import SequenceRules
from sanderling.stores.process_identity import own_process
from sanderling.stores.queue import Depth
from sanderling.stores.status_file import write_status
from sanderling.testing import run_virtual
from sanderling.worlds.game import GameRules
from sanderling.worlds.game_schedule import Hole

HISTORY = 250.0


class Seen(NamedTuple):
    """A crawl that is over, and its statuses, one a second."""

    crawl: GameCrawl
    statuses: list[SequenceStatus]


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
        statuses: list[SequenceStatus] = []

        async def look() -> None:
            watch = SequenceWatch(running.system, store, running.clock.wall())
            watch.depth = Depth(3, 2, 1, 0)
            while True:
                statuses.append(watch.take(running.clock.now(), running.clock.wall()))
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
    crawl, (first, *_, last) = caught_up

    assert (first.cursor, first.lag, first.rate, first.newest) == (crawl.first, None, 0.0, None)
    assert (last.api, last.host) == ("bungie", "game.example")
    assert last.seconds == pytest.approx(149.0, abs=2)
    assert last.lag is not None
    assert last.lag < 20
    assert last.doing == "following the head"
    assert last.rate == pytest.approx(RATE, rel=0.3)
    assert last.head_rate == pytest.approx(RATE, rel=0.1)
    assert last.behind is not None
    assert last.behind < 20 * RATE
    assert last.head is not None
    assert abs(last.head - crawl.game.head(last.wall)) < 20 * RATE
    assert last.cursor <= last.next
    assert last.answers["success"] + last.answers["skipped"] == pytest.approx(last.next - crawl.first, abs=60)
    assert last.published == pytest.approx(last.answers["success"], abs=20)
    assert last.classes["new"] >= last.answers["success"]
    assert last.queue == {"ready": 3, "taken": 2, "delayed": 1, "dead": 0}
    assert last.store is not None
    assert (last.store.stored, last.store.workers) == (7, 4)
    assert last.limiter is not None
    assert last.limiter.requests >= last.asked


def test_the_lag_is_that_of_the_last_seconds(caught_up: Seen) -> None:
    lags = [each.lag for each in caught_up.statuses[:60] if each.lag is not None]

    assert lags[0] == pytest.approx(HISTORY, abs=10)
    assert lags[-1] < lags[0] - 60
    assert all(later < earlier + 2 for earlier, later in pairwise(lags))


def test_decisions_are_told_with_what_they_found(tmp_path: Path) -> None:
    often = ScaleRules(min_workers=2, workers=4, max_workers=40, period=50, min_period=50, max_period=50)
    many = game(schedule=schedule(rate=5.0, history=HISTORY))
    crawl, statuses = seen(tmp_path, 150.0, many, replace(SMALL, scale=often))
    told, made = statuses[-1].decisions, crawl.system.scaler.made

    assert len(made) == made.maxlen, "some are forgotten"
    assert len(told) == len(made) - 1, "nobody knows what the oldest of them found"
    assert [each.before for each in told[1:]] == [each.workers for each in told[:-1]]
    early = next(each.decisions for each in statuses if each.decisions)
    assert early[0].before == 4
    assert (early[0].workers, early[0].lag is not None) == (early[0].workers, True)
    assert statuses[-1].plan.workers == told[-1].workers


def test_a_gap_is_not_counted_as_being_behind(tmp_path: Path) -> None:
    hole = Hole(16_000_000_300, 50_000)
    _, statuses = seen(tmp_path, 120.0, game(schedule=schedule(history=HISTORY, holes=(hole,))))

    assert statuses[-1].gaps == 1
    assert statuses[-1].skipped == pytest.approx(50_000, abs=300)
    assert max(each.behind or 0 for each in statuses) < (HISTORY + 120) * RATE
    assert any(each.looking for each in statuses)
    assert "looking for what is ahead" in {each.doing for each in statuses}


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({}, "following the head"),
        ({"lag": 60.0}, "catching up"),
        ({"lag": None, "behind": 6000, "head_rate": 60.0}, "catching up"),
        ({"lag": None, "behind": 60, "head_rate": 60.0}, "following the head"),
        ({"lag": None, "behind": None, "head_rate": None}, "following the head"),
        ({"looking": True}, "looking for what is ahead"),
        ({"looking": True, "at_head": True}, "waiting at the head"),
        ({"trouble": "no broker", "at_head": True}, "waiting for the queue"),
        ({"available": False, "trouble": "no broker"}, "waiting: the API is switched off"),
    ],
)
def test_it_is_at_one_thing(tmp_path: Path, changes: dict[str, Any], doing: str) -> None:
    status = seen(tmp_path, 1.0).statuses[0]

    assert msgspec.structs.replace(status, **{"lag": 5.0, **changes}).doing == doing


def test_others_read_what_was_published(tmp_path: Path) -> None:
    status = seen(tmp_path, 90.0).statuses[-1]
    assert published(tmp_path) is None

    write_status(tmp_path, status)

    assert published(tmp_path) == msgspec.structs.replace(status, process=own_process())
    assert [path.name for path in tmp_path.glob("*status*")] == ["status.json"]


@given(st.binary(max_size=200))
def test_a_file_that_is_none_of_ours_is_no_status(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "status.json").write_bytes(data)

    assert published(folder) is None


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    async def main() -> int:
        watch = SequenceWatch(GameCrawl(tmp_path, game()).start(), None, 0.0)
        for frame in range(1000):
            watch.take(frame / 4, 1_800_000_000.0)
        return len(watch._counts)

    assert run_virtual(main()) <= 4 * LATELY + 2
