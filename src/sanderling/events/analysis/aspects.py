"""What is thought of each side of a thing: the sentiment of the words around its keywords.

A window reaches 30 characters to both sides, but not beyond a mark or a pivot, for there another thought begins; and it
ends between words.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec

from sanderling.events.analysis.keywords import NOWHERE, Keyword, locate
from sanderling.events.analysis.sentiment import Label, Sentiment, label_of, star_of

RADIUS = 30  # characters

# Before a digit a mark may be part of a number.
_MARK = re.compile(r"[.,;!?](?![0-9])")
_PIVOTS = (
    *("nhưng", "tuy nhiên", "mặc dù", "bù lại", "nhung", "tuy nhien", "mac du", "bu lai"),
    *("but", "however", "although", "though"),
)


class AspectSentiment(msgspec.Struct, frozen=True):
    """What is thought of one side."""

    label: Label
    score: float  # the mean of its mentions, the surer ones weighing more
    confidence: float
    rating: int  # stars
    mentions: int
    keywords: tuple[str, ...]


class Cuts:
    """Where the thoughts of a clean text end, found once for all its windows."""

    def __init__(self, text: str) -> None:
        self._text = text
        spans = [found.span() for found in _MARK.finditer(text)]
        for pivot in _PIVOTS:
            place = locate(text, pivot, 0)
            while place != NOWHERE:
                spans.append(place)
                place = locate(text, pivot, place[1])
        spans.sort()
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def window(self, start: int, end: int) -> str:
        """What stands around `text[start:end]` and belongs to it."""
        text = self._text
        before, behind = bisect_right(self._ends, start), bisect_left(self._starts, end)
        least = self._ends[before - 1] if before else 0
        most = self._starts[behind] if behind < len(self._starts) else len(text)
        first, last = max(least, start - RADIUS), min(most, end + RADIUS)
        if first > least and text[first - 1] != " ":
            space = text.find(" ", first, start)
            first = start if space < 0 else space
        if last < most and text[last] != " ":
            space = text.rfind(" ", end, last)
            last = end if space < 0 else space
        return text[first:last].strip()


def windows(text: str, keywords: Sequence[Keyword]) -> list[list[str]]:
    """The windows of each keyword in a clean text."""
    if not keywords:
        return []
    cuts = Cuts(text)
    return [[cuts.window(start, end) for start, end in keyword.places] for keyword in keywords]


def sum_up(keywords: Sequence[Keyword], verdicts: Sequence[Sequence[Sentiment]]) -> dict[str, AspectSentiment]:
    """Each aspect that was mentioned; the verdicts are those on the windows of each keyword."""
    found: dict[str, list[Sentiment]] = {}
    named: dict[str, list[Keyword]] = {}
    for keyword, on_windows in zip(keywords, verdicts, strict=True):
        found.setdefault(keyword.aspect, []).extend(on_windows)
        named.setdefault(keyword.aspect, []).append(keyword)
    return {aspect: _aspect(named[aspect], found[aspect]) for aspect in named}


def _aspect(keywords: list[Keyword], verdicts: list[Sentiment]) -> AspectSentiment:
    sureness = sum(verdict.confidence for verdict in verdicts)
    weighed = sum(verdict.score * verdict.confidence for verdict in verdicts)
    score = round(weighed / sureness, 3) if sureness else 0.0
    stars = [star_of(verdict.score) for verdict in verdicts]
    return AspectSentiment(
        label=label_of(score),
        score=score,
        confidence=round(sureness / len(verdicts), 3) if verdicts else 0.0,
        rating=round(sum(stars) / len(stars)) if stars else 3,
        mentions=sum(keyword.mentions for keyword in keywords),
        keywords=tuple(keyword.keyword for keyword in keywords),
    )
