"""Random callers, answers and clocks, played against a limiter that is watched: for the tests beside it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from random import Random
from typing import NamedTuple

import pytest
from driven import Strategy, views
from hypothesis import strategies as st

from sanderling.limit import CircuitOpen, Feedback, Limiter, LimiterRules, PaceRules, Permit, Quota, Scope
from sanderling.testing import LoopClock

HOSTS = ("a.example", "b.example", "c.example")
KEY = Scope("credential", "key")
SLOW = PaceRules(initial_rps=2, min_rps=0.25, max_rps=8)
QUICK = PaceRules(initial_rps=50, min_rps=1, max_rps=400, burst=8)


# What may happen.


class Ask(NamedTuple):
    """Someone stands in line."""

    host: str
    job: str
    scopes: tuple[Scope, ...]


class Try(NamedTuple):
    """Someone asks and does not wait."""

    host: str


class Report(NamedTuple):
    """An answer to one of the requests that are out."""

    which: int
    feedback: Feedback


class Release(NamedTuple):
    """One of the permits comes back."""

    which: int
    sent: bool


class Cancel(NamedTuple):
    """One of those who wait gives up; perhaps together with others, before anyone wakes."""

    which: int
    quick: bool


class Pass(NamedTuple):
    """Time passes."""

    seconds: float


class Jump(NamedTuple):
    """The clock is wrong by so much more, while nothing happens."""

    seconds: float


class Forget(NamedTuple):
    """Idle hosts are let go."""


Action = Ask | Try | Report | Release | Cancel | Pass | Jump | Forget

INDEX = st.integers(0, 50)
FEEDBACKS = st.builds(
    Feedback,
    status=st.sampled_from([0, 200, 200, 200, 304, 404, 429, 429, 500, 503, 529]),
    latency=st.sampled_from([0.0, 0.01, 0.1, 0.1, 1.0, 30.0, nan, inf]),
    error=st.sampled_from([None, None, None, "reset"]),
    retry_after=st.sampled_from([None, None, None, -1.0, 0.0, 0.3, 5.0, 90.0, nan]),
    quota=st.sampled_from([None, None, Quota(0, 3.0), Quota(5, 10.0), Quota(1000, 1.0)]),
    scope=st.sampled_from([None, None, "credential", "ip"]),
)
ACTIONS = st.one_of(
    st.builds(Ask, st.sampled_from(HOSTS), st.sampled_from("xy"), st.sampled_from([(), (), (KEY,)])),
    st.builds(Try, st.sampled_from(HOSTS)),
    st.builds(Report, INDEX, FEEDBACKS),
    st.builds(Release, INDEX, st.booleans()),
    st.builds(Cancel, INDEX, st.booleans()),
    st.builds(Pass, st.sampled_from([0.0, 0.01, 0.1, 0.5, 2.0, 20.0, 400.0])),
    st.builds(Jump, st.sampled_from([-1000.0, -0.2, 0.2, 1000.0])),
    st.builds(Forget),
)


def long_play(seed: int) -> list[Action]:
    """Half a thousand actions of busy callers; an example of Hypothesis seldom has more than a dozen."""
    rng = Random(seed)
    makers: list[tuple[int, Callable[[], Action]]] = [
        (25, lambda: Ask(rng.choice(HOSTS), rng.choice("xy"), rng.choice(((), (KEY,))))),
        (15, lambda: Try(rng.choice(HOSTS))),
        (32, lambda: Report(rng.randrange(9), random_feedback(rng))),
        (6, lambda: Release(rng.randrange(9), rng.random() < 0.5)),
        (6, lambda: Cancel(rng.randrange(9), rng.random() < 0.5)),
        (13, lambda: Pass(rng.choice((0.01, 0.1, 0.5, 0.5, 2.0, 20.0, 400.0)))),
        (2, lambda: Jump(rng.choice((-1000.0, -0.2, 0.2, 1000.0)))),
        (1, Forget),
    ]
    weights = [weight for weight, _ in makers]
    return [make() for _, make in rng.choices(makers, weights, k=500)]


def random_feedback(rng: Random) -> Feedback:
    status = rng.choice((200, 200, 200, 200, 200, 200, 404, 429, 500))
    retry_after = rng.choice((None, None, 0.3, 5.0)) if status == 429 else None
    return Feedback(
        status, rng.choice((0.05, 0.1, 0.1, 0.2, 2.0)), None, retry_after, None, rng.choice((None, "credential"))
    )


class WrongClock(LoopClock):
    """The loop's clock, and an error that may change at any time; timers are not touched by it."""

    error = 0.0

    def now(self) -> float:
        return super().now() + self.error


# What came of it.


class Grant(NamedTuple):
    """A permit of one gate: when it was given."""

    at: float
    permit: Permit


@dataclass(slots=True)
class Caller:
    """Someone who waits."""

    ask: Ask
    ticket: int
    task: asyncio.Task[None]


