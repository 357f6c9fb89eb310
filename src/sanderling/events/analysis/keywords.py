"""Which sides of a thing a text is about, by the words for them: whole words, and where they stand."""

from pathlib import Path

import msgspec

from sanderling.events.analysis.listing import read_listing
from sanderling.events.analysis.phrases import Phrases
from sanderling.events.analysis.scan import OTHER_MARKS, locate
from sanderling.events.analysis.windows_python import NOWHERE

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
