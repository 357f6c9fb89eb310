"""What a simulated crawler knows of its own batches: where every item must end, and what was meant by its text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class PostSentiment(StrEnum):
    """How a text was meant."""

    NEGATIVE = "NEGATIVE"
    NEUTRAL = "NEUTRAL"
    POSITIVE = "POSITIVE"


class PostIntent(StrEnum):
    """What a text is for."""

    CRISIS = "CRISIS"
    SEEDING = "SEEDING"
    SPAM = "SPAM"
    COMPLAINT = "COMPLAINT"
    LEAD = "LEAD"
    SUPPORT = "SUPPORT"
    DISCUSSION = "DISCUSSION"


class Mood(NamedTuple):
    """What a text is for, and how it was meant. Advertisements are neutral, since nobody asks how they were meant."""

    intent: PostIntent
    sentiment: PostSentiment


class BatchFate(StrEnum):
    """What must become of a message."""

    READ = "read"  # its items end as the truth says
    UNREADABLE = "unreadable"  # there is an object, and nothing can be made of it
    MISSING = "missing"  # there is no object
    REFUSED = "refused"  # the message itself is not for us


class Counters(NamedTuple):
    """How people took a post."""

    views: int = 0
    likes: int = 0
    comments: int = 0
    shares: int = 0
    saves: int = 0


NO_COUNTERS = Counters()


@dataclass(frozen=True, slots=True)
class ItemTruth:
    """What must become of an item: a post if it has no code, and an error otherwise."""

    id: str | None  # None where the item has none that could be used
    code: str = ""
    message: str = ""  # as the crawler says it; empty if the fault is the item's own
    mood: Mood | None = None  # of posts
    counters: Counters = NO_COUNTERS
    followers: int = 0
    shared: bool = False  # whether other batches, also of other projects, may have the same post

    @property
    def is_post(self) -> bool:
        """Whether it ends as a post."""
        return not self.code


@dataclass(frozen=True, slots=True)
class BatchTruth:
    """What must become of a batch."""

    number: int
    fate: BatchFate
    event_id: str  # empty where the message has none
    job_id: str
    project: str | None  # None for dry runs
    platform: str
    brand: str  # what was searched for
    sent_at: float  # Unix seconds
    items: tuple[ItemTruth, ...]  # in their order; none unless the batch can be read


@dataclass(slots=True)
class Totals:
    """What must be in a store after some batches, each of them once or several times.

    A post is a row once for each project that found it, however many jobs did; an error is a row once. Takes batches in
    the order of their numbers, and the memory of a few: which posts are shared is kept only for as long as they can be.
    """

    trend: int  # batches that may share posts with each other: those with the same number over this
    batches: int = 0
    items: int = 0
    posts: int = 0  # rows
    distinct_posts: int = 0  # whoever found them
    errors: int = 0
    fates: Counter[BatchFate] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    sentiments: Counter[PostSentiment] = field(default_factory=Counter)  # of posts, as rows
    intents: Counter[PostIntent] = field(default_factory=Counter)  # the same
    platforms: Counter[str] = field(default_factory=Counter)  # the same
    projects: Counter[str | None] = field(default_factory=Counter)  # the same
    _now: int = -1
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _rows: set[tuple[str | None, str, str]] = field(default_factory=set)

    def add(self, truth: BatchTruth) -> None:
        """Count a batch."""
        if truth.number // self.trend != self._now:
            self._now = truth.number // self.trend
            self._seen, self._rows = set(), set()
        self.batches += 1
        self.fates[truth.fate] += 1
        self.items += len(truth.items)
        for item in self._new(truth):
            self._count(truth, item)

    def _new(self, truth: BatchTruth) -> Iterator[ItemTruth]:
        """The items that become rows of their own."""
        for item in truth.items:
            if not item.shared or item.id is None:
                self.distinct_posts += item.is_post
                yield item
                continue
            row, post = (truth.project, truth.platform, item.id), (truth.platform, item.id)
            self.distinct_posts += post not in self._seen
            self._seen.add(post)
            if row not in self._rows:
                self._rows.add(row)
                yield item

    def _count(self, truth: BatchTruth, item: ItemTruth) -> None:
        if item.mood is None:
            self.errors += 1
            self.codes[item.code] += 1
            return
        self.posts += 1
        self.sentiments[item.mood.sentiment] += 1
        self.intents[item.mood.intent] += 1
        self.platforms[truth.platform] += 1
        self.projects[truth.project] += 1
