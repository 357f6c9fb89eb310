"""An upstream of records that appear late and out of order, and a crawl that asks when the head says so."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from random import Random

from sanderling.sequence.head import SequenceHead

WALL = 1.75e9  # when the story begins, by the upstream's clock
FIRST = 13_000_000_000
RETRIES = 3


@dataclass(frozen=True)
class Record:
    number: int
    completed: float  # seconds into the story
    visible: float


@dataclass(frozen=True)
class Upstream:
    """Makes `rate` ids a second, whose times scatter by `scatter` around their turn. Times are of the story."""

    rate: Callable[[float], float] = lambda _: 10.0
    scatter: float = 2.0
    delay: Callable[[float, Random], float] = lambda _, rng: rng.uniform(1, 6)
    holes: float = 0.0
    jumps: Callable[[float], int] = lambda _: 0  # ids that are left out before the one made at that time
    seed: int = 1

    def records(self, start: float, end: float) -> Iterator[Record]:
        rng, number, time = Random(self.seed), FIRST, start
        while time < end:
            time += 1 / self.rate(time)
            number += 1 + self.jumps(time)
            completed = time + rng.gauss(0, self.scatter)
            visible = inf if rng.random() < self.holes else completed + self.delay(time, rng)
            yield Record(number, completed, visible)


@dataclass
class Crawl:
    """Asks for record after record, `most` a second, each when it is due; what is not there is asked for again."""

    head: SequenceHead = field(default_factory=SequenceHead)
    most: float = 100.0
    skew: Callable[[float], float] = lambda _: 0.0  # what our clock adds to the upstream's
    seed: int = 2
    asked: list[tuple[float, Record, bool]] = field(default_factory=list)  # when first, what, and whether it was there
    longest_wait: float = 0.0

    def follow(self, upstream: Upstream, end: float, backlog: float = 300.0) -> "Crawl":
        """Follow the upstream, which has been at it for `backlog` seconds, to the end of the story."""
        rng, now = Random(self.seed), 0.0
        again: list[tuple[float, int, Record, int]] = []
        for record in upstream.records(-backlog, end):
            since = now
            while (wait := self._wait(record, now)) > 0 and now < end:
                now += min(wait, 0.5)
                self._ask_again(again, now, rng)
            self.longest_wait = max(self.longest_wait, now - since)
            self._ask_again(again, now, rng)
            self._first(record, now, again)
            now += 1 / self.most
            if now >= end:
                break
        return self

    def _wait(self, record: Record, now: float) -> float:
        wall = WALL + now + self.skew(now)
        due = self.head.due(record.number, wall)
        return 0.0 if due is None else due - wall

    def _first(self, record: Record, now: float, again: list[tuple[float, int, Record, int]]) -> None:
        there = record.visible <= now
        self.asked.append((now, record, there))
        if there:
            self.head.on_time(record.number)
            self._seen(record, now)
        else:
            self.head.early(record.number)
            heapq.heappush(again, (now + 6.0, record.number, record, 1))

    def _ask_again(self, again: list[tuple[float, int, Record, int]], now: float, rng: Random) -> None:
        while again and again[0][0] <= now:
            _, number, record, tries = heapq.heappop(again)
            if record.visible <= now:
                self._seen(record, now)
            elif tries < RETRIES:
                heapq.heappush(again, (now + 3.7 + rng.uniform(0, 5.5 * tries), number, record, tries + 1))

    def _seen(self, record: Record, now: float) -> None:
        self.head.seen(record.number, WALL + record.completed, WALL + now + self.skew(now))

    def early(self, since: float = 0.0, until: float = inf) -> float:
        """The share that was asked for before it was there, of all that ever was, in that time."""
        first = [there for now, record, there in self.asked if since <= now < until and record.visible < inf]
        return first.count(False) / max(1, len(first))

    def lag(self, share: float, since: float = 0.0, until: float = inf) -> float:
        """How old records were when they were first asked for: that share of them was younger."""
        lags = sorted(now - record.completed for now, record, _ in self.asked if since <= now < until)
        return lags[int(share * len(lags))]
