"""The directory as all parts of a fleet's crawl read it: a page is what it was for whoever came to it first.

The directory changes while machines read it, each part at a time of its own: an account that moves from a host of one
part to one of another would else be taken by both, or by neither. So whoever comes to a page first keeps it in the
object store, and the first server says which object it is. All parts read that one, so each DID is one part's.

An account may still move after that. Where its repo is scheduled, or its old host does not have it any more, the part
of the new host is sent a message.
"""

import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.fleet_log import until_there
from sanderling.crawls.fleet_mail import FleetBoard, FleetInbox, FleetOutbox
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.executor import Executor
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.feeding import WalkedPage
from sanderling.repos.hand_out import PartLookup
from sanderling.stores.board import BoardField
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import InboxMessage
from sanderling.stores.leases import HeldLease
from sanderling.stores.objects import ObjectError
from sanderling.stores.ports import Due
from sanderling.stores.sqlite_progress import MovedDid, SqliteProgress

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, compress, decompress
else:
    from backports.zstd import ZstdError, compress, decompress

T = TypeVar("T")
Asks = Callable[[Callable[[], Coroutine[Any, Any, T]]], T]

PAGES_KEPT = 16  # pages in memory for parts that come to them later: of 50,000 DIDs, some 1.5 MB each
LARGEST = 2**28  # bytes of a page
QUIET = 0.5  # seconds between two looks of a part that waits for others
AT_ONCE = 1_000  # DIDs of one message

_pack, _unpack_entries = msgspec.msgpack.encode, msgspec.msgpack.Decoder(list[DirectoryEntry])


class StoredPage(msgspec.Struct, frozen=True):
    """A page of the directory: what each part has of it, packed, since a part needs its own only."""

    last: str
    parts: dict[int, bytes]

    @classmethod
    def of(cls, found: Sequence[DirectoryEntry], part_of: Callable[[str], int]) -> "StoredPage":
        """The page of some entries."""
        entries: dict[int, list[DirectoryEntry]] = {}
        for each in found:
            entries.setdefault(part_of(each.host), []).append(each)
        return cls(found[-1].did, {part: compress(_pack(own), 3) for part, own in entries.items()})

    def entries(self, part: int) -> list[DirectoryEntry]:
        """What is at hosts of a part. Raises FolderError."""
        if part not in self.parts:
            return []
        try:
            return _unpack_entries.decode(decompress(self.parts[part]))
        except (msgspec.MsgspecError, ZstdError) as error:
            raise FolderError(f"the page of the directory up to {self.last} is damaged: {error}") from None


class SharedPages:
    """The pages of the directory that all parts of a fleet read; the last ones are in memory."""

    def __init__(self, directory: Directory, shared: SharedCrawl, page_size: int, executor: Executor) -> None:
        """The `executor` does one thing at a time."""
        self.directory = directory
        self.part_of = PartLookup(shared.crawl.parts)
        self.shared = shared
        self._page_size = page_size
        self._executor = executor
        self._kept: OrderedDict[str, StoredPage] = OrderedDict()  # by the DID that they are behind

    async def page(self, after: str, held: HeldLease) -> WalkedPage | None:
        """What follows a DID at hosts of a part, up to where it was looked for; None at the end of the directory."""
        return await self._executor(self._walk, after, held)

    def _walk(self, after: str, held: HeldLease) -> WalkedPage | None:
        page = self._kept.get(after) or self._read(after, partial(until_there, self.shared.fleet, held))
        if page is None:
            return None
        self._kept[after] = page
        self._kept.move_to_end(after)
        while len(self._kept) > PAGES_KEPT:
            self._kept.popitem(last=False)
        return WalkedPage(page.entries(held.lease.part), page.last)

    def _read(self, after: str, ask: Asks[Any]) -> StoredPage | None:
        """The page that all have agreed on, ours if nobody was here before."""
        server, place, name = self.shared.fleet.servers[0], self.shared.place, f"directory {after}"
        key = ask(partial(server.agreed, name))
        if not key:
            found = self.directory.page(after, self._page_size)
            if not found:
                return None
            page, ours = StoredPage.of(found, self.part_of), f"directory/{secrets.token_hex(12)}"
            ask(partial(place.put, ours, _pack(page)))
            key = ask(partial(server.agree, name, ours))
            if key == ours:
                return page
            with suppress(ObjectError):  # it is only in the way
                ask(partial(place.delete, ours))
        try:
            return msgspec.msgpack.decode(ask(partial(place.get, key, LARGEST)), type=StoredPage)
        except msgspec.MsgspecError as error:
            raise FolderError(f"the object {key} is no page of the directory: {error}") from None


