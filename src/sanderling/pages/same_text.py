"""By what the text of a page is known again at another address.

A trap says the same at each of its addresses, but for what it echoes: the date that was asked for, the session, the
name of the subdomain. So words of the address are left out, numbers that may be dates, and where links lead.
"""

import re
from typing import NamedTuple

LOOKED_AT = 1_000  # characters of a text; 45 µs
SHORT = 100  # characters of a text that tells little: an empty page, a shell that scripts fill
SHORT_WEIGHT = 0.2
# Bits of the first filter and of the largest, for each text that fits. When one is full, an empty one of four times its
# size takes its place, and is asked beside it. The largest two take 8 MB; at most one new text in twenty is taken for
# a known one. A crawl has a filter for each of its parts, so that the first is small.
FIRST, LARGEST = 2**17, 2**25
BITS_A_TEXT = 12

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
        self._recent, self._older = bytearray(FIRST // 8), bytearray(1)
        self._number = 0

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return len(self._recent) + len(self._older)

    def add(self, key: int) -> bool:
        """Whether a text with this key was added before."""
        recently = _has(self._recent, key)
        known = recently or _has(self._older, key)
        if not recently:
            self._number += 1
            if self._number * BITS_A_TEXT > len(self._recent) * 8:
                larger = min(4 * len(self._recent), LARGEST // 8)
                self._recent, self._older, self._number = bytearray(larger), self._recent, 1
            for bit in _bits(self._recent, key):
                self._recent[bit >> 3] |= 1 << (bit & 7)
        return known


def _bits(of: bytearray, key: int) -> tuple[int, int]:
    return key % (8 * len(of)), (key >> 32) % (8 * len(of))


def _has(bits: bytearray, key: int) -> bool:
    return all(bits[bit >> 3] >> (bit & 7) & 1 for bit in _bits(bits, key))
