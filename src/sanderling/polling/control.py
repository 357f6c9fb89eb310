"""What people may ask of polling while it runs: through the web, or from other commands."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from sanderling.apis.polled import PolledKind
from sanderling.observe.report import Report
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.report import PollingFacts
from sanderling.polling.settings import PollingSetting
from sanderling.polling.system import PollingSystem
from sanderling.polling.watch import PollingWatch
from sanderling.stores.documents import SourceRow
from sanderling.stores.polling import Field, PollingTarget, Query, RowChange

PAGE = 200  # targets at a time
TRIES = (0.4, 0.8)  # seconds before another try, of what somebody asked for


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a target that somebody asked for."""

    kind: str
    source_id: str
    status: str
    ok: bool
    changes: int


class PollingControl:
    """Everything that can be asked of a system that runs."""

    def __init__(self, system: PollingSystem, watch: PollingWatch) -> None:
        self.feed = system.feed
        self._system = system
        self._store = system.tools.store
        self._watch = watch

    # Targets.

    async def targets(self, query: Query) -> list[PollingTarget]:
        """A page of them."""
        return await self._store.list(query)

    async def target(self, kind: str, source_id: str) -> PollingTarget | None:
        """The one of that name."""
        return await self._store.find(kind, source_id)

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set. Whether there is such a target."""
        found = await self._store.change(kind, source_id, fields)
        self._system.sync.poke()
        return found

    async def promote(self, query: Query, seconds: float) -> int:
        """Run these now, and accelerate them for so long. How many there are."""
        number = await self._store.promote(query, seconds)
        self._system.sync.poke()
        return number

    # Settings.

    async def settings(self) -> tuple[PollingSetting, ...]:
        """All of them."""
        return await self._system.live.listed()

    async def set(self, key: str, text: str | None) -> PollingSetting:
        """Write one; None goes back to the default. Raises SettingError."""
        return await self._system.live.set(key, text)

    # What is asked for at once.

    async def ingest(self, kind: str, source_id: str) -> Ingested | None:
        """Run a target now, paused or not, and wait for it; None if there is no such target."""
        target = await self._store.find(kind, source_id)
        return None if target is None else await self._ingest(target)

    async def ingest_event(self, event: str, kinds: Sequence[str] | None = None) -> list[Ingested]:
        """The same for the targets of an event: those that others need first."""
        found: list[Ingested] = []
        for wave in waves(self._system.tools.source.kinds):
            for kind in wave:
                if kinds is None or kind in kinds:
                    found += await self._ingest_all(event, kind)
        return found

    async def full(self) -> list[Ingested]:
        """Find out what there is to poll, and run all of it once. Raises DiscoveryError."""
        discovered = await self._system.discovery.once(self._store)
        return await self.ingest_event(discovered.event)

    async def purge(self) -> dict[str, int]:
        """Remove all rows and targets; what there is to poll is found anew. How many there were."""
        counts = await self._store.purge(self._system.clock.wall())
        self._system.needs.forget()
        self._system.sync.poke()
        try:
            await self._system.discovery.once(self._store)
        except DiscoveryError:
            return counts  # the next one is soon
        return counts

    async def _ingest_all(self, event: str, kind: str) -> list[Ingested]:
        done: list[Ingested] = []
        targets = await self._all(Query(event=event, kind=kind, most=PAGE))
        for first in range(0, len(targets), PAGE):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._ingest(target)) for target in targets[first : first + PAGE]]
            done += [task.result() for task in tasks]
        return done

    async def _all(self, query: Query) -> list[PollingTarget]:
        """All pages, before any of them runs: that moves due times, and so the pages."""
        found: dict[int, PollingTarget] = {}
        while page := await self._store.list(query):
            found |= {target.id: target for target in page}
            if len(page) < query.most:
                break
            query = msgspec.structs.replace(query, after=(page[-1].next_due, page[-1].id))
        return list(found.values())

    async def _ingest(self, target: PollingTarget) -> Ingested:
        system = self._system
        for wait in (*TRIES, None):
            entry = system.schedule.entries.get(target.id) or system.sync.enter(target)
            try:
                result = await system.source.now(entry)
            finally:
                if not target.wanted:
                    system.schedule.drop(entry)
            if result.ok or wait is None:
                break
            await system.clock.sleep(wait)
        return Ingested(
            kind=target.kind, source_id=target.source_id, status=result.status, ok=result.ok, changes=result.changes
        )

    # What is there.

    async def rows(self, table: str, *, event: str | None, after: str, most: int) -> list[SourceRow]:
        """Rows of a table, by key. Raises KeyError if there is no such table."""
        if table not in {each.name for each in self._system.tools.source.schema.tables}:
            raise KeyError(table)
        return await self._store.rows(table, event=event, after=after, most=most)

    async def changes(self, after: int, most: int) -> list[RowChange]:
        """The next ones after a number."""
        return await self._store.changes(after, most)

    def followed(self, followers: int) -> None:
        """So many follow the changes now."""
        self._watch.followers = followers

    def status(self) -> Report[PollingFacts]:
        """How it stands."""
        return self._watch.report()


def waves(kinds: Sequence[PolledKind]) -> list[list[str]]:
    """The kinds, those that others need before them."""
    left = {kind.name: set(kind.needs) & {each.name for each in kinds} for kind in kinds}
    found: list[list[str]] = []
    while left:
        # Kinds that need each other in a ring come together: the rows decide.
        wave = [name for name, needs in left.items() if not needs & set(left) - {name}] or list(left)
        found.append(wave)
        for name in wave:
            del left[name]
    return found
