"""Sentiment by a list of words, and by what the words around them make of it. The model that needs nothing else.

A negation before a word turns it over and weakens it, a degree strengthens or weakens it. At a pivot ("but") what came
before it in the sentence loses weight, and what follows gains. The good and the bad are summed up apart, so that a text
with much of both is neutral, and not decided by a hair:

    score = (good - bad) / (good + bad + 1)

More of the good never lowers it, more of the bad never raises it. Time grows with the number of words.
"""

import re
from collections.abc import Mapping, Sequence
from operator import ne

from sanderling.events.analysis.lexicon import (
    CONCESSION,
    DEGREE,
    NEGATION,
    PIVOT,
    SIGN,
    VALENCE,
    Lexicon,
    Said,
    load_lexicon,
)
from sanderling.events.analysis.phrases import Phrases, words_of
from sanderling.events.analysis.preprocess import Part
from sanderling.events.analysis.sentiment import Scores

NEGATION_REACHES = 4  # words: "không hề cảm thấy thoải mái"
DEGREE_REACHES = 2  # "rất là đẹp"
# What a negation leaves: "not good" is bad, but less than "bad"; "not bad" is good, but less than that.
NOT_GOOD, NOT_BAD = 0.7, 0.5
BEFORE_PIVOT, AFTER_PIVOT = 0.35, 1.5
CONCEDED = 0.5  # of what somebody grants: "although …"
ASKED = 0.15  # of "tốt" is left in "tốt không?"
REPEATED = 0.25  # of a word said again at once, or an emoji typed again
LOUD, LOUDEST = 0.1, 3  # for every exclamation mark and every drawn-out word, up to so many

# How likely the labels are for a text that says nothing: neutral is as likely as the others together.
_NOTHING = 0.25
# A letter three times; the second is slower, and so asked only of words of a text in which the first has found some.
_TRIPLE = re.compile(r"(.)\1\1")
_DRAWN = re.compile(r"([^\W\d_])\1\1+")
_NOWHERE = -100
# Kinds of marks, below those of words: what ends most, then what pauses, then what is felt, then all the others.
_END, _BREAK = -2, -1
_MARKS = {mark: Said(_BREAK) for mark in ",;:()"} | {mark: Said(_END) for mark in ".!?"}


