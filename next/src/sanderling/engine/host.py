"""One host in memory: the items that were read, in which order they are sent, and what its requests ended with."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sanderling.engine.ends import HostEnds

# An item that has failed gets every so many-th permit while others wait: many bad ones must cost the good ones little,
# and a rate does not grow while much fails.
AGAIN_EVERY = 50


@dataclass(slots=True, eq=False)
class Host:
    """What the engine knows of a host that it holds."""

    name: str
    more_at: float | None  # when the source has more of its items; None: it has no more
    parked: bool = False
    parked_until: float = 0.0
    good: Any = None  # an item that it answered well, to probe it with
    ends: HostEnds = field(default_factory=HostEnds)
    inflight: int = 0  # requests that count
    lent: int = 0  # requests that are slow, and have lent their slots
    unwritten: int = 0  # items that ended and are not on disk
    probing: bool = False  # a probe is in flight
    probed_at: float = 0.0  # when it was sent
    loading: bool = False
    stale: bool = False  # more work arrived while it was loading
    ready: int = 0  # items in memory that may be sent
    from_tail: bool = False  # which end of the line the next item is from
    depth: int = 0  # how far beyond what fails to read: doubled so many times
    misses: int = 0  # turns in a row without a permit: it shares a limit with others
    _fresh: dict[str, deque[Any]] = field(default_factory=dict)  # by class, what has not failed
    _again: deque[Any] = field(default_factory=deque)  # what has
    _since_again: int = 0  # items sent since one of those

    @property
    def is_proven(self) -> bool:
        """Whether it gave a good response, and nothing else since."""
        return self.ends.answered_at is not None and self.ends.silent_since is None

    @property
    def is_busy(self) -> bool:
        """Whether something of it is under way."""
        return bool(self.inflight or self.lent or self.unwritten or self.loading)

    def has_more(self, now: float) -> bool:
        """Whether the source has more that is due."""
        return self.more_at is not None and self.more_at <= now

    @property
    def has_fresh(self) -> bool:
        """Whether an item that has not failed is in memory."""
        return bool(self._fresh)

    def add(self, items: Iterable[Any]) -> None:
        """Line up what was read."""
        for item in items:
            self.ready += 1
            if item.failures:
                self._again.append(item)
            elif (line := self._fresh.get(item.kind)) is None:
                self._fresh[item.kind] = deque((item,))
            else:
                line.append(item)

    def put_back(self, item: Any) -> None:  # noqa: ANN401 - the system's item
        """It could not be sent."""
        self.ready += 1
        self._again.appendleft(item) if item.failures else self._fresh.setdefault(item.kind, deque()).appendleft(item)

    def next(self, *, probe: bool = False) -> Any:  # noqa: ANN401 - the system's item
        """The item to send next; None if there is none. A probe is one that has not failed, if there is one."""
        fresh = self._fresh
        if self._again and (not fresh or (not probe and self._since_again >= AGAIN_EVERY)):
            self._since_again = 0
            self.ready -= 1
            return self._again.popleft()
        if not fresh:
            return None
        self._since_again += 1
        kind = next(iter(fresh))
        line = fresh.pop(kind)
        item = line.pop() if self.from_tail else line.popleft()
        if line:
            fresh[kind] = line  # behind the others: classes take turns
        self.ready -= 1
        return item
