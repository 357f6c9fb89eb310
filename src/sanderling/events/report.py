"""What a consumer of events does, as the one report. Pure; `events/watch.py` takes the facts of a running system."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from sanderling.engine.host_report import EngineStanding
from sanderling.events.lately import Lately, Minute, ShortError
from sanderling.events.measures import MODES
from sanderling.events.modes import Modes
from sanderling.observe.metric import Metric, gauge
from sanderling.observe.report import (
    Activity,
    Event,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    largest,
    shorten,
)
from sanderling.stores.queue import Dead
from sanderling.words import count

LABELS = ("positive", "neutral", "negative")
MOST_CODES = 4


class DeadShown(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was given up."""

    key: str
    why: str
    at: float
    tries: int

    @classmethod
    def of(cls, dead: Dead) -> "DeadShown":
        """Without its body. The key is what it is replayed by, so it is whole."""
        return cls(key=dead.key, why=shorten(dead.why), at=dead.at, tries=dead.tries)


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, by what became of them."""

    received: int  # that were taken
    processed: int  # that are done
    duplicates: int  # of those that are done: their events were in the rows already
    reused: int  # batches that came under the event id of another, and have one of their own
    postponed: int  # that went back into the queue
    failed: int  # that were buried

    @property
    def active(self) -> int:
        """Messages in hand: they were taken, and nothing has become of them yet."""
        return self.received - self.processed - self.failed - self.postponed


class EventsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a consumer of events has. Counts are those of the process, without what did not occur."""

    messages: Messages
    batches: int  # that are in the rows
    posts: int
    errors: int  # items that are no posts
    odd: int  # batches about which something was noted: their size, as a rule
    lately: Lately  # a second
    categories: dict[str, int]  # of errors
    codes: dict[str, int]  # of errors
    sentiments: dict[str, int]  # of posts that were analysed
    skipped: dict[str, int]  # posts that were not, by the reason
    platforms: dict[str, int]  # items
    minutes: tuple[Minute, ...]  # the last hour, the oldest first
    queue: dict[str, int] | None  # messages by state: ready, taken, delayed, dead; None if it cannot be asked
    connected: bool = True  # whether the queue answers
    pool: int | None = None  # connections to the database; None if there is no such thing
    modes: Modes
    outbox: int | None  # messages that wait to go out; None if the database cannot be asked
    sent: dict[str, int]  # messages that went out, by routing key
    recent: tuple[ShortError, ...]  # the last errors, the oldest first
    trouble: str = ""  # what is not to be had, while it is not
    modes_trouble: str = ""  # why the file of modes is not heeded, if it is not
    outbox_trouble: str = ""  # why something does not go out, while it does not
    dead: tuple[DeadShown, ...] | None = None  # the first ones; None if the queue cannot be asked from here
    elsewhere: str = ""  # why not
    series: tuple[str, ...] = ("errors", "posts")

    @property
    def error_rate(self) -> float:
        """The share of errors among all items, from 0 to 1."""
        return self.errors / max(1, self.posts + self.errors)

    def rows(self) -> str:
        """Say what is in the rows."""
        batches = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return f"{batches}: {count(self.posts, 'post')}, {count(self.errors, 'error')}"


def report_events(facts: EventsFacts, at: EngineStanding, measured: Iterable[Metric] = ()) -> Report[EventsFacts]:
    """Make the report of a consumer from what is known of it; its hosts are the services that batches pass."""
    messages, queue = facts.messages, facts.queue
    waiting = 0 if queue is None else queue["ready"] + queue["delayed"]
    return Report(
        system="events",
        doing=_doing(facts, at),
        process=at.process,
        troubles=(*at.disk_troubles, *_troubles(facts)),
        work=WorkCounts(
            asked=messages.received,
            refused=messages.postponed,
            kept=facts.batches,
            failed=messages.failed,
            waiting=waiting,
        ),
        hosts=at.hosts,
        hosts_known=len(at.hosts),
        classes=at.classes,
        counters={"errors": facts.errors, "posts": facts.posts},
        numbers=(
            ("batches", f"{facts.batches:,}"),
            ("posts", f"{facts.posts:,}"),
            ("errors", f"{facts.errors:,} ({facts.error_rate:.1%})"),
            ("items a second", f"{facts.lately.items:,.1f}"),
            ("waiting", "unknown" if queue is None else f"{waiting:,}"),
            ("given up", "unknown" if queue is None else f"{queue['dead']:,}"),
            ("outbox", "unknown" if facts.outbox is None else f"{facts.outbox:,}"),
            ("seen before", f"{messages.duplicates:,}"),
            *((("under the id of another", f"{messages.reused:,}"),) if messages.reused else ()),
        ),
        lines=tuple(_lines(facts)),
        activity=(
            *(
                Activity(label=label, value=number, text=f"{number:,}", counts=True)
                for label, number in _meant(facts).items()
            ),
            Activity(label="errors", value=facts.errors, text=f"{facts.errors:,}", counts=True),
        ),
        events=tuple(Event(each.at, _describe(each)) for each in facts.recent),
        metrics=(*measured, *_metrics(facts)),
        facts=facts,
    )


