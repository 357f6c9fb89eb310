from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from sanderling.limit.gate import Feedback, Gate
from sanderling.limit.lane import Owner
from sanderling.limit.rules import Scope

class Lane:
    ready: float
    interval: float
    slack: float
    opened: float
    closes: float
    mean: float
    serial: int
    ended: int
    delivered: int
    epoch: int
    generation: int
    sent_before: int
    delivered_before: int
    failed: int
    fresh: int
    plain: bool
    calm: bool
    def __init__(self, ready: float, interval: float, slack: float) -> None: ...
    def take(self, now: float, cost: float = 1.0, /) -> int: ...
    def open_window(self, now: float, length: float, /) -> None: ...
    def sample(self, latency: float, /) -> None: ...
    def window(self) -> list[float]: ...
    def kept(self) -> list[float]: ...

class Permit:
    owner: Owner
    gate: Gate
    serial: int
    cost: float
    also: tuple[Permit, ...]
    live: bool
    def __init__(
        self, owner: Owner, gate: Gate, serial: int, cost: float = 1.0, also: tuple[Permit, ...] = ()
    ) -> None: ...
    @property
    def host(self) -> str: ...
    def release(self, *, sent: bool = False) -> None: ...

class Front:
    granted: int
    def __init__(self, gates: dict[str, Gate], now: Callable[[], float]) -> None: ...
    def acquire(
        self, host: str, scopes: Iterable[Scope] = (), *, cost: float = 1.0, job: str = ""
    ) -> Coroutine[Any, Any, Permit]: ...
    def try_acquire(self, host: str) -> Permit | None: ...
    def feedback(self, permit: Permit, feedback: Feedback) -> None: ...
