"""Words of a text, phrases among them, what they weigh and what stands around them, in Python.

`_scan.c` and the files beside it do the same faster, and must do it alike.

The phrases of a table are followed word by word: for each first word there is what stands for it, if it is a phrase by
itself, and which words may follow it. So a text costs little more steps than it has words.

How much good and how much bad is in words (`weigh`): a negation before a word turns it over and weakens it, a degree
strengthens or weakens it. At a pivot ("but") what came before it in the sentence loses weight, and what follows gains.

A window reaches 30 characters to both sides of a place, but not beyond a mark or a pivot, for there another thought
begins; and it ends between words.
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


# What a phrase does. Plain numbers, as they are compared for every other word of a text.
VALENCE, SIGN, NEGATION, DEGREE, PIVOT, CONCESSION, NOTHING = range(7)
# Kinds of marks, below those of words: what ends most, then what pauses, then what is felt, then all the others.
END, BREAK = -2, -1

NEGATION_REACHES = 4  # words: "không hề cảm thấy thoải mái"
DEGREE_REACHES = 2  # "rất là đẹp"
# What a negation leaves: "not good" is bad, but less than "bad"; "not bad" is good, but less than that.
NOT_GOOD, NOT_BAD = 0.7, 0.5
BEFORE_PIVOT, AFTER_PIVOT = 0.35, 1.5
CONCEDED = 0.5  # of what somebody grants: "although …"
ASKED = 0.15  # of "tốt" is left in "tốt không?"
REPEATED = 0.25  # of a word said again at once, or an emoji typed again
_NOWHERE = -100
# Kind, value and after of a phrase, as `lexicon.py` has them. Spellings of one phrase have the same one.
Plain: TypeAlias = tuple[int, float, float]


class SentenceReading:
    """One text, as far as it was read. Positions are those of words."""

    __slots__ = (
        "_bad", "_clause_bad", "_clause_good", "_degree", "_degree_until", "_good", "_last", "_last_end",
        "_last_turned", "_last_value", "_negated_from", "_negated_until", "_weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self._good = self._bad = self._clause_good = self._clause_bad = self._last_value = 0.0
        self._weight = self._degree = 1.0
        self._degree_until = self._negated_from = self._negated_until = self._last_end = _NOWHERE
        self._last: Plain | None = None
        self._last_turned = False

    def take(self, said: Plain, start: int, end: int, *, asked: bool) -> None:
        """The next phrase; `asked` if nothing follows that a negation could deny."""
        kind, value, after = said
        if kind == BREAK:
            self.pause()
        elif after and start == self._last_end:
            self.change_last(after, end)
        elif kind == END:
            self.close(1.0, 1.0)
        elif kind <= SIGN:
            self.word(said, start, end)
        elif kind == DEGREE:
            self.set_degree(value, start, end)
        elif kind == NEGATION:
            (self.question if asked else self.negate)(start, end)
        elif kind == PIVOT:
            self.close(BEFORE_PIVOT, AFTER_PIVOT)
        elif kind == CONCESSION:
            self._weight = CONCEDED

    def word(self, said: Plain, start: int, end: int) -> None:
        """A good or bad word, or an emoji."""
        kind, value, _ = said
        value *= self._weight
        if start <= self._degree_until:
            value *= self._degree
        if start == self._last_end and said is self._last:
            value *= REPEATED
        self._last_turned = start <= self._negated_until and kind == VALENCE
        if self._last_turned:
            value *= -NOT_GOOD if value > 0 else -NOT_BAD
        if value > 0:
            self._clause_good += value
        else:
            self._clause_bad -= value
        self._last, self._last_value, self._last_end = said, value, end

    def _change(self, factor: float) -> None:
        """Let the last word count for so much of what it did."""
        more = self._last_value * (factor - 1)
        self._last_value += more
        if self._last_value > 0:
            self._clause_good += more
        else:
            self._clause_bad -= more

    def change_last(self, factor: float, end: int) -> None:
        """A degree behind a word: "đẹp quá". In "không đẹp lắm" it belongs to the negation, and adds nothing."""
        if not self._last_turned:
            self._change(factor)
        self._last_end = end

    def question(self, start: int, _: int) -> None:
        """Whether the word before is true, is what was asked: "tốt không?"."""
        if start - self._last_end <= 1:
            self._change(ASKED)

    def negate(self, start: int, end: int) -> None:
        """A negation; one of a negation, with no other word between, takes it back."""
        if start <= self._negated_until and self._last_end <= self._negated_from:
            self._negated_until = _NOWHERE
        else:
            self._negated_from, self._negated_until = start, end + NEGATION_REACHES - 1

    def set_degree(self, factor: float, start: int, end: int) -> None:
        """A degree before a word. Within a negation it adds nothing: who says "not very good" does not say more."""
        if start > self._negated_until:
            self._degree = self._degree * factor if start <= self._degree_until else factor
            self._degree_until = end + DEGREE_REACHES - 1

    def pause(self) -> None:
        """A comma: no negation or degree reaches beyond it, nor what is granted."""
        self._negated_until = self._degree_until = self._last_end = _NOWHERE
        if self._weight == CONCEDED:
            self._weight = 1.0

    def close(self, counts: float, weight: float) -> None:
        """The end of a sentence, or a pivot in it: what was read counts so much, and what follows has that weight."""
        self._good += self._clause_good * counts
        self._bad += self._clause_bad * counts
        self._clause_good = self._clause_bad = 0.0
        self._weight = weight
        self._negated_until = self._degree_until = self._last_end = _NOWHERE

    def sums(self) -> tuple[float, float]:
        """How much good there was, and how much bad."""
        return self._good + self._clause_good, self._bad + self._clause_bad


def weigh(first: "Tree[Plain]", asking: frozenset[str], words: Sequence[str]) -> tuple[float, float, int]:
    """How much good and how much bad is in words, and how many exclamation marks.

    A negation at the end, or before a word of `asking`, is a question.
    """
    found = longest(first, words)
    loud = sum([word == "!" for word in words])
    # Most comments have commas and negations, and nothing that these could change.
    if not any(VALENCE <= said[0] <= SIGN for _, _, said in found):
        return 0.0, 0.0, loud
    reading = SentenceReading()
    for start, end, said in found:
        reading.take(said, start, end, asked=end == len(words) or words[end] in asking)
    return *reading.sums(), loud


RADIUS = 30  # characters

# Before a digit a mark may be part of a number.
_MARK = re.compile(r"[.,;!?](?![0-9])")

Span = tuple[int, int]
NOWHERE: Span = (-1, -1)
EDGES = frozenset(" '" + BREAKS + OTHER)


def locate(text: str, phrase: str, at: int) -> Span:
    """Start and end of the first place from `at` on where a phrase stands as whole words, or NOWHERE."""
    begin = text.find(phrase, at)
    while begin >= 0:
        end = begin + len(phrase)
        if (begin == 0 or text[begin - 1] in EDGES) and (end == len(text) or text[end] in EDGES):
            return begin, end
        begin = text.find(phrase, begin + 1)
    return NOWHERE


def windows(text: str, pivots: Sequence[Span], places: Sequence[Span]) -> list[str]:
    """What stands around each place and belongs to it; `pivots` is where thoughts turn. All are starts and ends."""
    return [_window(text, pivots, start, end) for start, end in places]


def _window(text: str, pivots: Sequence[Span], start: int, end: int) -> str:
    least, most = _bounds(text, pivots, start, end)
    first, last = max(least, start - RADIUS), min(most, end + RADIUS)
    if first > least and text[first - 1] != " ":
        space = text.find(" ", first, start)
        first = start if space < 0 else space
    if last < most and text[last] != " ":
        space = text.rfind(" ", end, last)
        last = end if space < 0 else space
    return text[first:last].strip()


def _bounds(text: str, pivots: Sequence[Span], start: int, end: int) -> Span:
    """Where the thought begins and ends, if that is within reach; where it is not, anything beyond."""
    least, most = 0, len(text)
    # A character more than is asked about, for a mark may be part of a number.
    for mark in _MARK.finditer(text, max(0, start - RADIUS - 1), start + 1):
        if mark.end() <= start:
            least = mark.end()
    mark_behind = _MARK.search(text, end, end + RADIUS + 2)
    if mark_behind is not None:
        most = mark_behind.start()
    for begins, ends in pivots:
        if least < ends <= start:
            least = ends
        elif end <= begins < most:
            most = begins
    return least, most
