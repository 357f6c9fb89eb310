"""Chance that comes out the same every time: weighted draws, and shares that have been checked."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isfinite
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


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


def check_share(name: str, share: float) -> None:
    """Raise ValueError if it is no share."""
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is {share}, expected a share from 0 to 1")


def check_shares(name: str, shares: Mapping[T, float]) -> None:
    """Raise ValueError if they are no shares of one whole."""
    if any(not share >= 0 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
        raise ValueError(f"{name} are {_shown(shares)}, expected shares of 0 or more, up to 1 together")


def check_weights(name: str, weights: Mapping[T, float]) -> None:
    """Raise ValueError if nothing can be drawn by them."""
    if any(not (weight >= 0 and isfinite(weight)) for weight in weights.values()) or not sum(weights.values()) > 0:
        raise ValueError(f"{name} are {_shown(weights)}, expected weights of 0 or more, and one that is more")


def _shown(weights: Mapping[T, float]) -> str:
    return ", ".join(f"{thing} {weight:g}" for thing, weight in weights.items()) or "none"
