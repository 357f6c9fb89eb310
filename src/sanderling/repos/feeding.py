"""What a crawl of repos is fed with: the directory, page by page, and then what failed before."""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet

from sanderling.apis.atproto import TRANSIENT
from sanderling.flow.desk import Desk
from sanderling.repos.directory import Directory
from sanderling.repos.dispatcher import LowWater
from sanderling.repos.measures import Measures
from sanderling.stores.ports import Progress

Room = Callable[[], Awaitable[bool]]  # returns when more may be read; False if nothing more is wanted
Feed = Callable[[Sequence[tuple[str, str]]], object]  # takes DIDs, each with the address of its host


class Feeder:
    """Reads what is still to be asked for, a page at a time."""

    def __init__(
        self, directory: Directory, progress: Progress, water: LowWater, disk: Desk, measures: Measures, page_size: int
    ) -> None:
        self._directory = directory
        self._progress = progress
        self._water = water
        self._disk = disk
        self._measures = measures
        self._page_size = page_size

    async def feed_directory(self, room: Room, feed: Feed) -> None:
        """All of the directory from where it was left, but for what is settled."""
        after = await self._disk(self._progress.cursor)
        while await room():
            page = await self._disk(self._directory.page, after, self._page_size)
            if not page:
                return
            dids = [entry.did for entry in page]
            pending = set(await self._disk(self._progress.pending, dids))
            after = dids[-1]
            self._measures.pages += 1
            self._measures.page_dids.add(len(pending))
            self._water.begin(after, pending)
            feed([(entry.did, entry.host) for entry in page if entry.did in pending])

    async def feed_failed(self, room: Room, feed: Feed, busy: AbstractSet[str]) -> None:
        """What failed and may go otherwise, but for hosts that are `busy`."""
        after = ""
        while await room():
            names = [category.value for category in TRANSIENT]
            failed = await self._disk(self._progress.failed, names, after, self._page_size)
            if not failed:
                return
            dids = [did for did, _ in failed]
            after = dids[-1]
            hosts = await self._disk(self._directory.hosts_of, dids)
            feed([(did, hosts[did]) for did in dids if did in hosts and hosts[did] not in busy])
