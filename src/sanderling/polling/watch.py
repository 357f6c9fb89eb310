"""Takes the status of a running system, for people, for other processes and for Prometheus."""

import os
from collections.abc import Iterator
from contextlib import suppress

from sanderling.apis.polled import TargetName
from sanderling.observe.metrics_polling import PollingReadings
from sanderling.polling.status import (
    MOST_ACCELERATED,
    MOST_NEXT,
    AcceleratedStatus,
    NextStatus,
    PollingStatus,
    SubscriberStatus,
    TargetCounts,
    by_two,
    recently,
)
from sanderling.polling.system import PollingSystem
from sanderling.polling.targets import ScheduledTarget
from sanderling.stores.polling import PollingStoreError, StoredTargetCounts

EVERY = 2.0  # seconds between counts of all targets
# There may be a million of them, and then each count reads as many rows: so it is made once a minute.
LONG, SELDOM = 0.05, 60.0


class PollingWatch:
    """Looks at one system. `followers` is set by whoever has some."""

    def __init__(self, system: PollingSystem) -> None:
        self.followers = 0
        self._system = system
        self._started = system.clock.wall()
        self._counts = StoredTargetCounts(0, 0, 0, 0, 0, 0)
        self._discovered: float | None = None

    async def run(self) -> None:
        """Count targets now and then, until cancelled."""
        clock = self._system.clock
        while True:
            began = clock.now()
            await self.count()
            await clock.sleep(EVERY if clock.now() < began + LONG else SELDOM)

    async def count(self) -> None:
        """Count them now; a database that is not to be had leaves the last count."""
        with suppress(PollingStoreError):  # the system says so itself
            self._counts = await self._system.tools.store.count(self._system.clock.wall())

    def take(self, *, running: bool = True) -> PollingStatus:
        """How it stands."""
        system, measures, clock = self._system, self._system.measures, self._system.clock
        settings, discovery = system.live.now, system.discovery
        now, wall = clock.now(), clock.wall()
        if measures.discoveries["ok"]:
            self._discovered = wall - measures.discovery_age
        views = system.tools.limiter.snapshot(1).top
        return PollingStatus(
            running=running,
            pid=os.getpid(),
            wall=wall,
            started=self._started,
            source=system.tools.source.name,
            host=views[0].host if views else "",
            enabled=not system.engine.wanted.paused,
            disk_trouble=system.engine.wanted.disk_trouble,
            event=system.activity.event or "",
            current=_shown(system.activity.activity.current),
            targets=TargetCounts.of(self._counts),
            discovered=self._discovered,
            discovery_trouble=discovery.trouble,
            runs=by_two(measures.runs),
            errors=by_two(measures.errors),
            changes=by_two(measures.changes),
            missed=dict(measures.misses),
            rate=measures.rate,
            late=measures.late,
            inflight=system.engine.inflight,
            slots=settings.concurrency if settings else 0,
            ready=system.schedule.ready,
            loaded=len(system.schedule.entries),
            pending=system.sync.pending,
            newest=system.feed.newest,
            followers=self.followers,
            subscribers=tuple(
                SubscriberStatus(
                    name=each.name,
                    position=each.position,
                    behind=max(0, system.feed.newest - each.position),
                    trouble=each.trouble,
                )
                for each in system.subscribers
            ),
            store_trouble=system.trouble,
            problems=(*system.live.problems, *self._too_much(), *system.keeper.odd),
            limiter=views[0] if views else None,
            accelerated=tuple(_accelerated(entry, now) for entry in self._live()),
            recent=recently(list(system.keeper.recent)),
            classes=system.engine.given_by_name(),
            next=tuple(_next(entry, now) for entry in system.schedule.upcoming()[:MOST_NEXT]),
        )

    def _too_much(self) -> Iterator[str]:
        """That cadences were set which the rate that was set does not allow."""
        wanted = sum(1 / entry.interval for entry in self._system.schedule.accelerated.values())
        allowed = self._system.tools.limiter.rules.pace.max_rps
        if wanted > allowed:
            yield f"what is live asks for {wanted:,.0f} requests a second, and --rps allows {allowed:,.0f}"

    def _live(self) -> list[ScheduledTarget]:
        return list(self._system.schedule.accelerated.values())[:MOST_ACCELERATED]

    def readings(self) -> PollingReadings:
        """The same for Prometheus."""
        system, settings = self._system, self._system.live.now
        counts = TargetCounts.of(self._counts)
        return PollingReadings(
            counts=system.measures.counts(),
            enabled=not system.engine.wanted.paused,
            inflight=system.engine.inflight,
            slots=settings.concurrency if settings else 0,
            ready=system.schedule.ready,
            loaded=len(system.schedule.entries),
            pending=system.sync.pending,
            targets={state: getattr(counts, state) for state in counts.__struct_fields__},
            discovery_age=system.measures.discovery_age,
            newest=system.feed.newest,
            followers=self.followers,
            positions={each.name: each.position for each in system.subscribers},
            store_trouble=bool(system.trouble),
            problems=len(system.live.problems),
        )


def _shown(name: TargetName | None) -> str:
    return "" if name is None else f"{name.kind} {name.source_id}"


def _accelerated(entry: ScheduledTarget, now: float) -> AcceleratedStatus:
    return AcceleratedStatus(
        kind=entry.kind,
        source_id=entry.source_id,
        interval=entry.interval,
        left=max(0.0, (entry.until or now) - now),
        late=entry.late,
    )


def _next(entry: ScheduledTarget, now: float) -> NextStatus:
    return NextStatus(
        kind=entry.kind,
        source_id=entry.source_id,
        due=entry.at - now,
        interval=entry.interval,
        status=entry.status,
    )
