"""How the dashboard reaches what a system keeps in a database or a queue.

What is in the system's folder can be opened from anywhere on this machine. What is on a server can be reached only by
the process that was told where, since no file says that: it may need a password.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from sanderling.clock import Clock, SystemClock
from sanderling.stores.listing import Row
from sanderling.stores.polling_store import PollingStore, open_polling
from sanderling.stores.queue import WholeQueue, open_queue
from sanderling.web.house import Found

DATABASE = "polling.db"
CLAIM = f"{DATABASE}-polls"  # whoever polls holds it, and has written its process into it
QUEUE = "analytics.data.collected"
QUEUES: Mapping[str, str] = {"events": QUEUE, "sequence": "instance_store"}  # the queue of each system, at a broker too


@runtime_checkable
class ItemSource(Protocol):
    """Progress that is not in the folder: that of `repos` in Redis."""

    def items(self, state: str, after: str) -> Iterator[Row]:
        """Those in a state, behind a position. Blocks. Raises PositionError and ProgressError."""


class ElsewhereError(Exception):
    """What is asked for is not in the folder. The message says who could reach it."""


class Reach:
    """What this process has open itself, by the system's folder; everything else is opened where it is embedded."""

    def __init__(
        self,
        polling: Mapping[Path, PollingStore] | None = None,
        queues: Mapping[Path, WholeQueue] | None = None,
        progress: Mapping[Path, ItemSource] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._polling = {folder.resolve(): store for folder, store in (polling or {}).items()}
        self._queues = {folder.resolve(): queue for folder, queue in (queues or {}).items()}
        self._progress = {folder.resolve(): source for folder, source in (progress or {}).items()}
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"<Reach: {len(self._polling)} databases, {len(self._queues)} queues open>"

    def progress(self, found: Found) -> ItemSource | None:
        """The progress that a system keeps at a server, if this process holds it open."""
        return self._progress.get(found.folder.resolve())

    @asynccontextmanager
    async def open_polling(self, found: Found) -> AsyncIterator[PollingStore]:
        """The database of a system that polls. Raises ElsewhereError, PollingStoreError."""
        known = self._polling.get(found.folder.resolve())
        if known is not None:
            yield known
            return
        if not await asyncio.to_thread(_polls_here, found):
            raise ElsewhereError(_words("database", found))
        store = await open_polling(f"sqlite:{found.folder / DATABASE}", None, "", asyncio.to_thread)
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def open_queue(self, found: Found) -> AsyncIterator[WholeQueue]:
        """The queue of a system that has one. Raises ElsewhereError, QueueError."""
        known = self._queues.get(found.folder.resolve())
        if known is not None:
            yield known
            return
        name = QUEUES[found.system]
        if not await asyncio.to_thread((found.folder / f"{name}.db").is_file):
            raise ElsewhereError(_words("queue", found))
        queue = open_queue(f"sqlite:{found.folder}", name, self._clock)
        try:
            yield queue
        finally:
            await queue.close()


def _polls_here(found: Found) -> bool:
    """Whether the database in the folder is the one that is polled into; one of an earlier run may be left there."""
    try:
        with (found.folder / CLAIM).open("rb") as file:
            claimed = file.read(20).strip()
    except OSError:
        return False
    said = found.process
    return (found.folder / DATABASE).is_file() and said is not None and claimed == str(said.pid).encode()


def _words(what: str, found: Found) -> str:
    return (
        f"the {what} of {found.name!a:.100} is not in its folder, so only the process that uses it can reach it; "
        "use the dashboard of that process: --dashboard PORT"
    )
