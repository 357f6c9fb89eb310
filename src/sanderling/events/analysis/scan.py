"""Words, phrases and what they weigh: in C if that was built, else in Python, and alike."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from sanderling.events.analysis.scan_python import (
    BREAKS,
    NOWHERE,
    OTHER_MARKS,
    Span,
    Tree,
    every,
    has_triple,
    locate,
    longest,
    plain_words,
    weigh,
    windows,
    words_of,
)

ACTIVE = "python"
if not TYPE_CHECKING and not os.environ.get("SANDERLING_PURE"):  # for the tests, and for whoever distrusts the C
    with suppress(ImportError):
        from sanderling.events.analysis._scan import (
            every,
            has_triple,
            locate,
            longest,
            plain_words,
            weigh,
            windows,
            words_of,
        )

        ACTIVE = "c"

__all__ = [
    "ACTIVE",
    "BREAKS",
    "MOST_WORDS",
    "NOWHERE",
    "OTHER_MARKS",
    "Phrases",
    "Span",
    "has_triple",
    "locate",
    "plain_words",
    "tree_of",
    "weigh",
    "windows",
    "words_of",
]

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
        return longest(self._first, words)

    def all(self, words: Sequence[str]) -> list[tuple[int, T]]:
        """Start and value of every one of them, also of those within others."""
        return every(self._first, words)
