"""May we call this host now? The limiter people use: ask for leave, say how it went, look at what was learned.

It reads the clock and puts the parts together; the gates decide, the turnstile wakes, the registry remembers.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from math import isfinite
from random import Random

from sanderling.clock import Clock, SystemClock, never_back
from sanderling.limit import hints
from sanderling.limit.backoff import delay
from sanderling.limit.breaker import State
from sanderling.limit.budget import Budget
from sanderling.limit.feedback import Feedback
from sanderling.limit.gate import Gate, claim_all
from sanderling.limit.lane import Permit
from sanderling.limit.line import Waiter
from sanderling.limit.pace import Cap
from sanderling.limit.registry import LET_GO, Registry
from sanderling.limit.rules import LimiterRules
from sanderling.limit.sharing import SCOPES, Scope, Sharing
from sanderling.limit.slices import SliceStore
from sanderling.limit.snapshot import HostView, Snapshot, view
from sanderling.limit.tickets import Tickets
from sanderling.limit.tombstones import AT_ONCE, decode, encode
from sanderling.limit.turnstile import WAITS, Turnstile


class Attempt:
    """One call in progress, inside `Limiter.attempt`."""

    def __init__(self, permit: Permit, clock: Clock, now: Callable[[], float]) -> None:
        self.permit = permit
        self.feedback: Feedback | None = None
        self._clock = clock
        self._now = now
        self._started = now()

    def report(
        self,
        status: int = 0,
        headers: Mapping[str, str] | None = None,
        *,
        latency: float | None = None,
        error: BaseException | str | None = None,
        retry_after: float | None = None,
        scope: str | None = None,
    ) -> None:
        """Say how it went. What the `headers` say of pace is heeded; without a latency, the time until now is taken."""
        # HTTP/2 spells all names in lower case, and a plain dict would not find them otherwise.
        fields, wall = {name.lower(): value for name, value in (headers or {}).items()}, self._clock.wall()
        if retry_after is None:
            retry_after = hints.retry_after(fields.get("retry-after"), date=fields.get("date"), now=wall)
        took = self._now() - self._started if latency is None else latency
        self.feedback = Feedback(status, took, error, retry_after, hints.quota(fields, now=wall), scope)


class Limiter:
    """Leave to call hosts, each at the pace it allows. For one event loop; not for several threads."""

    def __init__(
        self,
        rules: LimiterRules | None = None,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        slices: SliceStore | None = None,
    ) -> None:
        """With `slices`, what hosts share is also shared with other limiters that have the same, and the same clock."""
        self.rules = rules or LimiterRules()
        self._clock = clock or SystemClock()
        self._now = self._clock.now if isinstance(self._clock, SystemClock) else never_back(self._clock.now)
        self._rng = rng or Random()
        self._hosts = Registry(self.rules, self._now, self._rng, slices)
        self._gates = self._hosts.gates
        self._sharing = Sharing(self.rules.shared, self.rules.costs, LET_GO * self.rules.hosts)
        self._alone = {} if self._sharing.any else self._gates  # hosts that need no other gate's leave
        self._tickets = Tickets()
        self._turnstile = Turnstile(self, self._clock, self._now)
        self._budget = Budget(self.rules.budget)
        self._retries = 0
        self.granted = 0  # permits ever given, each once however many scopes it drew on

    def __repr__(self) -> str:
        waiting = sum(len(gate.line or ()) for gate in self._gates.values())
        return f"<Limiter {self.rules.strategy}, {len(self._gates)} hosts, {waiting} waiting>"

    async def acquire(self, host: str, scopes: Iterable[Scope] = (), *, cost: float = 1.0, job: str = "") -> Permit:
        """Return when `host` may be called, first come first served. Raises CircuitOpen if it is left alone for now."""
        gate = self._alone.get(host)
        if gate is not None and not scopes and cost == 1.0 and gate.is_plain and gate.ready <= (now := self._now()):
            self.granted += 1
            permit = Permit(self, gate, gate.take(now))
            if job:
                permit.job = job
            return permit
        return await self._turnstile.stand(Waiter(*self._path(host, scopes, cost), job, self._now()))

    def try_acquire(self, host: str, scopes: Iterable[Scope] = (), *, cost: float = 1.0) -> Permit | None:
        """A permit if `host` may be called this instant and nobody waits for it; else None, and nothing is taken."""
        gate = self._alone.get(host)
        if gate is not None and not scopes and cost == 1.0:
            now = self._now()
            if gate.is_plain and gate.ready <= now:
                self.granted += 1
                return Permit(self, gate, gate.take(now))
            if gate.line or _opens(gate, now) > now:
                return None
        gates, costs = self._path(host, scopes, cost)
        now = self._now()  # after that: a host that is met now is ready now
        if any(each.line or _opens(each, now) > now for each in gates):
            for each in gates[1:]:
                if (due := _opens(each, now)) > now:
                    self._tickets.turn_away(each, gates[0].host, due, now)
            return None
        if len(gates) > 1 and (due := claim_all(gates[1:], now, self._tickets.waiting(gates[1:]))) > now:
            for each in gates[1:]:
                self._tickets.turn_away(each, gates[0].host, due, now)
            return None
        self.granted += 1
        for each in gates[1:]:
            self._tickets.serve(each, gates[0].host)
        first, *others = [each.grant(self, now, drawn) for each, drawn in zip(gates, costs, strict=True)]
        first.also = tuple(others)
        return first

    def feedback(self, permit: Permit, feedback: Feedback) -> None:
        """Learn how the permit's request went. A permit counts once; later reports on it are ignored."""
        if not permit.live:
            return
        gate = permit.gate
        counts = gate.calm and permit.serial > gate.epoch and not permit.also and feedback.is_plain
        permit.live = False
        if counts:
            gate.ended += 1
            gate.sample(feedback.latency)
            if (now := self._now()) >= gate.closes:
                gate.close_window(now)
                self._turnstile.serve(gate)
            elif gate.line:
                self._turnstile.serve(gate)  # who waits may wait for this one's place
        elif permit.also:
            self._feedback_to_all(permit, feedback)
        else:
            self._hosts.learn(permit, feedback, self._now())
            self._turnstile.serve(gate)

    def ready_at(self, host: str) -> float:
        """When `try_acquire` may next succeed, on the limiter's clock, as things stand."""
        if not self._sharing.any:
            return _opens(self._hosts.gate(host), self._now())
        gates, now = self._path(host, (), 1.0)[0], self._now()
        return max(_opens(each, now) for each in gates)

    def turn_at(self, host: str) -> float:
        """When it is likely to succeed: later, where others were turned away before at something that hosts share."""
        if not self._sharing.any:
            return _opens(self._hosts.gate(host), self._now())
        (gate, *shared), now = self._path(host, (), 1.0)[0], self._now()
        turns = [self._tickets.turn(each, gate.host, _opens(each, now), now) for each in shared]
        return max([_opens(gate, now), *turns])

    def is_down(self, host: str) -> bool:
        """Whether the circuit of `host` has opened, and no probe has closed it yet."""
        gate = self._gates.get(host)
        return gate is not None and gate.breaker is not None and gate.breaker.state is not State.CLOSED

    def most_failures(self, host: str) -> int:
        """How many failures in a row of one item are improbable at `host`, by what its other items have shown."""
        return self._hosts.gate(host).most_failures

    def excuse(self, host: str, failures: int) -> None:
        """An item of `host` was answered well after so many failures in a row: such failures say nothing of an item.

        Whoever understands answers says so: a page that is served in the place of an item is no good answer.
        """
        self._hosts.gate(host).excused += failures

    def probe_now(self, host: str) -> bool:
        """Let the next probe of `host` leave at once, if its circuit has just opened; whether that was done.

        For callers who have work that the host has answered well before: with that in hand a false alarm costs nothing.
        Not once a probe has failed, not twice for one opening, and not against a Retry-After.
        """
        gate = self._gates.get(host)
        return gate is not None and gate.probe_now(self._now())

    def vouch(self, host: str) -> None:
        """Say that `host` has answered before, be it in an earlier run: an outage of it is probed at an even pace."""
        self._hosts.gate(host).vouch()

    def cap(self, host: str, rps: float | None, why: str) -> None:
        """Never call `host` faster than `rps`, as somebody has asked for; `why` says who, in words. None lifts it.

        It holds at once, for those who wait too, and outlives the host's turn in memory; `save` does not keep it.
        """
        gate = self._hosts.cap(host, None if rps is None else Cap(rps, why))
        if gate is not None:
            self._turnstile.serve(gate)

    def cost(self, host: str, url: str) -> float:
        """For how many requests one for this URL of `host` counts: what to `charge` its permit with."""
        return self._sharing.cost(host, url)

    def locate(self, permit: Permit, address: str) -> None:
        """The permit's host lives at `address`, as its reply shows: from now on it shares what is allowed there.

        What left before anybody knew is counted afterwards, so that others wait the longer.
        """
        if permit.live and self._sharing.locate(permit.host, address):
            now = self._now()
            known = {part.host for part in permit.also}
            for scope in self._sharing.of(permit.host).scopes:
                if scope.key not in known:
                    part = self._hosts.scope(scope, beside=(permit.gate,)).grant(self, now, permit.cost)
                    permit.also = (*permit.also, part)

    @asynccontextmanager
    async def attempt(
        self, host: str, scopes: Iterable[Scope] = (), *, cost: float = 1.0, job: str = ""
    ) -> AsyncIterator[Attempt]:
        """Wait for leave to call `host`, and learn from what the body reports.

        An OSError or TimeoutError that leaves the body counts as a failure of the host. Any other exception and a
        cancellation teach nothing. A body that reports nothing and raises nothing has sent nothing.
        """
        permit = await self.acquire(host, scopes, cost=cost, job=job)
        attempt = Attempt(permit, self._clock, self._now)
        try:
            yield attempt
        except OSError as error:  # TimeoutError is one
            if attempt.feedback is None:
                attempt.report(error=error)
            raise
        except BaseException:
            if attempt.feedback is None:
                permit.release(sent=True)
            raise
        finally:
            if attempt.feedback is not None:
                self.feedback(permit, attempt.feedback)
            permit.release()

    def plan_retry(self, host: str, attempt: int) -> float | None:
        """Seconds to wait before trying again what failed at its `attempt`-th try; None if it must not be tried again.

        The retry budgets, the host's and everyone's, are charged now and not when the retry is sent: a thousand
        retries that wait their turn would otherwise all be affordable.
        """
        if attempt >= self.rules.backoff.attempts:
            return None
        gate = self._hosts.gate(host)
        gate.budget = gate.budget or Budget(self.rules.budget)
        if not gate.budget.spend(gate.serial):
            return None
        if not self._budget.spend(self.granted):
            gate.budget.refund()
            return None
        self._retries += 1
        return delay(self.rules.backoff, attempt, self._rng)

    def refund_retry(self, host: str) -> None:
        """A planned retry succeeded, or was never sent: its charge comes back."""
        self._budget.refund()
        budget = self._hosts.gate(host).budget
        if budget is not None:
            budget.refund()

    def snapshot(self, top: int = 10) -> Snapshot:
        """The totals, and the `top` hosts by requests."""
        now, turnstile = self._now(), self._turnstile
        states = [gate.state for gate in self._hosts.troubled.values()]
        at_once = self.granted - sum(turnstile.waits)
        return Snapshot(
            requests=self.granted,
            throttled=turnstile.throttled,
            denied=turnstile.denied,
            retries=self._retries,
            rejected=self._hosts.rejected,
            hosts=len(self._gates),
            open=states.count(State.OPEN),
            half_open=states.count(State.HALF_OPEN),
            waits=tuple(zip(WAITS, (at_once + turnstile.waits[0], *turnstile.waits[1:]), strict=True)),
            waited=turnstile.waited,
            top=tuple(self._view(gate, now) for gate in self._hosts.busiest.top(top)),
            shared=tuple(view(gate, now) for gate in self._hosts.busiest_scopes.top(top)),
        )

    def view(self, host: str) -> HostView | None:
        """One host as it stands; None if it is not in memory."""
        gate = self._gates.get(host)
        return None if gate is None else self._view(gate, self._now())

    def _view(self, gate: Gate, now: float) -> HostView:
        keys = [scope.key for scope in self._sharing.of(gate.host).scopes]
        return view(gate, now, tuple(self._hosts.scopes[key] for key in keys if key in self._hosts.scopes))

    def save(self) -> bytes:
        """What must outlive the process: ceilings, penalties, open circuits. For `restore`, as JSON."""
        return b"".join(self.saving())

    def saving(self) -> Iterator[bytes]:
        """The same in pieces, each made when it is asked for: with many hosts, others want a turn in between."""
        now = self._now()
        return encode(self._hosts.stones(now), now, self._clock.wall())

    def take_news(self, tell: Callable[[], object] | None = None) -> bytes:
        """The same of a few hosts that were penalised for longer than a moment since this was last asked for, if any.

        It takes a millisecond at most: for whoever is killed between two saves. When there are more, `tell` is called.
        """
        self._hosts.on_news, now = tell or self._hosts.on_news, self._now()
        stones = list(self._hosts.take_penalised(AT_ONCE - 1))
        return b"".join(encode(iter(stones), now, self._clock.wall())) if stones else b""

    def restore(self, saved: bytes) -> None:
        """Take up what `save` kept; the time that passed since counts. Raises ValueError for anything else."""
        now = self._now()
        self._hosts.recall(list(decode(saved, now, self._clock.wall())), now)

    def forget_idle(self) -> int:
        """Let go of every idle host; how many that were. New hosts push idle ones out without being asked."""
        return self._hosts.forget_idle()

    async def _more(self, permit: Permit, host: str) -> Permit:
        same = bool(permit.also) and self._hosts.gate(host) is permit.gate
        scopes = [_scope(part) for part in permit.also] if same else ()
        return await self.acquire(host, scopes, job=permit.job)

    def _charge(self, permit: Permit, cost: float) -> None:
        for part in (permit, *permit.also):
            part.gate.charge(part.cost * (_positive(cost) - 1), self._now())

    def _give_back(self, permit: Permit, *, sent: bool) -> None:
        for part in (permit, *permit.also):
            part.live = False
            part.gate.refund(part, sent=sent)
            self._turnstile.serve(part.gate)

    def _feedback_to_all(self, permit: Permit, feedback: Feedback) -> None:
        now, parts = self._now(), (permit, *permit.also)
        about = feedback.scope
        if about is None and feedback.limits:
            about = self._sharing.of(permit.host).speaks_of
        # A refusal that speaks of a scope the permit did not draw on is still a refusal: the host heeds it.
        about = about if about in {_kind(part.gate) for part in parts} else None
        for part in parts:
            part.live = False
            self._hosts.learn(part, feedback.share(_kind(part.gate), about), now)
        for part in parts:
            self._turnstile.serve(part.gate)

    def _path(self, host: str, scopes: Iterable[Scope], cost: float) -> tuple[tuple[Gate, ...], tuple[float, ...]]:
        """The gates to pass, in the order that everyone passes them, and what is drawn from each."""
        gates = [self._hosts.gate(host)]
        if self._sharing.any:
            named = list(scopes)
            keys = {each.key for each in named}
            scopes = [*named, *(each for each in self._sharing.of(gates[0].host).scopes if each.key not in keys)]
        ordered = sorted(scopes, key=_rank)
        for scope in ordered:
            gates.append(self._hosts.scope(scope, beside=gates))
        if len(set(gates)) < len(gates):
            raise ValueError(f"a scope is named twice: {', '.join(gate.host for gate in gates[1:])}")
        return tuple(gates), tuple(_positive(each) for each in (cost, *(scope.cost for scope in ordered)))


def _opens(gate: Gate, now: float) -> float:
    """When the gate may next let somebody through, as things stand."""
    until = gate.refusal(now)
    return gate.due(now) if until is None else until


def _kind(gate: Gate) -> str | None:
    """The kind of scope; None for a host."""
    return gate.host.partition("/")[0] if "/" in gate.host else None


def _scope(permit: Permit) -> Scope:
    kind, _, name = permit.gate.host.partition("/")
    return Scope(kind, name, permit.cost)


def _rank(scope: Scope) -> tuple[int, str]:
    if scope.kind not in SCOPES:
        raise ValueError(f"scope {scope.kind!r}; there are {', '.join(SCOPES)}")
    return SCOPES.index(scope.kind), scope.name


def _positive(cost: float) -> float:
    if not (isfinite(cost) and cost > 0):
        raise ValueError(f"a cost of {cost}; it must be a positive number")
    return cost
