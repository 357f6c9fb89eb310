"""The list of words that sentiment is read from: which are good or bad, and which change what others say.

`[words]` has a valence from -3 to 3 before its phrases. `[before]` and `[after]` are degrees, factors for a word behind
or before them; a phrase of `[after]` may do something else as well, where no such word stands. `[negations]`,
`[pivots]` and `[concessions]` are what they are called. `[nothing]` has phrases that only look like others. `[asking]`
are words that make a question of the negation before them: "tốt không ạ".
"""

from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from sanderling.events.analysis.listing import Entry, Listing, Section, read_listing
from sanderling.events.analysis.weigh_python import CONCESSION, DEGREE, NEGATION, NOTHING, PIVOT, SIGN, VALENCE


class Said(NamedTuple):
    """What a phrase does. Right behind a word with a valence, one with `after` changes that and does nothing else."""

    kind: int
    value: float = 0.0
    after: float = 0.0


class Lexicon(NamedTuple):
    """What every phrase of a list does, in all its spellings."""

    phrases: dict[str, Said]
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

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._listed: dict[str, Said] = {}
        self._degrees: dict[str, float] = {}  # of the phrases of [after]
        self._spellings: dict[str, str] = {}
        self._asking: set[str] = set()
        self._lines: dict[tuple[str, str], int] = {}

    def take(self, section: Section) -> None:
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
                self._listed[phrase] = Said(SIGN if sign else kind, number)

    def _number(self, entry: Entry, name: str) -> float:
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

    def _once(self, entry: Entry, phrase: str, name: str) -> None:
        place = (phrase, name if name in {AFTER, ASKING} else "")
        if place in self._lines:
            self._listing.refuse(entry.line, entry.text, f"each phrase once; it is in line {self._lines[place]} too")
        self._lines[place] = entry.line

    def lexicon(self) -> Lexicon:
        """All of it. What was listed goes before a spelling that was only inferred."""
        phrases = dict(self._listed)
        for phrase, degree in self._degrees.items():
            phrases[phrase] = phrases.get(phrase, Said(NOTHING))._replace(after=degree)
        for spelling, phrase in self._spellings.items():
            if phrase in phrases:
                phrases.setdefault(spelling, phrases[phrase])
        written = "\n".join(sorted(f"{phrase} {said}" for phrase, said in phrases.items()))
        return Lexicon(phrases, frozenset(self._asking), f"1-{crc32(written.encode()):08x}")
