"""What the parts of a crawl of ids are tested with: a queue in memory, a scripted upstream, a clock that jumps.

All of it lives under virtual time.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, TypeVar

from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import CircuitOpen, Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.sequence.handler import SequenceHandler
from sanderling.sequence.inquiries import Inquiry
from sanderling.sequence.measures import SequenceMeasures
from sanderling.stores.queue import Dead, Delivery, Depth, Letter, QueueError, checked
from sanderling.task import Blame, Reply, Task
from sanderling.testing import LoopClock

T = TypeVar("T")

WALL = 1_800_000_000.0  # when a LoopClock begins
DAY = 86_400.0


async def desk(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


class JumpingClock(LoopClock):
    """A clock whose wall somebody sets."""

    def __init__(self) -> None:
        super().__init__(WALL)
        self.ahead = 0.0

    def wall(self) -> float:
        """Seconds since 1970, as far as anyone knows."""
        return super().wall() + self.ahead


@dataclass(slots=True)
class _Kept:
    """A letter of the queue in memory: where it is, and since or until when."""

    letter: Letter
    order: int
    state: str = "ready"
    at: float = 0.0
    tries: int = 0
    why: str = ""


class MemoryQueue:
    """A queue in memory, with one waiting letter of a key. While `down` says why, every call fails."""

    def __init__(self, clock: Clock) -> None:
        self.down = ""
        self.slow = 0.0  # seconds that publishing takes
        self.published: list[str] = []  # keys, each time that they were confirmed
        self.refused = 0  # calls that failed
        self._clock = clock
        self._kept: dict[int, _Kept] = {}
        self._numbers = count()
        self._news = asyncio.Event()

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Return when all are kept."""
        bodies = checked(letters)
        if self.slow:
            await self._clock.sleep(self.slow)
        self._reach()
        for key, body in bodies.items():
            self._drop(key, "ready", "delayed")
            number = next(self._numbers)
            self._kept[number] = _Kept(Letter(key, body), number)
        self.published += bodies
        self._news.set()

    async def publish_dead(self, letter: Letter, why: str) -> None:
        """Keep it among the dead."""
        checked([letter])
        self._reach()
        self._drop(letter.key, "dead")
        number = next(self._numbers)
        self._kept[number] = _Kept(letter, number, "dead", self._clock.wall(), why=why)

    async def take(self, most: int, wait: float) -> list[Delivery]:
        """Up to `most`, the first published first; waits for the first."""
        deadline = self._clock.now() + wait
        while True:
            self._reach()
            self._bring_back()
            ready = sorted(self._in("ready"), key=lambda kept: kept.order)[:most]
            left = deadline - self._clock.now()
            if ready or left <= 0:
                break
            due = min((kept.at - self._clock.wall() for kept in self._in("delayed")), default=left)
            self._news.clear()
            alarm = self._clock.call_later(max(0.0, min(left, due)), self._news.set)
            await self._news.wait()
            alarm.cancel()
        for kept in ready:
            kept.state = "taken"
        return [Delivery(*kept.letter, kept.tries, kept.order) for kept in ready]

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        """Forget these."""
        self._reach()
        for delivery in deliveries:
            if self._taken(delivery):
                del self._kept[_number(delivery)]

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        """Bring it back after so long."""
        self._reach()
        kept = self._taken(delivery)
        if kept and any(other.letter.key == delivery.key for other in self._in("ready", "delayed")):
            del self._kept[kept.order]
        elif kept:
            self._kept[kept.order] = replace(
                kept, state="delayed", at=self._clock.wall() + seconds, tries=kept.tries + failed, why=why
            )

    async def bury(self, delivery: Delivery, why: str) -> None:
        """Put it among the dead."""
        self._reach()
        if kept := self._taken(delivery):
            self._drop(delivery.key, "dead")
            self._kept[kept.order] = replace(kept, state="dead", at=self._clock.wall(), why=why)

    async def depth(self) -> Depth:
        """How many there are."""
        self._reach()
        return Depth(*(len(self._in(state)) for state in ("ready", "taken", "delayed", "dead")))

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        """A page of the dead."""
        self._reach()
        buried = sorted(self._in("dead"), key=lambda kept: (kept.at, kept.order))
        keys = [kept.letter.key for kept in buried]
        first = keys.index(after) + 1 if after else 0
        return [Dead(*kept.letter, kept.why, kept.tries, kept.at) for kept in islice(buried, first, first + limit)]

    async def replay(self, keys: Collection[str] | None = None) -> int:
        """Make dead ones ready; one whose key waits is dropped."""
        self._reach()
        wanted = [kept for kept in self._in("dead") if keys is None or kept.letter.key in keys]
        for kept in wanted:
            if any(other.letter.key == kept.letter.key for other in self._in("ready", "delayed")):
                del self._kept[kept.order]
            else:
                self._kept[kept.order] = _Kept(kept.letter, kept.order)
        self._news.set()
        return len(wanted)

    async def close(self) -> None:
        """Give back what was taken."""
        for kept in self._in("taken"):
            kept.state = "ready"

    def bodies(self) -> dict[str, bytes]:
        """What waits, by key."""
        return dict(kept.letter for kept in self._in("ready", "delayed", "taken"))

    def _reach(self) -> None:
        if self.down:
            self.refused += 1
            raise QueueError(self.down)

    def _in(self, *states: str) -> list[_Kept]:
        return [kept for kept in self._kept.values() if kept.state in states]

    def _taken(self, delivery: Delivery) -> _Kept | None:
        kept = self._kept.get(_number(delivery))
        return kept if kept and kept.state == "taken" else None

    def _drop(self, key: str, *states: str) -> None:
        for kept in self._in(*states):
            if kept.letter.key == key:
                del self._kept[kept.order]

    def _bring_back(self) -> None:
        for kept in self._in("delayed"):
            if kept.at <= self._clock.wall():
                kept.state = "ready"


