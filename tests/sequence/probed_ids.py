"""Worlds of ids for searches: which exist, who asks, and how often."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from sanderling.sequence.gaps import BATCH, LifeAhead, NothingAhead, Search

MOST = 20_000  # questions of one search; more, and it will never end


@dataclass
class Ids:
    """Which ids exist; `asked` are those that somebody wanted to know about."""

    exists: Callable[[int], bool]
    asked: list[int] = field(default_factory=list)

    def answer(self, search: Search) -> LifeAhead | NothingAhead:
        """Drive a search to its end."""
        try:
            batch = next(search)
            while len(self.asked) < MOST:
                assert 1 <= len(batch) <= BATCH
                assert list(batch) == sorted(set(batch))
                self.asked.extend(batch)
                batch = search.send([self.exists(number) for number in batch])
        except StopIteration as end:
            found: LifeAhead | NothingAhead = end.value
            return found
        raise AssertionError("a search without end")


def behind_a_gap(last: int, gap: int, width: int) -> Ids:
    """All ids up to `last`, then none for `gap` ids, then `width` that exist, then the future."""
    first = last + gap + 1
    return Ids(lambda number: number <= last or first <= number < first + width)


def with_holes(ids: Ids, share: float, seed: int = 1) -> Ids:
    """The same, but that share of all ids will never exist."""
    return Ids(lambda number: ids.exists(number) and Random(number * 31 + seed).random() >= share)
