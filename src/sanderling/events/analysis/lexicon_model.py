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

from sanderling.events.analysis.lexicon import Lexicon, Said, load_lexicon
from sanderling.events.analysis.phrases import tree_of
from sanderling.events.analysis.preprocess import Part
from sanderling.events.analysis.scan import has_triple, weigh, words_of
from sanderling.events.analysis.sentiment import Scores
from sanderling.events.analysis.weigh_python import BREAK, END, Plain

LOUD, LOUDEST = 0.1, 3  # for every exclamation mark and every drawn-out word, up to so many

# How likely the labels are for a text that says nothing: neutral is as likely as the others together.
_NOTHING = 0.25
_DRAWN = re.compile(r"([^\W\d_])\1\1+")
_MARKS = {mark: Said(BREAK) for mark in ",;:()"} | {mark: Said(END) for mark in ".!?"}


class LexiconModel:
    """A lexicon at work; without one, that of the package."""

    def __init__(self, lexicon: Lexicon | None = None) -> None:
        lexicon = lexicon or load_lexicon()
        self.name, self.version = "lexicon", lexicon.version
        listed = {**lexicon.phrases, **_MARKS}
        # Without their names, which take twice the time to be taken apart.
        plain: dict[int, Plain] = {id(said): (said.kind, said.value, said.after) for said in listed.values()}
        self._first = tree_of({phrase: plain[id(said)] for phrase, said in listed.items()})
        self._asking = lexicon.asking.union(_MARKS)  # a negation of nothing
        self._known = frozenset(word for phrase in lexicon.phrases for word in phrase.split(" "))

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        """What each text comes to."""
        return [_scores(*self._read(text, words_of(text))) for text in texts]

    def scores_of_parts(self, texts: Mapping[str, Sequence[Part]]) -> list[Scores]:
        """The same, but of parts that are in several texts each is read once."""
        # By identity, for which the texts must hold them: they do, until all are read.
        read: dict[int, tuple[float, float, int]] = {}
        return [
            _scores(*(self._sum(parts, read) if parts else self._read(text, words_of(text))))
            for text, parts in texts.items()
        ]

    def _sum(self, parts: Sequence[Part], read: dict[int, tuple[float, float, int]]) -> tuple[float, float, int]:
        good, bad, loud = 0.0, 0.0, 0
        for part in parts:
            known = read.get(id(part))
            if known is None:
                known = read[id(part)] = self._read(part.vivid, part.words)
            if len(parts) == 1:
                return known
            good += known[0]
            bad += known[1]
            loud += known[2]
        return good, bad, loud

    def _read(self, text: str, words: list[str]) -> tuple[float, float, int]:
        """How much good and how much bad is in a text, and how loud it is said."""
        drawn = 0
        if has_triple(text):
            words, drawn = self._shortened(words)
        good, bad, loud = weigh(self._first, self._asking, words)
        return good, bad, loud + drawn

    def _shortened(self, words: list[str]) -> tuple[list[str], int]:
        """The words, those that were drawn out as they are in the list; and how many those are."""
        short = [self._short(word) if _DRAWN.search(word) else word for word in words]
        return short, sum(map(ne, short, words))

    def _short(self, word: str) -> str:
        forms = (_DRAWN.sub(r"\1\1", word), _DRAWN.sub(r"\1", word))
        return next((form for form in forms if form in self._known), word)


_SAYS_NOTHING = Scores(_NOTHING, 2 * _NOTHING, _NOTHING)


def _scores(good: float, bad: float, loud: int) -> Scores:
    if not good and not bad:
        return _SAYS_NOTHING
    strength = 1 + LOUD * min(loud, LOUDEST)
    good, bad = good * strength, bad * strength
    total = good + bad + 4 * _NOTHING
    return Scores((bad + _NOTHING) / total, 2 * _NOTHING / total, (good + _NOTHING) / total)
