"""The directory as the parts of a fleet read it: a page is what it was for whoever came first; moves are passed on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_objects import MemoryObjects
from fleet_crawl import Listed, inline
from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.crawls.fleet_mail import FleetInbox, FleetOutbox
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.repos.directory import DirectoryEntry
from sanderling.repos.fleet_directory import MovedRepos, SharedPages
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import FleetCrawl, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import HeldLease, Lease
from sanderling.stores.ports import FIRST, Due, Unfinished
from sanderling.stores.sqlite_progress import SqliteProgress

PARTS = 4
CRAWL = FleetCrawl(
    name="shore", id="1", system="repos", plan="", parts=PARTS, seconds=60.0, ledger="", objects="", started=5.0
)
FAR = 2**40


class Place:
    """A server and an object store, in memory."""

    def __init__(self) -> None:
        self.memory, self.objects = FleetMemory(lambda: 1.0), MemoryObjects()

    def shared(self, worker: str = "one") -> SharedCrawl:
        server = MemoryFleet(self.memory, "shore", WorkerIdentity(worker, worker, "1"))
        asyncio.run(server.begin(CRAWL, range(PARTS)))
        return SharedCrawl(FleetStores([server], DirectStoreCaller()), CRAWL, ObjectPlace(self.objects, "dids", "x/"))

    def pages(self, directory: Listed, size: int, worker: str = "one") -> SharedPages:
        return SharedPages(directory, self.shared(worker), size, inline)


def lease_of(part: int) -> HeldLease:
    return HeldLease(Lease(part, 1, 0), 60.0, lambda: 1.0, 1.0)


class Changing(Listed):
    """A directory that is another one with every page that is read of it."""

    def __init__(self, states: Sequence[Sequence[tuple[str, str]]]) -> None:
        super().__init__(states[0])
        self._states, self.read = states, 0

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        super().__init__(self._states[self.read % len(self._states)])
        self.read += 1
        return super().page(after, limit)


@given(
    hosts=st.lists(st.lists(st.integers(0, 9), min_size=12, max_size=12), min_size=1, max_size=5),
    sizes=st.tuples(st.integers(1, 14), st.integers(1, 14)),
    order=st.lists(st.integers(0, PARTS - 1), max_size=60),
)
def test_in_whatever_order_parts_read_a_directory_that_changes_each_did_is_one_parts(
    hosts: list[list[int]], sizes: tuple[int, int], order: list[int]
) -> None:
    states = [[(f"did:plc:{at:03}", f"https://h{host}.example") for at, host in enumerate(each)] for each in hosts]
    place = Place()
    machines = [place.pages(Changing(states), size, f"m{size}") for size in sizes]

    async def read() -> list[list[DirectoryEntry]]:
        found: list[list[DirectoryEntry]] = [[] for _ in range(PARTS)]
        after: list[str | None] = [""] * PARTS
        for turn, part in enumerate([*order, *(each for each in range(PARTS) for _ in range(13))]):
            if (last := after[part]) is not None:
                page = await machines[turn % 2].page(last, lease_of(part))
                found[part] += page.entries if page else ()
                after[part] = page.last if page else None
        return found

    found = asyncio.run(read())

    assert sorted(each.did for part in found for each in part) == [did for did, _ in states[0]]
    for part, own in enumerate(found):
        assert {machines[0].part_of(each.host) for each in own} <= {part}
        assert own == sorted(own)


def test_pages_are_read_once_by_all_machines_and_kept_once() -> None:
    entries = [(f"did:plc:{at:03}", f"https://h{at % 9}.example") for at in range(100)]
    place, directory = Place(), Changing([entries])
    machines = [place.pages(directory, 10, name) for name in ("one", "two", "three")]

    async def read() -> None:
        after: list[str] = [""] * PARTS
        for turn in range(10):
            for part in range(PARTS):
                page = await machines[(turn + part) % 3].page(after[part], lease_of(part))
                assert page is not None
                after[part] = page.last

    asyncio.run(read())

    assert directory.read == 10
    assert len(place.objects.there) == 10


def test_who_was_second_has_the_page_of_the_first_and_leaves_no_object() -> None:
    place = Place()
    one, two = ([("did:plc:a", f"https://{each}.example")] for each in ("one", "two"))

    class Slow(Listed):
        """While it is read, somebody else is quicker."""

        def page(self, after: str, limit: int) -> list[DirectoryEntry]:
            found = super().page(after, limit)
            first._walk(after, lease_of(0))
            return found

    first, second = place.pages(Listed(one), 10, "one"), place.pages(Slow(two), 10, "two")
    pages = [second._walk("", lease_of(part)) for part in range(PARTS)]

    assert [each for page in pages if page for each in page.entries] == one
    assert len(place.objects.there) == 1


def test_a_page_that_is_damaged_is_said_to_be() -> None:
    place = Place()
    pages = place.pages(Listed([("did:plc:a", "https://a.example")]), 10)
    pages._walk("", lease_of(0))
    ((key, stored),) = place.objects.there.items()
    place.objects.there[key] = stored._replace(body=stored.body[:-3])

    with pytest.raises(FolderError, match="is no page of the directory"):
        place.pages(Listed([]), 10, "two")._walk("", lease_of(0))


# Accounts that move.


class Sides:
    """Two parts; what is sent is delivered when somebody says so."""

    def __init__(self, folder: Path) -> None:
        self.server = MemoryFleet(Place().memory, "shore", WorkerIdentity("one", "one", "1"))
        asyncio.run(self.server.begin(CRAWL, range(PARTS)))
        self.progress = [_shared(folder / f"{part}.db") for part in range(2)]
        self.inboxes = [FleetInbox() for _ in range(2)]
        self.moved = [self.opened(part) for part in range(2)]

    def opened(self, part: int) -> MovedRepos:
        outbox = FleetOutbox(FleetStores([self.server], DirectStoreCaller()), lease_of(part))
        return MovedRepos(self.progress[part], outbox, self.inboxes[part])

    def deliver(self, part: int) -> list[str]:
        """Each message, without taking it away: so it comes again the next time."""
        self.inboxes[part].add(asyncio.run(self.server.receive([part], [], 99)))
        found = [each.did for each in self.moved[part].take()]
        assert not self.inboxes[part].taken, "the server is told for ever not to bring what it has no more"
        return found

    def scheduled(self) -> list[list[str]]:
        return [[each.did for each in progress.due(FIRST, FAR, 99)] for progress in self.progress]


def _shared(path: Path) -> SqliteProgress:
    SqliteProgress.create_shared(path)
    return SqliteProgress(path)


def scheduled(progress: SqliteProgress, *dids: str) -> list[Due]:
    failed = [Unfinished(did, "timeout", permanent=False, failures=3, due=77) for did in dids]
    progress.record([], failed, cursor=None, segment=0)
    return progress.due(FIRST, FAR, 99)


def test_what_is_scheduled_goes_to_the_other_part_as_it_is(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    dues = scheduled(sides.progress[0], "did:plc:a", "did:plc:b")

    sides.moved[0].send(dict.fromkeys(dues, 1))
    assert sides.deliver(1) == ["did:plc:a", "did:plc:b"]
    assert sides.progress[0].pending(["did:plc:a", "did:plc:c"]) == ["did:plc:c"], "who walks again would take it"
    sides.progress[0].forget(["did:plc:a"])
    assert sides.progress[0].pending(["did:plc:a"]) == ["did:plc:a"]

    assert sides.progress[1].due(FIRST, FAR, 99) == dues
    assert sides.progress[1].reasons(["did:plc:a"]) == {"did:plc:a": "timeout"}
    assert [(each.scheduled, each.view().scheduled, each.view().failed) for each in sides.progress] == [
        (0, 0, {}),
        (2, 2, {"timeout": 2}),
    ]


def test_what_comes_twice_is_taken_once_and_what_comes_back_is_taken_again(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.moved[0].send(dict.fromkeys(scheduled(sides.progress[0], "did:plc:a"), 1))

    assert sides.deliver(1) == ["did:plc:a"]
    assert sides.deliver(1) == []
    sides.moved[1].send(dict.fromkeys(sides.progress[1].due(FIRST, FAR, 99), 0))
    assert sides.scheduled() == [[], []]
    assert sides.deliver(1) == [], "what was passed on came again, and was not known any more"
    assert sides.deliver(0) == ["did:plc:a"]
    assert sides.deliver(0) == []
    assert sides.scheduled() == [["did:plc:a"], []]


def test_who_is_killed_before_it_has_sent_has_it_sent_to_the_same_part_by_the_next(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.progress[0].send_away(dict.fromkeys(scheduled(sides.progress[0], "did:plc:a"), 1))
    assert (sides.scheduled(), sides.deliver(1)) == ([[], []], [])

    sides.opened(0).send_rest()
    assert sides.deliver(1) == ["did:plc:a"]
    sides.opened(0).send_rest()

    assert len(asyncio.run(sides.server.receive([1], [], 99))) == 1
