"""How a running system stands: what it counted, and what its queue and its database say when they are asked."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from sanderling.clock import Clock
from sanderling.engine.host_report import EngineStanding, this_process
from sanderling.events.measures import ERROR, SUCCESS
from sanderling.events.modes import Modes, write_modes
from sanderling.events.report import EventsFacts, Messages, report_events
from sanderling.events.stations import Station
from sanderling.events.system import EventsSystem
from sanderling.observe import logs
from sanderling.observe.report import AtFault, HostCondition, HostReport, Report, largest, shorten
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.objects import ObjectError
from sanderling.stores.queue import Depth, QueueError

EVERY = 1.0  # seconds between looks
PATIENCE = 5.0  # seconds that an answer may take, to say how it stands
OK, SILENT = "ok", f"no answer within {PATIENCE:g} s"

T = TypeVar("T")

log = logs.get(__name__)


class EventsWatch:
    """Looks now and then; whoever wants to know how it stands need not wait."""

    def __init__(self, system: EventsSystem, clock: Clock) -> None:
        self.system = system
        self._clock = clock
        self._started = clock.wall()
        self._queue: Depth | None = None
        self._outbox: int | None = None
        self._queue_away = ""  # why, while it is

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(EVERY)

    async def look(self) -> None:
        """Ask the queue and the database; what does not answer is not known."""
        at = self.system.stations
        self._queue, why = await _ask(at.queue.depth)
        self.system.measures.connected(ok=self._queue is not None)
        # Nobody else says that a server is away: there is just nothing to take from it.
        if why and not self._queue_away:
            log.warning("queue_away", why=why)
        elif self._queue_away and not why:
            log.info("queue_back")
        self._queue_away = why
        self._outbox, _ = await _ask(at.store.depth)

    def report(self, *, running: bool = True) -> Report[EventsFacts]:
        """How it stands."""
        system, wall = self.system, self._clock.wall()
        wanted, facts = system.wanted, self._facts()
        at = EngineStanding(
            process=this_process(wall - self._started, wall, running=running, paused=wanted.paused),
            hosts=tuple(map(self._station, system.hosts.values())),
            classes=system.engine.given_by_name(),
            disk_trouble=wanted.disk_trouble,
        )
        return report_events(facts, at, system.measures.metrics())

    def _facts(self) -> EventsFacts:
        system, measures, modes = self.system, self.system.measures, self.system.stations.modes
        counted, items = measures.counted, _by(measures.items, 1)
        return EventsFacts(
            messages=Messages(
                received=counted["received"],
                processed=measures.done.total(),
                duplicates=counted["duplicate"],
                reused=counted["reused"],
                postponed=counted["postponed"],
                failed=counted["failed"],
            ),
            batches=measures.batches.total(),
            posts=items.get(SUCCESS, 0),
            errors=items.get(ERROR, 0),
            odd=measures.noted.total(),
            lately=measures.lately,
            categories=_by(measures.categories),
            codes=_by(measures.codes),
            sentiments=_by(measures.sentiments),
            skipped=largest(+measures.skipped),
            platforms=_by(measures.items),
            minutes=measures.minutes,
            queue=None if self._queue is None else self._queue._asdict(),
            modes=modes.now,
            # A broker that is away gives no messages, which is no error; but then it does not say how many it has.
            connected=measures.is_connected and self._queue is not None,
            pool=system.stations.store.connections,
            outbox=self._outbox,
            sent=largest(+measures.outgoing),
            recent=measures.recent,
            trouble=system.trouble,
            modes_trouble=modes.trouble,
            outbox_trouble=system.sender.tally.trouble,
        )

    def _station(self, station: Station) -> HostReport:
        """Report a service as a host. That a service which is up fails is the message's fault, as far as is known."""
        down, trouble = self.system.is_down(station), "" if station.trouble is None else station.trouble.detail
        return HostReport(
            host=station.name,
            state=HostCondition.FAILING if down else HostCondition.GOING,
            waiting=len(station.ready) + len(station.again),
            in_flight=station.inflight,
            trouble=shorten(trouble),
            at_fault=(AtFault.HOST if down else AtFault.ITEMS) if trouble else None,
        )


def _by(counts: Mapping[tuple[str, str], int], label: int = 0) -> dict[str, int]:
    """The same counts by one of their labels alone, without what did not occur."""
    together: Counter[str] = Counter()
    for labels, number in counts.items():
        together[labels[label]] += number
    return largest(+together)


class EventsControl:
    """What people may ask of a running system, and change about it."""

    def __init__(self, watch: EventsWatch) -> None:
        self._watch = watch

    async def health(self) -> dict[str, str]:
        """Of each thing that is needed: "ok", or why not."""
        at = self._watch.system.stations
        asked: dict[str, Callable[[], Awaitable[object]]] = {
            "database": at.store.ping,
            "objects": at.objects.ping,
            "queue": at.queue.depth,
        }
        return {name: (await _ask(ask))[1] or OK for name, ask in asked.items()}

    async def status(self) -> Report[EventsFacts]:
        """How it stands."""
        return self._watch.report()

    async def modes(self) -> Modes:
        """Those in force."""
        modes = self._watch.system.stations.modes
        modes.look()
        return modes.now

    async def set_modes(self, modes: Modes) -> None:
        """Make these the modes from now on. Raises FolderError."""
        live = self._watch.system.stations.modes
        await asyncio.to_thread(write_modes, live.folder, modes)
        live.look()


async def _ask(ask: Callable[[], Awaitable[T]]) -> tuple[T | None, str]:
    """The answer, or why there is none."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await ask(), ""
    except TimeoutError:
        return None, SILENT
    except (QueueError, AnalyticsError, ObjectError) as error:
        return None, str(error) or type(error).__name__
