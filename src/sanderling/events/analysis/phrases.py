"""Phrases among the words of a text: found in one pass, whatever their number.

They are followed word by word, so a phrase never begins or ends within one. `scan.py` does the following.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from sanderling.events.analysis import scan
from sanderling.events.analysis.scan import Tree

T = TypeVar("T")

MOST_WORDS = 8  # of a phrase


def tree_of(table: Mapping[str, T]) -> "Tree[T]":
    """Phrases, which are words with one space between, by their first words; what stands for them is never None."""
    first: Tree[T] = {}
    for phrase, value in table.items():
        *before, last = phrase.split(" ")
        following = first
        for word in before:
            following = following.setdefault(word, (None, {}))[1]
        following[last] = (value, following[last][1] if last in following else {})
    return first


class Phrases(Generic[T]):
    """What stands for each of some phrases."""

    __slots__ = ("_first", "_size")

    def __init__(self, table: Mapping[str, T]) -> None:
        self._size = len(table)
        self._first = tree_of(table)

    def __len__(self) -> int:
        return self._size

    def any(self, words: Sequence[str]) -> bool:
        """Whether there is one among the words."""
        return not self._first.keys().isdisjoint(words) and bool(self.longest(words))

    def longest(self, words: Sequence[str]) -> list[tuple[int, int, T]]:
        """Start, end and value of the longest at each word, but for words that belong to the one before."""
        return scan.longest(self._first, words)

    def all(self, words: Sequence[str]) -> list[tuple[int, T]]:
        """Start and value of every one of them, also of those within others."""
        return scan.every(self._first, words)
