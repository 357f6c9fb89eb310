"""Which sides of a thing a text is about, by the words for them, and what is thought of each side.

The words are whole words, and it is known where they stand; the sentiment is that of what stands around them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from sanderling.events.analysis import scan
from sanderling.events.analysis.listing import read_listing
from sanderling.events.analysis.scan import NOWHERE, OTHER_MARKS, Phrases, Span, locate
from sanderling.events.analysis.sentiment import Label, Sentiment, label_of, star_of

MOST_KEYWORDS = 30
# Places of one keyword that are kept, and whose surroundings are judged: the sixth complaint about a price adds little.
MOST_PLACES = 5

MOST_NAME = 30  # characters
RANKS = ("primary", "secondary")


class Term(msgspec.Struct, frozen=True):
    """A word for a side of a thing, as the file lists it."""

    keyword: str
    aspect: str
    primary: bool


class Keyword(msgspec.Struct, frozen=True, gc=False):
    """A term that a text has, whichever way it was spelled there."""

    keyword: str
    aspect: str
    primary: bool
    mentions: int
    places: tuple[tuple[int, int], ...]  # of the first few: start and end in the clean text
    score: float = 1.0
    source: str = "DICT"


class Aspects:
    """The terms of all aspects."""

    def __init__(self, terms: dict[str, Term]) -> None:
        self._phrases = Phrases(terms)
        self.names = list(dict.fromkeys(term.aspect for term in terms.values()))

    def find(self, text: str, words: list[str]) -> list[Keyword]:
        """The terms in a clean text that has those words, the primary ones first, otherwise in order of appearance."""
        terms: dict[str, Term] = {}
        places: dict[str, list[tuple[int, int]]] = {}
        mentions: dict[str, int] = {}
        plain = ""  # the text without dashes and the like, which may stand between two words
        at = 0
        for start, end, term in self._phrases.longest(words):
            name = term.keyword
            terms[name] = term
            mentions[name] = mentions.get(name, 0) + 1
            known = places.setdefault(name, [])
            if len(known) == MOST_PLACES:
                continue
            phrase = " ".join(words[start:end])
            place = locate(text, phrase, at)
            if place == NOWHERE:
                plain = plain or OTHER_MARKS.sub(" ", text)
                place = locate(plain, phrase, at)
            if place != NOWHERE:
                known.append(place)
                at = place[1]
        best = sorted(terms, key=lambda name: not terms[name].primary)[:MOST_KEYWORDS]
        return [
            Keyword(name, terms[name].aspect, terms[name].primary, mentions[name], tuple(places[name])) for name in best
        ]


def load_aspects(path: Path | None = None) -> Aspects:
    """The aspects in a file, or those that come with the package."""
    listing = read_listing(path, "aspects.txt")
    terms: dict[str, Term] = {}
    lines: dict[str, int] = {}
    for section in listing.sections:
        if len(section.head) != 1 or len(section.head[0]) > MOST_NAME:
            found = f"[{' '.join(section.head)}]"
            listing.refuse(section.line, found, f"[NAME], one word of at most {MOST_NAME} characters")
        for entry in section.entries:
            if entry.label not in RANKS:
                listing.refuse(entry.line, f"{entry.label}: {entry.text}", "primary: or secondary: before the words")
            keyword, *others = listing.spellings(entry)
            if keyword in lines:
                listing.refuse(entry.line, entry.text, f"each word once; it is in line {lines[keyword]} too")
            lines[keyword] = entry.line
            terms[keyword] = term = Term(keyword, section.head[0], entry.label == RANKS[0])
            for other in others:
                terms.setdefault(other, term)
    return Aspects(terms)


_PIVOTS = (
    *("nhưng", "tuy nhiên", "mặc dù", "bù lại", "nhung", "tuy nhien", "mac du", "bu lai"),
    *("but", "however", "although", "though"),
)


class AspectSentiment(msgspec.Struct, frozen=True, gc=False):
    """What is thought of one side."""

    label: Label
    score: float  # the mean of its mentions, the surer ones weighing more
    confidence: float
    rating: int  # stars
    mentions: int
    keywords: tuple[str, ...]


def _pivots(text: str) -> Iterator[Span]:
    """Start and end of each pivot wherever it stands."""
    for phrase in [pivot for pivot in _PIVOTS if pivot in text]:
        place = locate(text, phrase, 0)
        while place != NOWHERE:
            yield place
            place = locate(text, phrase, place[1])


def windows(text: str, keywords: Sequence[Keyword]) -> list[list[str]]:
    """The windows of each keyword in a clean text."""
    if not keywords:
        return []
    pivots = [*_pivots(text)]
    return [scan.windows(text, pivots, keyword.places) for keyword in keywords]


def sum_up(keywords: Sequence[Keyword], verdicts: Sequence[Sequence[Sentiment]]) -> dict[str, AspectSentiment]:
    """Each aspect that was mentioned; the verdicts are those on the windows of each keyword."""
    found: dict[str, list[Sentiment]] = {}
    named: dict[str, list[Keyword]] = {}
    for keyword, on_windows in zip(keywords, verdicts, strict=True):
        found.setdefault(keyword.aspect, []).extend(on_windows)
        named.setdefault(keyword.aspect, []).append(keyword)
    return {aspect: _aspect(named[aspect], found[aspect]) for aspect in named}


def _aspect(keywords: list[Keyword], verdicts: list[Sentiment]) -> AspectSentiment:
    sureness = sum([verdict.confidence for verdict in verdicts])
    weighed = sum([verdict.score * verdict.confidence for verdict in verdicts])
    score = round(weighed / sureness, 3) if sureness else 0.0
    stars = [star_of(verdict.score) for verdict in verdicts]
    return AspectSentiment(
        label=label_of(score),
        score=score,
        confidence=round(sureness / len(verdicts), 3) if verdicts else 0.0,
        rating=round(sum(stars) / len(stars)) if stars else 3,
        mentions=sum([keyword.mentions for keyword in keywords]),
        keywords=tuple([keyword.keyword for keyword in keywords]),
    )
