"""How much good and how much bad is in words, in Python: what `_scan_weigh.c` does faster, and must do alike.

A negation before a word turns it over and weakens it, a degree strengthens or weakens it. At a pivot ("but") what came
before it in the sentence loses weight, and what follows gains.
"""

from collections.abc import Sequence
from typing import TypeAlias

from sanderling.events.analysis.scan_python import Tree, longest

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


class Reading:
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
    reading = Reading()
    for start, end, said in found:
        reading.take(said, start, end, asked=end == len(words) or words[end] in asking)
    return *reading.sums(), loud
