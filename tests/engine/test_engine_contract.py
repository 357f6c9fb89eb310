"""A cadence that a person has set: live work needs no slot, what hangs holds up nothing, and no host is only probed."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from random import Random

import pytest

from sanderling.engine.classes import Class
from sanderling.engine.flights import UNANSWERED
from sanderling.engine.hosts import HostState
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer
from sanderling.limit import Feedback, Limiter, LimiterRules, Permit
from sanderling.outcome import Code, Outcome
from sanderling.task import Blame
from sanderling.testing import LoopClock, run_virtual

EVERY = 0.2
LIVE_NEEDS_NO_SLOT = EngineRules(
    slots=1000, per_host=1, contract=True, slotless=frozenset({Class.LIVE}), hangs=1.0, most_hanging=4
)
GOOD, DOWN = Outcome(Code.OK, 200), Outcome(Code.HOST_UNAVAILABLE, 500)


class Ask:
    """One request for an item."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.over = False


@dataclass(slots=True, eq=False)
class OneHost(HostState):
    """Whose live item is due every so often."""

    live_at: float = 0.0

    def slotless_due(self, now: float) -> float:  # noqa: ARG002 - the port's
        """When that is."""
        return self.live_at


class Cadence:
    """A live item, due every 0.2 s, beside others that are always due."""

    loading = True

    def __init__(self) -> None:
        self.host = OneHost("a.example")
        self.asked: list[tuple[float, str]] = []
        self.told: list[Outcome] = []

    def classes(self, host: HostState, now: float) -> Sequence[Class]:  # noqa: ARG002 - there is one
        return [Class.LIVE, Class.NEW] if self.host.live_at <= now else [Class.NEW]

    def due(self, host: HostState, now: float) -> float | None:  # noqa: ARG002 - there is one
        return now

    def take(self, host: HostState, of: Class, now: float) -> Ask | None:  # noqa: ARG002 - there is one
        work = Ask("live" if of is Class.LIVE else f"other {len(self.asked)}")
        self.asked.append((now, work.key))
        self.host.live_at = inf if of is Class.LIVE else self.host.live_at
        return work

    def take_untried(self, host: HostState, now: float) -> Ask | None:  # noqa: ARG002 - the port's
        raise AssertionError("a host is never only probed")

    def enough(self, inflight: int) -> bool:  # noqa: ARG002 - the port's
        return False

    def drain(self) -> None:
        """Never."""

    def settled(self, host: HostState, work: Ask, settled: Settled[None], now: float) -> None:  # noqa: ARG002
        self.told.append(settled.outcome)
        self._plan(work, now)

    def later(self, host: HostState, work: Ask, outcome: Outcome, due: float) -> None:  # noqa: ARG002 - the port's
        self.told.append(outcome)
        self._plan(work, asyncio.get_running_loop().time())

    def _plan(self, work: Ask, now: float) -> None:
        if work.key == "live" and not work.over:
            work.over = True
            self.host.live_at = (now // EVERY + 1) * EVERY

    def failed(self, host: HostState, work: Ask, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002 - the port's
        raise AssertionError("the source plans all of it")

    def leave(self, host: HostState, outcome: Outcome, due: float) -> None:  # noqa: ARG002 - the port's
        raise AssertionError("a host is never set aside")

    def welcome(self, host: HostState) -> None:
        """Never."""

    def written(self, result: object) -> Iterable[HostState]:  # noqa: ARG002 - nothing is written
        return ()

    def times(self, begin: float, end: float) -> list[float]:
        """When the live item was asked for."""
        return [at for at, key in self.asked if key == "live" and begin <= at < end]


class Nowhere:
    """A sink without anything to write."""

    async def write(self, ended: Sequence[None], found: Sequence[None], checkpoint: None) -> None:
        """Nothing."""

    def stop(self) -> None:
        """At once."""


Answer = Callable[[str, float], tuple[float, Outcome]]


class Host:
    """Answers after so many seconds, as it is told to."""

    def __init__(self, answer: Answer, limiter: Limiter) -> None:
        self._answer = answer
        self._limiter = limiter
        self.out = self.most_out = 0

    async def __call__(self, work: Ask, permit: Permit, blame: Blame) -> Settled[None]:  # noqa: ARG002 - as polling does
        self.out += work.key == "live"
        self.most_out = max(self.most_out, self.out)
        seconds, outcome = self._answer(work.key, asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(seconds)
        finally:
            self.out -= work.key == "live"
        error = None if outcome.ok else outcome.code
        self._limiter.feedback(permit, Feedback(latency=seconds, status=outcome.status, error=error))
        return Settled(outcome, decided=True)

    def received(self, work: Ask) -> None:
        """Nobody looks."""


def run(answer: Answer, seconds: float, rules: EngineRules = LIVE_NEEDS_NO_SLOT) -> tuple[Cadence, Host]:
    """What happens in so many seconds."""

    async def main() -> tuple[Cadence, Host]:
        clock, source = LoopClock(), Cadence()
        limiter = Limiter(LimiterRules.contract(1000.0), clock=clock, rng=Random(1))
        host = Host(answer, limiter)
        writer: Writer[None, None, None, None] = Writer(Nowhere(), lambda: None, clock)
        engine: Engine[HostState, Ask, None] = Engine(source, host, writer, limiter, clock, rules)
        engine.wake((source.host,))
        try:
            async with asyncio.timeout(seconds):
                await engine.run()
        except TimeoutError:
            pass
        return source, host

    return run_virtual(main())


def test_live_work_needs_no_slot() -> None:
    source, _ = run(lambda key, _now: (0.01 if key == "live" else 7.0, GOOD), 20.0)

    assert len(source.times(0.0, 20.0)) >= 99
    others = [at for at, key in source.asked if key != "live"]
    assert len(others) == 3, "they share one slot, for seven seconds each"


def test_what_hangs_is_asked_for_again_beside_it_and_cut_off_by_a_later_answer() -> None:
    def answer(key: str, now: float) -> tuple[float, Outcome]:
        return (3600.0 if key != "live" or now < 30.0 else 0.01, GOOD)

    source, host = run(answer, 40.0)

    assert max(b - a for a, b in zip(source.times(0.0, 30.0), source.times(0.5, 30.5), strict=False)) <= 1.2 + EVERY
    assert host.most_out == 5, "four that hang, and one more"
    assert host.out == 0, "what hung was cut off"
    assert UNANSWERED in source.told
    assert len(source.times(32.0, 40.0)) >= 39


@pytest.mark.parametrize("takes", [0.01, 5.0])
def test_a_host_that_is_down_is_asked_about_once_a_second_for_work(takes: float) -> None:
    def answer(key: str, now: float) -> tuple[float, Outcome]:
        if 10.0 <= now < 100.0:
            return takes, DOWN
        return (0.01, GOOD) if key == "live" else (0.5, GOOD)

    source, _ = run(answer, 110.0)

    down = [at for at, _ in source.asked if 40.0 <= at < 100.0]
    assert 50 <= len(down) <= 80
    back = [at for at, _ in source.asked if at >= 100.0]
    assert back[0] <= 101.1
    assert len(source.times(102.0, 110.0)) >= 39


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"hangs is 0\.0, most_hanging 4"):
        EngineRules(hangs=0.0)
