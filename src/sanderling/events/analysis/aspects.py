"""What is thought of each side of a thing: the sentiment of the words around its keywords."""

from collections.abc import Iterator, Sequence

import msgspec

from sanderling.events.analysis import scan
from sanderling.events.analysis.keywords import Keyword
from sanderling.events.analysis.sentiment import Label, Sentiment, label_of, star_of
from sanderling.events.analysis.windows_python import NOWHERE, Span

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
        place = scan.locate(text, phrase, 0)
        while place != NOWHERE:
            yield place
            place = scan.locate(text, phrase, place[1])


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
