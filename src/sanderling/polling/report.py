"""What polling does, as the one report. Pure; `polling/watch.py` takes the facts of a running system."""

from collections.abc import Iterable, Iterator

import msgspec

from sanderling.engine.host_report import EngineStanding
from sanderling.observe.metric import Metric, gauge
from sanderling.observe.report import (
    Activity,
    Event,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    bound_troubles,
    shorten,
)
from sanderling.outcome import Code
from sanderling.polling.measures import ACCELERATED, USUAL, Late
from sanderling.stores.polling import RowChange
from sanderling.words import count, duration

# As many as are shown of each; a report is made every second, however many targets there are.
MOST_ACCELERATED, MOST_RECENT, MOST_NEXT, MOST_KINDS = 20, 20, 10, 20
LONGEST_KEY = 100  # characters; keys are the upstream's
SHORT = 8  # characters of an id that are said where all of it has no room


class LiveTargets(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is asked more often for now. Times are seconds."""

    kind: str
    id: str
    interval: float  # between two runs
    left: float  # until the acceleration ends, unless it is renewed
    late: float  # between due and start, of its last run


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is soon to run. Times are seconds."""

    kind: str
    id: str
    due: float  # from now; below 0 if it waits for a slot
    interval: float  # between two runs
    status: str  # how its last run ended, in words; empty before the first


class ShortChange(msgspec.Struct, frozen=True, kw_only=True):
    """A row that came, changed or went."""

    seq: int
    at: float  # Unix seconds
    op: str
    table: str  # empty for a purge, as is the key
    key: str  # cut where it is long
    fields: tuple[str, ...]  # of an update: the columns that differ

    @classmethod
    def of(cls, change: RowChange) -> "ShortChange":
        """That of a change."""
        key = change.key if len(change.key) <= LONGEST_KEY else f"{change.key[: LONGEST_KEY - 1]}…"
        fields = tuple(map(shorten, change.fields[:MOST_KINDS]))
        return cls(seq=change.seq, at=change.at, op=change.op.value, table=change.table, key=key, fields=fields)


class SubscriberReport(msgspec.Struct, frozen=True, kw_only=True):
    """One who is sent the changes."""

    name: str
    position: int  # the number of the last change it has
    behind: int  # changes it does not have yet
    trouble: str  # why nothing can be sent, while nothing can; empty otherwise


class PollingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only polling has. Counts are those of the process; times are Unix seconds unless they say otherwise."""

    source: str  # what its API is called
    host: str
    event: str  # the one that is polled; empty before the first discovery
    current: str = ""  # kind and id of the target to look at: the one that is live, or the next one
    targets: dict[str, int]  # all, paused, due, accelerated, failing, gone; a target may be under several of these
    discovered: float | None  # when a discovery last went well; None if none has
    discovery_trouble: str  # why the last one failed; empty if it went well
    runs: dict[str, int]  # by kind
    failed: int  # runs that went wrong
    changes: int  # rows that came, changed or went
    missed: int  # runs that should have been and were not
    rate: float  # runs a second lately
    late: dict[str, Late]  # seconds between due and start lately, by pace: accelerated, usual; absent without runs
    inflight: int  # runs under way
    slots: int  # runs that may be under way
    ready: int  # targets that are due and wait for a slot
    loaded: int  # targets in memory
    pending: int  # targets that ran and are not written back yet
    newest: int  # the number of the newest change; 0 before the first
    followers: int  # of the event stream
    subscribers: tuple[SubscriberReport, ...]
    store_trouble: str  # why the database is not to be had, while it is not; empty otherwise
    settings_problems: int = 0  # settings that cannot be read
    problems: tuple[str, ...]  # of the settings, and odd values in documents, in words
    accelerated: tuple[LiveTargets, ...]  # MOST_ACCELERATED of them at most
    next: tuple[Next, ...]  # the MOST_NEXT targets that are due first, in that order
    recent: tuple[ShortChange, ...]  # the last MOST_RECENT changes, the oldest first
    series: tuple[str, ...] = ("late_p99",)

    @property
    def ran(self) -> int:
        """Runs, however they ended."""
        return sum(self.runs.values())

    @property
    def latest(self) -> Late | None:
        """How late those runs were that matter most."""
        return self.late.get(ACCELERATED) or self.late.get(USUAL)


def report_polling(facts: PollingFacts, at: EngineStanding, measured: Iterable[Metric] = ()) -> Report[PollingFacts]:
    """Make the report of polling from what is known of it."""
    late, targets = facts.latest, facts.targets
    return Report(
        system="polling",
        doing=_doing(facts, at),
        process=at.process,
        troubles=bound_troubles([*at.troubles, *_troubles(facts)]),
        work=WorkCounts(
            asked=max(facts.ran, at.asked),
            refused=at.refused,
            kept=facts.changes,
            failed=facts.failed,
            waiting=facts.ready,
        ),
        hosts=at.hosts,
        hosts_known=len(at.hosts),
        classes=at.classes,
        gauges={"late_p99": None if late is None else late.p99},
        numbers=(
            ("targets", f"{targets['all']:,}"),
            ("live", f"{targets['accelerated']:,}"),
            ("runs a second", f"{facts.rate:,.1f}"),
            ("late (p99)", "no runs" if late is None else duration(late.p99)),
            ("changes", f"{facts.changes:,}"),
            ("failing", f"{targets['failing']:,}"),
            ("missed runs", f"{facts.missed:,}"),
            ("followers", f"{facts.followers:,}"),
        ),
        lines=tuple(_lines(facts)),
        activity=tuple(_activity(facts)),
        events=tuple(Event(each.at, _describe(each)) for each in facts.recent),
        metrics=(*measured, *_metrics(facts, at)),
        facts=facts,
    )


def _metrics(facts: PollingFacts, at: EngineStanding) -> Iterator[Metric]:
    positions = {each.name: each.position for each in facts.subscribers}
    behind = {each.name: each.behind for each in facts.subscribers}
    yield gauge("enabled", "1 if polling is switched on.", not at.process.paused)
    yield gauge("in_flight", "Runs under way.", facts.inflight)
    yield gauge("slots", "Runs that may be under way.", facts.slots)
    yield gauge("ready", "Targets that are due and wait for a slot.", facts.ready)
    yield gauge("loaded", "Targets in memory.", facts.loaded)
    yield gauge("write_pending", "Targets that ran and are not written back yet.", facts.pending)
    yield gauge("targets", "Targets.", facts.targets, "state")
    yield gauge("newest_change", "The number of the newest change.", facts.newest)
    yield gauge("followers", "Followers of the event stream.", facts.followers)
    yield gauge("subscriber_position", "The last change that it has.", positions, "subscriber")
    yield gauge("subscriber_behind", "Changes that it does not have yet.", behind, "subscriber")
    yield gauge("store_trouble", "1 while the database is not to be had.", bool(facts.store_trouble))
    yield gauge("settings_problems", "Settings that cannot be read.", facts.settings_problems)


def _lines(facts: PollingFacts) -> Iterator[tuple[str, str]]:
    """Say what is polled, how it went, how punctual it is, and who was told."""
    yield "source", f"{facts.source} at {facts.host}" if facts.host else f"{facts.source}, not asked yet"
    yield "targets", describe_targets(facts)
    yield "runs", f"{facts.ran:,}, {facts.rate:,.1f} a second; {facts.failed:,} failed, {facts.missed:,} missed"
    late, what = facts.latest, "live runs" if ACCELERATED in facts.late else "runs"
    punctual = "" if late is None else f"{duration(late.p50)} at the median, 99 of 100 by {duration(late.p99)} at most"
    yield "late", f"{what} by {punctual}" if punctual else "no runs lately"
    followers = [f"{facts.followers:,} follow the stream"] if facts.followers else []
    behind = [f"{each.name} is {count(each.behind, 'change')} behind" for each in facts.subscribers if each.behind]
    told = ", ".join([f"{count(facts.changes, 'row')} changed", *followers, *behind])
    yield "changes", f"{told}; the newest is number {facts.newest:,}"


def describe_interval(seconds: float) -> str:
    """Say how long it is between two runs."""
    if seconds < 1:
        return f"{seconds * 1000:g} ms"
    return f"{seconds:g} s" if seconds < 120 else duration(seconds)


def describe_targets(facts: PollingFacts) -> str:
    """Say how many targets there are, and of what sort."""
    counts = facts.targets
    sorts = [f"{counts[what]:,} {what}" for what in ("failing", "paused", "gone") if counts[what]]
    return ", ".join([count(counts["all"], "target"), *sorts])


def _activity(facts: PollingFacts) -> Iterator[Activity]:
    """Count the runs of each kind, and say which are live."""
    live = {each.kind: each.interval for each in facts.accelerated}
    for kind, ran in list(facts.runs.items())[:MOST_KINDS]:
        said = f"live: every {describe_interval(live[kind])}" if kind in live else count(ran, "run")
        yield Activity(label=shorten(kind), value=ran, text=said, counts=True)


def _describe(change: ShortChange) -> str:
    if not change.table:
        return "everything was removed"
    fields = f": {', '.join(change.fields)}" if change.fields else ""
    return shorten(f"{change.op} {change.table} {change.key}{fields}")


def _doing(facts: PollingFacts, at: EngineStanding) -> str:
    if not at.process.running:
        return f"ended after {count(facts.ran, 'run')}"
    if facts.store_trouble:
        return "waiting for the database"
    if at.process.paused:
        why = "the disk has no room" if at.disk_trouble else "nothing is polled until somebody resumes it"
        return f"paused: {why}"
    return _polling(facts)


def _polling(facts: PollingFacts) -> str:
    if not facts.targets["all"]:
        return "looking for what to poll"
    polled = facts.targets["all"] - facts.targets["paused"]
    if not polled:
        return "all targets are paused"
    if not facts.accelerated:
        return f"polling {count(polled, 'target')}, none of them live"
    first, *others = facts.accelerated
    more = f", and {len(others)} more" if others else ""
    return f"{first.kind} {first.id[:SHORT]} is live: asked for every {duration(first.interval)}{more}"


def _troubles(facts: PollingFacts) -> Iterator[Trouble]:
    if facts.store_trouble:
        yield Trouble(Severity.ERROR, facts.store_trouble)
    if facts.discovery_trouble:
        # Our own guard: a name that turned out to be one of ours.
        hint = "; see --private" if facts.discovery_trouble.startswith(Code.REFUSED) else ""
        found = f"what there is to poll could not be found out: {facts.discovery_trouble}{hint}"
        yield Trouble(Severity.ERROR, found)
    yield from (Trouble(Severity.WARNING, each) for each in facts.problems)
    for each in facts.subscribers:
        if each.trouble:
            found = f"{each.name} is {count(each.behind, 'change')} behind: {each.trouble}"
            yield Trouble(Severity.WARNING, found)
