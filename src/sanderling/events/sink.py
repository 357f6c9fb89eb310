"""Tells the queue what became of messages: acknowledges those that are done, gives back or buries the others.

What is written here is in the rows already. While the queue is away, `write` waits; nothing more is taken meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from sanderling.clock import Clock, Pauses
from sanderling.events.stations import Buried, EventMessage, MessageDone, MessageEnd, Postponed, note_trouble
from sanderling.stores.queue import Queue, QueueError


class MessageSink:
    """Settles deliveries, those of a group at once."""

    def __init__(self, queue: Queue, clock: Clock, pause: float) -> None:
        self.trouble = ""  # why the queue does not hear us, while it does not
        self._queue = queue
        self._pause = pause
        self._pauses = Pauses(clock)

    async def write(self, ended: Sequence[MessageEnd], found: Sequence[object], checkpoint: None) -> list[EventMessage]:
        """Return when the queue knows, with the messages that are not in hand any more."""
        del found, checkpoint  # the queue has both
        queue = self._queue
        if done := [each.message.delivery for each in ended if isinstance(each, MessageDone)]:
            await self._say(partial(queue.done, done))
        for each in ended:
            match each:
                case Postponed(message, seconds, why, failed):
                    await self._say(partial(queue.later, message.delivery, seconds, why, failed=failed))
                case Buried(message, why):
                    await self._say(partial(queue.bury, message.delivery, why))
        return [each.message for each in ended]

    def stop(self) -> None:
        """Wait no longer. What the queue does not know by then it delivers again, and that changes nothing."""
        self._pauses.stop()

    async def _say(self, say: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await say()
            except QueueError as error:
                self.trouble = note_trouble("settling", self.trouble, str(error))
            else:
                self.trouble = note_trouble("settling", self.trouble, "")
                return
            if self._pauses.stopped:
                return
            await self._pauses.sleep(self._pause)
