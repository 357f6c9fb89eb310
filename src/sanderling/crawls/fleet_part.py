"""One part of a fleet's crawl while a worker has it: its run, and what goes to the servers beside that."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_log import PartLog
from sanderling.crawls.fleet_mail import FleetBoard, FleetInbox
from sanderling.crawls.fleet_orphans import OrphanSearch
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter
from sanderling.stores.board import BoardField
from sanderling.stores.control_file import Control
from sanderling.stores.fleet import PartFigures, PartState
from sanderling.stores.leases import HeldLease, LeasesAwayError

LOOK = 1.0  # seconds between two looks at whether a snapshot is due
KEEP_EVERY = 5.0  # seconds that what the limiter learned may be old after a crash
KEEP_AGAIN = 12  # times, after which it is kept though it has learned nothing: a server may have forgotten it
PACE = 2**20 / 30  # bytes a second of what all limiters learned, at most: of very many hosts it is kept less often


TakeRest = Callable[[], Coroutine[Any, Any, None]]


class PartRunning(Protocol):
    """The run of a part."""

    engine: Any
    clock: Clock

    async def run(self) -> bool:
        """Ask until nothing is left, or it was stopped; whether all is decided."""

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone; stop; drain."""

    @property
    def inflight(self) -> int:
        """Requests that are out."""


@dataclass(slots=True)
class PartStores:
    """Where a part is kept."""

    fleet: FleetStores
    held: HeldLease
    copy: LedgerCopy
    log: PartLog
    orphans: OrphanSearch


@dataclass(slots=True)
class FleetPart:
    """A part that is ours, and open. Close it by its `stack`."""

    stores: PartStores
    board: FleetBoard
    inbox: FleetInbox
    run: PartRunning
    transport: Transport[Any]
    fetched: Callable[[], int]  # items that are kept
    waiting: Callable[[], int]  # items that have no end yet
    asked: Callable[[], int]  # requests, where somebody counts them
    failed: Callable[[], int]  # items whose end is a failure
    take_rest: TakeRest  # what others find for it once it has ended by itself
    stack: ExitStack
    _stopped: bool = False
    _limiter: bytes = b""  # what the server knows of ours, but for when that was
    _unkept: int = 0  # times that there was nothing new

    @property
    def number(self) -> int:
        """Which part it is."""
        return self.stores.held.lease.part

    @property
    def is_idle(self) -> bool:
        """Whether its server knows that it has nothing to do."""
        return self.stores.log.is_idle

    @property
    def uncommitted(self) -> int:
        """Requests that are out, and what was answered and is not committed yet."""
        writer = self.run.engine.writer
        return self.run.inflight + int(writer.added - writer.durable)

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopped = True
        self.run.stop()

    async def work(self) -> bool:
        """Run until the crawl is over, or somebody stops it; whether nothing of this part is left."""
        async with self.transport.http, asyncio.TaskGroup() as group:
            beside = [group.create_task(each) for each in (self._keep_snapshots(), self._keep_limiter())]
            try:
                complete = await self.run.run()
                await self._wait_for_others()
            finally:
                for task in beside:
                    task.cancel()
            await self._send_limiter()
        return complete

    async def _wait_for_others(self) -> None:
        """A part that has come to its end by itself stays ours until all have, or somebody else is to have it."""
        while not (self.board.over or self._stopped):
            await self.take_rest()
            self.board.put(self.number, BoardField.IDLE, 1)
            await self.run.clock.sleep(LOOK)

    def figures(self) -> PartFigures:
        """What others are told of it."""
        return PartFigures(self.number, self.fetched(), self.waiting(), self.asked(), self.failed())

    async def say_whether_idle(self, *, again: bool) -> bool:
        """Have the server know whether the part has anything to do; whether it knows since now that it has not.

        `again`, since it may have forgotten that.
        """
        idle, before = bool(self.board.get(self.number, BoardField.IDLE)), self.is_idle
        if idle == before and not again:
            return False
        lease, server = self.stores.held.lease, self.stores.fleet.server_of(self.number)
        noted = await self.stores.fleet.call(server.say_idle(lease, self.figures(), idle=idle))
        self.stores.log.idle_at = lease.head if idle and noted else -1
        return self.is_idle and not before

    async def _keep_snapshots(self) -> None:
        while True:
            await self.run.clock.sleep(LOOK)
            if self.stores.copy.is_due(self.stores.log.bytes):
                await self._keep_snapshot()
            await self.stores.orphans.look()  # while no snapshot of ours is being put

    async def _keep_snapshot(self) -> None:
        stores, logged = self.stores, self.stores.log.bytes
        earlier = await asyncio.to_thread(stores.copy.keep_snapshot, stores.held.lease)
        stores.log.bytes -= logged
        stores.orphans.replace(earlier)

    async def _keep_limiter(self) -> None:
        """Keep what the limiter knows every few seconds, and penalties at once, for whoever has the part next."""
        while True:
            size = await self._send_limiter()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(KEEP_EVERY, size * self.board.parts / PACE)):
                    await self._send_all_news()

    async def _send_all_news(self) -> None:
        told = asyncio.Event()
        while True:
            told.clear()
            if news := self.transport.limiter.take_news(told.set):
                await self._send_news(news)
            await told.wait()

    async def _send_limiter(self) -> int:
        saved = b"".join(self.transport.limiter.saving())
        said = saved.partition(b'"hosts":')[2]  # of those that are to be left alone, it is another each time
        self._unkept += 1
        if said == self._limiter and self._unkept < KEEP_AGAIN:
            return len(saved)
        server = self.stores.fleet.server_of(self.number)
        with suppress(LeasesAwayError):  # then the server has what was said last
            await self.stores.fleet.call(server.keep_limiter(self.stores.held.lease, saved, b""))
            self._limiter, self._unkept = said, 0
        return len(saved)

    async def _send_news(self, news: bytes) -> None:
        server = self.stores.fleet.server_of(self.number)
        with suppress(LeasesAwayError):
            await self.stores.fleet.call(server.keep_limiter(self.stores.held.lease, None, news + b"\n"))


def recall_limiter(limiter: Limiter, state: PartState) -> None:
    """Have a limiter take up what that of the last owner knew."""
    # Written by another release: what it knew is learned again.
    with suppress(ValueError):
        limiter.restore(state.limiter)
    for line in state.news.splitlines():
        with suppress(ValueError):
            limiter.restore(line)


OpenPart = Callable[[HeldLease], Coroutine[Any, Any, FleetPart]]
