"""How a running system stands: what it counted, and what its queue and its database say when they are asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sanderling.clock import Clock
from sanderling.events.modes import Modes, write_modes
from sanderling.events.stations import Station
from sanderling.events.status import EventsStatus, Standing, StationStatus, readings_of, status_of
from sanderling.events.system import EventsSystem
from sanderling.observe import logs
from sanderling.observe.metrics_events import EventsReadings
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

    def __init__(self, system: EventsSystem, clock: Clock, pid: int) -> None:
        self.system = system
        self._clock = clock
        self._pid = pid
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

    def standing(self, *, running: bool = True) -> Standing:
        """What is not counted."""
        system = self.system
        modes = system.stations.modes
        return Standing(
            running=running,
            pid=self._pid,
            wall=self._clock.wall(),
            started=self._started,
            modes=modes.now,
            modes_trouble=modes.trouble,
            paused=system.wanted.paused,
            disk_trouble=system.wanted.disk_trouble,
            trouble=system.trouble,
            queue=self._queue,
            outbox=self._outbox,
            outbox_trouble=system.sender.tally.trouble,
            pool=system.stations.store.connections,
            stations=tuple(map(self._station, system.hosts.values())),
            classes=system.engine.given_by_name(),
        )

    def _station(self, station: Station) -> StationStatus:
        return StationStatus(
            name=station.name,
            down=self.system.is_down(station),
            waiting=len(station.ready) + len(station.again),
            in_flight=station.inflight,
            trouble="" if station.trouble is None else station.trouble.detail,
        )

    def status(self, *, running: bool = True) -> EventsStatus:
        """How it stands."""
        return status_of(self.system.measures, self.standing(running=running))

    def readings(self) -> EventsReadings:
        """The same for Prometheus."""
        return readings_of(self.system.measures, self.standing())


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

    async def status(self) -> EventsStatus:
        """How it stands."""
        return self._watch.status()

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
