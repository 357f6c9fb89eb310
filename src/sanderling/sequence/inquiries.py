"""Questions that somebody wants answered now: of single ids, or whether the API is switched on. The engine asks them.

While the API says that it is switched off, the gate of `Availability` is shut for everyone, and nothing else is asked.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol

from sanderling.apis.numbered import NumberedAnswer, NumberedApi, Status
from sanderling.clock import Clock
from sanderling.limit import BackoffRules, BreakerRules, LimiterRules, PaceRules
from sanderling.observe.alerts import Alert
from sanderling.sequence import alerts
from sanderling.sequence.retries import Tries

# Ids fail by themselves, up to half of them, and for ever: that the host fails is known when many do in a row.
# There is no other host to turn to meanwhile: one that is back should be asked within a minute, also after hours.
BREAKER = BreakerRules(consecutive=20, longest=45.0)

# Of an id an answer; of the API whether it is switched on, None if it does not say.
InquiryAnswer = NumberedAnswer | bool | None


def limits(pace: PaceRules) -> LimiterRules:
    """What a crawl asks of its limiter. Trying again is the engine's: an id that waits holds no worker."""
    return LimiterRules(pace=pace, breaker=BREAKER, backoff=BackoffRules(attempts=1))


@dataclass(slots=True, eq=False)
class Inquiry:
    """A question for an id; without one, whether the API is switched on."""

    number: int | None
    said: "asyncio.Future[InquiryAnswer]"
    always: bool = False  # it is asked also while the API is switched off, and once: whatever comes of it is the answer
    due: float = 0.0
    tries: Tries = field(default_factory=Tries)

    @property
    def key(self) -> Hashable:
        """What tells it from all others."""
        return "the API" if self.number is None else self.number

    @property
    def attempt(self) -> int:
        """How often it was asked in these words."""
        return 1

    @property
    def decided(self) -> bool:
        """Whether nobody but who asks decides about asking again."""
        return self.always

    def answer(self, said: InquiryAnswer) -> None:
        """Tell who has asked, who may have gone."""
        if not self.said.done():
            self.said.set_result(said)


class Asks(Protocol):
    """Who can be asked."""

    async def ask(self, number: int, *, always: bool = False) -> NumberedAnswer:
        """What there is to say of an id."""

    async def available(self) -> bool | None:
        """Whether the API says that it is switched on; None if it does not say."""


class Inquiries:
    """Questions that wait for the engine, and those who wait for the answers."""

    def __init__(self) -> None:
        self.wake: Callable[[], object] = lambda: None  # there is something to ask
        self._waiting: list[Inquiry] = []

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(self, number: int, *, always: bool = False) -> NumberedAnswer:
        """What there is to say of an id, when it was to be had."""
        said = await self._answer(Inquiry(number, asyncio.get_running_loop().create_future(), always))
        assert isinstance(said, NumberedAnswer)  # noqa: S101 - of an id it is
        return said

    async def available(self) -> bool | None:
        """Whether the API says that it is switched on; None if it does not say."""
        said = await self._answer(Inquiry(None, asyncio.get_running_loop().create_future(), always=True))
        return said if isinstance(said, bool) else None

    async def _answer(self, inquiry: Inquiry) -> InquiryAnswer:
        self._waiting.append(inquiry)
        self.wake()
        return await inquiry.said

    def put_back(self, inquiry: Inquiry, due: float) -> None:
        """Ask it once more, then."""
        inquiry.due = due
        self._waiting.append(inquiry)

    def due(self, *, available: bool) -> float | None:
        """When one may be asked, while the API is `available` or while it is not; None if there is none."""
        return min((each.due for each in self._waiting if available or each.always), default=None)

    def take(self, now: float, *, available: bool) -> Inquiry | None:
        """The next one; None if those who wanted to know have gone."""
        self._waiting = [each for each in self._waiting if not each.said.done()]
        for each in self._waiting:
            if each.due <= now and (available or each.always):
                self._waiting.remove(each)
                return each
        return None


LOOK_EVERY = 45.0  # seconds between looks


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
            self._say(alerts.api_disabled(self._api.name))
        self.open = False
        self._number = number
        self._shut.set()

    async def run(self, opened: Callable[[], object]) -> None:
        """Whenever it is shut, look now and then until the API is back."""
        while True:
            await self._shut.wait()
            since = self._clock.now()
            await self._clock.sleep(LOOK_EVERY)
            while not await self._back():
                await self._clock.sleep(LOOK_EVERY)
            self._shut.clear()
            self.open = True
            self._say(alerts.api_back(self._api.name, self._clock.now() - since))
            opened()

    async def _back(self) -> bool:
        """Whether the API is on again by its own word, or by what it says of an id."""
        says = None if self._api.availability() is None else await self._asks.available()
        if says is None:  # it has no such question, or the answer makes no sense
            status = (await self._asks.ask(self._number, always=True)).status
            return status not in (Status.DISABLED, Status.ERROR, Status.RATE_LIMITED)
        return says
