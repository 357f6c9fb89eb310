"""Words of a text, and phrases among them: found in one pass, whatever their number.

Phrases are followed word by word, so a text costs little more steps than it has words, and a phrase never begins or
ends within one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

# Marks at which a thought ends or pauses; each becomes a word of its own, so that no phrase reaches across it.
BREAKS = ".,;:!?()"
# Other marks are like spaces.
OTHER = '"\u201c\u201d\u2018\u00ab\u00bb\u2013\u2014\u2022\u3001\u3002\u300c\u300d/~*_+=|<>{}@&%$^`\\[]#-'
EDGES = frozenset(" '" + BREAKS + OTHER)
MOST_WORDS = 8  # of a phrase

OTHER_MARKS = re.compile(f"[{re.escape(OTHER)}]")
_ANY_MARK = re.compile(f"['{re.escape(BREAKS + OTHER)}]")


def words_of(text: str) -> list[str]:
    """The words and breaks of a text in small letters; an apostrophe within a word belongs to it."""
    if _ANY_MARK.search(text) is None:
        return text.split()
    text = OTHER_MARKS.sub(" ", text)
    if "'" in text:
        text = f" {text} ".replace(" '", " ").replace("' ", " ")
    # One after the other: for some hundred characters this takes half the time of a regular expression.
    text = text.replace(".", " . ").replace(",", " , ").replace(";", " ; ").replace(":", " : ")
    return text.replace("!", " ! ").replace("?", " ? ").replace("(", " ( ").replace(")", " ) ").split()


# What stands for the words up to here, if they are a phrase, and what may follow them.
Node: TypeAlias = "tuple[T | None, dict[str, Node[T]]]"


class Phrases(Generic[T]):
    """What stands for each of some phrases, which are words with one space between; never None."""

    __slots__ = ("_first", "_size")

    def __init__(self, table: Mapping[str, T]) -> None:
        self._size = len(table)
        self._first: dict[str, Node[T]] = {}
        for phrase, value in table.items():
            *before, last = phrase.split(" ")
            following = self._first
            for word in before:
                following = following.setdefault(word, (None, {}))[1]
            following[last] = (value, following[last][1] if last in following else {})

    def __len__(self) -> int:
        return self._size

    def any(self, words: Sequence[str]) -> bool:
        """Whether there is one among the words."""
        return not self._first.keys().isdisjoint(words) and bool(self.longest(words))

    def longest(self, words: Sequence[str]) -> list[tuple[int, int, T]]:
        """Start, end and value of the longest at each word, but for words that belong to the one before."""
        first, total = self._first, len(words)
        found: list[tuple[int, int, T]] = []
        done = 0
        for start, word in enumerate(words):
            if word not in first or start < done:
                continue
            value, following = first[word]
            end = at = start + 1
            while following and at < total and words[at] in following:
                longer, following = following[words[at]]
                at += 1
                if longer is not None:
                    value, end = longer, at
            if value is not None:
                found.append((start, end, value))
                done = end
        return found

    def all(self, words: Sequence[str]) -> list[tuple[int, T]]:
        """Start and value of every one of them, also of those within others."""
        first, total = self._first, len(words)
        found: list[tuple[int, T]] = []
        for start, word in enumerate(words):
            if word not in first:
                continue
            value, following = first[word]
            at = start + 1
            while True:
                if value is not None:
                    found.append((start, value))
                if at == total or words[at] not in following:
                    break
                value, following = following[words[at]]
                at += 1
        return found
