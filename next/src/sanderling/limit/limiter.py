"""When may this host be requested? Ask for a permit, say how the request went, look at what was learned."""

import logging
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from random import Random
from typing import Self

import msgspec

from sanderling.clock import Clock, SystemClock, never_back
from sanderling.files import write_file
from sanderling.ids import domain_of
from sanderling.limit.breaker import State
from sanderling.limit.memory import POLICIES, SCOPE_EXAMPLES, Memory
from sanderling.limit.pace import is_refusal
from sanderling.limit.permit import Attempt, Headers, Part, Permit, outcome_of
from sanderling.limit.queue import CircuitOpen, Queues
from sanderling.limit.rate_headers import stated_quota
from sanderling.limit.rules import LONGEST_WAIT, LimitOptions, normalise_pattern
from sanderling.limit.scope import KINDS, NOT_SENT, NOTHING_LEARNED, Scope
from sanderling.limit.snapshot import Snapshot, most_active
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome

_log = logging.getLogger(__name__)


class BaseLimiter:
    """All of a limiter that waits for nothing: `Limiter` for an event loop and `ThreadLimiter` for threads wait."""

    def __init__(
        self,
        limits: LimitOptions | None = None,
        *,
        policy: str = "governor",
        hosts: Mapping[str, LimitOptions] | None = None,
        scopes: Mapping[str, LimitOptions] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        **fields: object,
    ) -> None:
        """Limits for all hosts, either as options or as `fields` of them: `Limiter(max_rps=4)`.

        `hosts` has the limits of some hosts, by pattern (`api.example.org`, `*.example.org`); what they do not
        say is as for all.
        `scopes` has those of what hosts share: `{"key/maps": LimitOptions(max_rps=3)}`. `policy` is `governor`, which
        learns each host's limit; `aimd`, which is seed 003's law; `none`, which paces nothing; or `fixed`, which
        requests each host at its `max_rps`.
        """
        if policy not in POLICIES:
            raise OptionError(f"policy: found {policy!r}, expected one of {', '.join(POLICIES)}")
        if limits is not None and fields:
            raise OptionError(f"limits are given twice: as options, and {', '.join(fields)}; give one of them")
        self.limits = LimitOptions(**fields) if limits is None else limits
        self.policy = policy
        self._clock = clock or SystemClock()
        self._now = self._clock.now if isinstance(self._clock, SystemClock) else never_back(self._clock.now)
        self._random = random or Random()
        own = {normalise_pattern(name): each.over(self.limits, name) for name, each in (hosts or {}).items()}
        if wrong := [
            name for name in scopes or () if name.partition("/")[0] not in KINDS or not name.partition("/")[2]
        ]:
            raise OptionError(f"scopes: found {wrong[0][:60]!r}, expected names like {', '.join(SCOPE_EXAMPLES)}")
        self._memory = Memory(self.limits, policy, own, scopes or {}, self._now, self._random)
        self._by_name = self._memory.scopes
        self._shares_domains = any(name.startswith("domain/") for name in scopes or ())
        self._scope_names = frozenset(scopes or ())
        self._total = self._throttled = self._denied = self._retries = self._refused = 0
        self._waited = 0.0
        self._prepare()

    def _prepare(self) -> None:
        """Make what is needed for waiting."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.policy}, {len(self._by_name)} hosts>"

    def try_acquire(self, host: str, *scopes: str) -> Permit | None:
        """A permit if a request may leave now and nobody waits before it; else None."""
        path = self._path(host, scopes)
        now = self._now()
        for scope in path:
            if scope.queue or scope.ready_at(now) > now:
                return None
        return self._grant(path, now)

    def ready_at(self, host: str, *scopes: str) -> float:
        """When a request may leave, on the limiter's clock, if no other leaves before."""
        path = self._path(host, scopes)
        now = self._now()
        return max(scope.ready_at(now) for scope in path)

    def is_open(self, host: str) -> bool:
        """Whether the host's circuit is open, or waits for good probes."""
        scope = self._memory.find(host)
        return scope.breaker.state is not State.CLOSED

    def feedback(
        self,
        host: str,
        *,
        status: int = 0,
        latency: float = 0.0,
        error: BaseException | str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Say how a request to the host went, before its permit is released: the interface of seed 003."""
        scope, now = self._memory.find(host), self._now()
        outcome = outcome_of(status, (), error, retry_after, self._clock.wall())
        if outcome.code in NOTHING_LEARNED:
            return
        sent_at = now - latency if 0 < latency < inf else now
        self._refused += is_refusal(outcome)
        scope.learn(now, sent_at, scope.breaker.generation, outcome, latency, None, of_host=False)
        self._changed(scope)

    def plan_retry(
        self, host: str, attempts: int, *, status: int = 0, error: BaseException | str | None = None
    ) -> float | None:
        """Seconds to wait before a failed request is tried again, drawn anew each time; None: do not try it again.

        `attempts` were made. A transport error is worth a retry, and a status of `transient_codes`.
        """
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}; expected those that were made, 1 or more")
        options = self._memory.find(host).options
        worth = error is not None or (status in options.transient_codes and status not in options.permanent_codes)
        if attempts >= options.retry_max_attempts or not worth:
            return None
        self._retries += 1
        longest = min(options.retry_max_delay, options.retry_base_delay * 2.0 ** min(attempts - 1, 64))
        return self._random.uniform(0, longest)

    def probe_now(self, host: str) -> None:
        """Who knows a request that the host answers may send it at once when the circuit has just opened.

        A false alarm costs one request then, and no time; in an outage the pauses begin with it.
        """
        scope = self._memory.find(host)
        scope.breaker.hurry(self._now())
        self._changed(scope)

    def set_cap(self, host: str, rps: float | None, why: str = "somebody asked for it") -> None:
        """Never request the host faster than `rps` a second; None lifts that. It outlives the host's eviction."""
        if rps is not None and not (isfinite(rps) and rps > 0):
            raise OptionError(f"rps of {host} is {rps}; expected a number above 0")
        scope = self._memory.find(host)
        scope.set_cap(rps, why, self._now())
        self._changed(scope)

    def wait_until(self, host: str, instant: float) -> None:
        """Send nothing to the host before `instant` on the limiter's clock; an earlier order is never shortened."""
        scope, now = self._memory.find(host), self._now()
        if instant > now:
            scope.wait_until(min(instant, now + LONGEST_WAIT))
            self._changed(scope)

    def snapshot(self, top: int = 10) -> Snapshot:
        """The totals, and the `top` hosts that were requested most recently."""
        now = self._now()
        states = [scope.breaker.state for scope in self._memory]
        return Snapshot(
            total_requests=self._total,
            throttled_requests=self._throttled,
            denied=self._denied,
            retries=self._retries,
            refused=self._refused,
            open_circuits=states.count(State.OPEN),
            half_open_circuits=states.count(State.HALF_OPEN),
            hosts_in_memory=len(states),
            waited=self._waited,
            hosts=most_active(self._memory, top, now, self._clock.wall()),
        )

    def evict_idle(self) -> int:
        """Evict hosts whose time to live is over; how many they were. New hosts push them out by themselves."""
        return self._memory.evict()

    def saved(self, host: str) -> bytes | None:
        """What must not be forgotten of a host: Retry-After, open circuit, learned limit, cap. None if nothing."""
        return self._memory.dump(self._clock.wall(), host)

    def restore(self, host: str, saved: bytes) -> None:
        """Take up what `saved` returned; the time since then counts. Raises ValueError for anything else."""
        self._memory.restore(saved, self._clock.wall(), host)

    def save(self, path: Path) -> None:
        """Write what must not be forgotten of all hosts to a file."""
        write_file(path, self._memory.dump(self._clock.wall()) or b"")

    def load(self, path: Path) -> None:
        """Take up what `save` wrote; nothing if there is no such file. Raises ValueError for another file."""
        if path.exists():
            self._memory.restore(path.read_bytes(), self._clock.wall())

    # For permits.

    def finish(
        self,
        permit: Permit,
        outcome: Outcome | None,
        latency: float,
        headers: Headers,
        item: Hashable | None,
        *,
        of_host: bool,
    ) -> None:
        """End a permit and learn from its outcome, if there is one."""
        now, sent_at = self._now(), permit.sent_at
        unsent = outcome is not None and outcome.code in NOT_SENT
        for scope, number, generation in permit.parts:
            if unsent:
                scope.put_back(now, sent_at, generation, number)
            else:
                scope.end(now, sent_at, generation)
        if outcome is not None and outcome.code not in NOTHING_LEARNED:
            refused = is_refusal(outcome)
            self._refused += refused
            # What hosts share is there because it has a quota: a refusal speaks of that, and of the host where nothing
            # is shared. Failures are the host's.
            shared = permit.parts[min(1, len(permit.parts) - 1)][0]
            about = shared if refused else permit.parts[0][0]
            quota = stated_quota(headers, self._clock.wall()) if headers else None
            if quota is not None:
                shared.pace.heed(now, quota)
            for scope, _, generation in permit.parts:
                if scope is about or outcome.ok:
                    scope.learn(now, sent_at, generation, outcome, latency, item, of_host=of_host)
        for scope, _, _ in permit.parts:
            self._changed(scope)

    def report(
        self,
        permit: Permit,
        status: int,
        headers: Headers,
        latency: float | None,
        error: BaseException | str | None,
        retry_after: float | None,
    ) -> None:
        """Report on a permit what a response means; without a latency the time since it was given is taken."""
        outcome = outcome_of(status, headers, error, retry_after, self._clock.wall())
        took = self._now() - permit.sent_at if latency is None else latency
        permit.report(outcome, latency=took, headers=headers)

    def _count_wait(self, scope: Scope, waited: float) -> None:
        self._waited += waited
        self._throttled += waited > scope.options.throttled_after

    def _changed(self, scope: Scope) -> None:
        """Somebody who waits may go now, or has to wait for longer."""

    def _path(self, host: str, scopes: Sequence[str]) -> tuple[Scope, ...]:
        """What a request needs leave of, in the order that all requests pass it."""
        scope = self._by_name.get(host) or self._memory.find(host)
        if not scopes and not self._shares_domains:
            return (scope,)
        names = set(scopes)
        if self._shares_domains:
            domain = f"domain/{domain_of(scope.name)}"
            names.update({domain} if domain in self._scope_names or "domain/*" in self._scope_names else ())
        ordered = sorted(names, key=lambda name: (KINDS.index(name.partition("/")[0]), name))
        path = (scope, *map(self._memory.find, ordered))
        for each in path:
            self._by_name.setdefault(each.name, each)  # making one may have evicted another
        return path

    def _grant(self, path: Sequence[Scope], now: float) -> Permit:
        probe = False
        parts: list[Part] = []
        for scope in path:
            probe |= scope.take(now)
            parts.append((scope, scope.requests, scope.breaker.generation))
            self._by_name.move_to_end(scope.name)
        self._total += 1
        return Permit(self, tuple(parts), now, probe=probe)


class AsyncAttempt(Attempt):
    """One request by a task."""

    __slots__ = ()
    _limiter: "Limiter"

    async def __aenter__(self) -> Self:
        self.permit = await self._limiter.acquire(*self._names)
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.end(error)


class Limiter(BaseLimiter):
    """Permits for the tasks of one event loop, first come first served at each host."""

    def _prepare(self) -> None:
        self._queues: Queues[Permit] = Queues(self._clock, self._now, self._grant)

    async def acquire(self, host: str, *scopes: str) -> Permit:
        """A permit, once a request may leave. Raises CircuitOpen if the host is left alone for a while."""
        permit = self.try_acquire(host, *scopes)
        if permit is not None:
            return permit
        path, came = self._path(host, scopes), self._now()
        try:
            permit = await self._queues.wait(path, self._put_back)
        except CircuitOpen:
            self._denied += 1
            raise
        self._count_wait(path[0], self._now() - came)
        return permit

    def attempt(self, host: str, *scopes: str) -> "AsyncAttempt":
        """Wait for a permit on entry, and learn from what the body reports."""
        return AsyncAttempt(self, (host, *scopes))

    async def stream(self, seconds: float, top: int = 10) -> AsyncIterator[Snapshot]:
        """A snapshot every so often, without end."""
        while True:
            await self._clock.sleep(seconds)
            yield self.snapshot(top)

    async def log_snapshots(self, seconds: float, top: int = 10) -> None:
        """Log a snapshot every so often, as JSON, until this is cancelled."""
        async for snapshot in self.stream(seconds, top):
            _log.info("limiter %s", msgspec.json.encode(snapshot).decode())

    def _put_back(self, permit: Permit) -> None:
        """A permit that nobody wants any more."""
        self._total -= 1
        permit.report(_UNWANTED)

    def _changed(self, scope: Scope) -> None:
        if scope.queue:
            self._queues.serve(scope)


_UNWANTED = Outcome(Code.REFUSED, sent=False)
