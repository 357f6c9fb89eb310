"""How `events` stands, for whoever looks: the screen, the dashboard, and other processes through status.json."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from sanderling.events.lately import Lately, Minute, ShortError
from sanderling.events.measures import ERROR, MINUTES, MOST_RECENT, SUCCESS, Measures
from sanderling.events.modes import Modes
from sanderling.observe.metrics_events import EventsCounts, EventsReadings
from sanderling.stores.process_identity import ProcessIdentity
from sanderling.stores.queue import Depth
from sanderling.stores.status_file import is_running, read_statuses

# What is added up where several processes consume in one folder, by how it is.
SUMS = (
    *("received", "processed", "failed", "duplicates", "reused", "postponed", "active", "batches", "posts", "errors"),
    "odd",
)
TABLES = ("categories", "codes", "sentiments", "skipped", "sent")
TEXTS = ("modes_trouble", "trouble", "outbox_trouble", "disk_trouble")


class StationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A service that batches pass: the database, read and written, and the object store."""

    name: str
    down: bool  # whether only probes are sent to it
    waiting: int  # messages in hand that wait for it
    in_flight: int
    trouble: str = ""  # what it said last, if that was no good answer


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is not counted but asked for, or known to the system alone. Times are Unix seconds."""

    running: bool = True
    pid: int
    wall: float
    started: float
    modes: Modes
    modes_trouble: str = ""  # why the file of modes is not heeded, if it is not
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    trouble: str = ""  # what is not to be had, while it is not
    queue: Depth | None  # None if it cannot be asked
    outbox: int | None  # messages that wait to go out; None if the database cannot be asked
    outbox_trouble: str = ""  # why something does not go out, while it does not
    pool: int | None = None  # connections to the database; None if there is no such thing
    stations: tuple[StationStatus, ...] = ()
    classes: dict[str, int] = {}  # questions to stations, by class


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Messages by what they wait for."""

    ready: int
    taken: int
    delayed: int
    dead: int


class PlatformStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What came from one platform."""

    posts: int
    errors: int
    success_rate: float  # percent of its last items


class ConsumerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One of several processes that consume in a folder."""

    pid: int
    running: bool  # as far as can be told from the others
    started: float
    wall: float
    batches: int
    posts: int
    errors: int
    items_per_second: float
    doing: str


class EventsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands. Counts are those of this process; times are Unix seconds."""

    running: bool  # as far as it could say: one that was killed did not
    pid: int
    wall: float
    started: float
    received: int  # messages that were taken
    processed: int  # messages that are done
    failed: int  # messages that were buried
    duplicates: int  # of those that are done: their events were in the rows already
    postponed: int  # messages that went back into the queue
    active: int  # messages in hand
    batches: int  # that are in the rows
    posts: int
    errors: int  # items that are no posts
    lately: Lately  # a second
    platforms: dict[str, PlatformStatus]  # those that something came from
    categories: dict[str, int]  # of errors; without those that did not occur, as all below
    codes: dict[str, int]
    sentiments: dict[str, int]  # of posts that were analysed
    skipped: dict[str, int]  # posts that were not, by the reason
    minutes: tuple[Minute, ...]  # the last hour, the oldest first
    modes: Modes
    modes_trouble: str  # why the file of modes is not heeded, if it is not
    trouble: str  # what is not to be had, while it is not; empty otherwise
    queue: QueueStatus | None  # None if it cannot be asked
    outbox: int | None  # messages that wait to go out; None if the database cannot be asked
    sent: dict[str, int]  # messages that went out, by routing key
    recent: tuple[ShortError, ...]  # the last errors, the oldest first
    outbox_trouble: str = ""  # why something does not go out, while it does not
    odd: int = 0  # batches about which something was noted: their size, as a rule
    consumers: tuple[ConsumerStatus, ...] = ()  # each process, where this is the sum of several
    reused: int = 0  # batches that came under the event id of another, and have one of their own
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    stations: tuple[StationStatus, ...] = ()
    classes: dict[str, int] = {}  # questions to stations, by class
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine
    system: str = "events"

    @property
    def seconds(self) -> float:
        """How long this process has run so far."""
        return self.wall - self.started

    @property
    def items(self) -> int:
        """Posts and errors."""
        return self.posts + self.errors

    @property
    def error_rate(self) -> float:
        """The share of errors among all items, from 0 to 1."""
        return self.errors / self.items if self.items else 0.0

    @property
    def doing(self) -> str:
        """What it is at, in a few words."""
        if self.trouble:
            return "waiting for what is not to be had"
        if self.paused:
            return f"paused: {'the disk has no room' if self.disk_trouble else 'somebody wants it to rest'}"
        if self.queue is None:
            return "waiting for the queue"
        if not (self.modes.new or self.modes.legacy or self.modes.inline):
            return "all formats are switched off"
        if self.active:
            return f"at {self.active} batch{'es' * (self.active > 1)}"
        return "waiting for messages"


def status_of(measures: Measures, standing: Standing) -> EventsStatus:
    """How it stands now."""
    counts, queue = measures.counts(), standing.queue
    return EventsStatus(
        running=standing.running,
        pid=standing.pid,
        wall=standing.wall,
        started=standing.started,
        received=counts.received,
        processed=sum(counts.processed.values()),
        failed=counts.failed,
        duplicates=counts.duplicates,
        reused=counts.reused,
        postponed=counts.postponed,
        active=counts.active,
        batches=sum(counts.batches.values()),
        posts=sum(number for (_, status), number in counts.items.items() if status == SUCCESS),
        errors=sum(number for (_, status), number in counts.items.items() if status == ERROR),
        lately=measures.lately,
        platforms=_platforms(counts),
        categories=_by_first(counts.categories),
        codes=_by_first(counts.codes),
        sentiments=_by_first(counts.sentiments),
        skipped=_occurred(counts.skipped),
        minutes=measures.minutes,
        modes=standing.modes,
        modes_trouble=standing.modes_trouble,
        trouble=standing.trouble,
        queue=None if queue is None else QueueStatus(**queue._asdict()),
        outbox=standing.outbox,
        outbox_trouble=standing.outbox_trouble,
        sent=_occurred(counts.sent),
        recent=measures.recent,
        odd=sum(counts.odd.values()),
        paused=standing.paused,
        disk_trouble=standing.disk_trouble,
        stations=standing.stations,
        classes=standing.classes,
    )


def readings_of(measures: Measures, standing: Standing) -> EventsReadings:
    """The same for Prometheus."""
    modes, queue = standing.modes, standing.queue
    return EventsReadings(
        counts=measures.counts(),
        modes={"new": modes.new, "legacy": modes.legacy, "inline": modes.inline},
        canary=modes.canary,
        queue=None if queue is None else queue._asdict(),
        outbox=standing.outbox,
        pool=standing.pool,
        trouble=bool(standing.trouble),
    )


def _platforms(counts: EventsCounts) -> dict[str, PlatformStatus]:
    return {
        platform: PlatformStatus(
            posts=counts.items[platform, SUCCESS], errors=counts.items[platform, ERROR], success_rate=rate
        )
        for platform, rate in counts.success_rate.items()
    }


def _by_first(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """The same counts by their first label alone."""
    together: Counter[str] = Counter()
    for (first, _), number in counts.items():
        together[first] += number
    return _occurred(together)


def _occurred(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def published(folder: Path) -> EventsStatus | None:
    """The status of all that consume in this folder; None if there is none that can be read."""
    found = read_statuses(folder, EventsStatus)
    return together(found) if found else None


def together(found: Sequence[EventsStatus]) -> EventsStatus:
    """One status for several processes: the sum of those that run, or, if none does, of those that have ended."""
    # By the time of the newest: whoever asks may have no clock, and knows from that one whether any of them runs.
    newest = max(each.wall for each in found)
    living = [each for each in found if is_running(each, newest)]
    if len(found) == 1:
        return found[0]
    counted = living or found
    last = max(counted, key=lambda each: each.wall)
    sums = {name: sum(getattr(each, name) for each in counted) for name in SUMS}
    tables = {name: _added(getattr(each, name) for each in counted) for name in TABLES}
    said = {name: "; ".join(dict.fromkeys(filter(None, (getattr(each, name) for each in counted)))) for name in TEXTS}
    return msgspec.structs.replace(
        last,
        running=bool(living),
        pid=counted[0].pid,
        process=counted[0].process,
        started=min(each.started for each in counted),
        paused=all(each.paused for each in counted),
        queue=next((each.queue for each in (last, *counted) if each.queue is not None), None),
        outbox=next((each.outbox for each in (last, *counted) if each.outbox is not None), None),
        lately=Lately(**{name: sum(getattr(each.lately, name) for each in counted) for name in _names(Lately)}),
        platforms=_platforms_together(counted),
        minutes=_minutes_together(counted),
        recent=_recent_together(counted),
        consumers=tuple(_consumer(each, running=each in living) for each in found),
        **sums,
        **tables,
        **said,
    )


def _consumer(status: EventsStatus, *, running: bool) -> ConsumerStatus:
    return ConsumerStatus(
        pid=status.pid,
        running=running,
        started=status.started,
        wall=status.wall,
        batches=status.batches,
        posts=status.posts,
        errors=status.errors,
        items_per_second=status.lately.items if running else 0.0,
        doing=status.doing,
    )


def _names(of: type[msgspec.Struct]) -> tuple[str, ...]:
    return of.__struct_fields__


def _added(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in several:
        total.update(each)
    return dict(total)


def _platforms_together(several: Sequence[EventsStatus]) -> dict[str, PlatformStatus]:
    """Posts and errors are sums; of the rates, the mean by items."""
    found: dict[str, list[PlatformStatus]] = {}
    for status in several:
        for name, each in status.platforms.items():
            found.setdefault(name, []).append(each)
    return {name: _platform_together(each) for name, each in found.items()}


def _platform_together(several: Sequence[PlatformStatus]) -> PlatformStatus:
    posts, errors = sum(each.posts for each in several), sum(each.errors for each in several)
    weighted = sum(each.success_rate * (each.posts + each.errors) for each in several)
    rate = weighted / (posts + errors) if posts + errors else several[0].success_rate
    return PlatformStatus(posts=posts, errors=errors, success_rate=rate)


def _recent_together(several: Sequence[EventsStatus]) -> tuple[ShortError, ...]:
    found = sorted((error for each in several for error in each.recent), key=lambda error: error.at)
    return tuple(found[-MOST_RECENT:])


def _minutes_together(several: Sequence[EventsStatus]) -> tuple[Minute, ...]:
    """By whole minutes: those of processes do not begin at the same second."""
    found: dict[float, Counter[str]] = {}
    for minute in (minute for status in several for minute in status.minutes):
        counts = {name: getattr(minute, name) for name in _names(Minute) if name != "at"}
        found.setdefault(minute.at // 60 * 60, Counter()).update(counts)
    return tuple(Minute(at=at, **found[at]) for at in sorted(found)[-MINUTES:])
