"""Sentiment by a list of words, and by what the words around them make of it. The model that needs nothing else.

A negation before a word turns it over and weakens it, a degree strengthens or weakens it. At a pivot ("but") what came
before it in the sentence loses weight, and what follows gains. The good and the bad are summed up apart, so that a text
with much of both is neutral, and not decided by a hair:

    score = (good - bad) / (good + bad + 1)

More of the good never lowers it, more of the bad never raises it. Time grows with the number of words.

The list. `[words]` has a valence from -3 to 3 before its phrases. `[before]` and `[after]` are degrees, factors for a
word behind or before them; a phrase of `[after]` may do something else as well, where no such word stands.
`[negations]`, `[pivots]` and `[concessions]` are what they are called. `[nothing]` has phrases that only look like
others. `[asking]` are words that make a question of the negation before them: "tốt không ạ".
"""

import re
from collections.abc import Mapping, Sequence
from operator import ne
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from sanderling.events.analysis.listing import ListEntry, ListSection, WordList, read_listing
from sanderling.events.analysis.preprocess import Part
from sanderling.events.analysis.scan import has_triple, tree_of, weigh, words_of
from sanderling.events.analysis.scan_python import (
    BREAK,
    CONCESSION,
    DEGREE,
    END,
    NEGATION,
    NOTHING,
    PIVOT,
    SIGN,
    VALENCE,
    Plain,
)
from sanderling.events.analysis.sentiment import Scores


class PhraseEffect(NamedTuple):
    """What a phrase does. Right behind a word with a valence, one with `after` changes that and does nothing else."""

    kind: int
    value: float = 0.0
    after: float = 0.0


class Lexicon(NamedTuple):
    """What every phrase of a list does, in all its spellings."""

    phrases: dict[str, PhraseEffect]
    asking: frozenset[str]
    version: str  # another list has another


# What the phrases below a heading do, and the numbers that stand before them.
_SECTIONS: dict[str, tuple[int, tuple[float, float] | None]] = {
    "words": (VALENCE, (-3.0, 3.0)),
    "before": (DEGREE, (0.2, 3.0)),
    "after": (NOTHING, (0.2, 3.0)),
    "negations": (NEGATION, None),
    "pivots": (PIVOT, None),
    "concessions": (CONCESSION, None),
    "nothing": (NOTHING, None),
    "asking": (NOTHING, None),
}
AFTER, ASKING = "after", "asking"


def load_lexicon(path: Path | None = None) -> Lexicon:
    """The list in a file, or the one that comes with the package."""
    listing = read_listing(path, "lexicon.txt")
    draft = _Draft(listing)
    for section in listing.sections:
        draft.take(section)
    return draft.lexicon()


class _Draft:
    """A lexicon while its list is read."""

    def __init__(self, listing: WordList) -> None:
        self._listing = listing
        self._listed: dict[str, PhraseEffect] = {}
        self._degrees: dict[str, float] = {}  # of the phrases of [after]
        self._spellings: dict[str, str] = {}
        self._asking: set[str] = set()
        self._lines: dict[tuple[str, str], int] = {}

    def take(self, section: ListSection) -> None:
        """Add what stands below a heading."""
        name = " ".join(section.head)
        if name not in _SECTIONS:
            known = ", ".join(f"[{known}]" for known in _SECTIONS)
            self._listing.refuse(section.line, f"[{name}]", f"one of {known}")
        for entry in section.entries:
            number = self._number(entry, name)
            phrase, *others = self._listing.spellings(entry)
            self._once(entry, phrase, name)
            self._spellings |= {other: phrase for other in others if other not in self._spellings}
            if name == AFTER:
                self._degrees[phrase] = number
            elif name == ASKING:
                self._asking |= {phrase, *others}
            else:
                kind = _SECTIONS[name][0]
                # An emoji says what somebody feels, whatever was denied before it.
                sign = kind == VALENCE and not any(letter.isalnum() for letter in phrase)
                self._listed[phrase] = PhraseEffect(SIGN if sign else kind, number)

    def _number(self, entry: ListEntry, name: str) -> float:
        bounds = _SECTIONS[name][1]
        if bounds is None:
            if entry.label:
                self._listing.refuse(entry.line, f"{entry.label}: {entry.text}", f"no number in [{name}]")
            return 0.0
        least, most = bounds
        try:
            number = float(entry.label)
        except ValueError:
            number = most + 1
        if not least <= number <= most:
            found = f"{entry.label}: {entry.text}" if entry.label else entry.text
            self._listing.refuse(entry.line, found, f"a number from {least:g} to {most:g} and a colon first")
        return number

    def _once(self, entry: ListEntry, phrase: str, name: str) -> None:
        place = (phrase, name if name in {AFTER, ASKING} else "")
        if place in self._lines:
            self._listing.refuse(entry.line, entry.text, f"each phrase once; it is in line {self._lines[place]} too")
        self._lines[place] = entry.line

    def lexicon(self) -> Lexicon:
        """All of it. What was listed goes before a spelling that was only inferred."""
        phrases = dict(self._listed)
        for phrase, degree in self._degrees.items():
            phrases[phrase] = phrases.get(phrase, PhraseEffect(NOTHING))._replace(after=degree)
        for spelling, phrase in self._spellings.items():
            if phrase in phrases:
                phrases.setdefault(spelling, phrases[phrase])
        written = "\n".join(sorted(f"{phrase} {said}" for phrase, said in phrases.items()))
        return Lexicon(phrases, frozenset(self._asking), f"1-{crc32(written.encode()):08x}")


LOUD, LOUDEST = 0.1, 3  # for every exclamation mark and every drawn-out word, up to so many

# How likely the labels are for a text that says nothing: neutral is as likely as the others together.
_NOTHING = 0.25
_DRAWN = re.compile(r"([^\W\d_])\1\1+")
_MARKS = {mark: PhraseEffect(BREAK) for mark in ",;:()"} | {mark: PhraseEffect(END) for mark in ".!?"}


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
