"""What the engine takes for an answer, and whether that grows with the hosts it knows.

One host is asked for `ANSWERS` items under virtual time, so what is measured is CPU of the engine, the limiter and the
event loop. All other hosts are only known: nine of ten have something due in a day, each tenth refuses connections, was
set aside and is still probed.
"""

import asyncio
import gc
import time
from collections.abc import Sequence
from random import Random
from statistics import median
from typing import NamedTuple

from harness import Report, at_most

from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer
from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Permit
from sanderling.outcome import Code, Outcome
from sanderling.task import Blame
from sanderling.testing import LoopClock, run_virtual

FEW, MANY = 100, 100_000
ANSWERS, ROUNDS = 4000, 3
BUSY = "busy.example"
BEGINS = 2000.0  # virtual seconds: by then who does not answer was set aside
TOMORROW = 86_400.0
RPS = 1000.0
FINE, REFUSED = Outcome(Code.OK, 200), Outcome(Code.CONNECTION_REFUSED, detail="connection refused")
CLASSES = (Class.NEW,)


class Item(NamedTuple):
    """One item."""

    host: str
    number: int

    @property
    def key(self) -> int:
        """Of its host."""
        return self.number


class Place(HostState):
    """A host, how many items it has, and from when on."""

    __slots__ = ("begins", "left")

    def __init__(self, name: str, left: int, begins: float) -> None:
        super().__init__(name)
        self.left, self.begins = left, begins


class Known:
    """The source: it keeps no more than numbers."""

    loading = False

    def __init__(self, clock: LoopClock) -> None:
        self.writer: Writer[int, int, int, None]
        self.asides = self.ended = 0
        self.first = self.last = 0.0  # CPU seconds when the busy host's first item was taken, and its last one ended
        self._clock = clock

    def classes(self, host: Place, now: float) -> Sequence[Class]:
        """One class, if it is time."""
        return CLASSES if host.left and host.begins <= now else ()

    def due(self, host: Place, now: float) -> float | None:  # noqa: ARG002 - the port's
        """When it is."""
        return host.begins if host.left else None

    def take(self, host: Place, of: Class, now: float) -> Item | None:  # noqa: ARG002
        """The next."""
        if host.name == BUSY and not self.first:
            gc.disable()  # which walks all that is known, whoever knows it
            self.first = time.process_time()
        host.left -= 1
        return Item(host.name, host.left)

    def take_untried(self, host: Place, now: float) -> Item | None:
        """The next; none has failed."""
        return self.take(host, Class.NEW, now) if self.classes(host, now) else None

    def drain(self) -> None:
        """Nothing comes from outside."""

    def enough(self, inflight: int) -> bool:  # noqa: ARG002
        """When the busy host is done."""
        return self.ended >= ANSWERS

    def settled(self, host: Place, work: Item, settled: Settled[None], now: float) -> None:  # noqa: ARG002
        """An answer."""
        self.writer.add(work.number, settled.size)
        self.ended += 1
        if self.ended == ANSWERS:
            self.last = time.process_time()
            gc.enable()

    def later(self, host: Place, work: Item, outcome: Outcome, due: float) -> None:  # noqa: ARG002
        """Once more."""
        host.left += 1

    def failed(self, host: Place, work: Item, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002
        """The same."""
        host.left += 1

    def leave(self, host: Place, outcome: Outcome, due: float) -> None:  # noqa: ARG002
        """One more that was set aside, unless it was."""
        self.asides += not host.aside

    def welcome(self, host: Place) -> None:
        """Nobody comes back."""

    def written(self, result: None) -> Sequence[Place]:  # noqa: ARG002
        """Nothing comes of it."""
        return ()


class Asking:
    """The handler: a host answers after 10 ms, or refuses at once."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    async def __call__(self, work: Item, permit: Permit, blame: Blame) -> Settled[None]:
        """Ask."""
        await asyncio.sleep(0.01)
        if work.host != BUSY:
            self._limiter.feedback(permit, Feedback(0, 0.01, REFUSED.code, blame=blame, unsent=True))
            return Settled(REFUSED)
        self._limiter.feedback(permit, Feedback(200, 0.01, blame=blame))
        return Settled(FINE, size=2000)

    def received(self, work: Item) -> int | None:  # noqa: ARG002
        """All at once."""
        return 0


class Nowhere:
    """The sink."""

    async def write(self, ended: Sequence[int], found: Sequence[int], checkpoint: int) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


def cost(hosts: int) -> float:
    """Seconds of CPU for one answer, with so many other hosts known."""

    async def main() -> Known:
        clock = LoopClock()
        pace = PaceRules(initial_rps=RPS, min_rps=1.0, max_rps=RPS)
        limiter = Limiter(LimiterRules(pace, hosts=2 * MANY), clock=clock, rng=Random(1))
        source = Known(clock)
        writer: Writer[int, int, int, None] = Writer(Nowhere(), lambda: 0, clock)
        source.writer = writer
        engine = Engine(source, Asking(limiter), writer, limiter, clock, EngineRules(per_host=64))
        places = [Place(f"h{n}.example", 4, TOMORROW if n % 10 else 0.0) for n in range(hosts)]
        places.append(Place(BUSY, ANSWERS, BEGINS))
        source.loading = True

        async def load() -> None:
            source.loading = False
            engine.wake(places)

        await engine.run(load())
        assert source.asides == -(-hosts // 10), f"{source.asides} of {hosts} hosts were set aside"
        return source

    source = run_virtual(main())
    return (source.last - source.first) / ANSWERS


def main() -> None:
    """Few and many by turns, so that a machine that is busy for a while is so for both."""
    report = Report("engine")
    rounds = [(cost(FEW), cost(MANY)) for _ in range(ROUNDS)]
    few, many = median(one for one, _ in rounds), median(other for _, other in rounds)
    report.figures = {"us_few": few * 1e6, "us_many": many * 1e6}
    print(f"  an answer costs {few * 1e6:.0f} µs with {FEW:,} hosts known, {many * 1e6:.0f} µs with {MANY:,}")
    report.bars.append(at_most(f"CPU of an answer with {MANY:,} hosts, times that with {FEW:,}", 1.3, many / few))
    report.finish()


if __name__ == "__main__":
    main()
