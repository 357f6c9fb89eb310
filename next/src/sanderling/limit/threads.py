"""The limiter for threads: permits are waited for by blocking."""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock

from sanderling.limit.breaker import State
from sanderling.limit.limiter import BaseLimiter
from sanderling.limit.permit import Attempt, Headers, Permit
from sanderling.limit.queue import CircuitOpen
from sanderling.limit.scope import Scope
from sanderling.limit.snapshot import Snapshot
from sanderling.outcome import Outcome


class ThreadLimiter(BaseLimiter):
    """Permits for the threads of one process, first come first served at each host. Every method may be called by any.

    One lock guards all of it: each call holds it for microseconds, and nobody waits while holding it.
    """

    def _prepare(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, deque[Event]] = {}  # by host; the first of a queue watches the clock

    def acquire(self, host: str, *scopes: str) -> Permit:
        """A permit, once a request may leave. Raises CircuitOpen if the host is left alone for a while."""
        with self._lock:
            path = self._path(host, scopes)
            if path[0].name not in self._waiting:
                permit = super().try_acquire(host, *scopes)
                if permit is not None:
                    return permit
            turn, came = Event(), self._now()
            queue = self._waiting.setdefault(path[0].name, deque())
            queue.append(turn)
            for scope in path:
                scope.wanted += 1
            first = len(queue) == 1
        try:
            if not first:
                turn.wait()
            permit = self._wait(path, turn)
        except CircuitOpen:
            with self._lock:
                self._denied += 1
            raise
        finally:
            with self._lock:
                for scope in path:
                    scope.wanted -= 1
                queue.remove(turn)
                if queue:
                    queue[0].set()
                else:
                    del self._waiting[path[0].name]
        with self._lock:
            self._count_wait(path[0], self._now() - came)
        return permit

    def _wait(self, path: Sequence[Scope], turn: Event) -> Permit:
        """The permit of who is first in the queue."""
        while True:
            with self._lock:
                turn.clear()
                now = self._now()
                due = max(scope.ready_at(now) for scope in path)
                for scope in path:
                    if scope.breaker.state is State.OPEN:
                        raise CircuitOpen(scope.name, scope.breaker.until)
                if due <= now:
                    return self._grant(path, now)
            turn.wait(due - now)

    @contextmanager
    def attempt(self, host: str, *scopes: str) -> Iterator[Attempt]:
        """Wait for a permit, and learn from what the body reports.

        An OSError or TimeoutError that leaves the body counts as a failure of the host; any other exception teaches
        nothing.
        """
        permit = self.acquire(host, *scopes)
        attempt = Attempt(self, permit)
        try:
            yield attempt
        except OSError as error:  # TimeoutError is one
            attempt.report(error=error)
            raise
        finally:
            permit.release()

    def try_acquire(self, host: str, *scopes: str) -> Permit | None:
        """A permit if a request may leave now and nobody waits before it; else None."""
        with self._lock:
            path = self._path(host, scopes)
            return None if path[0].name in self._waiting else super().try_acquire(host, *scopes)

    def ready_at(self, host: str, *scopes: str) -> float:
        """When a request may leave, on the limiter's clock, if no other leaves before."""
        with self._lock:
            return super().ready_at(host, *scopes)

    def is_open(self, host: str) -> bool:
        """Whether the host's circuit is open, or waits for good probes."""
        with self._lock:
            return super().is_open(host)

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
        with self._lock:
            super().feedback(host, status=status, latency=latency, error=error, retry_after=retry_after)

    def plan_retry(
        self, host: str, attempts: int, *, status: int = 0, error: BaseException | str | None = None
    ) -> float | None:
        """Seconds to wait before a failed request is tried again, drawn anew each time; None: do not try it again."""
        with self._lock:
            return super().plan_retry(host, attempts, status=status, error=error)

    def set_cap(self, host: str, rps: float | None, why: str = "somebody asked for it") -> None:
        """Never request the host faster than `rps` a second; None lifts that. It outlives the host's eviction."""
        with self._lock:
            super().set_cap(host, rps, why)

    def wait_until(self, host: str, instant: float) -> None:
        """Send nothing to the host before `instant` on the limiter's clock; an earlier order is never shortened."""
        with self._lock:
            super().wait_until(host, instant)

    def snapshot(self, top: int = 10) -> Snapshot:
        """The totals, and the `top` hosts that were requested most recently."""
        with self._lock:
            return super().snapshot(top)

    def evict_idle(self) -> int:
        """Evict hosts whose time to live is over; how many they were."""
        with self._lock:
            return super().evict_idle()

    def dump(self) -> bytes:
        """What must outlive the process: Retry-After, open circuits, learned limits, caps. For `restore`."""
        with self._lock:
            return super().dump()

    def restore(self, saved: bytes) -> None:
        """Take up what `dump` returned; the time since then counts. Raises ValueError for anything else."""
        with self._lock:
            super().restore(saved)

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
        with self._lock:
            super().finish(permit, outcome, latency, headers, item, of_host=of_host)

    def _changed(self, scope: Scope) -> None:
        if scope.name in self._waiting:
            self._waiting[scope.name][0].set()
