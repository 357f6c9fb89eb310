"""The crawl of repos, against a fleet with every kind of host, under virtual time."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from fleet_crawl import Crawled, Listed, crawl_fleet, inline
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.formats.car import read_car, write_car
from sanderling.formats.cid import Cid
from sanderling.formats.repo import Limits, RepoError, parse_repo
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import DirectoryEntry, DirectoryError
from sanderling.repos.report import RepoWatch
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.stores.ports import Finished, HostAside, ProgressError, Unfinished
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import is_running
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Crawled]:
    fleet = Fleet.make(1, hosts=6, repos=150)
    return fleet, crawl_fleet(tmp_path_factory.mktemp("fleet") / "out", fleet)


def test_every_live_repo_is_in_the_archive_exactly_once(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    live = {did for did, end in fleet.expected().items() if end.archived}
    assert crawled.complete
    assert set(crawled.archive) == live
    assert set(crawled.archive.values()) == {1}


def test_every_dead_one_is_in_its_category(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    dead = [end.category for end in fleet.expected().values() if end.category is not None]
    expected = {category.value: dead.count(category) for category in set(dead)}
    assert crawled.view.failed == expected


def test_the_cursor_ends_behind_the_last(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    assert crawled.view.cursor == max(did for did, _ in fleet.directory())


def test_stopped_and_run_again_it_goes_on(tmp_path: Path) -> None:
    fleet = Fleet.make(2, hosts=4, repos=120, others=())

    first = crawl_fleet(tmp_path / "out", fleet, stop_after=4)
    second = crawl_fleet(tmp_path / "out", fleet)

    assert not first.complete
    assert 0 < len(first.archive) < 120
    assert second.complete
    assert set(second.archive.values()) == {1}
    assert len(second.archive) == sum(end.archived for end in fleet.expected().values())


def test_a_host_that_is_down_for_a_while_is_blocked_and_comes_back_in_a_later_pass(tmp_path: Path) -> None:
    fleet = Fleet.make(3, hosts=1, repos=60, others=())

    class Outage:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            if 5 <= asyncio.get_running_loop().time() < 60:
                raise ConnectionResetError
            return await self._network.send(task)

    crawled = crawl_fleet(tmp_path / "out", fleet, through=Outage)

    assert len(crawled.archive) == sum(end.archived for end in fleet.expected().values())


def test_one_slow_host_stalls_nobody(tmp_path: Path) -> None:
    """With four workers, and one host that takes a minute for each answer."""
    fleet = Fleet.make(4, hosts=5, repos=100, others=())
    slow = max(fleet.pds, key=lambda host: host.size).name
    ends: dict[str, float] = {}

    class Slow:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            if task.host == slow:
                await asyncio.sleep(20)
            reply = await self._network.send(task)
            ends[task.host] = asyncio.get_running_loop().time()
            return reply

    crawl_fleet(tmp_path / "out", fleet, through=Slow, rules=RepoRules(workers=14, per_host=10))

    assert max(when for name, when in ends.items() if name != slow) < 60


def test_nothing_is_asked_faster_than_the_size_of_a_host_allows(tmp_path: Path) -> None:
    fleet = Fleet.make(5, hosts=3, repos=90, others=())
    asked: dict[str, list[float]] = {}

    class Timed:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            asked.setdefault(task.host, []).append(asyncio.get_running_loop().time())
            return await self._network.send(task)

    crawl_fleet(tmp_path / "out", fleet, through=Timed)

    for times in asked.values():
        assert all(later - earlier > 0.49 for earlier, later in pairwise(times))


def test_a_repo_of_another_did_is_not_kept(tmp_path: Path) -> None:
    fleet = Fleet.make(6, hosts=1, repos=3, others=())
    dids = sorted(did for did, end in fleet.expected().items() if end.archived)

    class Swapped:
        def __init__(self, network: FleetNetwork) -> None:
            self._network: Sends = network

        async def send(self, task: Task) -> Reply:
            other = Task(task.url.replace(dids[0], dids[1]), headers=task.headers)
            reply = await self._network.send(other)
            return Reply(reply.status, reply.headers, reply.body, task.url, reply.latency)

    crawled = crawl_fleet(tmp_path / "out", fleet, through=Swapped)

    assert dids[0] not in crawled.archive
    assert crawled.view.failed[AtprotoCategory.DID_MISMATCH] == 1


def test_hosts_that_are_gone_for_good_do_not_hold_up_the_end(tmp_path: Path) -> None:
    """Each pass waits for them once, and not once for each of their repos."""
    fleet = Fleet.make(8, hosts=1, repos=10, others=("dead", "nameless"))

    crawled = crawl_fleet(tmp_path / "out", fleet)

    assert crawled.complete
    assert crawled.view.failed[AtprotoCategory.CONNECTION_ERROR] == crawled.view.failed[AtprotoCategory.DNS_ERROR] == 4
    assert crawled.seconds < 200


class Partial:
    """Leaves a record out of the answers for one DID, as often as it is told to."""

    def __init__(self, did: str, times: int) -> None:
        self.did = did
        self.times = times
        self.asked = 0

    def through(self, network: FleetNetwork) -> Sends:
        parts = self

        class Leaving:
            async def send(self, task: Task) -> Reply:
                reply = await network.send(task)
                if parts.did not in task.url or reply.status != 200:
                    return reply
                parts.asked += 1
                body = reply.body if parts.asked > parts.times else without_a_record(reply.body)
                return Reply(200, reply.headers, body, reply.url, reply.latency)

        return Leaving()


def without_a_record(car: bytes) -> bytes:
    index = read_car(car, limits=Limits())
    for left_out in index.spans:
        rest = [(Cid(cid), car[start:end]) for cid, (start, end) in index.spans.items() if cid != left_out]
        cut = write_car(index.roots, rest)
        try:
            if parse_repo(cut).stats.missing:
                return cut
        except RepoError:
            continue
    raise AssertionError("a repo without records")


@pytest.mark.parametrize(("times", "asked", "missing"), [(1, 2, 0), (99, 3, 1)])
def test_a_repo_that_lacks_records_is_asked_for_again_and_kept_as_it_is_in_the_end(
    tmp_path: Path, times: int, asked: int, missing: int
) -> None:
    """It may have been written to while it was sent. One broken post must not cost an account, either."""
    fleet = Fleet.make(9, hosts=1, repos=8, others=())
    live = {did: end for did, end in fleet.expected().items() if end.archived}
    did = max(live, key=lambda each: sum(live[each].collections.values()))
    parts = Partial(did, times)

    done = crawl_fleet(tmp_path / "out", fleet, through=parts.through)

    assert (parts.asked, done.archive[did], done.crawl.source.dropped["missing"]) == (asked, 1, missing)
    assert set(done.archive) == set(live)


@pytest.mark.parametrize(("hosts", "pages"), [(60, 11), (3, 51)])
def test_the_directory_is_read_ahead_further_where_few_hosts_have_work(tmp_path: Path, hosts: int, pages: int) -> None:
    """Others may be further on. But never all of it: fifty million DIDs are gigabytes."""

    directory = Listed([(f"did:plc:{n:05}", f"https://h{n % hosts}.example") for n in range(6_000)])

    async def main() -> int:
        patient = RepoRules(page_size=100, workers=1, patience=1e4, first_patience=1e4)
        crawl = made(tmp_path, directory, Answering(after=1000), patient)
        asyncio.get_running_loop().call_later(100, crawl.stop)
        await crawl.run()
        return crawl.measures.pages

    assert run_virtual(main()) == pages


def test_a_directory_that_fails_half_way_is_not_taken_for_its_end(tmp_path: Path) -> None:
    """Else the crawl would be called complete, and the next one begin anew: nobody would ask for the rest."""

    class Failing(Listed):
        def page(self, after: str, limit: int) -> list[DirectoryEntry]:
            if after >= "did:plc:00199":
                raise DirectoryError("the server has gone")
            return super().page(after, limit)

    async def main() -> None:
        directory = Failing([(f"did:plc:{n:05}", f"https://h{n % 60}.example") for n in range(600)])
        await made(tmp_path, directory, Answering(), RepoRules(page_size=100, workers=50)).run()

    with pytest.raises(ExceptionGroup) as caught:
        run_virtual(main())
    assert caught.value.subgroup(DirectoryError) is not None
    progress = SqliteProgress(tmp_path / "progress.db")
    seen = progress.view()
    progress.close()
    assert seen.cursor < "did:plc:00200"
    assert seen.completed == seen.failed.get(AtprotoCategory.NOT_FOUND, 0) <= 200


def made(folder: Path, directory: Listed, http: Sends, rules: RepoRules) -> RepoCrawl:
    clock, progress = LoopClock(), SqliteProgress(folder / "progress.db")
    limiter = Limiter(clock=clock)
    segments = Segments(folder / "rca", size=1000, created_at=lambda: 0)
    transport = Transport(http, limiter, Memory(1000))
    return RepoCrawl(Stores(directory, progress, segments), transport, inline, inline, rules=rules, clock=clock)


class Answering:
    """Knows nobody, and says so after a while."""

    def __init__(self, after: float = 0.1) -> None:
        self._after = after

    async def send(self, task: Task) -> Reply:
        await asyncio.sleep(self._after)
        return Reply(404, (), b"", task.url, 1.0)


@pytest.mark.parametrize("by", [-3600.0, 86_400.0])
def test_a_clock_that_is_set_meanwhile_neither_ages_the_status_nor_makes_it_look_dead(
    tmp_path: Path, by: float
) -> None:
    async def main() -> tuple[float, bool]:
        crawl, clock = made(tmp_path, Listed([]), Answering(), RepoRules()), LoopClock(1_800_000_000.0 + by)
        crawl.engine.clock = clock
        segments, progress = Segments(tmp_path / "other", size=1, created_at=lambda: 0), SqliteProgress(tmp_path / "db")
        watched = RepoWatch(crawl, segments, 0, progress.view())
        now = watched.report(7.5)
        return now.process.seconds, is_running(now.process, clock.wall())

    assert run_virtual(main()) == (7.5, True)


def test_a_disk_that_fills_up_between_segment_and_progress_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The block is durable and nobody was told: the next run finds it, and asks for it no more."""
    fleet = Fleet.make(2, hosts=2, repos=40, others=())

    class Full(SqliteProgress):
        records = 0

        def record(
            self,
            done: Sequence[Finished],
            failed: Sequence[Unfinished],
            *,
            cursor: str | None,
            segment: int,
            hosts: Sequence[HostAside] = (),
        ) -> None:
            self.records += bool(done)
            if self.records == 3:
                raise ProgressError("cannot use progress.db: no space left on device")
            super().record(done, failed, cursor=cursor, segment=segment, hosts=hosts)

    for _ in range(2):
        with pytest.raises(ExceptionGroup) as caught:
            crawl_fleet(tmp_path / "out", fleet, progress_at=Full)
        assert caught.value.subgroup(ProgressError) is not None
    last = crawl_fleet(tmp_path / "out", fleet)

    assert last.complete
    assert set(last.archive.values()) == {1}
    assert len(last.archive) == sum(end.archived for end in fleet.expected().values()) == last.view.total_crawled
