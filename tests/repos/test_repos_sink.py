"""What came of repos reaches the disk: blocks, then the progress, then the cursor, however slow that is."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fleet_crawl import Listed, crawl_fleet, inline
from memory_progress import MemoryProgress

from sanderling.engine.writer import Writer
from sanderling.fetch.attempts import Sends
from sanderling.repos import crawl as crawl_module
from sanderling.repos import sink as sink_module
from sanderling.repos.sink import RULES, Archived, Note, RepoSink, RepoWriter, WrittenRepos
from sanderling.stores.ports import FIRST, Due, Finished, HostAside, Unfinished
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

T = TypeVar("T")


class Kept(MemoryProgress):
    """Segments and progress, and in which order they were told."""

    number = 1

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.records: list[tuple[list[str], list[str], str | None, int]] = []

    def append(self, blocks: Sequence[tuple[str, bytes]]) -> int:
        self.blocks += [did for did, _ in blocks]
        return self.number

    def record(
        self,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        *,
        cursor: str | None,
        segment: int,
        hosts: Sequence[HostAside] = (),
    ) -> None:
        assert set(self.blocks) >= {each.did for each in done}
        super().record(done, failed, cursor=cursor, segment=segment, hosts=hosts)
        self.records.append(([each.did for each in done], [each.did for each in failed], cursor, len(hosts)))


async def slow(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything takes ten seconds."""
    await asyncio.sleep(10)
    return work(*args)


def due(did: str, *, leaves: bool = True) -> Note:
    return Note(Unfinished(did, "timeout", permanent=False, failures=1, due=9), leaves)


def test_the_cursor_moves_with_the_write_that_settles_it_and_the_last_write_has_everything() -> None:
    async def main() -> tuple[Kept, list[WrittenRepos], int]:
        kept, written, cursor = Kept(), list[WrittenRepos](), "did:plc:a"
        sink = RepoSink(kept, kept, Listed([]), slow)
        writer: RepoWriter = Writer(sink, lambda: cursor, LoopClock(), RULES)
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.run(written.append))
            writer.add(Archived("did:plc:a", b"1234"), 4)
            await asyncio.sleep(5)  # the first is being written
            writer.add(Archived("did:plc:b", b"12"), 2)
            writer.add(due("did:plc:c"))
            writer.add(due("did:plc:d", leaves=False))
            writer.add(HostAside("a.example", "timeout", 9))
            cursor = "did:plc:d"
            writer.close()
        return kept, written, sink.bytes

    kept, written, size = run_virtual(main())

    assert kept.records == [
        (["did:plc:a"], [], "did:plc:a", 0),
        (["did:plc:b"], ["did:plc:c", "did:plc:d"], "did:plc:d", 1),
    ]
    assert (written, size) == ([WrittenRepos(["did:plc:a"], []), WrittenRepos(["did:plc:b", "did:plc:c"], [])], 6)


def test_what_a_host_says_is_final_only_if_the_account_is_still_there() -> None:
    """However its address is spelled; and what the directory does not have is not elsewhere."""
    here = {"did:plc:a": "https://old.example", "did:plc:b": "https://new.example", "did:plc:c": "https://OLD.example/"}
    gone = [Unfinished(did, "not_found", permanent=True) for did in (*here, "did:plc:d")]
    kept = Kept()

    notes = [*(Note(each, True, "https://old.example") for each in gone), due("did:plc:e")]  # noqa: FBT003 - a row
    written = run_virtual(RepoSink(kept, kept, Listed(list(here.items())), inline).write(notes, (), None))

    assert written == WrittenRepos([each.did for each in gone] + ["did:plc:e"], [gone[1]])
    assert kept.due(FIRST, 9, 9) == [Due(1, 0, "did:plc:b"), Due(9, 1, "did:plc:e")]
    assert kept.reasons(["did:plc:a", "did:plc:b"]) == {"did:plc:a": "not_found", "did:plc:b": "moved"}
    assert kept.view().completed == 3


def test_much_is_told_in_pieces_and_the_cursor_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis takes a million words at once at most, and makes everyone else wait for them."""
    monkeypatch.setattr(sink_module, "AT_ONCE", 3)
    kept = Kept()

    run_virtual(RepoSink(kept, kept, Listed([]), inline).write([due(str(n)) for n in range(7)], (), "6"))

    assert [(len(failed), cursor) for _, failed, cursor, _ in kept.records] == [(3, None), (3, None), (1, "6")]


def test_what_failed_and_then_came_is_not_archived_twice(tmp_path: Path) -> None:
    """It is on its way to disk, where it still has a due time, while the next page of what is due may be read."""
    fleet = Fleet.make(3, hosts=1, repos=6, others=())
    dids = sorted(did for did, end in fleet.expected().items() if end.archived)
    asked: list[str] = []

    class OneByOne:
        """The first repo comes at the fourth time, the second never."""

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
    monkeypatch.setattr(crawl_module, "RULES", replace(RULES, most_bytes=1))
    fleet = Fleet.make(4, hosts=2, repos=20, others=())

    crawled = crawl_fleet(tmp_path / "out", fleet)

    assert len(crawled.archive) == sum(end.archived for end in fleet.expected().values())
