"""The numbers behind a report of `events`: what people said hour by hour, what failed, and how each project fares."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import NamedTuple

from sanderling.stores.analytics import ErrorFilter, PostFilter, PostRow
from sanderling.stores.analytics_store import AnalyticsStore

HOUR = 3600.0
PAGE = 200  # rows that are read at a time: with texts of 100,000 characters, some 20 MB
LABELS = ("positive", "neutral", "negative")
RISKY = frozenset({"HIGH", "CRITICAL"})


class Hour(NamedTuple):
    """An hour, or several together: posts by how they were meant, and items that are no posts."""

    at: float  # Unix seconds at which it begins
    positive: int = 0
    neutral: int = 0
    negative: int = 0
    errors: int = 0

    @property
    def judged(self) -> int:
        """Posts of which it is known how they were meant."""
        return self.positive + self.neutral + self.negative

    @property
    def negative_share(self) -> float:
        """Of these, from 0 to 1."""
        return self.negative / self.judged if self.judged else 0.0

    @property
    def items(self) -> int:
        """All of them, but for posts that nobody judged."""
        return self.judged + self.errors


class Project(NamedTuple):
    """How one project fares."""

    name: str
    posts: int
    positive: int
    neutral: int
    negative: int
    score: float  # from -1 to 1: the mean of those that were judged
    risky: int  # posts whose risk is high or critical

    @property
    def judged(self) -> int:
        """Posts of which it is known how they were meant."""
        return self.positive + self.neutral + self.negative

    @property
    def negative_share(self) -> float:
        """Of these, from 0 to 1."""
        return self.negative / self.judged if self.judged else 0.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """All that a report tells. An hour follows the other, also where nothing came."""

    hours: tuple[Hour, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict)  # of errors
    projects: tuple[Project, ...] = ()
    unread: int = 0  # posts that nobody judged: advertisements, and texts that are too short

    @property
    def posts(self) -> int:
        """All posts, judged or not."""
        return sum(each.posts for each in self.projects)

    @property
    def errors(self) -> int:
        """All errors."""
        return sum(self.categories.values())

    @property
    def worst(self) -> Hour | None:
        """The hour in which most of the posts were negative."""
        return max((each for each in self.hours if each.negative), key=lambda each: each.negative_share, default=None)

    @property
    def roughest(self) -> Hour | None:
        """The hour in which most failed."""
        return max((each for each in self.hours if each.errors), key=lambda each: each.errors, default=None)


class _Tally:
    """What was counted so far."""

    def __init__(self, first: float, hours: int) -> None:
        self._first = first
        self._hours: list[Counter[str]] = [Counter() for _ in range(hours)]
        self.unread = 0
        self.categories: Counter[str] = Counter()

    def post(self, row: PostRow) -> None:
        if row.skipped:
            self.unread += 1
        else:
            self._hour(row.analyzed_at if row.crawled_at is None else row.crawled_at)[label_of(row)] += 1

    def error(self, at: float, category: str) -> None:
        self._hour(at)["errors"] += 1
        self.categories[category] += 1

    def _hour(self, at: float) -> Counter[str]:
        return self._hours[max(0, min(floor((at - self._first) / HOUR), len(self._hours) - 1))]

    @property
    def hours(self) -> tuple[Hour, ...]:
        return tuple(Hour(self._first + place * HOUR, **counts) for place, counts in enumerate(self._hours))


def label_of(row: PostRow) -> str:
    """How a post was meant, as `LABELS` has it."""
    label = row.overall_sentiment.lower()
    return label if label in LABELS else "neutral"


async def gather(store: AnalyticsStore, projects: Mapping[str, str], first: float, hours: int) -> Numbers:
    """The numbers of so many hours, read page by page; `projects` are names by id, and "" is what belongs to nobody.

    What was crawled before the first hour or after the last counts as of that. Raises AnalyticsError.
    """
    tally = _Tally(first, max(1, hours))
    found = [await _project(store, identity, name, tally) for identity, name in projects.items()]
    offset = 0
    while page := (await store.errors(ErrorFilter(), offset=offset, most=PAGE))[0]:
        offset += len(page)
        for each in page:
            tally.error(each.row.created_at, each.row.error_category)
    return Numbers(tally.hours, dict(tally.categories.most_common()), tuple(found), tally.unread)


async def _project(store: AnalyticsStore, identity: str, name: str, tally: _Tally) -> Project:
    labels: Counter[str] = Counter()
    posts = risky = 0
    score = 0.0
    async for row in _posts(store, identity):
        posts += 1
        risky += row.risk_level in RISKY
        tally.post(row)
        if not row.skipped:
            labels[label_of(row)] += 1
            score += row.overall_sentiment_score
    mean = score / labels.total() if labels else 0.0
    return Project(name, posts, labels["positive"], labels["neutral"], labels["negative"], mean, risky)


async def _posts(store: AnalyticsStore, project: str) -> AsyncIterator[PostRow]:
    chosen, offset = PostFilter(project_id=project), 0
    while page := (await store.posts(chosen, sort="analyzed_at", descending=False, offset=offset, most=PAGE)).posts:
        offset += len(page)
        for each in page:
            yield each.row
