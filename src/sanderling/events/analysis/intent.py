"""What a post is for: a crisis, a complaint, a question of a buyer, or spam. By phrases, family by family.

The family with the highest priority wins, and of equals the first in the file. A pattern is a phrase in which
`(a|b c|)` stands for any of its alternatives; they are all written out when the file is read, so nothing is ever tried
and taken back: a text costs hardly more steps than it has words, however many patterns there are and whatever they say.
(Seven regular expressions, one for each family, took 350 us for a text of 950 characters; this takes 15.)
"""

import re
from itertools import product
from pathlib import Path
from typing import NamedTuple

from sanderling.events.analysis.listing import ListEntry, ListSection, WordList, read_listing
from sanderling.events.analysis.scan import Phrases

DISCUSSION = "DISCUSSION"  # what a post is for if nothing says otherwise
SPAM_KEYWORDS = ("spam", "keywords")  # the heading of phrases that end the analysis whatever else is said
MOST_FORMS = 1000  # that one pattern may stand for

_CHOICE = re.compile(r"\(([^()]*)\)")


class Family(NamedTuple):
    """Posts of one kind. Those to be skipped are not analysed further."""

    name: str
    priority: int
    skip: bool


class Intent(NamedTuple):
    """What a post is for, how sure that is, and by which patterns."""

    name: str
    confidence: float
    should_skip: bool
    matches: tuple[str, ...]


NOTHING_FOUND = Intent(DISCUSSION, 1.0, should_skip=False, matches=())


class Intents:
    """Families and their patterns. `spam` are phrases that make a post spam at once."""

    def __init__(self, families: list[Family], patterns: dict[str, list[tuple[int, str]]], spam: list[str]) -> None:
        self.families = families
        # The lower the better: priority, then the place in the file.
        places = sorted(range(len(families)), key=lambda place: -families[place].priority)
        self._rank = {place: rank for rank, place in enumerate(places)}
        self._phrases = Phrases(patterns)
        self.spam = Phrases(dict.fromkeys(spam, True))

    def classify(self, words: list[str], own: int | None = None) -> Intent:
        """What a text is for; only its first `own` words, which are the author's, can make it one to be skipped.

        Otherwise whoever wants a post out of sight would write an advertisement below it.
        """
        matches: dict[int, dict[str, None]] = {}
        for start, said in self._phrases.all(words):
            for place, pattern in said:
                if own is None or start < own or not self.families[place].skip:
                    matches.setdefault(place, {})[pattern] = None
        if not matches:
            return NOTHING_FOUND
        best = min(matches, key=self._rank.__getitem__)
        family, found = self.families[best], tuple(matches[best])
        return Intent(family.name, min(0.5 + 0.1 * len(found), 1.0), family.skip, found)


def load_intents(path: Path | None = None) -> Intents:
    """The families in a file, or those that come with the package."""
    listing = read_listing(path, "intents.txt")
    families: list[Family] = []
    patterns: dict[str, list[tuple[int, str]]] = {}
    spam: list[str] = []
    for section in listing.sections:
        if section.head == SPAM_KEYWORDS:
            spam += [form for entry in section.entries for form in forms(entry, listing)]
            continue
        families.append(_family(section, listing, families))
        for entry in section.entries:
            for form in forms(entry, listing):
                patterns.setdefault(form, []).append((len(families) - 1, entry.text))
    return Intents(families, patterns, spam)


def _family(section: ListSection, listing: WordList, earlier: list[Family]) -> Family:
    name, *rest = section.head
    if not rest or not re.fullmatch(r"-?[0-9]{1,6}", rest[0]) or rest[1:] not in ([], ["skip"]):
        expected = "[NAME priority] or [NAME priority skip], the priority a whole number, or [spam keywords]"
        listing.refuse(section.line, f"[{' '.join(section.head)}]", expected)
    if any(family.name == name for family in earlier):
        listing.refuse(section.line, name, "each family once")
    if len(name) > 20:
        listing.refuse(section.line, name, "a name of at most 20 characters")
    return Family(name, int(rest[0]), skip=rest[1:] == ["skip"])


def forms(entry: ListEntry, listing: WordList) -> list[str]:
    """Everything a pattern stands for, in every spelling, as phrases."""
    pieces = _CHOICE.split(entry.text.lower())
    if any(mark in piece for piece in pieces for mark in "()"):
        listing.refuse(entry.line, entry.text, "parentheses in pairs, and none within others")
    options = [piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    count = 1
    for option in options:
        count *= len(option)
    if count > MOST_FORMS:
        listing.refuse(entry.line, entry.text, f"at most {MOST_FORMS} forms of one pattern, not {count}")
    texts = ("".join(chosen) for chosen in product(*options))
    return list(dict.fromkeys(form for text in texts for form in listing.spellings(ListEntry(entry.line, "", text))))