def _number(delivery: Delivery) -> int:
    assert isinstance(delivery.tag, int)
    return delivery.tag


# How the upstream says each of these.
SAID = {
    Status.SUCCESS: 200,
    Status.SKIPPED: 200,
    Status.NOT_FOUND: 404,
    Status.DISABLED: 200,
    Status.HIDDEN: 200,
    Status.BAD_FORMAT: 200,
    Status.ERROR: 400,
    Status.RATE_LIMITED: 429,
}
HOST = "https://numbers.example"


@dataclass(slots=True)
class Upstream:
    """Sends: what the host says of each id. `says` has the answers of an id in turn; the last is said for ever."""

    clock: Clock
    says: dict[int, list[Status]] = field(default_factory=dict)
    usual: Status = Status.NOT_FOUND
    took: float = 0.05  # seconds
    on: bool | Exception | bytes | None = None  # what it says of itself; an exception is raised, bytes are sent
    asked: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # when, of each id
    looked: list[float] = field(default_factory=list)  # when it was asked whether it is on

    async def send(self, task: Task) -> Reply:
        """The reply, after a while."""
        await self.clock.sleep(self.took)
        what = task.url.removeprefix(f"{HOST}/").partition("?")[0]
        if what == "settings":
            self.looked.append(self.clock.now())
            if isinstance(self.on, Exception):
                raise self.on
            body = self.on if isinstance(self.on, bytes) else str(self.on).encode()
            return Reply(200, (), body, task.url, self.took)
        status = self.answer(int(what))
        return Reply(SAID[status], (), status.value.encode(), task.url, self.took)

    def answer(self, number: int) -> Status:
        """What is said of an id now; it has been asked."""
        self.asked[number].append(self.clock.now())
        left = self.says.get(number, [self.usual])
        return left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True, slots=True)
class NumbersApi:
    """The API of that upstream; `asks` says whether it can be asked if it is on."""

    asks: bool = True
    name: str = "numbers"

    def task(self, number: int, attempt: int) -> Task:
        """The question for an id."""
        return Task(f"{HOST}/{number}?attempt={attempt}")

    def read(self, number: int, reply: Reply, general: Outcome, wall: float) -> NumberedAnswer:
        """What a reply means."""
        del wall
        status = Status(reply.body.decode())
        return replace(answer(status, number), outcome=general)

    def availability(self) -> Task | None:
        """The question whether it is on."""
        return Task(f"{HOST}/settings") if self.asks else None

    def available(self, reply: Reply) -> bool | None:
        """What the answer to that means."""
        return {b"True": True, b"False": False}.get(reply.body)


def answer(status: Status, number: int = 0) -> NumberedAnswer:
    """An answer, with a message if it is a record."""
    code = Code.OK if status.exists else Code.CONTENT_NOT_FOUND
    message = body_of(number) if status is Status.SUCCESS else b""
    return NumberedAnswer(status, Outcome(code), error=status.value, message=message)


def body_of(number: int) -> bytes:
    """The message of an id."""
    return f"record {number}".encode()


class Asker:
    """Asks that upstream at once, without an engine: each question one request, whatever comes of it."""

    def __init__(self, upstream: Upstream, api: NumbersApi, clock: Clock) -> None:
        rules = LimiterRules(pace=PaceRules(initial_rps=100.0, min_rps=50.0, max_rps=1000.0))
        self.measures = SequenceMeasures()
        self.disabled: Callable[[int], object] = lambda _: None
        self.open = True  # while it is not, questions wait
        self._limiter = Limiter(rules, clock=clock)
        fetcher = Fetcher(upstream, self._limiter, clock=clock, retry=False)
        self._handler = SequenceHandler(api, fetcher, Memory(2**20), clock, self.measures, self._off)
        self._clock = clock

    def _off(self, number: int) -> None:
        self.disabled(number)

    async def ask(self, number: int, *, always: bool = False) -> NumberedAnswer:
        """What is said of an id."""
        said = await self._ask(number, always=always)
        assert isinstance(said, NumberedAnswer)
        return said

    async def available(self) -> bool | None:
        """What is said of the API."""
        said = await self._ask(None, always=True)
        assert not isinstance(said, NumberedAnswer)
        return said

    async def _ask(self, number: int | None, *, always: bool) -> NumberedAnswer | bool | None:
        inquiry = Inquiry(number, asyncio.get_running_loop().create_future(), always)
        while True:
            try:
                permit = await self._limiter.acquire("numbers.example")
            except CircuitOpen as closed:
                await self._clock.sleep(closed.until - self._clock.now())
                continue
            return (await self._handler(inquiry, permit, Blame(inquiry.key))).result
