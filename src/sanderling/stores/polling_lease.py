"""Who polls a database that several processes can reach: one at a time, by a lease of a few seconds.

Whoever has the lease begins it anew several times while it lasts. One that is killed, stopped or cut off does not, and
then another one takes it. What was written under an earlier lease is refused by the database.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.stores.database import Database, Work
from sanderling.stores.leases import BEATS, HeldLease, Lease, Leases, LeasesAwayError, LeasesError, PartHolder
from sanderling.stores.polling import PollingStoreError

T = TypeVar("T")

SECONDS = 4.0  # of a lease: whoever looks at live data is blind for so long, and a machine may be busy for half of it


class PolledElsewhereError(PollingStoreError):
    """Another process polls the database."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class PollingDatabase(Database, Protocol):
    """A database of which one process at a time is the one that polls."""

    async def peek(self, work: Work[T]) -> T:
        """Read, for whoever polls: nobody who looks at a long list is in the way."""

    async def edit(self, work: Work[T], *, durable: bool = True) -> T:
        """What people and subscribers write, beside whoever polls."""

    async def take_over(self, work: Work[None]) -> None:
        """Be the one who polls, until `close`, and begin with `work`. Raises PolledElsewhereError if another one is."""

    async def hold(self, renewed: Callable[[], object]) -> None:
        """Stay the one who polls, until cancelled; `renewed` is called now and then. Raises PolledElsewhereError.

        Returns where no other process can become it.
        """

    def may_send(self) -> bool:
        """Whether no other process can be the one who polls just now."""


class PollingLease:
    """The right to poll, as one process has it or waits for it. `boot` is a clock that runs in a machine's sleep."""

    def __init__(self, leases: Leases, place: str, clock: Clock, boot: Callable[[], float]) -> None:
        self._leases = leases
        self._place = place
        self._clock = clock
        self._boot = boot
        self._held: HeldLease | None = None

    @property
    def lease(self) -> Lease | None:
        """What we have, or had: whoever writes says which it is."""
        return None if self._held is None else self._held.lease

    def may_send(self) -> bool:
        """Whether no other process can be the one that polls."""
        return self._held is not None and self._held.may_send()

    async def acquire(self) -> None:
        """Be the one who polls. Raises PolledElsewhereError, once another one has shown that it lives."""
        if self._held is not None and not self._held.lost.is_set():
            return
        before: PartHolder | None = None
        while not await self._take():
            found = (await self._ask(self._leases.holders))[0]
            if before is not None and (found.epoch != before.epoch or found.seconds > before.seconds):
                raise self.lost(found.holder)
            before = found
            await self._clock.sleep(SECONDS / BEATS)

    async def hold(self, renewed: Callable[[], object]) -> None:
        """Stay the one who polls, until cancelled; `renewed` is called each time. Raises PolledElsewhereError."""
        held = self._held
        while held is not None:
            asked = self._boot()
            try:
                kept = await self._leases.renew([held.lease])
            except LeasesAwayError:  # the store says so, too
                kept = None
            if kept is not None and not kept:
                held.lost.set()
                raise self.lost()
            if kept:
                held.renewed(asked)
                renewed()
            await self._clock.sleep(SECONDS / BEATS)

    async def release(self) -> None:
        """Give it back: whoever waits has it at once."""
        held, self._held = self._held, None
        if held is not None and not held.lost.is_set():
            held.lost.set()
            await self._ask(partial(self._leases.release, [held.lease]))

    def lost(self, holder: str = "") -> PolledElsewhereError:
        """What to raise when another one has it."""
        return PolledElsewhereError(f"another process polls {self._place}{f', {holder}' if holder else ''}")

    async def _take(self) -> bool:
        asked = self._boot()
        taken = await self._ask(partial(self._leases.acquire, 1))
        if taken:
            self._held = HeldLease(taken[0], SECONDS, self._boot, asked)
        return bool(taken)

    @staticmethod
    async def _ask(ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except LeasesAwayError as error:
            raise PollingStoreError(str(error)) from error
        except LeasesError as error:
            raise PollingStoreError(str(error), transient=False) from error