class MovedRepos:
    """Sends what is scheduled here to the parts of its new hosts, and takes in what others send.

    A DID is in one place: our progress lets go of it, and notes what is to be sent; it is sent; the progress notes that
    it was; and the commit that schedules it there takes the message out of the inbox. Killed after any step, the next
    owner sends it once more, to the same part, which knows by the number of moves that it has come before.
    """

    def __init__(self, progress: SqliteProgress, outbox: FleetOutbox, inbox: FleetInbox) -> None:
        """Its methods are called by who writes the progress."""
        self.read: Sequence[int] = ()  # messages that the next commit has
        self._progress = progress
        self._outbox = outbox
        self._inbox = inbox

    @property
    def waits(self) -> bool:
        """Whether others have sent something."""
        return self._inbox.waits

    def send(self, moved: Mapping[Due, int]) -> None:
        """Each of these belongs to that part now. Raises LeaseLostError."""
        self._progress.send_away(moved)
        self.send_rest()

    def send_rest(self) -> None:
        """Send what is still to be sent. Raises LeaseLostError."""
        while unsent := self._progress.unsent(AT_ONCE):
            by_part: dict[int, list[MovedDid]] = {}
            for each in unsent:
                by_part.setdefault(each.part or 0, []).append(each)
            for part, own in by_part.items():
                self._outbox.put(part, compress(_pack(own), 3))
            self._outbox.sync()
            self._progress.sent([each.did for each in unsent])

    def take(self) -> list[Due]:
        """What others have sent, and is scheduled here from now on. Raises LeaseLostError."""
        messages = self._inbox.take()
        self.read = [each.id for each in messages]
        try:
            taken = self._progress.take_in([each for message in messages for each in _read_moved(message)])
        finally:
            self.read = ()
        self._inbox.drop(messages)
        return taken


def _read_moved(message: InboxMessage) -> list[MovedDid]:
    try:
        return msgspec.msgpack.decode(decompress(message.body), type=list[MovedDid])
    except (msgspec.MsgspecError, ZstdError) as error:
        raise FolderError(f"a message for part {message.part} is damaged: {error}") from None


class PartWalk:
    """The directory as one part walks it. At the end it waits for the others, which may send it something still."""

    def __init__(
        self, pages: SharedPages, held: HeldLease, board: FleetBoard, clock: Clock, moved: MovedRepos, disk: Executor
    ) -> None:
        """The executor `disk` is what writes the progress."""
        self.rests = False  # whether nothing is left but to wait: hosts that were set aside are not probed then
        self._pages = pages
        self._held = held
        self._part = held.lease.part
        self._board = board
        self._clock = clock
        self._moved = moved
        self._disk = disk
        self._begun = self._ended = False

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        """What follows."""
        if self._board.over:
            return None
        if not self._begun:
            await self._disk(self._moved.send_rest)  # of the last owner
            self._begun = True
        if self._moved.waits:
            self._rest(idle=False)
            return WalkedPage((), after, await self._disk(self._moved.take))
        if not self._ended:
            if (page := await self._pages.page(after, self._held)) is not None:
                return page
            self._ended = True
        self._rest(idle=idle)
        await self._clock.sleep(QUIET)
        return WalkedPage((), after)

    def _rest(self, *, idle: bool) -> None:
        self.rests = idle
        self._board.put(self._part, BoardField.IDLE, idle)

    def is_own(self, url: str) -> bool:
        """Whether it is a host of this part."""
        return self._pages.part_of(url) == self._part

    async def pass_on(self, moved: Mapping[Due, str]) -> None:
        """Send these to the parts of their hosts."""
        await self._disk(self._moved.send, {each: self._pages.part_of(url) for each, url in moved.items()})
