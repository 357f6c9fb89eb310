"""The limiter for threads: permits are waited for by blocking."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import wraps
from threading import Event, Lock
from typing import Self

from sanderling.limit.breaker import State
from sanderling.limit.limiter import BaseLimiter
from sanderling.limit.permit import Attempt, Permit
from sanderling.limit.queue import CircuitOpen
from sanderling.limit.scope import Scope


class ThreadAttempt(Attempt):
    """One request by a thread."""

    __slots__ = ()
    _limiter: "ThreadLimiter"

    def __enter__(self) -> Self:
        self.permit = self._limiter.acquire(*self._names)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.end(error)


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

    def attempt(self, host: str, *scopes: str) -> "ThreadAttempt":
        """Wait for a permit on entry, and learn from what the body reports."""
        return ThreadAttempt(self, (host, *scopes))

    def try_acquire(self, host: str, *scopes: str) -> Permit | None:
        """A permit if a request may leave now and nobody waits before it; else None."""
        with self._lock:
            path = self._path(host, scopes)
            return None if path[0].name in self._waiting else super().try_acquire(host, *scopes)

    def _changed(self, scope: Scope) -> None:
        if scope.name in self._waiting:
            self._waiting[scope.name][0].set()


def _locked(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def call(self: ThreadLimiter, *arguments: object, **more: object) -> object:
        with self._lock:
            return method(self, *arguments, **more)

    return call


# All others of its methods wait for nothing: they are those of BaseLimiter, one at a time.
for _name in (
    "ready_at is_open feedback plan_retry set_cap wait_until snapshot evict_idle saved restore save load finish"
).split():
    setattr(ThreadLimiter, _name, _locked(getattr(BaseLimiter, _name)))
