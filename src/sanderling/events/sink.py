"""Tells the queue what became of messages: acknowledges those that are done, gives back or buries the others.

What is written here is in the rows already. While the queue is away, `write` waits; nothing more is taken meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sanderling.clock import Clock
from sanderling.events.message import Buried, Done, Ended, Message, Postponed
from sanderling.observe import logs
from sanderling.stores.queue import Queue, QueueError

log = logs.get(__name__)


class QueueSink:
    """Settles deliveries, those of a group at once."""

    def __init__(self, queue: Queue, clock: Clock, pause: float) -> None:
        self.trouble = ""  # why the queue does not hear us, while it does not
        self._queue = queue
        self._clock = clock
        self._pause = pause
        self._stopping = False
        self._again = asyncio.Event()

    async def write(self, ended: Sequence[Ended], found: Sequence[object], checkpoint: None) -> list[Message]:
        """Return when the queue knows, with the messages that are not in hand any more."""
        del found, checkpoint  # the queue has both
        queue = self._queue
        done = [each.message.delivery for each in ended if isinstance(each, Done)]
        if done:
            await self._say(lambda: queue.done(done))
        for each in ended:
            if isinstance(each, Postponed):
                await self._postpone(each)
            elif isinstance(each, Buried):
                await self._bury(each)
        return [each.message for each in ended]

    async def _postpone(self, end: Postponed) -> None:
        delivery = end.message.delivery
        await self._say(lambda: self._queue.later(delivery, end.seconds, end.why, failed=end.failed))

    async def _bury(self, end: Buried) -> None:
        await self._say(lambda: self._queue.bury(end.message.delivery, end.why))

    def stop(self) -> None:
        """Wait no longer. What the queue does not know by then it delivers again, and that changes nothing."""
        self._stopping = True
        self._again.set()

    async def _say(self, say: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await say()
            except QueueError as error:
                if not self.trouble:
                    log.warning("events_wait", what="settling", why=str(error))
                self.trouble = str(error)
            else:
                if self.trouble:
                    log.info("events_go_on", what="settling")
                self.trouble = ""
                return
            if self._stopping:
                return
            self._again.clear()
            timer = self._clock.call_later(self._pause, self._again.set)
            await self._again.wait()
            timer.cancel()
