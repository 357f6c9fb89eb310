"""Words of a text, and phrases among them, in Python: what `_scan.c` does faster, and must do alike.

The phrases of a table are followed word by word: for each first word there is what stands for it, if it is a phrase by
itself, and which words may follow it. So a text costs little more steps than it has words.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")

# By the next word: what stands for the words up to there, if they are a phrase, and what may follow them.
Tree: TypeAlias = "dict[str, tuple[T | None, Tree[T]]]"

# Marks at which a thought ends or pauses; each becomes a word of its own, so that no phrase reaches across it.
BREAKS = ".,;:!?()"
# Other marks are like spaces.
OTHER = '"\u201c\u201d\u2018\u00ab\u00bb\u2013\u2014\u2022\u3001\u3002\u300c\u300d/~*_+=|<>{}@&%$^`\\[]#-'
OTHER_MARKS = re.compile(f"[{re.escape(OTHER)}]")
_APART = [(mark, f" {mark} ") for mark in BREAKS]

# Letters that NFKC leaves alone, spaces and breaks: where there is nothing else, there is nothing to look for.
_PLAIN = re.compile(
    "[ 0-9A-Za-z.,;:!?\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0102\u0103\u0110\u0111\u0128\u0129\u0168\u0169"
    "\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]*"
)
_DOTTED = re.compile(r"\.\.|[wW]{3}\.")
_TRIPLE = re.compile(r"(.)\1\1")


def words_of(text: str) -> list[str]:
    """The words and breaks of a text in small letters; an apostrophe within a word belongs to it."""
    mark = OTHER_MARKS.search(text)
    while mark is not None:  # of those that there are, a text has one or two
        text = text.replace(mark[0], " ")
        mark = OTHER_MARKS.search(text, mark.end())
    if "'" in text:
        text = f" {text} ".replace(" '", " ").replace("' ", " ")
    return _cut_at_breaks(text)


def _cut_at_breaks(text: str) -> list[str]:
    # One after the other: for some hundred characters this takes half the time of a regular expression.
    for mark, apart in _APART:
        if mark in text:
            text = text.replace(mark, apart)
    return text.split()


def plain_words(raw: str) -> tuple[str, list[str]] | None:
    """A text of letters and breaks alone, clean, and its words. None if it is no such text."""
    if _PLAIN.fullmatch(raw) is None or "  " in raw or ("." in raw and _DOTTED.search(raw)):
        return None
    text = raw.lower().strip()
    return text, _cut_at_breaks(text)


def has_triple(text: str) -> bool:
    """Whether any character stands there three times in a row."""
    return _TRIPLE.search(text) is not None


def longest(first: "Tree[T]", words: Sequence[str]) -> list[tuple[int, int, T]]:
    """Start, end and value of the longest phrase at each word, but for words that belong to the one before."""
    total = len(words)
    found: list[tuple[int, int, T]] = []
    done = 0
    for start, head in enumerate(words):
        if start < done or head not in first:
            continue
        value, following = first[head]
        end = at = start + 1
        while at < total and words[at] in following:
            longer, following = following[words[at]]
            at += 1
            if longer is not None:
                value, end = longer, at
        if value is not None:
            found.append((start, end, value))
            done = end
    return found


def every(first: "Tree[T]", words: Sequence[str]) -> list[tuple[int, T]]:
    """Start and value of every phrase, also of those within others."""
    total = len(words)
    found: list[tuple[int, T]] = []
    for start in range(total):
        at, following = start, first
        while at < total and words[at] in following:
            value, following = following[words[at]]
            at += 1
            if value is not None:
                found.append((start, value))
    return found
