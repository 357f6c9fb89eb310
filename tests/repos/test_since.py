"""What an earlier archive has is not fetched again, unless it has changed."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from fleet_crawl import LIMITS, Listed, archived, crawl_fleet, inline
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.transport import Transport
from sanderling.formats.rca import encode_block
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.repos.archives import ArchiveProblem
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.repos.since import EarlierRevs
from sanderling.stores.durable import FolderError
from sanderling.stores.ports import ProgressView
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet


def archive(folder: Path, *repos: tuple[str, str, int], size: int = 2**20) -> Path:
    """An archive of empty repos: DID, rev and when."""
    with Segments(folder, size=size, created_at=lambda: 1) as segments:
        for did, rev, at in repos:
            segments.append([(did, encode_block(did, "https://a.example", rev, at, []))])
    return folder


def read(*folders: Path) -> tuple[EarlierRevs, list[ArchiveProblem]]:
    earlier, problems = EarlierRevs(), list[ArchiveProblem]()
    for folder in folders:
        earlier.read(folder, problems.append)
    return earlier, problems


def test_the_revision_of_each_repo_is_known(tmp_path: Path) -> None:
    folder = archive(tmp_path, ("did:plc:a", "3a", 1), ("did:plc:b", "3b", 1), ("did:plc:c", "", 1), size=1)

    earlier, problems = read(folder)

    with earlier:
        assert [earlier.rev(did) for did in ("did:plc:a", "did:plc:b", "did:plc:c", "did:plc:d")] == [
            "3a",
            "3b",
            "",
            "",
        ]
        assert (earlier.repos, problems) == (3, [])


def test_of_two_archives_the_later_crawl_counts_whichever_is_named_first(tmp_path: Path) -> None:
    old = archive(tmp_path / "old", ("did:plc:a", "3old", 1))
    new = archive(tmp_path / "new", ("did:plc:a", "3new", 2))

    for order in ((old, new), (new, old)):
        with read(*order)[0] as earlier:
            assert earlier.rev("did:plc:a") == "3new"


def test_a_segment_that_is_still_written_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    segments = Segments(tmp_path, size=2**20, created_at=lambda: 1)
    segments.append([("did:plc:a", encode_block("did:plc:a", "https://a.example", "3a", 1, []))])
    segments.abandon()
    with (tmp_path / "segment_0001.rca.part").open("ab") as file:
        file.write(b"torn")

    earlier, problems = read(tmp_path)

    with earlier:
        assert (earlier.rev("did:plc:a"), problems) == ("3a", [])


def test_what_is_damaged_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = archive(tmp_path, ("did:plc:a", "3a", 1), ("did:plc:b", "3b", 1), size=1)
    (folder / "segment_0001.rca").write_bytes(b"nothing of the kind")

    earlier, problems = read(folder)

    with earlier:
        assert (earlier.rev("did:plc:a"), earlier.rev("did:plc:b")) == ("", "3b")
        assert [problem.path.name for problem in problems] == ["segment_0001.rca"]


def test_a_folder_without_segments_is_no_archive(tmp_path: Path) -> None:
    with EarlierRevs() as earlier, pytest.raises(FolderError, match="holds no segments"):
        earlier.read(tmp_path, lambda _: None)


class Changing:
    """The network, counting what is asked for; some repos have another revision than before."""

    def __init__(self, network: FleetNetwork, changed: set[str], silent: set[str]) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self._network = network
        self._changed = changed
        self._silent = silent

    async def send(self, task: Task) -> Reply:
        method, did = task.url.partition("?")[0].rpartition(".")[2], task.url.partition("did=")[2]
        self.asked[method, did] += 1
        if did in self._silent:
            raise ConnectionResetError
        reply = await self._network.send(task)
        if method == "getLatestCommit" and did in self._changed:
            return Reply(200, (), b'{"cid": "bafy", "rev": "3zzz"}', task.url, reply.latency)
        return reply


def again(
    folder: Path,
    fleet: Fleet,
    earlier: EarlierRevs,
    *,
    changed: set[str],
    silent: set[str],
    network: type[Changing] = Changing,
) -> tuple[ProgressView, Changing]:
    """A crawl of the fleet into another folder."""

    async def main() -> tuple[ProgressView, Changing]:
        clock = LoopClock()
        made = network(FleetNetwork(fleet, clock), changed, silent)
        progress = SqliteProgress(folder / "progress.db")
        with Segments(folder / "rca", size=2**20, created_at=lambda: 1) as segments:
            limiter = Limiter(LIMITS, clock=clock)
            stores = Stores(Listed(list(fleet.directory())), progress, segments, earlier)
            transport, rules = Transport(made, limiter, Memory(2**30)), RepoRules(page_size=100)
            assert await RepoCrawl(stores, transport, inline, inline, rules=rules, clock=clock).run()
        return progress.view(), made

    folder.mkdir()
    return run_virtual(main())


def test_who_refuses_repos_for_an_hour_holds_no_worker_that_has_just_asked_for_the_revision(tmp_path: Path) -> None:
    fleet = Fleet.make(1, hosts=1, repos=12, others=())
    crawl_fleet(tmp_path / "first", fleet)
    live = {did for did, end in fleet.expected().items() if end.archived and end.rev}
    ends: list[float] = []

    class Refusing(Changing):
        async def send(self, task: Task) -> Reply:
            if "getLatestCommit" in task.url:
                await asyncio.sleep(3)  # so that several are under way when the first repo is refused
                return await super().send(task)
            ends.append(asyncio.get_running_loop().time())
            return Reply(429, (("Retry-After", "3600"),), b"", task.url, 0.05)

    with read(tmp_path / "first" / "rca")[0] as earlier:
        view, _ = again(tmp_path / "second", fleet, earlier, changed=live, silent=set(), network=Refusing)

    assert view.failed[AtprotoCategory.RATE_LIMITED] >= len(live)
    assert max(ends) < 60


def test_only_what_has_changed_is_archived_again(tmp_path: Path) -> None:
    fleet = Fleet.make(1, hosts=2, repos=40, others=())
    crawl_fleet(tmp_path / "first", fleet)
    ends = fleet.expected()
    live = sorted(did for did, end in ends.items() if end.archived and end.rev)
    old = {did for did, end in ends.items() if end.archived and not end.rev}
    changed, silent = set(live[:3]), set(live[3:5])

    with read(tmp_path / "first" / "rca")[0] as earlier:
        view, network = again(tmp_path / "second", fleet, earlier, changed=changed, silent=silent)

    assert set(archived(tmp_path / "second" / "rca")) == changed | old, "those of the old form tell no revision"
    assert view.failed[AtprotoCategory.UNCHANGED] == len(live) - 5
    assert view.failed[AtprotoCategory.CONNECTION_ERROR] == 2
    fetched = {did for method, did in network.asked if method == "getRepo"}
    assert not fetched & (set(live) - changed), "who says nothing to the first question is not asked the second"
