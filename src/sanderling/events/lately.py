"""How it went lately, in bounded memory: counts by time, the share of posts, and the last errors in short."""

import re
from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from sanderling.events.posts import CrawlError

RECENT_ITEMS = 1000  # that a success rate is taken over: a hundredth is then ten of them
LONGEST = 100  # characters of a stranger's text that are shown

# As in `http://user:password@proxy:8080`: crawlers quote what they were told to go through.
_USER = re.compile(r"//[^/\s]*@")


def in_short(text: str) -> str:
    """A stranger's text on one line, cut where it is long; without what does not print, and without passwords."""
    if len(text) <= LONGEST and text.isprintable() and "@" not in text:
        return text.strip()
    # Cut before it is looked at: it may be a megabyte.
    line = "".join(each if each.isprintable() else " " for each in _USER.sub("//…@", text[: 10 * LONGEST])).strip()
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


class Lately(msgspec.Struct, frozen=True, kw_only=True):
    """How much a second was put into the rows lately."""

    batches: float = 0.0
    items: float = 0.0
    errors: float = 0.0  # items that are some


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What came in a minute: posts by how they were meant, and what is not a post."""

    at: float  # when it began, in Unix seconds
    positive: int = 0
    neutral: int = 0
    negative: int = 0
    skipped: int = 0
    errors: int = 0


class ShortError(msgspec.Struct, frozen=True, kw_only=True):
    """An item that is no post, in short."""

    at: float  # Unix seconds
    platform: str
    code: str  # as the crawler says it
    category: str
    content_id: str
    message: str

    @classmethod
    def of(cls, error: CrawlError, at: float) -> "ShortError":
        """That of an error."""
        return cls(
            at=at,
            platform=in_short(error.platform),
            code=in_short(error.code),
            category=error.category.value,
            content_id=in_short(error.content_id),
            message=in_short(error.message),
        )


class Spans:
    """Counts of the last `most` spans of time, of `seconds` each. `now` is any seconds that only go forward."""

    __slots__ = ("_most", "_seconds", "_spans")

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._spans: deque[tuple[int, Counter[str]]] = deque(maxlen=most)

    def add(self, now: float, counts: Mapping[str, int]) -> None:
        """Count these now."""
        number = int(now // self._seconds)
        if not self._spans or self._spans[-1][0] < number:
            self._spans.append((number, Counter()))
        self._spans[-1][1].update(counts)

    def recent(self, now: float) -> dict[float, Counter[str]]:
        """What was counted in each span, by its beginning; none for those in which nothing was."""
        first = int(now // self._seconds) - self._most
        return {number * self._seconds: counts for number, counts in self._spans if number > first}

    def total(self, now: float) -> Counter[str]:
        """All of that together."""
        together: Counter[str] = Counter()
        for counts in self.recent(now).values():
            together.update(counts)
        return together


class Share:
    """How many of the last items are posts. They are forgotten by whole batches."""

    __slots__ = ("_batches", "_items", "_posts")

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int]] = deque()
        self._posts = self._items = 0

    def add(self, posts: int, errors: int) -> None:
        """Count a batch; one without items says nothing."""
        if not posts + errors:
            return
        self._batches.append((posts, posts + errors))
        self._posts, self._items = self._posts + posts, self._items + posts + errors
        while self._items - self._batches[0][1] >= RECENT_ITEMS:
            posts, items = self._batches.popleft()
            self._posts, self._items = self._posts - posts, self._items - items

    @property
    def percent(self) -> float:
        """How many they are in a hundred."""
        return 100 * self._posts / self._items
