"""A system as the dashboard shows it: what its report says now, and what became of that over time. Pure."""

from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from sanderling.events.report import DeadShown, EventsFacts
from sanderling.observe.rates import Rates, Run
from sanderling.observe.report import (
    ALLOWED,
    ASKED,
    FAILED,
    KEPT,
    MOST_LISTED,
    MOST_NUMBERS,
    WAITING,
    AnyReport,
    Event,
    Severity,
    Trouble,
    bound_troubles,
    shorten,
)
from sanderling.polling.report import PollingFacts
from sanderling.web.house import UNKNOWN, UNSOUND, Found
from sanderling.web.house_history import Ring
from sanderling.web.polling_types import SettingView
from sanderling.words import duration

MOST_SENT = 1_000_000  # bytes of one system, every second to everyone who looks
SERIES = (ASKED, KEPT, FAILED, WAITING)  # of every system
# Figures of the moment, which say nothing of a system that does not run.
OF_NOW = frozenset(
    {"time left", "in flight", "told to wait", "items a second", "runs a second", "records a second", "workers", "live"}
    | {"late (p99)", "lag", "followers", "consumers"}
)


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """What moves, a second over the last few; and what waits now."""

    asked: float = 0.0
    allowed: float = 0.0
    waiting: int = 0
    kept: float = 0.0
    failed: float = 0.0


