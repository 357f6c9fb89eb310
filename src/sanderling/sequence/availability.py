"""The gate that is shut for everyone while the API says that it is switched off."""

import asyncio
from collections.abc import Callable

from sanderling.apis.numbered import NumberedApi, Status
from sanderling.clock import Clock
from sanderling.observe.alerts import Alert
from sanderling.sequence import messages
from sanderling.sequence.asking import Asks

EVERY = 45.0  # seconds between looks


class Availability:
    """Open until an answer says otherwise; `run` opens it again."""

    def __init__(self, api: NumberedApi, asks: Asks, clock: Clock, say: Callable[[Alert], object]) -> None:
        self.open = True
        self._api = api
        self._asks = asks
        self._say = say
        self._clock = clock
        self._number = 0
        self._shut = asyncio.Event()

    def shut(self, number: int) -> None:
        """An answer for this id says that the API is switched off."""
        if self.open:
            self._say(messages.api_disabled(self._api.name))
        self.open = False
        self._number = number
        self._shut.set()

    async def run(self, opened: Callable[[], object]) -> None:
        """Whenever it is shut, look now and then until the API is back."""
        while True:
            await self._shut.wait()
            since = self._clock.now()
            await self._clock.sleep(EVERY)
            while not await self._back():
                await self._clock.sleep(EVERY)
            self._shut.clear()
            self.open = True
            self._say(messages.api_back(self._api.name, self._clock.now() - since))
            opened()

    async def _back(self) -> bool:
        """Whether the API is on again by its own word, or by what it says of an id."""
        says = None if self._api.availability() is None else await self._asks.available()
        if says is None:  # it has no such question, or the answer makes no sense
            status = (await self._asks.ask(self._number, always=True)).status
            return status not in (Status.DISABLED, Status.ERROR, Status.RATE_LIMITED)
        return says
