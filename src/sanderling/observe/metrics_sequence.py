"""The metrics of a crawl of ever-growing ids: `sanderling_sequence_…`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from sanderling.observe.histogram import Histogram
from sanderling.observe.series import Filled, Labels, Samples, Series, Shown, Spread, Table, by, one, spread_by

# Fine up to a minute and a half, where a crawl at the head lives; then up to the three days of a long catching up.
LAG_BUCKETS = (
    *range(5, 50, 5),
    *(60, 90, 300, 1800, 7200, 14_400, 21_600, 28_800, 36_000, 43_200, 57_600, 72_000, 86_400, 172_800, 259_200),
)
REQUEST_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.75, 1, 1.5, 2, 5)

# An id that needs more is rare, and each label value costs every histogram another set of series.
MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class StoreReadings:
    """What the workers that store say of themselves, and of their queue. Counts are those of the run."""

    queue: Mapping[str, int] = field(default_factory=dict)  # by state: ready, taken, delayed, dead
    stored: Mapping[str, int] = field(default_factory=dict)  # by result: new, duplicate, buried, retried
    workers: int = 0


@dataclass(frozen=True, slots=True)
class SequenceReadings:
    """What a crawl of ids says of itself at one moment. Counts are those of the run."""

    answers: Mapping[tuple[str, int], int]  # of the main lane, by status and which attempt it was
    lags: Mapping[tuple[str, int], Histogram]  # how old records were, likewise; in seconds
    requests: Mapping[str, Histogram]  # seconds of a request, of any lane, by the API's own name for the answer
    workers: int  # requests that may be in flight
    inflight: int
    waiting: int  # ids that wait for their next attempt
    cursor: int
    head: int | None  # the id that should be the newest now, once there is an idea of it
    newest: int | None  # the highest id that was seen to exist
    available: bool  # whether the API is switched on
    missed: Mapping[str, int]  # ids that are asked for again later, by the reason
    period: int  # ids until the next decision
    strategy: str
    probes: Mapping[str, int]  # by result
    gaps: int  # that were skipped
    skipped: int  # ids in them
    rechecks: Mapping[str, int]  # of missed ids, by result
    decisions: Mapping[bool, int]  # by whether they changed the number of workers
    published: int  # records that the queue has confirmed
    publish_failures: int
    store: StoreReadings  # of those that store in the same process


TakeSequence = Callable[[], SequenceReadings]

PREFIX = "sanderling_sequence_"
BY_ATTEMPT: Labels = ("status", "attempts")


def _answers(seen: SequenceReadings) -> Samples:
    counts: Counter[Labels] = Counter()
    for (status, attempts), number in seen.answers.items():
        counts[status, attempts_label(attempts)] += number
    return counts.items()


def _decisions(seen: SequenceReadings) -> Mapping[str, int]:
    return {"true" if changed else "false": number for changed, number in seen.decisions.items()}


def _lags(seen: SequenceReadings) -> Filled:
    """The histograms of lags; those of the many attempts that share a label become one."""
    buckets: defaultdict[Labels, Counter[float]] = defaultdict(Counter)
    totals: defaultdict[Labels, float] = defaultdict(float)
    for (status, attempts), histogram in seen.lags.items():
        labels = (status, attempts_label(attempts))
        buckets[labels].update(dict(histogram.buckets))
        totals[labels] += histogram.total
    return ((labels, list(counts.items()), totals[labels]) for labels, counts in buckets.items())


CRAWL: Table[SequenceReadings] = Table(
    PREFIX,
    counters=(
        Series("answers", "Answers of the main lane.", BY_ATTEMPT, _answers),
        by("result", "probes", "Questions that only asked whether an id exists.", lambda seen: seen.probes),
        one("gaps", "Gaps that were skipped.", lambda seen: seen.gaps),
        one("skipped_ids", "Ids in the gaps that were skipped.", lambda seen: seen.skipped),
        by("result", "rechecks", "Missed ids that were asked for again.", lambda seen: seen.rechecks),
        by("changed", "decisions", "Decisions about the number of workers.", _decisions),
        one("published", "Records that the queue has confirmed.", lambda seen: seen.published),
        one("publish_failures", "Batches that the queue did not confirm.", lambda seen: seen.publish_failures),
    ),
    gauges=(
        one("workers", "Requests that may be in flight.", lambda seen: seen.workers),
        one("in_flight", "Requests that are in flight.", lambda seen: seen.inflight),
        one("waiting", "Ids that wait for their next attempt.", lambda seen: seen.waiting),
        one("cursor", "Every id below it has a fate that is on disk.", lambda seen: seen.cursor),
        one("head", "The id that should be the newest now.", lambda seen: seen.head),
        one("newest", "The highest id that was seen to exist.", lambda seen: seen.newest),
        one("available", "1 if the API is switched on.", lambda seen: seen.available),
        by("reason", "missed", "Ids that are asked for again later.", lambda seen: seen.missed),
        one("period_ids", "Ids until the next decision.", lambda seen: seen.period),
        by("strategy", "strategy", "1 for the strategy of the last decision.", lambda seen: {seen.strategy: 1}),
    ),
    spreads=(
        Spread("lag_seconds", "How old records of the main lane were when they came.", BY_ATTEMPT, _lags),
        spread_by("error", "request_seconds", "One request, its body included.", lambda seen: seen.requests),
    ),
)
STORE: Table[StoreReadings] = Table(
    PREFIX,
    counters=(by("result", "stored", "Records taken from the queue, by what came of them.", lambda seen: seen.stored),),
    gauges=(
        by("state", "queue", "Records in the queue.", lambda seen: seen.queue),
        one("store_workers", "Workers that store what the queue has.", lambda seen: seen.workers),
    ),
)


class SequenceMetrics:
    """Shows Prometheus how a crawl of ids stands at each scrape."""

    def __init__(self, registry: CollectorRegistry, take: TakeSequence) -> None:
        self._take = take
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which the registry knows if a name is taken."""
        yield from CRAWL.describe()
        yield from STORE.describe()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; one reading for all, so that they agree with each other."""
        seen = self._take()
        yield from CRAWL.collect(seen)
        yield from STORE.collect(seen.store)


class StoreMetrics(Shown[StoreReadings]):
    """Shows Prometheus how those stand who store, in a process of their own."""

    table = STORE


def attempts_label(attempts: int) -> str:
    """Which attempt it was, as the metrics say it: "1" to "5", or "more"."""
    return str(attempts) if attempts <= MOST_ATTEMPTS else "more"