class NoFacts(msgspec.Struct, frozen=True):
    """The facts of a system of which nothing is known."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """A system as it is shown. Times are Unix seconds, `age` seconds."""

    name: str
    system: str
    running: bool
    paused: bool
    ending: str = ""  # what the process was told: stop, or drain
    age: float
    pid: int
    started: float
    ended: float = 0.0  # when it was last heard of, if it does not run
    silent: bool = False  # whether it ended without a word
    doing: str
    troubles: tuple[str, ...]  # what is wrong, the worst first
    severities: tuple[Severity, ...] = ()  # how bad each of them is
    time_left: float | None = None  # seconds; None if it is unknown
    flow: Flow
    set_aside: int = 0  # of what waits, the items of hosts that do not answer
    numbers: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, str], ...] = ()
    events: tuple[Event, ...] = ()  # what happened lately, the oldest first
    facts: msgspec.Struct
    points: dict[str, float | None] | UnsetType = UNSET
    history: dict[str, object] | UnsetType = UNSET


class PollingView(PollingFacts, frozen=True, kw_only=True):
    """Polling, and what can be set."""

    settings: tuple[SettingView, ...] | None = None  # None if the database cannot be asked from here
    elsewhere: str = ""  # why not


class Extra(NamedTuple):
    """What no report says, and is asked for now and then."""

    settings: tuple[SettingView, ...] | None = None
    dead: tuple[DeadShown, ...] | None = None
    elsewhere: str = ""  # why it cannot be asked for


NO_EXTRA = Extra()


class Track:
    """A system over time."""

    def __init__(self) -> None:
        self._system = ""
        self._rates = Rates()
        self._ring = Ring(SERIES)

    def take(self, found: Found, now: float, wall: float, extra: Extra = NO_EXTRA) -> System:
        """How it stands now: `now` is of a clock that only goes forward. Never raises for what a report says."""
        if found.report is None:
            return self._unknown(found, now, wall)
        try:
            system = self._known(found, found.report, now, wall, extra)
            if (sent := len(msgspec.json.encode(system))) > MOST_SENT:  # which raises for what cannot be sent at all
                raise ValueError(f"it has {sent:,} bytes without its hosts, expected at most {MOST_SENT:,}")
        except UNSOUND as error:
            return self._unknown(found, now, wall, f"the report makes no sense: {type(error).__name__}: {error}")
        return system

    def history(self, wall: float) -> dict[str, object]:
        """The last ten minutes."""
        return self._ring.history(wall)

    def _known(self, found: Found, report: AnyReport, now: float, wall: float, extra: Extra) -> System:
        said = report.process
        if found.system != self._system:
            self._system, self._rates = found.system, Rates()
            self._ring = Ring((*SERIES, *report.counters, *report.gauges))
        running = found.running(wall)
        self._rates.take(Run(said.pid, said.started), said.wall, report.totals())
        self._ring.put(now, self._points(report) if running else {})
        silent = said.running and not running
        shown = (each for each in report.troubles if each.severity is not Severity.INFO)
        wrong = bound_troubles((*_silence(found, wall, silent=silent), *shown))
        return System(
            name=found.name,
            system=found.system,
            running=running,
            paused=report.process.paused,
            ending="" if silent else found.control.ending,
            age=round(found.age(wall), 1),
            pid=said.pid,
            started=said.started,
            ended=0.0 if running else said.wall,
            silent=silent,
            doing=shorten(f"silent; it was: {report.doing}" if silent else report.doing),
            troubles=tuple(each.text for each in wrong),
            severities=tuple(each.severity for each in wrong),
            time_left=report.time_left,
            flow=self._flow(report) if running else Flow(waiting=report.work.waiting),
            set_aside=report.set_aside,
            numbers=tuple(each for each in report.numbers if running or each[0] not in OF_NOW)[:MOST_NUMBERS],
            lines=tuple((shorten(label), shorten(text)) for label, text in report.lines),
            events=report.events[-MOST_LISTED:],
            facts=_facts(report.facts, extra),
            points=self._ring.newest(),
        )

    def _points(self, report: AnyReport) -> dict[str, float | None]:
        rates = {name: self._rates.rate(name) for name in (ASKED, KEPT, FAILED, *report.counters)}
        return {**rates, WAITING: report.work.waiting, **report.gauges}

    def _flow(self, report: AnyReport) -> Flow:
        asked, allowed, kept, failed = (self._rates.rate(name) or 0.0 for name in (ASKED, ALLOWED, KEPT, FAILED))
        return Flow(asked=asked, allowed=allowed, waiting=report.work.waiting, kept=kept, failed=failed)

    def _unknown(self, found: Found, now: float, wall: float, trouble: str = "") -> System:
        """One of which nothing can be said but that it is there."""
        self._ring.put(now, {})
        said = found.process
        unread = Trouble(Severity.ERROR, trouble or found.trouble)
        wrong = bound_troubles((unread, *_silence(found, wall, silent=False)))
        return System(
            name=found.name,
            system=UNKNOWN,  # whatever it says that it is: there are no facts of it
            running=found.running(wall),
            paused=found.control.paused,
            age=round(found.age(wall), 1),
            pid=0 if said is None else said.pid,
            started=0.0 if said is None else said.started,
            doing="its status cannot be read",
            troubles=tuple(each.text for each in wrong),
            severities=tuple(each.severity for each in wrong),
            flow=Flow(),
            numbers=(),
            facts=NoFacts(),
            points=self._ring.newest(),
        )


def _facts(facts: msgspec.Struct, extra: Extra) -> msgspec.Struct:
    match facts:
        case PollingFacts():
            shown = {name: getattr(facts, name) for name in facts.__struct_fields__}
            return PollingView(**shown, settings=extra.settings, elsewhere=extra.elsewhere)
        case EventsFacts():
            return msgspec.structs.replace(facts, dead=extra.dead, elsewhere=extra.elsewhere)
    return facts


def _silence(found: Found, wall: float, *, silent: bool) -> tuple[Trouble, ...]:
    """What is wrong with what it says, or with what people want of it."""
    troubles = []
    if silent:
        said = f"it has said nothing for {duration(found.age(wall))}, and did not say that it ended"
        troubles.append(Trouble(Severity.ERROR, said))
    if found.control_trouble:
        troubles.append(Trouble(Severity.ERROR, f"what people want of it is not heeded: {found.control_trouble}"))
    return tuple(troubles)
