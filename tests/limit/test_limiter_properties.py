"""What must hold whatever happens: random callers, random answers, cancellations at any point, clocks that jump."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from random import Random
from typing import Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.limit import (
    CircuitOpen,
    Feedback,
    Limiter,
    LimiterRules,
    PaceRules,
    Permit,
    Quota,
    Scope,
    WindowRules,
)
from sanderling.limit.line import Line, Waiter
from sanderling.limit.tombstones import Tombstone, decode, encode
from sanderling.limit.window import ErrorWindow
from sanderling.testing import LoopClock, run_virtual

Strategy = Literal["governor", "aimd"]
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
        pace = self.rules.pace
        for view in self.limiter.snapshot(top=10).top:
            assert pace.min_rps - 1e-9 <= view.rate <= pace.max_rps + 1e-9

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
        for view in self.limiter.snapshot(top=10).top:
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
    for view in scene.limiter.snapshot(top=10).top:
        assert view.tokens == pytest.approx(1 + scene.rules.pace.slack(view.rate) * view.rate)
    async with asyncio.timeout(60):
        for host in HOSTS:
            (await scene.limiter.acquire(host, [KEY])).release(sent=True)


@settings(max_examples=1000)
@given(
    st.sampled_from(["governor", "aimd"]),
    st.sampled_from([SLOW, QUICK]),
    st.sampled_from([2, 100]),
    st.lists(ACTIONS, max_size=60),
)
def test_whatever_happens_the_limiter_keeps_its_word(
    strategy: Strategy, pace: PaceRules, hosts: int, actions: list[Action]
) -> None:
    """The rate stays in bounds, no window holds too much, no Retry-After is broken, nobody overtaken, nothing leaks."""
    run_virtual(play(rules_for(strategy, pace, hosts), actions))


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


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
@pytest.mark.parametrize("pace", [SLOW, QUICK])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_holds_in_a_long_play(strategy: Strategy, pace: PaceRules, seed: int) -> None:
    run_virtual(play(rules_for(strategy, pace, hosts=2 + 98 * (seed % 2)), long_play(seed)))


# Cancellations at every point of a request's road.


async def be_cancelled(limiter: Limiter, rng: Random) -> None:
    """Ask, report something, and be cancelled at some point: before it begins, in line, with the permit, after."""

    async def call() -> None:
        scopes = (KEY,) if rng.random() < 0.3 else ()
        async with limiter.attempt(rng.choice(HOSTS), scopes, job=rng.choice("xy")) as attempt:
            await asyncio.sleep(rng.choice((0, 0.1, 40)))
            attempt.report(rng.choice((200, 200, 200, 429, 500, 404)))

    task = asyncio.create_task(call())
    for _ in range(rng.randrange(4)):
        await asyncio.sleep(rng.choice((0, 0, 0.1, 5)))
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() or task.exception() is None or isinstance(task.exception(), CircuitOpen)


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_ten_thousand_random_cancellations_leak_no_probe_and_no_token(strategy: Strategy) -> None:
    async def main() -> None:
        scene, rng = Play(rules_for(strategy, SLOW)), Random(1)
        for _ in range(100):
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(be_cancelled(scene.limiter, rng))
        scene.check_nothing_leaked()
        await check_recovers(scene)

    run_virtual(main())


# Restarts.


RESTARTS = st.lists(
    st.tuples(
        st.sampled_from(HOSTS),
        st.sampled_from([0.1, 1.0, 50.0]),
        st.sampled_from([Feedback(200, 0.1), Feedback(429, 0.1, retry_after=30.0), Feedback(500, 0.1)]),
        st.booleans(),
    ),
    max_size=40,
)


@given(st.sampled_from(["governor", "aimd"]), RESTARTS)
def test_no_restart_breaks_a_retry_after_or_the_pace(
    strategy: Strategy, steps: list[tuple[str, float, Feedback, bool]]
) -> None:
    async def main() -> None:
        scene = Play(rules_for(strategy, SLOW))
        for host, wait, feedback, restart in steps:
            await scene.act(Pass(wait))
            await scene.act(Try(host))
            await scene.act(Report(0, feedback))
            if restart:
                saved = scene.limiter.save()
                scene.limiter = Limiter(scene.rules, clock=scene.clock, rng=Random(1))
                scene.limiter.restore(saved)
        scene.check_windows()

    run_virtual(main())


SECONDS = st.floats(0, 1e6)
STONES = st.builds(Tombstone, SECONDS, SECONDS, SECONDS, st.integers(0, 255))


@given(st.dictionaries(st.text(), STONES), SECONDS, SECONDS, st.floats(-1e3, 1e3))
def test_what_is_saved_is_restored_less_the_time_that_passed(
    stones: dict[str, Tombstone], before: float, after: float, passed: float
) -> None:
    saved = encode(iter(stones.items()), before, wall=1e9)

    restored = dict(decode(saved, after, wall=1e9 + passed))

    assert restored.keys() == stones.keys()
    for host, stone in stones.items():
        served = max(0.0, passed)
        assert restored[host].ceiling == stone.ceiling
        assert restored[host].openings == stone.openings
        for told, left in (
            (stone.not_before, restored[host].not_before),
            (stone.open_until, restored[host].open_until),
        ):
            assert left - after == pytest.approx(max(0.0, max(0.0, told - before) - served), abs=1e-3)


# Slow, obvious twins.


class SlowWindow:
    """Every answer with its bucket, counted anew each time."""

    def __init__(self, rules: WindowRules, now: float) -> None:
        self.rules = rules
        self.answers: list[tuple[int, int, int]] = []
        self.latest = int(now / rules.bucket)

    def totals(self, now: float, answers: int = 0, failures: int = 0) -> tuple[int, int]:
        self.latest = max(self.latest, int(now / self.rules.bucket))
        self.answers.append((self.latest, answers, failures))
        size = round(self.rules.span / self.rules.bucket)
        kept = [each for each in self.answers if each[0] > self.latest - size]
        return sum(each[1] for each in kept), sum(each[2] for each in kept)


@given(
    st.sampled_from([WindowRules(), WindowRules(5, 5), WindowRules(1, 0.3), WindowRules(0.3, 0.1), WindowRules(7, 2)]),
    st.floats(0, 1e6),
    st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.05, 0.1, 1.0, 2.0, 29.0, 1000.0]), st.booleans())),
)
def test_the_window_of_errors_counts_like_its_twin(
    rules: WindowRules, now: float, steps: list[tuple[float, bool]]
) -> None:
    window, twin, latest = ErrorWindow(rules, now), SlowWindow(rules, now), now

    for passed, failed in steps:
        now += passed
        latest = max(latest, now)
        window.record(now, failures=failed)
        assert window.totals(now) == twin.totals(now, 1, int(failed))

    assert window.totals(latest + rules.span + rules.bucket) == (0, 0)


class SlowLine:
    """Everyone in one list; each time anew, whose job was given least."""

    def __init__(self) -> None:
        self.everyone: list[Waiter] = []
        self.tags: dict[str, float] = {}
        self.time = 0.0
        self.head: Waiter | None = None

    def push(self, waiter: Waiter) -> None:
        if not any(each.job == waiter.job for each in self.everyone if each is not self.head):
            self.tags[waiter.job] = max(self.tags.get(waiter.job, 0.0), self.time)
        self.everyone.append(waiter)

    def may_be_next(self) -> list[Waiter]:
        """The first of each job that was given least; the same one until it leaves."""
        if self.head is not None or not self.everyone:
            return [] if self.head is None else [self.head]
        least = min(self.tags[waiter.job] for waiter in self.everyone)
        first: dict[str, Waiter] = {}
        for waiter in self.everyone:
            first.setdefault(waiter.job, waiter)
        return [waiter for job, waiter in first.items() if self.tags[job] == least]

    def serve(self, waiter: Waiter, cost: float) -> None:
        self.time = self.tags[waiter.job]
        self.tags[waiter.job] += cost
        self.leave(waiter)
        if not self.everyone:
            self.tags, self.time = {}, 0.0

    def leave(self, waiter: Waiter) -> None:
        self.everyone.remove(waiter)
        if waiter is self.head:
            self.head = None


LINE_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from("abc"), st.just(0.0)),
        st.tuples(st.just("serve"), st.just(""), st.sampled_from([0.5, 1.0, 5.0])),
        st.tuples(st.just("leave"), st.just(""), st.integers(0, 20).map(float)),
    ),
    max_size=80,
)


@given(LINE_STEPS)
def test_a_line_serves_like_its_twin(steps: list[tuple[str, str, float]]) -> None:
    line, twin = Line(), SlowLine()

    for step, job, number in steps:
        if step == "push":
            waiter = Waiter((), (), job, 0.0)
            line.push(waiter)
            twin.push(waiter)
        elif step == "leave" and twin.everyone:
            waiter = twin.everyone[int(number) % len(twin.everyone)]
            line.leave(waiter)
            twin.leave(waiter)
        elif step == "serve" and twin.everyone:
            assert line.head is not None
            twin.serve(line.head, number)
            line.serve(number)
        assert len(line) == len(twin.everyone)
        assert line.head in (twin.may_be_next() or (None,))
        twin.head = line.head
