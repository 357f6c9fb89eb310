"""The directory as the parts of a fleet read it: a page is what it was for whoever came first; moves are passed on."""

import asyncio
from collections.abc import Sequence

import pytest
from fake_objects import MemoryObjects
from fleet_crawl import Listed, inline
from hypothesis import given
from hypothesis import strategies as st
from memory_progress import MemoryProgress

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
from sanderling.stores.ports import FIRST, Due, Finished, Unfinished

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
    """Two parts, the second of which gets what the first sends."""

    def __init__(self) -> None:
        place = Place()
        self.server = MemoryFleet(place.memory, "shore", WorkerIdentity("one", "one", "1"))
        fleet = FleetStores([self.server], DirectStoreCaller())
        asyncio.run(self.server.begin(CRAWL, range(PARTS)))
        self.first, self.second, self.inbox = MemoryProgress(), MemoryProgress(), FleetInbox()
        self.sends = MovedRepos(self.first, FleetOutbox(fleet, lease_of(0)), FleetInbox())
        self.takes = MovedRepos(self.second, FleetOutbox(fleet, lease_of(1)), self.inbox)

    def schedule(self, *dids: str) -> dict[Due, int]:
        failed = [Unfinished(did, "timeout", permanent=False, failures=3, due=77) for did in dids]
        self.first.record([], failed, cursor=None, segment=0)
        return dict.fromkeys(self.first.due(FIRST, FAR, 99), 1)

    def deliver(self) -> None:
        self.inbox.add(asyncio.run(self.server.receive([1], [], 99)))


def test_what_is_scheduled_goes_to_the_other_part_as_it_is() -> None:
    sides = Sides()
    sides.sends.send(sides.schedule("did:plc:a", "did:plc:b"))
    sides.deliver()
    assert sides.first.view().scheduled == 0

    found = sides.takes.take()

    assert found == [Due(77, 3, "did:plc:a"), Due(77, 3, "did:plc:b")]
    assert sides.second.due(FIRST, FAR, 99) == found
    assert sides.second.reasons(["did:plc:a"]) == {"did:plc:a": "timeout"}
    assert not sides.takes.waits


def test_what_comes_twice_and_is_known_by_then_is_not_scheduled_again() -> None:
    """The sender was killed before its progress had let go of them."""
    sides = Sides()
    moved = sides.schedule("did:plc:a", "did:plc:b")
    sides.sends.send(moved)
    sides.schedule("did:plc:a", "did:plc:b")
    sides.sends.send(moved)
    sides.deliver()
    assert len(sides.takes.take()) == 2

    sides.second.record([Finished("did:plc:a", 5)], [], cursor=None, segment=1)
    sides.schedule("did:plc:a", "did:plc:b")
    sides.sends.send(moved)
    sides.deliver()

    assert sides.takes.take() == []
    assert (sides.second.view().total_crawled, sides.second.view().scheduled) == (1, 1)
