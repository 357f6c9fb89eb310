"""Reports a running system, for people, for other processes and for Prometheus."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice

from sanderling.engine.host_report import report_host, standing_of
from sanderling.observe.report import Report, shorten
from sanderling.polling.report import (
    MOST_ACCELERATED,
    MOST_NEXT,
    MOST_RECENT,
    LiveTargets,
    Next,
    PollingFacts,
    ShortChange,
    SubscriberReport,
    report_polling,
)
from sanderling.polling.system import PollingSystem
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

    def report(self, *, running: bool = True) -> Report[PollingFacts]:
        """How it stands."""
        system, now, wall = self._system, self._system.clock.now(), self._system.clock.wall()
        if system.measures.discoveries["ok"]:
            self._discovered = wall - system.measures.discovery_age
        hosts = partial(report_host, waiting=system.schedule.ready, lasting=True)
        seconds, limiter = wall - self._started, system.tools.limiter
        at = standing_of(system.engine, limiter, seconds, hosts, top=1, running=running)
        facts = self._facts(at.hosts[0].host if at.hosts else "", now)
        return report_polling(facts, at, system.measures.metrics())

    def _facts(self, host: str, now: float) -> PollingFacts:
        system, measures, settings = self._system, self._system.measures, self._system.live.now
        schedule, newest, counts = system.schedule, system.feed.newest, self._counts._asdict()
        runs: Counter[str] = Counter()
        for (kind, _), number in measures.runs.items():
            runs[kind] += number
        current = system.activity.activity.current
        return PollingFacts(
            source=system.tools.source.name,
            host=host,
            event=system.activity.event or "",
            current="" if current is None else f"{current.kind} {current.source_id}",
            targets={"all": counts.pop("targets"), **counts},
            discovered=self._discovered,
            discovery_trouble=system.discovery.trouble,
            runs=dict(runs),
            failed=measures.errors.total(),
            changes=measures.changes.total(),
            missed=measures.misses.total(),
            rate=measures.rate,
            late=measures.late,
            inflight=system.engine.inflight,
            slots=settings.concurrency if settings else 0,
            ready=schedule.ready,
            loaded=len(schedule.entries),
            pending=system.sync.pending,
            newest=newest,
            followers=self.followers,
            subscribers=tuple(
                SubscriberReport(
                    name=each.name, position=each.position, behind=max(0, newest - each.position), trouble=each.trouble
                )
                for each in system.subscribers
            ),
            store_trouble=system.trouble,
            settings_problems=len(system.live.problems),
            problems=(*system.live.problems, *self._too_much(), *system.keeper.odd),
            accelerated=tuple(
                LiveTargets(
                    kind=each.kind,
                    id=shorten(each.source_id),
                    interval=each.interval,
                    left=max(0.0, (each.until or now) - now),
                    late=each.late,
                )
                for each in islice(schedule.accelerated.values(), MOST_ACCELERATED)
            ),
            next=tuple(
                Next(
                    kind=each.kind,
                    id=shorten(each.source_id),
                    due=each.at - now,
                    interval=each.interval,
                    status=shorten(each.status),
                )
                for each in schedule.upcoming()[:MOST_NEXT]
            ),
            recent=tuple(map(ShortChange.of, list(system.keeper.recent)[-MOST_RECENT:])),
        )

    def _too_much(self) -> Iterator[str]:
        """That cadences were set which the rate that was set does not allow."""
        wanted = sum(1 / entry.interval for entry in self._system.schedule.accelerated.values())
        allowed = self._system.tools.limiter.rules.pace.max_rps
        if wanted > allowed:
            yield f"what is live asks for {wanted:,.0f} requests a second, and --rps allows {allowed:,.0f}"