def _metrics(facts: EventsFacts) -> Iterator[Metric]:
    switches = {name: getattr(facts.modes, name) for name in MODES}
    yield gauge("rabbitmq_connection_status", "1 if the queue answers.", facts.connected)
    yield gauge("database_connection_pool_size", "Connections to the database.", facts.pool)
    yield gauge("queue", "Messages in the queue.", facts.queue or {}, "state")
    yield gauge("outbox_waiting", "Messages that wait to go out.", facts.outbox)
    yield gauge("mode", "1 if messages of that format are processed.", switches, "mode")
    yield gauge("canary_share", "The share of new messages that is processed.", facts.modes.canary)
    yield gauge("trouble", "1 while database or object store are not to be had.", bool(facts.trouble))


def _meant(facts: EventsFacts) -> dict[str, int]:
    """Posts by how they were meant."""
    return {label: facts.sentiments.get(label.upper(), 0) for label in LABELS}


def _lines(facts: EventsFacts) -> Iterator[tuple[str, str]]:
    """Say what came of messages, what failed and why, and what went out."""
    messages, queue = facts.messages, facts.queue or {}
    yield "rows", f"{facts.rows()}, written by this run"
    yield "pace", f"{facts.lately.items:,.0f} items a second, in {facts.lately.batches:,.1f} batches"
    waits = ((queue.get("taken"), "in hand"), (queue.get("delayed"), "for later"), (queue.get("dead"), "given up"))
    told = [f"{queue.get('ready', 0):,} waiting", *(f"{number:,} {what}" for number, what in waits if number)]
    yield "queue", ", ".join(told) if queue else "does not say how many messages wait"
    became = (
        (messages.duplicates, "seen before"),
        (messages.reused, "under the id of another"),
        (messages.postponed, "put off"),
        (messages.failed, "given up"),
    )
    done = [f"{messages.processed:,} done", *(f"{number:,} {what}" for number, what in became if number)]
    yield "messages", ", ".join(done)
    skipped = sum(facts.skipped.values())
    meant = [f"{number:,} {label}" for label, number in _meant(facts).items()]
    yield "sentiment", ", ".join([*meant, f"{skipped:,} not read"] if skipped else meant)
    codes = dict(list(facts.codes.items())[:MOST_CODES])
    errors = f"{facts.error_rate:.1%}: {_listed(facts.categories)}; {_listed(codes)}"
    yield "errors", errors if facts.errors else "none"
    yield "platforms", _listed(facts.platforms) or "none yet"
    on = [name for name in MODES if getattr(facts.modes, name)]
    share = f", of the new ones {facts.modes.canary:.0%}" if facts.modes.new and facts.modes.canary < 1 else ""
    yield "modes", f"{', '.join(on) or 'none'}{share}"
    outbox = f"; {count(facts.outbox, 'message')} in the outbox" if facts.outbox else ""
    yield "sent", f"{_listed(facts.sent) or 'nothing yet'}{outbox}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in largest(counts).items())


def _describe(error: ShortError) -> str:
    return shorten(f"{error.platform or 'unknown'} {error.content_id or '?'}: {error.code}: {error.message}")


def _doing(facts: EventsFacts, at: EngineStanding) -> str:
    if not at.process.running:
        return f"ended with {count(facts.posts, 'post')} and {count(facts.errors, 'error')}"
    if facts.trouble:
        return "waiting for what is not to be had"
    if at.process.paused:
        return f"paused: {'the disk has no room' if at.disk_trouble else 'somebody wants it to rest'}"
    return _consuming(facts)


def _consuming(facts: EventsFacts) -> str:
    if facts.queue is None:
        return "waiting for the queue"
    if not (facts.modes.new or facts.modes.legacy or facts.modes.inline):
        return "all formats are switched off"
    if active := facts.messages.active:
        return f"at {active} batch{'es' * (active > 1)}"
    return "waiting for messages"


def _troubles(facts: EventsFacts) -> Iterator[Trouble]:
    if facts.trouble:
        yield Trouble(Severity.ERROR, shorten(facts.trouble))
    if facts.queue is None:
        yield Trouble(Severity.ERROR, "the queue does not answer")
    elif facts.queue["dead"]:
        yield Trouble(Severity.ERROR, f"{count(facts.queue['dead'], 'message')} given up")
    if facts.modes_trouble:
        yield Trouble(Severity.WARNING, shorten(f"the modes are as before: {facts.modes_trouble}"))
    if facts.outbox_trouble:
        yield Trouble(Severity.WARNING, shorten(facts.outbox_trouble))
