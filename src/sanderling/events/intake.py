"""Takes messages from the queue, as many as may be in hand; none while a station is down or somebody wants a rest."""

import asyncio
from collections.abc import Callable

from sanderling.clock import Clock
from sanderling.events.rules import ConsumeRules
from sanderling.observe import logs
from sanderling.stores.queue import Delivery, Queue, QueueError

log = logs.get(__name__)


class Intake:
    """`run` until cancelled. `room` says how many more may be taken now."""

    def __init__(
        self,
        queue: Queue,
        room: Callable[[], int],
        receive: Callable[[list[Delivery]], object],
        clock: Clock,
        rules: ConsumeRules,
    ) -> None:
        self.trouble = ""  # why the queue gives nothing, while it refuses to
        self._queue = queue
        self._room = room
        self._receive = receive
        self._clock = clock
        self._rules = rules
        self._changed = asyncio.Event()

    def look(self) -> None:
        """There may be room that was not there before."""
        self._changed.set()

    async def run(self) -> None:
        """Take what comes."""
        while True:
            self._changed.clear()
            if (room := self._room()) > 0:
                await self._take(room)
            else:
                await self._changed.wait()

    async def _take(self, most: int) -> None:
        try:
            taken = await self._queue.take(most, self._rules.wait)
        except QueueError as error:
            if not self.trouble:
                log.warning("events_wait", what="taking", why=str(error))
            self.trouble = str(error)
            await self._clock.sleep(self._rules.probe_every)
            return
        if self.trouble:
            log.info("events_go_on", what="taking")
        self.trouble = ""
        if taken:
            self._receive(taken)
