"""Chance that comes out the same every time: bits that belong to a number, and weighted draws."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")
MASK = 2**64 - 1


def scatter(number: int, salt: int) -> int:
    """64 bits that look like chance, and are the same for the same number and salt: how SplitMix64 ends."""
    bits = (number * 0x9E3779B97F4A7C15 + salt) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


class Weights(Generic[T]):
    """Things to draw from, each with its weight."""

    __slots__ = ("_sums", "_things", "_total")

    def __init__(self, weights: Mapping[T, float]) -> None:
        # Without those of no weight rounding can never lead to one.
        kept = {thing: weight for thing, weight in weights.items() if weight > 0}
        self._things = tuple(kept)
        *self._sums, self._total = accumulate(kept.values())

    def draw(self, luck: float) -> T:
        """One of them; `luck` is from 0 to below 1."""
        return self._things[bisect_right(self._sums, luck * self._total)]


def perhaps(shares: Mapping[T, float]) -> Weights[T | None]:
    """Things of which each comes in its share of all cases, and nothing in the rest."""
    return Weights({**shares, None: max(0.0, 1 - sum(shares.values()))})


def pick(things: Sequence[T], chance: Random) -> T:
    """One of them, each as likely as the others. Half the time of `choice`, which is called dozens of times an item."""
    return things[int(chance.random() * len(things))]
