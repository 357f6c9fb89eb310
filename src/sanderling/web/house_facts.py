"""A system as the dashboard shows it: what its status says now, and what became of that over time. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from sanderling.events.status import EventsStatus
from sanderling.pages.status import Status as PagesStatus
from sanderling.polling.status import PollingStatus
from sanderling.repos.status import RepoStatus
from sanderling.sequence.status import SequenceStatus
from sanderling.web.house import UNKNOWN, UNSOUND, AnyStatus, Found, Said
from sanderling.web.house_crawls import pages_told, repos_told
from sanderling.web.house_events import DeadShown, EventsFacts, events_told
from sanderling.web.house_history import Rates, Ring, Run
from sanderling.web.house_polling import PollingFacts, polling_told
from sanderling.web.house_sequence import sequence_told
from sanderling.web.house_told import (
    ALLOWED,
    ASKED,
    FAILED,
    KEPT,
    MOST_NUMBERS,
    WAITING,
    Told,
    short,
    shorts,
    told_counters,
)
from sanderling.web.polling_views import SettingView
from sanderling.words import duration

SERIES = (ASKED, KEPT, FAILED, WAITING)  # of every system


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """What moves, a second over the last few; and what waits now."""

    asked: float = 0.0
    allowed: float = 0.0
    waiting: int = 0
    kept: float = 0.0
    failed: float = 0.0


class Nothing(msgspec.Struct, frozen=True):
    """The facts of a system of which nothing is known."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """A system as it is shown. Times are Unix seconds, `age` seconds."""

    name: str
    system: str
    running: bool
    paused: bool
    age: float
    pid: int
    started: float
    doing: str
    troubles: tuple[str, ...]
    flow: Flow
    numbers: tuple[tuple[str, str], ...]
    facts: msgspec.Struct
    points: dict[str, float | None] | UnsetType = UNSET
    history: dict[str, object] | UnsetType = UNSET


class Extra(NamedTuple):
    """What no status says, and is asked for now and then."""

    settings: tuple[SettingView, ...] | None = None
    dead: tuple[DeadShown, ...] | None = None
    elsewhere: str = ""  # why it cannot be asked for


NO_EXTRA = Extra()

_TOLD: Mapping[type, Callable[[Any], Told]] = {
    PagesStatus: pages_told,
    RepoStatus: repos_told,
    SequenceStatus: sequence_told,
    PollingStatus: polling_told,
    EventsStatus: events_told,
}


def told_of(status: AnyStatus) -> Told:
    """What a status comes to for people."""
    return _TOLD[type(status)](status)


class Track:
    """A system over time."""

    def __init__(self) -> None:
        self._system = ""
        self._rates = Rates()
        self._ring = Ring(SERIES)

    def take(self, found: Found, now: float, wall: float, extra: Extra = NO_EXTRA) -> System:
        """How it stands now: `now` is of a clock that only goes forward. Never raises for what a status says."""
        if found.status is None or found.said is None:
            return self._unknown(found, now, wall)
        try:
            system = self._known(found, found.said, told_of(found.status), now, wall, extra)
            msgspec.json.encode(system)  # what cannot be sent is not sound either
        except UNSOUND as error:
            return self._unknown(found, now, wall, f"the status makes no sense: {type(error).__name__}: {error}")
        return system

    def history(self, wall: float) -> dict[str, object]:
        """The last ten minutes."""
        return self._ring.history(wall)

    def _known(self, found: Found, said: Said, told: Told, now: float, wall: float, extra: Extra) -> System:
        if found.system != self._system:
            self._system, self._rates = found.system, Rates()
            self._ring = Ring((*SERIES, *told.counters, *told.gauges))
        running = found.running(wall)
        self._rates.take(Run(said.pid, said.started), said.wall, told_counters(told))
        self._ring.put(now, self._points(told) if running else {})
        paused = next((each for each in (told.paused, said.paused) if each is not None), found.control.paused)
        silent = said.running and not running
        return System(
            name=found.name,
            system=found.system,
            running=running,
            paused=paused,
            age=round(found.age(wall), 1),
            pid=said.pid,
            started=said.started,
            doing=short(f"silent; it was: {told.doing}" if silent else told.doing),
            troubles=shorts((*_silence(found, wall, silent=silent), *told.troubles)),
            flow=self._flow(told) if running else Flow(waiting=told.work.waiting),
            numbers=told.numbers[:MOST_NUMBERS],
            facts=_facts(told.facts, extra),
            points=self._ring.newest(),
        )

    def _points(self, told: Told) -> dict[str, float | None]:
        rates = {name: self._rates.rate(name) for name in (ASKED, KEPT, FAILED, *told.counters)}
        return {**rates, WAITING: told.work.waiting, **told.gauges}

    def _flow(self, told: Told) -> Flow:
        asked, allowed, kept, failed = (self._rates.rate(name) or 0.0 for name in (ASKED, ALLOWED, KEPT, FAILED))
        return Flow(asked=asked, allowed=allowed, waiting=told.work.waiting, kept=kept, failed=failed)

    def _unknown(self, found: Found, now: float, wall: float, trouble: str = "") -> System:
        """One of which nothing can be said but that it is there."""
        self._ring.put(now, {})
        said = found.said
        return System(
            name=found.name,
            system=UNKNOWN,  # whatever it says that it is: there are no facts of it
            running=found.running(wall),
            paused=found.control.paused,
            age=round(found.age(wall), 1),
            pid=0 if said is None else said.pid,
            started=0.0 if said is None else said.started,
            doing="its status cannot be read",
            troubles=shorts((trouble or found.trouble, *_silence(found, wall, silent=False))),
            flow=Flow(),
            numbers=(),
            facts=Nothing(),
            points=self._ring.newest(),
        )


def _facts(facts: msgspec.Struct, extra: Extra) -> msgspec.Struct:
    match facts:
        case PollingFacts():
            return msgspec.structs.replace(facts, settings=extra.settings, elsewhere=extra.elsewhere)
        case EventsFacts():
            return msgspec.structs.replace(facts, dead=extra.dead, elsewhere=extra.elsewhere)
    return facts


def _silence(found: Found, wall: float, *, silent: bool) -> tuple[str, ...]:
    """What is wrong with what it says, or with what it is told."""
    troubles = []
    if silent:
        troubles.append(f"it has said nothing for {duration(found.age(wall))}, and did not say that it ended")
    if found.control_trouble:
        troubles.append(f"what people want of it is not heeded: {found.control_trouble}")
    return tuple(troubles)