class Play:
    """Acts, and keeps by itself what the limiter must not do."""

    def __init__(self, rules: LimiterRules) -> None:
        self.clock = WrongClock()
        self.limiter = Limiter(rules, clock=self.clock, rng=Random(1))
        self.rules = rules
        self.grants: defaultdict[str, list[Grant]] = defaultdict(list)
        self.quiet: defaultdict[str, float] = defaultdict(float)
        self.live: list[Permit] = []
        self.unsent: set[int] = set()
        self.waiting: list[Caller] = []
        self.tickets = 0
        self.served: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.errors: list[BaseException] = []

    def now(self) -> float:
        return self.limiter._now()

    async def act(self, action: Action) -> None:
        match action:
            case Ask():
                self._ask(action)
            case Cancel(which, _) if self.waiting:
                self.waiting[which % len(self.waiting)].task.cancel()
            case Pass(seconds):
                await asyncio.sleep(seconds)
            case Jump(seconds):
                self.clock.error += seconds
            case _:
                self._act_at_once(action)
        if not (isinstance(action, Cancel) and action.quick):
            await self.settle()
            self.check_order()

    def _act_at_once(self, action: Action) -> None:
        match action:
            case Try(host):
                if (permit := self.limiter.try_acquire(host)) is not None:
                    self._granted(permit)
            case Report(which, feedback) if self.live:
                self._report(self.live.pop(which % len(self.live)), feedback)
            case Release(which, sent) if self.live:
                self._release(self.live.pop(which % len(self.live)), sent=sent)
            case Forget():
                self.limiter.forget_idle()

    async def settle(self) -> None:
        """Let everyone wake who was called."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Everyone goes home, and what went wrong while they waited is raised."""
        for caller in self.waiting:
            caller.task.cancel()
        await self.settle()
        for permit in self.live:
            permit.release(sent=True)
        for error in self.errors:
            raise error

    def _ask(self, ask: Ask) -> None:
        self.tickets += 1
        caller = Caller(ask, self.tickets, asyncio.create_task(self._wait(ask, self.tickets)))
        caller.task.add_done_callback(lambda _task: self._left(caller))
        self.waiting.append(caller)

    def _left(self, caller: Caller) -> None:
        self.waiting.remove(caller)
        if not caller.task.cancelled() and (error := caller.task.exception()) is not None:
            self.errors.append(error)

    async def _wait(self, ask: Ask, ticket: int) -> None:
        try:
            permit = await self.limiter.acquire(ask.host, ask.scopes, job=ask.job)
        except CircuitOpen as refusal:
            assert refusal.until > self.now()  # noqa: PT017 - the test is about what was raised, when it was
            return
        self.served[ask.host, ask.job] = max(ticket, self.served[ask.host, ask.job])
        self._granted(permit)

    def _granted(self, permit: Permit) -> None:
        self.live.append(permit)
        for part in (permit, *permit.also):
            assert self.now() >= self.quiet[part.host] - 1e-6, "a host that asked for quiet was called"
            self.grants[part.host].append(Grant(self.now(), part))

    def _report(self, permit: Permit, feedback: Feedback) -> None:
        self.limiter.feedback(permit, feedback)
        parts = (permit, *permit.also)
        about = f"{feedback.scope}/key" if len(parts) > 1 and feedback.scope == "credential" else permit.host
        if feedback.retry_after is not None and feedback.retry_after >= 0:
            self.quiet[about] = max(self.quiet[about], self.now() + feedback.retry_after)

    def _release(self, permit: Permit, *, sent: bool) -> None:
        permit.release(sent=sent)
        if not sent:
            self.unsent.update(id(part) for part in (permit, *permit.also))

    def check_order(self) -> None:
        """Nobody still waits who came before someone who was served."""
        for caller in self.waiting:
            gone = caller.task.done() or caller.task.cancelling()
            assert gone or caller.ticket > self.served[caller.ask.host, caller.ask.job], "someone was overtaken"

    def check_rates(self) -> None:
        """Within the bounds; below the slowest only where refusals have proved a ceiling there."""
        pace = self.rules.pace
        for view in views(self.limiter):
            proved = view.ceiling if view.rejected and view.ceiling else inf
            slowest = min(pace.min_rps, 0.98 * proved)  # just below a ceiling, as it cruises
            assert 0 < slowest - 1e-9 <= view.rate <= pace.max_rps + 1e-9

    def check_windows(self) -> None:
        """In any window, no more than its length allows at the highest rate, and what may leave at once."""
        pace = self.rules.pace
        depth = min(pace.burst, max(1.0, pace.max_rps / 20))
        for grants in self.grants.values():
            times = [grant.at for grant in grants if id(grant.permit) not in self.unsent]
            for first, start in enumerate(times):
                for last, end in enumerate(times[first:], start=1):
                    assert last <= pace.max_rps * (end - start) + depth + 1e-6

    def check_nothing_leaked(self) -> None:
        for view in views(self.limiter):
            assert (view.inflight, view.waiting) == (0, 0)


def rules_for(strategy: Strategy, pace: PaceRules, hosts: int = 100) -> LimiterRules:
    return LimiterRules(strategy=strategy, pace=pace, hosts=hosts, lease=31, idle=120)


async def play(rules: LimiterRules, actions: list[Action]) -> None:
    scene = Play(rules)
    for action in actions:
        await scene.act(action)
        scene.check_rates()
    await scene.finish()
    scene.check_windows()
    scene.check_nothing_leaked()
    await check_recovers(scene)


async def check_recovers(scene: Play) -> None:
    """After a while of silence every host can be asked, with everything saved up that may be."""
    await asyncio.sleep(4000)
    for view in views(scene.limiter):
        assert view.tokens == pytest.approx(1 + scene.rules.pace.slack(view.rate) * view.rate)
    async with asyncio.timeout(300):
        for host in HOSTS:
            (await scene.limiter.acquire(host, [KEY])).release(sent=True)
