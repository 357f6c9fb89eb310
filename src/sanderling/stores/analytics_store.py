"""The store of `events` in a SQL database: what is written; `AnalyticsReading` has what is read.

In SQLite a batch waits for the disk. That a message was sent does not: the power may take the last of it, and then it
is sent once more.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial

from sanderling.stores import analytics_writing as writing
from sanderling.stores.analytics import Batch, EventFilter, Kept, OutboxMessage
from sanderling.stores.analytics_questions import bounded, meant_events, next_to_replay
from sanderling.stores.analytics_reading import AnalyticsReading
from sanderling.stores.analytics_rows import RefusedError, RehearsedError, rehearsal
from sanderling.stores.database import Claim, Transaction

SENDING = Claim("sending", 1396788803)  # "SANC"


class SqlAnalytics(AnalyticsReading):
    """See `analytics_open`."""

    async def keep(self, batch: Batch) -> Kept:
        """Write all of it in one transaction, durably; nothing if the event was processed and is not replayed."""
        try:
            return await self._database.write(partial(writing.keep, batch=batch))
        except RefusedError:
            return await self._database.write(partial(writing.keep_carefully, batch=batch))

    async def rehearse(self, batch: Batch) -> None:
        """Write it under ids of its own and take it back: whether batches can be kept now."""

        async def work(db: Transaction) -> None:
            await writing.keep(db, rehearsal(batch))
            raise RehearsedError

        with suppress(RehearsedError, RefusedError):
            await self._database.write(work)

    async def replay(self, chosen: EventFilter, *, exchange: str, routing_key: str, most: int = 1_000) -> int:
        """Mark events and put their messages into the outbox, in one transaction; how many. Others may do so, too."""
        found = next_to_replay(meant_events(chosen, self._database.dialect), most)
        work = partial(writing.replay, found=found, exchange=exchange, routing_key=routing_key)
        return await self._database.write(work)

    async def forget_errors(self, before: float, most: int = 10_000) -> int:
        """Remove errors that are older, up to so many at a time; how many that were."""
        return await self._database.write(partial(writing.forget_errors, before=before, most=bounded(most)))

    async def forget_events(self, before: float, most: int = 10_000) -> int:
        """Remove records of events that were processed before, up to so many at a time; how many that were."""
        return await self._database.write(partial(writing.forget_events, before=before, most=bounded(most)))

    def claim(self) -> AbstractAsyncContextManager[bool]:
        """Whether we may send from the outbox now."""
        return self._database.claim(SENDING)

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put them in, in one transaction."""
        if messages:
            await self._database.write(partial(writing.add, messages=messages))

    async def sent(self, numbers: Sequence[int]) -> None:
        """Forget these. A crash may take the last of it: then they are sent once more."""
        if numbers:
            await self._database.write(partial(writing.sent, numbers=numbers), durable=False)

    @property
    def connections(self) -> int:
        """How many connections to it are open."""
        return self._database.connections

    async def close(self) -> None:
        """Let go."""
        await self._database.close()

    def __repr__(self) -> str:
        return f"<SqlAnalytics {self._database.place}>"
