"""Parts of a fleet's crawl of repos, under virtual time: whoever is killed, every repo is in a commit, and in one."""

import asyncio
import io
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from bad_fleet import dead, make_fleet
from fleet_crawl import LIMITS, Listed, inline
from plays import seeds
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_reader import RcaReader
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.repos import sink
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.feeding import WalkedPage
from sanderling.repos.fleet import WRITING, PendingSegment, RepoPlan
from sanderling.repos.hand_out import PartLookup
from sanderling.repos.rules import RepoRules
from sanderling.stores.ledger_log import SharedHead, apply_commits
from sanderling.stores.ports import Due
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

PARTS = 4
RULES = RepoRules(page_size=20, writing=WRITING)
part_of = PartLookup(PARTS)


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


class _PartOfList:
    """What one part has of a list."""

    def __init__(self, entries: Listed, part: int) -> None:
        self._entries, self._part = entries, part

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        del idle
        found = self._entries.page(after, RULES.page_size)
        own = [each for each in found if self.is_own(each.host)]
        return WalkedPage(own, found[-1].did) if found else None

    def is_own(self, url: str) -> bool:
        return part_of(url) == self._part

    async def pass_on(self, moved: Mapping[Due, str]) -> None:
        raise AssertionError(moved)


async def crawl_part(fleet: Fleet, part: int, kept: KeptPart, listed: Listed, folder: Path) -> bool:
    """What an owner does; cancelled, it leaves what kill -9 does."""
    clock, path = LoopClock(), folder / f"{part}.db"
    with closing(kept.copy(path)) as progress:
        segment = PendingSegment(progress.view().segment, lambda: int(clock.wall() * 1e6))
        progress.share(kept.share(segment))
        stores = Stores(listed, progress, segment, None, _PartOfList(listed, part))
        limiter = Limiter(LIMITS, clock=clock, rng=Random(part))
        transport = Transport(FleetNetwork(fleet, clock), limiter, Memory(2**30))
        return await RepoCrawl(stores, transport, inline, inline, rules=RULES, clock=clock).run()


async def crawl_until(fleet: Fleet, parts: list[KeptPart], folder: Path, until: float | None) -> bool:
    """All parts, until a time; whether all came to their end."""
    listed = Listed(list(fleet.directory()))
    try:
        async with asyncio.timeout(until):
            crawls = (crawl_part(fleet, part, kept, listed, folder) for part, kept in enumerate(parts))
            return all(await asyncio.gather(*crawls))
    except TimeoutError:
        return False


@pytest.mark.parametrize("seed", seeds(4))
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


def plan_of(entries: Sequence[tuple[str, str]]) -> RepoPlan:
    return RepoPlan(cids="strip").of_file(Listed(entries))


def test_a_directory_that_was_updated_is_the_same_and_another_one_is_not() -> None:
    one = [(f"did:plc:{number:04}", f"https://h{number % 7}.example") for number in range(0, 2000, 2)]
    moved = [(did, "https://new.example") for did, _ in one]
    grown = sorted([*one[3:], *((f"did:plc:{number:04}", "https://h.example") for number in range(1, 300, 2))])
    stranger = [(f"did:web:{number:04}.example", "https://h.example") for number in range(2000)]

    for same in (one, moved, grown):
        assert plan_of(one).compare(plan_of(same), Listed(same)) == ""
    assert "another, of 2,000" in plan_of(one).compare(plan_of(stranger), Listed(stranger))
    assert "another, of 500" in plan_of(one).compare(plan_of(one[:500]), Listed(one[:500]))
    assert plan_of([]).compare(plan_of([]), Listed([])) == ""
