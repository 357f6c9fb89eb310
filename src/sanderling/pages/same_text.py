"""By what the text of a page is known again at another address.

A trap says the same at each of its addresses, but for what it echoes: the date that was asked for, the session, the
name of the subdomain. So words of the address are left out, numbers that may be dates, and where links lead.
"""

import re
from typing import NamedTuple

LOOKED_AT = 1_000  # characters of a text; 45 µs
SHORT = 100  # characters of a text that tells little: an empty page, a shell that scripts fill
SHORT_WEIGHT = 0.2
# Bits of a filter, and texts after which an empty one takes its place, while it is still asked for as long. Both take
# 8 MB, and at most one new text in twenty is taken for a known one.
BITS = 2**25
TEXTS = 4_000_000

_DATES = frozenset(
    [
        *(f"{day}{suffix}" for day in range(32) for suffix in ("", "st", "nd", "rd", "th")),
        *(f"{number:02}" for number in range(10)),
        *(str(year) for year in range(1900, 2200)),
    ]
)
_PIECES = re.compile(r"\w+")


class TextMark(NamedTuple):
    """What a text is known again by, in this process, and how much it counts."""

    key: int
    weight: float


def mark_text(text: str | None, url: str) -> TextMark | None:
    """The mark of a page's text; None if it has none."""
    if not text:
        return None
    echoed = _words_of(url.lower())
    words = text[:LOOKED_AT].lower().split()
    words = [word for word in words if (word not in echoed if word.isalpha() else _tells(word, echoed))]
    return TextMark(hash(tuple(words)), 1.0 if len(text) >= SHORT else SHORT_WEIGHT)


def _words_of(url: str) -> set[str]:
    """The words of an address, and the numbers beside its own: a day leads to the day before and the day after."""
    words = set(_PIECES.findall(url))
    numbers = [int(word) for word in words if word.isdecimal() and len(word) < 10]
    return words.union(*((str(number - 1), str(number), str(number + 1)) for number in numbers))


def _tells(word: str, echoed: set[str]) -> bool:
    """Whether a word with more than letters in it is neither a link, nor a date, nor an echo."""
    return "/" not in word and not all(piece in _DATES or piece in echoed for piece in _PIECES.findall(word))


class SeenTexts:
    """Texts of the last few million pages, in a fixed amount of memory; a few new ones are taken for known."""

    def __init__(self) -> None:
        self._recent, self._older = bytearray(BITS // 8), bytearray(0)
        self._number = 0

    def add(self, key: int) -> bool:
        """Whether a text with this key was added before."""
        first, second = key % BITS, (key >> 32) % BITS
        known = _has(self._recent, first, second) or _has(self._older, first, second)
        if not _has(self._recent, first, second):
            self._number += 1
            if self._number > TEXTS:
                self._recent, self._older, self._number = bytearray(BITS // 8), self._recent, 1
            for bit in (first, second):
                self._recent[bit >> 3] |= 1 << (bit & 7)
        return known


def _has(bits: bytearray, *wanted: int) -> bool:
    return bool(bits) and all(bits[bit >> 3] >> (bit & 7) & 1 for bit in wanted)
