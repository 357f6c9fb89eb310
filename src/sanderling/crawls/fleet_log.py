"""Shares each transaction of a part's ledger: rows to the object store, then a commit to the part's server.

The server may be away. Then the thread that writes waits, and nothing is lost; whoever sends requests stops by itself
at half the lease. What a connection that broke has left open is asked for: whether the commit is there.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from sanderling.crawls.archive import Archivable, ArchiveMark
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_archive import SharedArchive
from sanderling.stores.fleet import PartCommit
from sanderling.stores.frontier_rows import BodyFile
from sanderling.stores.leases import HeldLease, LeaseLostError, LeasesAwayError
from sanderling.stores.ledger_log import SharedHead
from sanderling.stores.objects import ObjectError, Objects

T = TypeVar("T")

AGAIN = 0.25  # seconds between two tries
TOKEN = 8  # bytes of what tells a commit from any other
NUMBERS = 1_000  # commits whose rows are in one folder, so that one of them is listed at once
ROWS, CAPTURES = "rows/", "warc/"  # what names of objects begin with


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """Where the objects of one crawl are."""

    objects: Objects
    bucket: str
    prefix: str  # of every key, with its slash

    async def put(self, name: str, body: bytes) -> None:
        """Return when it is durable. Raises ObjectError."""
        await self.objects.put(self.bucket, self.prefix + name, body, {})

    async def delete(self, name: str) -> None:
        """Return when it is gone. Raises ObjectError."""
        await self.objects.delete(self.bucket, self.prefix + name)

    async def get(self, name: str, most: int) -> bytes:
        """The object. Raises ObjectError."""
        return (await self.objects.get(self.bucket, self.prefix + name, most)).body

    async def names(self, folder: str) -> AsyncIterator[str]:
        """What is below a folder. Raises ObjectError."""
        async for found in self.objects.list(self.bucket, self.prefix + folder):
            yield found.key.removeprefix(self.prefix)


def rows_folder(part: int, number: int, step: int = 0) -> str:
    """Where the rows of a commit are; or a folder so many steps further."""
    return f"{ROWS}{part:04}/{max(0, number // NUMBERS + step):06}"


def until_there(
    fleet: FleetStores, held: HeldLease, ask: Callable[[], Coroutine[Any, Any, T]], of: str = "PostgreSQL"
) -> T:
    """What comes of asking, as often as it takes. Raises LeaseLostError once the part is known to be lost.

    Who waits is told of, and what is asked.
    """
    part, since = held.lease.part, held.boot()

    def gives_up() -> bool:
        fleet.waits.setdefault(part, (since, f"{of} does not answer"))
        return held.hurried or held.lost.is_set()

    def failed(error: LeasesAwayError | ObjectError) -> None:
        if held.hurried or (isinstance(error, ObjectError) and not error.unavailable):
            raise error
        fleet.waits[part] = since, f"{of} is away: {error}"
        fleet.call.rest(held.lost, AGAIN)

    try:
        while not held.lost.is_set():
            try:
                return fleet.call.wait_for(ask(), gives_up)
            except (LeasesAwayError, ObjectError) as error:
                failed(error)
        raise LeaseLostError(f"part {part} is not ours any more (epoch {held.lease.epoch})")
    finally:
        fleet.waits.pop(part, None)


def captures_of(rows: str) -> str:
    """The name of the object with the captures of which the rows in another speak."""
    return CAPTURES + rows.removeprefix(ROWS)


def rows_of(name: str) -> str:
    """The object of rows that captures belong to; any other object is its own."""
    return ROWS + name.removeprefix(CAPTURES) if name.startswith(CAPTURES) else name


class PendingObjects(NamedTuple):
    """What becomes objects before a commit."""

    rows: bytes  # one, if it is not empty
    files: Sequence[BodyFile] = ()  # one each
    captures: bytes = b""  # of a WARC: one, if it is not empty


class PendingParts(Protocol):
    """What waits for the commit that has it."""

    def take(self) -> PendingObjects:
        """All that waits."""


class PendingRows:
    """Rows, files and captures that wait for the commit that has them, in the place of a file of rows.

    `length` counts all rows of the part, those of earlier owners too.
    """

    def __init__(self, watermark: int, archive: SharedArchive | None = None) -> None:
        self.archive = archive
        self.length = watermark
        self._rows: list[bytes] = []
        self._files: list[BodyFile] = []

    def append(self, rows: Iterable[bytes]) -> int:
        """Have rows without line breaks kept with the next commit; where they end."""
        lines = [row + b"\n" for row in rows]
        self._rows += lines
        self.length += sum(map(len, lines))
        return self.length

    def archive_and_append(self, ended: Sequence[Archivable]) -> int:
        """Have rows kept with the next commit, and what they are of if there is an archive; where they end."""
        if self.archive is None:
            return self.append(each.row for each in ended if each.row is not None)
        return self.append(self.archive.append(ended))

    def keep_files(self, files: Iterable[BodyFile]) -> None:
        """Have files kept with the next commit."""
        self._files += files

    def take(self) -> PendingObjects:
        """All that waits."""
        taken = PendingObjects(b"".join(self._rows), self._files, self.archive.take() if self.archive else b"")
        self._rows, self._files = [], []
        return taken

    def cut(self, length: int) -> None:
        """The commit was not made."""
        self._rows, self._files, self.length = [], [], length
        if self.archive is not None:
            self.archive.cut(ArchiveMark())  # what comes next is in a file of its own

    def close(self) -> None:
        """Nothing is open."""


class PartLog:
    """Shares the transactions of one part: call it with each, before it is committed here.

    `read` says which messages the ledger has by now; `pack` makes a segment of rows.
    """

    def __init__(
        self,
        fleet: FleetStores,
        held: HeldLease,
        place: ObjectPlace,
        rows: PendingParts,
        pack: Callable[[bytes], bytes],
        read: Callable[[], Sequence[int]],
    ) -> None:
        self._fleet = fleet
        self._server = fleet.server_of(held.lease.part)
        self._held = held
        self._place = place
        self._rows = rows
        self._pack = pack
        self._read = read
        self.cookies: dict[bytes, bytes] = {}  # for the next commit, by key; empty ones are gone
        self.idle_at = -1  # the head at which the server knows that we are
        self.bytes = 0  # of commits since the last snapshot
        self.uncertain = 0  # commits of which it had to be asked whether they were made

    @property
    def is_idle(self) -> bool:
        """Whether the server knows that the part has nothing to do: any commit takes that back."""
        return self.idle_at == self._held.lease.head

    def __call__(self, body: bytes) -> SharedHead:
        """Keep it, and what it speaks of; what the head of the ledger is now. Raises LeaseLostError, ObjectError."""
        lease, token = self._held.lease, secrets.token_hex(TOKEN)
        segment, size = self._keep_rows(token)
        commit = PartCommit(lease, token, body, segment, size, self._read(), tuple(self.cookies.items()))
        until_there(self._fleet, self._held, partial(self._commit, commit))
        self._held.lease = lease._replace(head=lease.head + 1)
        self.cookies.clear()
        self.bytes += len(body)
        return SharedHead(lease.head + 1, token)

    def _keep_rows(self, token: str) -> tuple[str, int]:
        rows, files, captures = self._rows.take()
        lease = self._held.lease
        for each in files:
            data = Path(each.source).read_bytes() if each.source else each.data
            self._put(f"files/{lease.part:04}/{each.path}", data)
            if each.source:
                Path(each.source).unlink()
        if not rows:
            return "", 0
        folder, packed = rows_folder(lease.part, lease.head + 1), self._pack(rows)
        name = f"{folder}/{lease.epoch:06}-{lease.head + 1:09}-{token}"
        if captures:
            self._put(captures_of(name), captures)
        self._put(name, packed)
        return name, len(rows)

    def _put(self, name: str, body: bytes) -> None:
        until_there(self._fleet, self._held, partial(self._place.put, name, body), "the object store")

    async def _commit(self, commit: PartCommit) -> None:
        """Make it, or find it made by a try whose answer was lost."""
        try:
            await self._server.commit(commit)
        except LeaseLostError:
            # A try whose answer was lost may have been this one: then the head has moved on by it.
            if not await self._server.is_committed(commit):
                raise
            self.uncertain += 1
