"""What is missed, as values: ranges of ids with why, since when, how often asked, and when to ask again."""

from dataclasses import dataclass, replace
from typing import Self

from sanderling.sequence.retries import OFFLOAD, Reason


@dataclass(frozen=True, slots=True)
class Missed:
    """A range of ids, both ends included, that share a fate. Times are Unix seconds."""

    low: int
    high: int
    reason: Reason
    first_seen: float
    last_seen: float
    tries: int  # in vain, since it was missed
    next_check: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"missed ids from {self.low} to {self.high}; expected them to ascend from 0")

    def __len__(self) -> int:
        return self.high - self.low + 1

    def without(self, low: int, high: int) -> list[Self]:
        """What is left of it when that range is taken out."""
        left = [replace(self, high=low - 1)] if self.low < low else []
        return [*left, replace(self, low=high + 1)] if high < self.high else left

    def joins(self, other: Self) -> bool:
        """Whether `other`, which begins behind it, may as well be one with it.

        Both are old: an id that is still asked one by one has times of its own.
        """
        alike = self.reason is other.reason and self.old and other.old
        return alike and self.high + 1 == other.low

    def join(self, other: Self) -> Self:
        """Both as one: asked when the earlier would be, as rarely as the rarer."""
        return replace(
            self,
            high=other.high,
            first_seen=min(self.first_seen, other.first_seen),
            last_seen=max(self.last_seen, other.last_seen),
            tries=max(self.tries, other.tries),
            next_check=min(self.next_check, other.next_check),
        )

    @property
    def old(self) -> bool:
        """Whether asking it one by one is over."""
        return self.reason is Reason.GAP or self.tries > OFFLOAD
