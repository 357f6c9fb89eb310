"""Sends all changes to somebody who cannot follow: at least once, in order, for as long as it takes.

How far a subscriber is goes into the store after its sink has confirmed, never before. Who is killed in between sends
the last ones again. Nothing is ever given up: a change that the sink refuses is tried again for ever, and all after it
wait, since to go on without it would lose it.
"""

import asyncio
import random
from collections.abc import Awaitable, Sequence
from contextlib import aclosing

from sanderling.clock import Clock
from sanderling.limit.backoff import BackoffRules, delay
from sanderling.observe import logs
from sanderling.polling.change_feed import MOST, ChangeFeed, Trimmed
from sanderling.polling.change_sinks import ChangeSink, SinkError
from sanderling.stores.polling import PollingStoreError, Positions, RowChange

log = logs.get(__name__)

# A sink that takes longer hangs.
SEND_SECONDS = 60.0
BACKOFF = BackoffRules(base=1.0, longest=60.0)


class Subscriber:
    """`run` until the feed is closed. The sink is its owner's to close."""

    def __init__(
        self, name: str, sink: ChangeSink, feed: ChangeFeed, positions: Positions, clock: Clock, rng: random.Random
    ) -> None:
        self.name = name
        self.sent = 0  # changes, those that were sent again too
        self.position = 0  # all up to there have arrived
        self.trouble = ""  # why nothing is sent, while nothing is
        self._sink = sink
        self._feed = feed
        self._positions = positions
        self._clock = clock
        self._rng = rng
        self._most = MOST  # changes to send at once
        self._failures = 0  # in a row
        self._since = 0.0  # the first of them

    def __repr__(self) -> str:
        return f"<Subscriber {self.name} at {self.position}, {self.trouble or 'well'}>"

    async def run(self) -> None:
        """Send what comes, from where it was, or if it is new from what comes next."""
        while not self._feed.closed and not await self._tried(self._begin()):
            pass
        while not self._feed.closed:
            try:
                await self._follow()
            except Trimmed as trimmed:
                # From the oldest there is also if the position is ahead of all: then these are other changes.
                lost = max(0, trimmed.oldest - 1 - self.position)
                log.warning("subscriber_trimmed", subscriber=self.name, position=self.position, lost=lost)
                self.position = trimmed.oldest - 1

    async def _begin(self) -> None:
        position = await self._positions.position(self.name)
        if position is None:
            # Written at once, or what changes before the first confirmation would be skipped after a crash.
            position = self._feed.newest
            await self._positions.advance(self.name, position)
        self.position = position

    async def _follow(self) -> None:
        async with aclosing(self._feed.follow(self.position)) as batches:
            async for batch in batches:
                await self._deliver(batch)

    async def _deliver(self, changes: Sequence[RowChange]) -> None:
        """Return when all have arrived, or the feed is closed."""
        while changes and not self._feed.closed:
            part = changes[: self._most]
            if await self._tried(self._sink.send(part)):
                self.sent += len(part)
                self._most = min(MOST, 2 * self._most)
                await self._arrived(part[-1].seq)
                changes = changes[len(part) :]
            elif self._failures > 1:
                # The first retry is the same again, which a receiver may know by its key. After that, what it cannot
                # take as a whole arrives in parts, up to the one that it cannot take at all.
                self._most = max(1, len(part) // 2)

    async def _arrived(self, seq: int) -> None:
        while not self._feed.closed:
            if await self._tried(self._positions.advance(self.name, seq)):
                self.position = seq
                return

    async def _tried(self, attempt: Awaitable[None]) -> bool:
        """Whether it went well; if not, returns when it is time to try again."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await attempt
        except TimeoutError:
            await self._fail(f"no answer within {SEND_SECONDS:g} s", 0.0)
        except SinkError as error:
            await self._fail(str(error), error.wait)
        except PollingStoreError as error:
            await self._fail(str(error), 0.0)
        else:
            self._succeed()
            return True
        return False

    async def _fail(self, why: str, wait: float) -> None:
        self._failures += 1
        self.trouble = why
        if self._failures == 1:
            self._since = self._clock.now()
            log.warning("subscriber_fails", subscriber=self.name, position=self.position, why=why)
        await self._feed.rest(max(wait, delay(BACKOFF, self._failures, self._rng)))

    def _succeed(self) -> None:
        if self._failures:
            seconds = round(self._clock.now() - self._since, 1)
            log.info("subscriber_recovered", subscriber=self.name, failures=self._failures, seconds=seconds)
        self._failures = 0
        self.trouble = ""
