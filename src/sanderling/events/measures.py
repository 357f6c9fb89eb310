"""What `events` counts, for the metrics and for people, and how it went lately."""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sanderling.clock import Clock
from sanderling.events.analysis.sentiment import Label
from sanderling.events.batches import SIZES as BATCH_SIZES
from sanderling.events.envelopes import EVENT_TYPE
from sanderling.events.lately import Lately, Minute, Share, ShortError, Spans
from sanderling.events.rows import RESULT_KEY, RETRY_KEY, ProcessedBatch
from sanderling.events.taxonomy import RULES
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, gauge, histogram
from sanderling.outcome import Category

# Dashboards know the first two. The alarm about slow batches is at 10, which is a bound: between bounds a quantile is a
# guess.
EVENT_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30)
BATCH_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30, 60)
# A fetch should take less than a second, reading it less than a tenth.
FETCH_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)

OTHER = "other"  # for every name that is not ours; each label value costs Prometheus memory
PLATFORMS = ("tiktok", "youtube", "facebook", "instagram", OTHER)
REASONS = ("too short", "spam keyword", "spam", "seeding", OTHER)  # why a post is not analysed
MODES = ("new", "legacy", "inline")
KEYS = (RETRY_KEY, RESULT_KEY, EVENT_TYPE)  # of what goes out
SUCCESS, ERROR = "success", "error"  # what an item is
STATUSES = ("success", "partial", "failed", "empty")  # of a batch: all, some or none of its items are posts
# The usual sizes are 20 and 50; who is short by a few is told from who has next to nothing.
SIZES, RANGES = (1, 10, 20, 50, 100), ("0", "1-9", "10-19", "20-49", "50-99", "100+")

LATELY = 30  # seconds that speed is taken over; a batch a second is much, and one in ten seconds is not nothing
MINUTES = 60  # that are remembered one by one
MOST_RECENT = 20  # errors that are remembered


def platform_label(platform: str) -> str:
    """The platform, if it is one that we know."""
    return platform if platform in PLATFORMS else OTHER


def code_label(code: str) -> str:
    """The code in our spelling, if it is one that we know."""
    if code in RULES:
        return code
    known = code.strip().upper().replace("-", "_").replace(" ", "_")
    return known if known in RULES else OTHER


