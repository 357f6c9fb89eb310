"""Parts of a fleet's crawl of repos, under virtual time: whoever is killed, every repo is in a commit, and in one."""

import asyncio
import io
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from bad_fleet import dead, make_fleet
from fleet_crawl import LIMITS, Listed, inline
from hypothesis import given
from hypothesis import strategies as st
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_reader import RcaReader
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.repos import sink
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import DirectoryEntry
from sanderling.repos.fleet import WRITING, PartWalk, PendingSegment, SharedPages, describe_directory
from sanderling.repos.hand_out import OwnHosts
from sanderling.repos.rules import RepoRules
from sanderling.stores.ledger_log import SharedHead, apply_commits
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

PARTS = 4
RULES = RepoRules(page_size=20, writing=WRITING)


@dataclass(slots=True)
class KeptPart:
    """What a server and an object store have of a part: its commits, each with its segment."""

    commits: list[tuple[SharedHead, bytes]] = field(default_factory=list)
    segments: list[bytes] = field(default_factory=list)  # of each commit; empty if it has none

    def copy(self, path: Path, number: int | None = None) -> SqliteProgress:
        """The progress after so many commits, made from them alone."""
        path.unlink(missing_ok=True)
        SqliteProgress.create_shared(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            apply_commits(db, self.commits[:number])
        return SqliteProgress(path)

    def share(self, segment: PendingSegment) -> Callable[[bytes], SharedHead]:
        """What takes each transaction, with the blocks that wait."""

        def keep(body: bytes) -> SharedHead:
            head = SharedHead(len(self.commits) + 1, "")
            self.segments.append(segment.take()[0])
            self.commits.append((head, body))
            return head

        return keep

    def archived(self, number: int | None = None) -> Counter[str]:
        """The DIDs in the segments of so many commits, by how often they are there."""
        files = [io.BytesIO(each) for each in self.segments[:number] if each]
        return Counter(block.did for file in files for block in RcaReader(file))


async def crawl_part(fleet: Fleet, part: int, kept: KeptPart, pages: SharedPages, folder: Path) -> bool:
    """What an owner does; cancelled, it leaves what kill -9 does."""
    clock, path = LoopClock(), folder / f"{part}.db"
    with closing(kept.copy(path)) as progress:
        segment = PendingSegment(progress.view().segment, lambda: int(clock.wall() * 1e6))
        progress.share(kept.share(segment))
        own = OwnHosts(pages.directory, lambda url: pages.part_of(url) == part)
        stores = Stores(own, progress, segment, None, PartWalk(pages, part))
        limiter = Limiter(LIMITS, clock=clock, rng=Random(part))
        transport = Transport(FleetNetwork(fleet, clock), limiter, Memory(2**30))
        return await RepoCrawl(stores, transport, inline, inline, rules=RULES, clock=clock).run()


async def crawl_until(fleet: Fleet, parts: list[KeptPart], folder: Path, until: float | None) -> bool:
    """All parts, until a time; whether all came to their end."""
    pages = SharedPages(Listed(list(fleet.directory())), PARTS, RULES.page_size, inline)
    try:
        async with asyncio.timeout(until):
            crawls = (crawl_part(fleet, part, kept, pages, folder) for part, kept in enumerate(parts))
            return all(await asyncio.gather(*crawls))
    except TimeoutError:
        return False


@pytest.mark.parametrize("seed", range(4))
def test_whoever_is_killed_what_is_committed_is_in_one_segment_and_nothing_else_is(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "AT_ONCE", 2)  # notes that the progress is told of at once: so one write has many commits
    rng, fleet, parts = Random(seed), Fleet.make(seed, hosts=20, repos=300), [KeptPart() for _ in range(PARTS)]

    ends = [run_virtual(crawl_until(fleet, parts, tmp_path, rng.uniform(1, 20))) for _ in range(6)]
    ends.append(run_virtual(crawl_until(fleet, parts, tmp_path, None)))

    assert ends[-1]
    assert ends[0] is False, "nothing was killed"
    found = sum((each.archived() for each in parts), Counter[str]())
    assert found == {did: 1 for did, end in fleet.expected().items() if end.archived}
    for kept in parts:
        for number in range(0, len(kept.commits) + 1, 5):
            with closing(kept.copy(tmp_path / "then.db", number)) as then:
                view, archived = then.view(), kept.archived(number)
                assert view.total_crawled == archived.total()
                assert view.segment == sum(map(bool, kept.segments[:number]))
                assert then.pending(sorted(archived)) == []


def test_what_is_left_of_a_host_that_is_away_is_in_the_progress(tmp_path: Path) -> None:
    fleet = make_fleet(1, [10, 10], [dead(AtprotoCategory.CONNECTION_ERROR, 12)])
    parts = [KeptPart() for _ in range(PARTS)]

    assert run_virtual(crawl_until(fleet, parts, tmp_path, None))

    found = sum((each.archived() for each in parts), Counter[str]())
    left = 0
    for kept in parts:
        with closing(kept.copy(tmp_path / "then.db")) as progress:
            left += progress.scheduled
    assert (found.total(), left) == (20, 12)


@given(
    hosts=st.lists(st.integers(0, 9), max_size=60), size=st.integers(1, 20),
    order=st.lists(st.integers(0, PARTS - 1), max_size=80),
)  # fmt: skip
def test_in_whatever_order_parts_read_the_directory_each_has_its_own_hosts_and_all_of_them(
    hosts: list[int], size: int, order: list[int]
) -> None:
    entries = [DirectoryEntry(f"did:plc:{at:03}", f"https://h{host}.example") for at, host in enumerate(hosts)]
    pages = SharedPages(Listed(entries), PARTS, size, inline)

    async def read() -> list[list[DirectoryEntry]]:
        found: list[list[DirectoryEntry]] = [[] for _ in range(PARTS)]
        after: list[str | None] = [""] * PARTS
        for part in [*order, *(each for each in range(PARTS) for _ in range(len(hosts) + 1))]:
            if (last := after[part]) is not None:
                page = await PartWalk(pages, part).page(last, idle=False)
                found[part] += page.entries if page else ()
                after[part] = page.last if page else None
        return found

    found = asyncio.run(read())

    assert [[each for each in entries if pages.part_of(each.host) == part] for part in range(PARTS)] == found


def test_pages_are_read_once_for_parts_that_are_near_each_other() -> None:
    class Counting(Listed):
        read = 0

        def page(self, after: str, limit: int) -> list[DirectoryEntry]:
            self.read += 1
            return super().page(after, limit)

    directory = Counting([(f"did:plc:{at:03}", f"https://h{at % 9}.example") for at in range(100)])
    pages = SharedPages(directory, PARTS, 10, inline)

    async def read() -> None:
        after: list[str] = [""] * PARTS
        for _ in range(10):
            for part in range(PARTS):
                page = await pages.page(part, after[part])
                assert page is not None
                after[part] = page.last

    asyncio.run(read())

    assert directory.read == 10


def test_directories_are_told_apart() -> None:
    one = [("did:plc:a", "https://a.example"), ("did:plc:b", "https://b.example")]
    others = [one[:1], [one[0], ("did:plc:b", "https://a.example")], [("did:plc:c", "https://a.example"), one[1]]]

    described = [describe_directory(Listed(each)) for each in (one, *others)]

    assert len(set(described)) == 4
    assert described[0] == describe_directory(Listed(one[::-1]))
    assert described[0].startswith("2 DIDs (")