class Reading:
    """One text, as far as it was read. Positions are those of words."""

    __slots__ = (
        "_bad", "_clause_bad", "_clause_good", "_degree", "_degree_until", "_good", "_last", "_last_turned",
        "_last_value", "_negated_from", "_negated_until", "last_end", "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self._good = self._bad = self._clause_good = self._clause_bad = self._last_value = 0.0
        self.weight = self._degree = 1.0
        self._degree_until = self._negated_from = self._negated_until = self.last_end = _NOWHERE
        self._last: Said | None = None
        self._last_turned = False

    def word(self, said: Said, start: int, end: int) -> None:
        """A good or bad word, or an emoji."""
        value = said.value * self.weight
        if start <= self._degree_until:
            value *= self._degree
        if start == self.last_end and said is self._last:
            value *= REPEATED
        self._last_turned = start <= self._negated_until and said.kind == VALENCE
        if self._last_turned:
            value *= -NOT_GOOD if value > 0 else -NOT_BAD
        if value > 0:
            self._clause_good += value
        else:
            self._clause_bad -= value
        self._last, self._last_value, self.last_end = said, value, end

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
        self.last_end = end

    def question(self, start: int) -> None:
        """Whether the word before is true, is what was asked: "tốt không?"."""
        if start - self.last_end <= 1:
            self._change(ASKED)

    def negate(self, start: int, end: int) -> None:
        """A negation; one of a negation, with no other word between, takes it back."""
        if start <= self._negated_until and self.last_end <= self._negated_from:
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
        self._negated_until = self._degree_until = self.last_end = _NOWHERE
        if self.weight == CONCEDED:
            self.weight = 1.0

    def close(self, counts: float, weight: float) -> None:
        """The end of a sentence, or a pivot in it: what was read counts so much, and what follows has that weight."""
        self._good += self._clause_good * counts
        self._bad += self._clause_bad * counts
        self._clause_good = self._clause_bad = 0.0
        self.weight = weight
        self._negated_until = self._degree_until = self.last_end = _NOWHERE

    def sums(self) -> tuple[float, float]:
        """How much good there was, and how much bad."""
        return self._good + self._clause_good, self._bad + self._clause_bad


class LexiconModel:
    """A lexicon at work; without one, that of the package."""

    def __init__(self, lexicon: Lexicon | None = None) -> None:
        lexicon = lexicon or load_lexicon()
        self.name, self.version = "lexicon", lexicon.version
        self._phrases = Phrases({**lexicon.phrases, **_MARKS})
        self._asking = lexicon.asking | _MARKS.keys()  # a negation of nothing
        self._known = frozenset(word for phrase in lexicon.phrases for word in phrase.split(" "))

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        """What each text comes to."""
        return [_scores(*self._read(text, words_of(text))) for text in texts]

    def scores_of_parts(self, texts: Mapping[str, Sequence[Part]]) -> list[Scores]:
        """The same, but of parts that are in several texts each is read once."""
        # By identity, for which the texts must hold them: they do, until all are read.
        read: dict[int, tuple[float, float, int]] = {}
        return [
            self._sum(parts, read) if parts else _scores(*self._read(text, words_of(text)))
            for text, parts in texts.items()
        ]

    def _sum(self, parts: Sequence[Part], read: dict[int, tuple[float, float, int]]) -> Scores:
        good, bad, loud = 0.0, 0.0, 0
        for part in parts:
            known = read.get(id(part))
            if known is None:
                known = read[id(part)] = self._read(part.vivid, part.words)
            good += known[0]
            bad += known[1]
            loud += known[2]
        return _scores(good, bad, loud)

    def _read(self, text: str, words: list[str]) -> tuple[float, float, int]:
        """How much good and how much bad is in a text, and how loud it is said."""
        loud = words.count("!") if "!" in text else 0
        if _TRIPLE.search(text):
            words, drawn = self._shortened(words)
            loud += drawn
        good, bad = self._weigh(words)
        return good, bad, loud

    def _weigh(self, words: list[str]) -> tuple[float, float]:
        """How much good there is in the words, and how much bad."""
        reading = Reading()
        for start, end, said in self._phrases.longest(words):
            kind, value, after = said
            if kind == _BREAK:
                reading.pause()
            elif after and start == reading.last_end:
                reading.change_last(after, end)
            elif kind == _END:
                reading.close(1.0, 1.0)
            elif kind <= SIGN:
                reading.word(said, start, end)
            elif kind == DEGREE:
                reading.set_degree(value, start, end)
            elif kind == NEGATION:
                self._negate(reading, words, start, end)
            elif kind == PIVOT:
                reading.close(BEFORE_PIVOT, AFTER_PIVOT)
            elif kind == CONCESSION:
                reading.weight = CONCEDED
        return reading.sums()

    def _negate(self, reading: Reading, words: list[str], start: int, end: int) -> None:
        if end == len(words) or words[end] in self._asking:
            reading.question(start)
        else:
            reading.negate(start, end)

    def _shortened(self, words: list[str]) -> tuple[list[str], int]:
        """The words, those that were drawn out as they are in the list; and how many those are."""
        short = [self._short(word) if _DRAWN.search(word) else word for word in words]
        return short, sum(map(ne, short, words))

    def _short(self, word: str) -> str:
        forms = (_DRAWN.sub(r"\1\1", word), _DRAWN.sub(r"\1", word))
        return next((form for form in forms if form in self._known), word)


def _scores(good: float, bad: float, loud: int) -> Scores:
    strength = 1 + LOUD * min(loud, LOUDEST)
    good, bad = good * strength, bad * strength
    total = good + bad + 4 * _NOTHING
    return Scores((bad + _NOTHING) / total, 2 * _NOTHING / total, (good + _NOTHING) / total)