class EventMeasures:
    """Counts of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self.counted: Counter[str] = Counter()  # messages, and questions to the object store
        # What begins at 0 is seen to rise; a series that begins with its first count is not.
        self.done: Counter[str] = Counter(dict.fromkeys(PLATFORMS, 0))
        self.items = Counter({(platform, status): 0 for platform in PLATFORMS for status in (SUCCESS, ERROR)})
        self.codes: Counter[tuple[str, str]] = Counter()
        self.categories = Counter({(each.value, platform): 0 for each in Category for platform in PLATFORMS})
        self.mismatches: Counter[tuple[str, str, str]] = Counter()
        self.noted: Counter[str] = Counter(dict.fromkeys(PLATFORMS, 0))
        self.batches = Counter({(platform, status): 0 for platform in PLATFORMS for status in STATUSES})
        self.modes: Counter[str] = Counter(dict.fromkeys(MODES, 0))
        self.sentiments = Counter({(label.value, platform): 0 for label in Label for platform in PLATFORMS})
        self.skipped: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        self.outgoing: Counter[str] = Counter(dict.fromkeys(KEYS, 0))
        self.shares: dict[str, Share] = {}
        self.is_connected = False
        self.event_seconds, self.batch_seconds = Histogram(EVENT_BUCKETS), dict[str, Histogram]()
        self.fetch_seconds, self.parse_seconds, self.analysis_seconds = (
            Histogram(bounds) for bounds in (FETCH_BUCKETS, WORK_BUCKETS, WORK_BUCKETS)
        )
        self._seconds, self._minutes = Spans(1, LATELY), Spans(60, MINUTES)
        self._recent: deque[ShortError] = deque(maxlen=MOST_RECENT)

    # Messages.

    def received(self) -> None:
        """Count a message that was taken. Each ends as processed, failed or postponed."""
        self.counted["received"] += 1

    def processed(self, platform: str, seconds: float) -> None:
        """Count a message that is done, and how long it took from being taken."""
        label = platform_label(platform)
        self.done[label] += 1
        self.event_seconds.add(max(0.0, seconds))
        self.batch_seconds.setdefault(label, Histogram(BATCH_BUCKETS)).add(max(0.0, seconds))

    def failed(self) -> None:
        """Count a message that was buried."""
        self.counted["failed"] += 1

    def duplicate(self) -> None:
        """Count a message whose event was in the rows already; it is processed as well."""
        self.counted["duplicate"] += 1

    def reused(self) -> None:
        """Count a batch that came under the event id of another."""
        self.counted["reused"] += 1

    def postponed(self) -> None:
        """Count a message that went back into the queue."""
        self.counted["postponed"] += 1

    def sent(self, routing_key: str, messages: int = 1) -> None:
        """Count messages of the outbox that have arrived."""
        self.outgoing[routing_key if routing_key in KEYS else OTHER] += messages

    # What they speak of.

    def connected(self, *, ok: bool) -> None:
        """Note whether the queue answered."""
        self.is_connected = ok

    def objects_failed(self) -> None:
        """Count a question to the object store that got no answer."""
        self.counted["objects_failed"] += 1

    @contextmanager
    def fetching(self) -> Iterator[None]:
        """Time how long a batch takes to come, and count it once it has."""
        with self._timed(self.fetch_seconds):
            yield
        self.counted["fetched"] += 1

    def parsing(self) -> AbstractContextManager[None]:
        """Time how long it takes to unpack and read a batch."""
        return self._timed(self.parse_seconds)

    def analysing(self) -> AbstractContextManager[None]:
        """Time how long it takes to make rows of a batch."""
        return self._timed(self.analysis_seconds)

    @contextmanager
    def _timed(self, histogram: Histogram) -> Iterator[None]:
        """Count the seconds that something took, if it went well: what fails may do so at once."""
        began = self._clock.now()
        yield
        histogram.add(self._clock.now() - began)

    def odd(self, platform: str, items: int) -> None:
        """Count a batch about which something was noted, which may be its size."""
        label, usual = platform_label(platform), BATCH_SIZES.get(platform)
        self.noted[label] += 1
        if usual is not None and items != usual:
            self.mismatches[label, str(usual), RANGES[bisect_right(SIZES, items)]] += 1

    def kept(self, done: ProcessedBatch) -> None:
        """Count a batch that is in the rows now, and all of its items."""
        posts = Counter(platform_label(post.platform) for post in done.posts)
        errors = Counter(platform_label(error.platform) for _, error in done.errors)
        for platform in posts | errors:
            self.items[platform, SUCCESS] += posts[platform]
            self.items[platform, ERROR] += errors[platform]
            self.shares.setdefault(platform, Share()).add(posts[platform], errors[platform])
        self.batches[platform_label(done.batch.platform), _status(len(done.posts), len(done.errors))] += 1
        self.modes[done.batch.mode if done.batch.mode in MODES else OTHER] += 1
        self._count_errors(done)
        minute = self._count_posts(done)
        minute["errors"] = len(done.errors)
        now, items = self._clock.now(), len(done.posts) + len(done.errors)
        self._minutes.add(now, minute)
        self._seconds.add(now, {"batches": 1, "items": items, "errors": len(done.errors)})

    def _count_errors(self, done: ProcessedBatch) -> None:
        for _, error in done.errors:
            platform = platform_label(error.platform)
            self.codes[code_label(error.code), platform] += 1
            self.categories[error.category.value, platform] += 1
        wall = self._clock.wall()
        self._recent.extend(ShortError.of(error, wall) for _, error in done.errors[-MOST_RECENT:])

    def _count_posts(self, done: ProcessedBatch) -> Counter[str]:
        """Count how they were meant; one that nobody has judged is not neutral. The same for the minute."""
        minute: Counter[str] = Counter()
        for post, analysis in zip(done.posts, done.analyses, strict=True):
            if analysis.skipped:
                self.skipped[analysis.skipped if analysis.skipped in REASONS else OTHER] += 1
                minute["skipped"] += 1
            else:
                self.sentiments[analysis.sentiment.value, platform_label(post.platform)] += 1
                minute[analysis.sentiment.value.lower()] += 1
        return minute

    # How it went.

    @property
    def lately(self) -> Lately:
        """How much a second was put into the rows lately."""
        now = self._clock.now()
        seconds = now - max(self._began, now // 1 - LATELY + 1)
        counts = self._seconds.total(now)
        return Lately(**{name: counts[name] / seconds for name in Lately.__struct_fields__}) if seconds else Lately()

    @property
    def minutes(self) -> tuple[Minute, ...]:
        """The last minutes one by one, the oldest first, also those in which nothing came."""
        now, counted = self._clock.now(), self._minutes.recent(self._clock.now())
        ahead, last = self._clock.wall() - now, int(now // 60)
        first = max(int(self._began // 60), last - MINUTES + 1)
        starts = (60.0 * number for number in range(first, last + 1))
        return tuple(Minute(at=float(round(start + ahead)), **counted.get(start, Counter())) for start in starts)

    @property
    def recent(self) -> tuple[ShortError, ...]:
        """The last errors, the oldest first."""
        return tuple(self._recent)

    @property
    def active(self) -> int:
        """Messages in hand: they were taken, and nothing has become of them yet."""
        counted = self.counted
        return counted["received"] - self.done.total() - counted["failed"] - counted["postponed"]

    def metrics(self) -> Iterator[Metric]:
        """All of it, for Prometheus. No label has values that strangers choose: they are those of short lists."""
        counted, by_platform = self.counted, "platform"
        yield counter("events_received", "Messages taken from the queue.", counted["received"])
        yield counter("events_processed", "Messages that are done.", self.done, by_platform)
        yield counter("events_failed", "Messages that were buried.", counted["failed"])
        yield counter("events_duplicate", "Messages whose event was in the rows.", counted["duplicate"])
        yield counter("events_reused", "Batches under the event id of another.", counted["reused"])
        yield counter("events_postponed", "Messages that went back into the queue.", counted["postponed"])
        yield counter("batches_fetched", "Batches that came from the object store.", counted["fetched"])
        yield counter("batches_odd", "Batches with something odd about them.", self.noted, by_platform)
        yield counter("batches_by_mode", "Batches in the rows, by format.", self.modes, "mode")
        yield counter("batch_processing", "Batches in the rows.", self.batches, by_platform, "status")
        sizes = (by_platform, "expected_size", "actual_size")
        yield counter("batch_size_mismatch", "Batches of an unusual size.", self.mismatches, *sizes)
        yield counter("items_processed", "Items that are in the rows.", self.items, by_platform, "status")
        yield counter("errors_by_code", "Items that are errors.", self.codes, "error_code", by_platform)
        # The same twice, since dashboards know it by both names.
        for name in ("errors_by_category", "processing_errors"):
            yield counter(name, "Items that are errors.", self.categories, "error_category", by_platform)
        yield counter("posts_by_sentiment", "Posts that were analysed.", self.sentiments, "sentiment", by_platform)
        yield counter("posts_skipped", "Posts that were not analysed.", self.skipped, "reason")
        yield counter("outbox_sent", "Messages of ours that have arrived.", self.outgoing, "routing_key")
        yield counter("minio_connection_errors", "Failures of the object store.", counted["objects_failed"])
        good = {platform: share.percent for platform, share in self.shares.items()}
        bad = {platform: 100 - percent for platform, percent in good.items()}
        yield gauge("success_rate", "Percent of the last items that are posts.", good, by_platform)
        yield gauge("error_rate", "Percent of the last items that are errors.", bad, by_platform)
        yield gauge("active_batches", "Messages in hand.", self.active)
        yield histogram("event_processing_duration_seconds", "From taken to done.", self.event_seconds)
        yield histogram("batch_fetch_duration_seconds", "Until a batch is here.", self.fetch_seconds)
        yield histogram("batch_parse_duration_seconds", "Unpacking and reading it.", self.parse_seconds)
        yield histogram("batch_analysis_duration_seconds", "Making rows of it.", self.analysis_seconds)
        yield histogram("batch_processing_duration_seconds", "From taken to done.", self.batch_seconds, by_platform)


def _status(posts: int, errors: int) -> str:
    """What came of a batch: one of STATUSES."""
    if not errors:
        return "success" if posts else "empty"
    return "partial" if posts else "failed"
