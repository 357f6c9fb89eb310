"""What is handed to the books reaches the disk, whenever it comes and however slow that is."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fleet_crawl import crawl_fleet

from sanderling.apis.atproto import Category
from sanderling.fetch.attempts import Sends
from sanderling.repos import books as books_module
from sanderling.repos.books import Archived, Books
from sanderling.stores.ports import Finished, ProgressView, Unfinished
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

T = TypeVar("T")


class Kept:
    """Segments and progress in a list each."""

    number = 1

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.done: list[str] = []
        self.failures: list[str] = []
        self.cursors: list[str | None] = []

    def append(self, blocks: Sequence[tuple[str, bytes]]) -> int:
        self.blocks += [did for did, _ in blocks]
        return self.number

    def record(
        self, done: Sequence[Finished], failed: Sequence[Unfinished], *, cursor: str | None, segment: int
    ) -> None:
        del segment
        assert set(self.blocks) >= {each.did for each in done}
        self.done += [each.did for each in done]
        self.failures += [each.did for each in failed]
        self.cursors.append(cursor)

    def cursor(self) -> str:
        return ""

    def pending(self, dids: Sequence[str]) -> list[str]:
        return list(dids)

    def failed(self, categories: Sequence[str], after: str, limit: int) -> list[tuple[str, str]]:
        del categories, after, limit
        return []

    def view(self) -> ProgressView:
        raise NotImplementedError

    def reset(self) -> None:
        raise NotImplementedError


async def slow(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything takes ten seconds."""
    await asyncio.sleep(10)
    return work(*args)


def test_what_comes_in_during_the_last_write_is_written_too() -> None:
    async def main() -> Kept:
        kept = Kept()
        books = Books(kept, kept, slow, LoopClock())
        async with asyncio.TaskGroup() as group:
            group.create_task(books.write(lambda: None))
            books.keep(Archived("did:plc:a", b"1234"))
            await asyncio.sleep(5)  # the first is being written
            books.keep(Archived("did:plc:b", b"12"))
            books.note("did:plc:c", Category.TIMEOUT)
            books.close()
        assert books.bytes == 6
        return kept

    kept = run_virtual(main())

    assert (kept.done, kept.failures) == (["did:plc:a", "did:plc:b"], ["did:plc:c"])


def test_settled_means_that_all_of_it_is_recorded() -> None:
    async def main() -> tuple[list[str], float]:
        kept, clock = Kept(), LoopClock()
        books = Books(kept, kept, slow, clock)
        async with asyncio.TaskGroup() as group:
            group.create_task(books.write(lambda: None))
            books.keep(Archived("did:plc:a", b"1"))
            await asyncio.sleep(5)
            books.keep(Archived("did:plc:b", b"1"))
            await books.settled()
            found = list(kept.done), clock.now()
            books.close()
        return found

    done, at = run_virtual(main())

    assert done == ["did:plc:a", "did:plc:b"]
    assert at == pytest.approx(20.5)


def test_the_cursor_moves_with_the_write_that_settles_it() -> None:
    async def main() -> Kept:
        kept = Kept()
        books = Books(kept, kept, slow, LoopClock())
        books.water.begin("did:plc:b", ["did:plc:a", "did:plc:b"])
        async with asyncio.TaskGroup() as group:
            group.create_task(books.write(lambda: None))
            books.keep(Archived("did:plc:a", b"1"))
            await asyncio.sleep(5)
            books.keep(Archived("did:plc:b", b"1"))
            books.close()
        return kept

    assert run_virtual(main()).cursors == [None, "did:plc:b"]


def test_what_failed_and_then_came_just_before_a_pass_ended_is_not_archived_twice(tmp_path: Path) -> None:
    """It is in the books, and not yet in the progress, when the next pass asks what has failed."""
    fleet = Fleet.make(3, hosts=1, repos=6, others=())
    dids = sorted(did for did, end in fleet.expected().items() if end.archived)
    asked: list[str] = []

    class OneByOne:
        """The first repo comes at the second pass, the second never."""

        def __init__(self, network: Sends) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            asked.append(task.url)
            never, later = dids[1] in task.url, dids[0] in task.url and asked.count(task.url) < 4
            if never or later:
                return Reply(502, (), b"", task.url, 0.01)
            return await self._network.send(task)

    crawled = crawl_fleet(tmp_path / "out", fleet, through=OneByOne)

    assert crawled.archive[dids[0]] == 1
    assert dids[1] not in crawled.archive


def test_a_disk_that_is_far_behind_stops_nothing_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked for while too much waits to be written; afterwards it goes on."""
    monkeypatch.setattr(books_module, "MOST", 1)
    fleet = Fleet.make(4, hosts=2, repos=20, others=())

    crawled = crawl_fleet(tmp_path / "out", fleet)

    assert len(crawled.archive) == sum(end.archived for end in fleet.expected().values())
