"""The metrics of polling: `sanderling_polling_…`.

No label has values that strangers choose: kinds and tables are those of the source, subscribers those that whoever runs
us has named, and all other labels are from short lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sanderling.observe.histogram import Histogram
from sanderling.observe.series import Series, Shown, Table, by, one, spread, spread_by

# Fine around a quarter of a second, where a live target begins to look late; up to a minute, where anything does.
LATE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
RUN_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30)
BATCH_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True, slots=True)
class PollingCounts:
    """What was counted since the process began."""

    runs: Mapping[tuple[str, str], int]  # by kind and outcome code
    errors: Mapping[tuple[str, str], int]  # those of them that had a category, by kind and category
    changes: Mapping[tuple[str, str], int]  # rows, by table and op
    missed: Mapping[str, int]  # runs that should have been and were not, by kind
    promotions: Mapping[str, int]  # targets that were made due, by reason
    discoveries: Mapping[str, int]  # by result: ok, failed
    lateness: Mapping[str, Histogram]  # seconds between due and start, by pace: accelerated, usual
    seconds: Mapping[str, Histogram]  # of a run, by kind
    batches: Histogram  # targets that were written back at once


@dataclass(frozen=True, slots=True)
class PollingReadings:
    """What polling says of itself at one moment."""

    counts: PollingCounts
    enabled: bool  # whether it polls at all, by the settings
    inflight: int  # runs under way
    slots: int  # runs that may be under way
    ready: int  # targets that are due and wait for a slot
    loaded: int  # targets in memory
    pending: int  # targets that ran and are not written back yet
    targets: Mapping[str, int]  # by state: all, paused, due, accelerated, failing, gone
    discovery_age: float  # seconds since a discovery last went well; since the start, if none has
    newest: int  # the number of the newest change
    followers: int  # of the event stream
    positions: Mapping[str, int]  # the number of the last change that each subscriber has
    store_trouble: bool  # whether the database is not to be had
    problems: int  # settings that cannot be read


def _by_two(
    labels: tuple[str, str], name: str, meaning: str, read: Callable[[PollingCounts], Mapping[tuple[str, str], int]]
) -> Series[PollingReadings]:
    """A number for each pair of values."""
    return Series(name, meaning, labels, lambda seen: read(seen.counts).items())


def _behind(seen: PollingReadings) -> Mapping[str, int]:
    return {name: max(0, seen.newest - position) for name, position in seen.positions.items()}


POLLING: Table[PollingReadings] = Table(
    "sanderling_polling_",
    counters=(
        _by_two(("kind", "code"), "runs", "Runs of targets, by outcome.", lambda seen: seen.runs),
        _by_two(("kind", "category"), "errors", "Runs that went wrong, by category.", lambda seen: seen.errors),
        _by_two(("table", "op"), "changes", "Rows that came, changed or went.", lambda seen: seen.changes),
        by("kind", "missed", "Runs that should have been and were not.", lambda seen: seen.counts.missed),
        by("reason", "promotions", "Targets that were made due at once.", lambda seen: seen.counts.promotions),
        by("result", "discoveries", "Looks for what there is to poll.", lambda seen: seen.counts.discoveries),
    ),
    gauges=(
        one("enabled", "1 if polling is switched on.", lambda seen: seen.enabled),
        one("in_flight", "Runs under way.", lambda seen: seen.inflight),
        one("slots", "Runs that may be under way.", lambda seen: seen.slots),
        one("ready", "Targets that are due and wait for a slot.", lambda seen: seen.ready),
        one("loaded", "Targets in memory.", lambda seen: seen.loaded),
        one("write_pending", "Targets that ran and are not written back yet.", lambda seen: seen.pending),
        by("state", "targets", "Targets.", lambda seen: seen.targets),
        one("discovery_age_seconds", "Since a discovery last went well.", lambda seen: seen.discovery_age),
        one("newest_change", "The number of the newest change.", lambda seen: seen.newest),
        one("followers", "Followers of the event stream.", lambda seen: seen.followers),
        by("subscriber", "subscriber_position", "The last change that it has.", lambda seen: seen.positions),
        by("subscriber", "subscriber_behind", "Changes that it does not have yet.", _behind),
        one("store_trouble", "1 while the database is not to be had.", lambda seen: seen.store_trouble),
        one("settings_problems", "Settings that cannot be read.", lambda seen: seen.problems),
    ),
    spreads=(
        spread_by("pace", "lateness_seconds", "From due to start.", lambda seen: seen.counts.lateness),
        spread_by("kind", "run_seconds", "One run: asking, reading, storing.", lambda seen: seen.counts.seconds),
        spread("write_batch_targets", "Targets that were written back at once.", lambda seen: seen.counts.batches),
    ),
)


class PollingMetrics(Shown[PollingReadings]):
    """Shows Prometheus how polling stands at each scrape."""

    table = POLLING
