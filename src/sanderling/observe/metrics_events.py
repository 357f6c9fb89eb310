"""The metrics of events: `analytics_…`, the names that dashboards of such services know.

No label has values that strangers choose: platforms, codes and reasons are those of short lists, or `other`, and the
size of a batch is one of a few ranges.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sanderling.observe.histogram import Histogram
from sanderling.observe.series import Labels, Series, Shown, Table, by, one, spread, spread_by

# Dashboards know these two. The alarm about slow batches is at 10, which is a bound: between bounds a quantile is a
# guess.
EVENT_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30)
BATCH_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30, 60)
# A fetch should take less than a second, reading it less than a tenth.
FETCH_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)

Pair = tuple[str, str]
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class EventsCounts:
    """What was counted since the process began."""

    received: int  # messages
    processed: Mapping[str, int]  # messages that are done, by platform
    failed: int  # messages that were buried
    duplicates: int  # of those that are done: their events were in the rows already
    reused: int  # batches that came under the event id of another
    postponed: int  # messages that went back into the queue
    fetched: int  # batches that came from the object store
    objects_failed: int  # questions to the object store that got no answer
    items: Mapping[Pair, int]  # by platform and status: success, error
    codes: Mapping[Pair, int]  # errors, by code and platform
    categories: Mapping[Pair, int]  # errors, by category and platform
    mismatches: Mapping[Triple, int]  # batches of an unusual size, by platform, usual size and range of theirs
    odd: Mapping[str, int]  # batches about which something was noted, by platform
    batches: Mapping[Pair, int]  # by platform and status: success, partial, failed, empty
    modes: Mapping[str, int]  # batches, by the format of their message
    sentiments: Mapping[Pair, int]  # posts that were analysed, by label and platform
    skipped: Mapping[str, int]  # posts that were not, by the reason
    sent: Mapping[str, int]  # messages of the outbox that have arrived, by routing key
    success_rate: Mapping[str, float]  # percent of the last items, by platform; none before the first
    connected: bool  # whether the queue answered when it was last asked for messages
    event_seconds: Histogram  # of a message, from taken to done
    fetch_seconds: Histogram  # of a batch, as all below
    parse_seconds: Histogram
    analysis_seconds: Histogram
    batch_seconds: Mapping[str, Histogram]  # the same as of the message, by platform

    @property
    def active(self) -> int:
        """Messages in hand: they were taken, and nothing has become of them yet."""
        return self.received - sum(self.processed.values()) - self.failed - self.postponed


@dataclass(frozen=True, slots=True)
class EventsReadings:
    """What `events` says of itself at one moment."""

    counts: EventsCounts
    modes: Mapping[str, bool]  # whether messages of a format are processed: new, legacy, inline
    canary: float  # the share of new ones that are
    queue: Mapping[str, int] | None  # messages by state: ready, taken, delayed, dead; None if it cannot be asked
    outbox: int | None  # messages that wait to go out; None if the database cannot be asked
    pool: int | None  # connections to the database; None if there is no such thing
    trouble: bool  # whether database or object store are not to be had


def _counted(
    labels: Labels, name: str, meaning: str, read: Callable[[EventsCounts], Mapping[Pair, int] | Mapping[Triple, int]]
) -> Series[EventsReadings]:
    """A number for each combination of values."""
    return Series(name, meaning, labels, lambda seen: read(seen.counts).items())


def _percent(name: str, meaning: str, read: Callable[[float], float]) -> Series[EventsReadings]:
    """A percentage for each platform, from that of items that went well."""
    return Series(
        name,
        meaning,
        ("platform",),
        lambda seen: (((platform,), read(rate)) for platform, rate in seen.counts.success_rate.items()),
    )


def _connected(seen: EventsReadings) -> bool:
    # A broker that is away gives no messages, which is no error; but then it does not say either how many it has.
    return seen.counts.connected and seen.queue is not None


EVENTS: Table[EventsReadings] = Table(
    "analytics_",
    counters=(
        one("events_received", "Messages taken from the queue.", lambda seen: seen.counts.received),
        by("platform", "events_processed", "Messages that are done.", lambda seen: seen.counts.processed),
        one("events_failed", "Messages that were buried.", lambda seen: seen.counts.failed),
        one("events_duplicate", "Messages whose event was in the rows.", lambda seen: seen.counts.duplicates),
        one("events_reused", "Batches under the event id of another.", lambda seen: seen.counts.reused),
        one("events_postponed", "Messages that went back into the queue.", lambda seen: seen.counts.postponed),
        one("batches_fetched", "Batches that came from the object store.", lambda seen: seen.counts.fetched),
        by("platform", "batches_odd", "Batches with something odd about them.", lambda seen: seen.counts.odd),
        by("mode", "batches_by_mode", "Batches in the rows, by format.", lambda seen: seen.counts.modes),
        _counted(("platform", "status"), "batch_processing", "Batches in the rows.", lambda seen: seen.batches),
        _counted(
            ("platform", "expected_size", "actual_size"),
            "batch_size_mismatch",
            "Batches of an unusual size.",
            lambda seen: seen.mismatches,
        ),
        _counted(("platform", "status"), "items_processed", "Items that are in the rows.", lambda seen: seen.items),
        _counted(("error_code", "platform"), "errors_by_code", "Items that are errors.", lambda seen: seen.codes),
        _counted(
            ("error_category", "platform"), "errors_by_category", "Items that are errors.", lambda seen: seen.categories
        ),
        # The same once more, since dashboards know it by both names.
        _counted(
            ("error_category", "platform"), "processing_errors", "Items that are errors.", lambda seen: seen.categories
        ),
        _counted(
            ("sentiment", "platform"), "posts_by_sentiment", "Posts that were analysed.", lambda seen: seen.sentiments
        ),
        by("reason", "posts_skipped", "Posts that were not analysed.", lambda seen: seen.counts.skipped),
        by("routing_key", "outbox_sent", "Messages of ours that have arrived.", lambda seen: seen.counts.sent),
        one("minio_connection_errors", "Failures of the object store.", lambda seen: seen.counts.objects_failed),
    ),
    gauges=(
        _percent("success_rate", "Percent of the last items that are posts.", lambda rate: rate),
        _percent("error_rate", "Percent of the last items that are errors.", lambda rate: 100 - rate),
        one("active_batches", "Messages in hand.", lambda seen: seen.counts.active),
        one("rabbitmq_connection_status", "1 if the queue answers.", _connected),
        one("database_connection_pool_size", "Connections to the database.", lambda seen: seen.pool),
        by("state", "queue", "Messages in the queue.", lambda seen: seen.queue or {}),
        one("outbox_waiting", "Messages that wait to go out.", lambda seen: seen.outbox),
        by("mode", "mode", "1 if messages of that format are processed.", lambda seen: seen.modes),
        one("canary_share", "The share of new messages that is processed.", lambda seen: seen.canary),
        one("trouble", "1 while database or object store are not to be had.", lambda seen: seen.trouble),
    ),
    spreads=(
        spread("event_processing_duration_seconds", "From taken to done.", lambda seen: seen.counts.event_seconds),
        spread("batch_fetch_duration_seconds", "Until a batch is here.", lambda seen: seen.counts.fetch_seconds),
        spread("batch_parse_duration_seconds", "Unpacking and reading it.", lambda seen: seen.counts.parse_seconds),
        spread("batch_analysis_duration_seconds", "Making rows of it.", lambda seen: seen.counts.analysis_seconds),
        spread_by(
            "platform",
            "batch_processing_duration_seconds",
            "From taken to done.",
            lambda seen: seen.counts.batch_seconds,
        ),
    ),
)


class EventsMetrics(Shown[EventsReadings]):
    """Shows Prometheus how `events` stands at each scrape."""

    table = EVENTS
