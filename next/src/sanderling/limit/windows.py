"""What a host's last responses were: how many failed in a sliding window, and how long they took."""

from array import array
from collections.abc import Iterator
from math import ceil

# Enough latencies for a 95th percentile to mean something (seed 003: a ring of 64).
RING = 64
MOST_IN_A_BYTE = 255  # more responses a bucket are counted in four bytes: of 100,000 hosts few need them
SMOOTHING = 0.2  # seed 003's lambda


class ErrorWindow:
    """Responses and errors of the last `window` seconds, counted in buckets of `bucket` seconds."""

    __slots__ = ("_bucket", "_counts", "_index", "errors", "total")

    def __init__(self, window: float, bucket: float) -> None:
        self._bucket = bucket
        self._counts = array("B", bytes(2 * ceil(window / bucket)))  # total and errors of each bucket, in turn
        self._index = 0
        self.total = self.errors = 0

    def count(self, now: float, *, failed: bool) -> None:
        """Count a response that came at `now`."""
        self.expire(now)
        place = 2 * self._index % len(self._counts)
        if self._counts[place] == MOST_IN_A_BYTE and self._counts.itemsize == 1:
            self._counts = array("I", self._counts)
        self._counts[place] += 1
        self.total += 1
        if failed:
            self._counts[place + 1] += 1
            self.errors += 1

    def expire(self, now: float) -> None:
        """Drop the buckets that are older than the window."""
        index = int(now // self._bucket)
        counts = self._counts
        for step in range(min(index - self._index, len(counts) // 2)):
            place = 2 * (self._index + 1 + step) % len(counts)
            self.total -= counts[place]
            self.errors -= counts[place + 1]
            counts[place] = counts[place + 1] = 0
        self._index = max(self._index, index)

    def clear(self) -> None:
        """Forget all responses."""
        for place in range(len(self._counts)):
            self._counts[place] = 0
        self.total = self.errors = 0

    @property
    def error_rate(self) -> float:
        """The share of the responses that were errors."""
        return self.errors / self.total if self.total else 0.0

    def recent(self) -> Iterator[tuple[int, int]]:
        """Responses and errors of the newest bucket, of the newest two, and so on to the whole window."""
        total = errors = 0
        for step in range(len(self._counts) // 2):
            place = 2 * (self._index - step) % len(self._counts)
            total += self._counts[place]
            errors += self._counts[place + 1]
            yield total, errors


class Latencies:
    """The last latencies of a host, and their moving average; `average` is 0 before the first one."""

    __slots__ = ("_next", "_ring", "average")

    def __init__(self, average: float = 0.0) -> None:
        self.average = average
        self._ring = array("f")
        self._next = 0

    def add(self, latency: float) -> None:
        """Take in one latency, in seconds."""
        self.average += SMOOTHING * (latency - self.average) if self.average else latency
        if len(self._ring) < RING:
            self._ring.append(latency)
        else:
            self._ring[self._next] = latency
            self._next = (self._next + 1) % RING

    def newest(self, count: int) -> list[float]:
        """At most the `count` newest, in order of size."""
        ring = self._ring[self._next :] + self._ring[: self._next]
        return sorted(ring[-count:]) if count else []

    @property
    def p95(self) -> float:
        """The 95th percentile of those that are kept; 0 where there are none."""
        ordered = sorted(self._ring)
        return ordered[(95 * len(ordered) - 1) // 100] if ordered else 0.0
