"""Find out what there is to poll, again and again, and make the targets accordingly.

The plan can only name what is discovery's to write, so what an admin set outlives it. A target that is no more is first
marked as gone, and forgotten a day later: an upstream that lists half of what it has, or another event for a moment,
costs nobody his settings. Targets whose kind the source does not know were put there by hand, and stay as they are.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from math import inf

from sanderling.apis.polled import Discovered, PolledKind, PolledSource, Wanted
from sanderling.clock import Clock
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit.memory import Memory
from sanderling.observe import logs
from sanderling.outcome import Code, Outcome
from sanderling.polling.cadence import next_point
from sanderling.polling.document_writer import DocumentWriter
from sanderling.polling.settings import OFF, PollingSettings
from sanderling.stores.documents import SourceError, source_error
from sanderling.stores.polling import (
    KnownTarget,
    PolledDocument,
    PollingStoreError,
    Reconciliation,
    WantedTarget,
)
from sanderling.stores.polling_store import PollingStore
from sanderling.task import Reply, Task

MOST_QUESTIONS = 10_000  # that one discovery may ask
IDLE = 1.0  # seconds between looks at whether polling was switched on
# After a failure of the host, the next look comes after this share of the interval, but no sooner than in a second.
AGAIN_SHARE, SOONEST = 0.1, 1.0
# Seconds for which it looks so soon when what is live is not listed any more: a server that has just come up may not
# know yet what it has.
DOUBT = 30.0
FORGET = 86_400.0  # seconds after which a target that is gone is deleted
EARLY = 0.001  # seconds by which a timer may be ahead of its point, which has been all the same

Name = tuple[str, str]  # a plain one: with a named tuple for each target, all of this takes half as long again

log = logs.get(__name__)


class DiscoveryError(Exception):
    """What there is to poll could not be found out; the message says why, the outcome how a request ended."""

    def __init__(self, why: str, outcome: Outcome | None = None) -> None:
        super().__init__(why)
        self.outcome = outcome


class DiscoveryLoop:
    """Looks for targets every so often. `found` is called with what there is."""

    def __init__(
        self,
        source: PolledSource,
        fetcher: Fetcher,
        memory: Memory,
        writer: DocumentWriter,
        clock: Clock,
        desk: Executor,
    ) -> None:
        self.settings = OFF  # until there are some
        self.paused = True
        self.last: Discovered | None = None
        self.trouble = ""  # why the last one failed, if it did
        self.found: Callable[[Discovered], object] = lambda _: None
        self.is_live: Callable[[int], bool] = lambda _: False  # whether the target with that id is
        self._source = source
        self._fetcher = fetcher
        self._memory = memory
        self._writer = writer
        self._clock = clock
        self._desk = desk  # a hundred thousand targets take longer than a live one may be late
        self._one = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._vanished = -inf  # when something live was not listed any more
        self._unsaved: Discovered | None = None  # what was found while the database was not to be had

    @property
    def in_doubt(self) -> bool:
        """Whether something live has just vanished, and may be back any moment."""
        return self._clock.now() - self._vanished < DOUBT

    def look(self) -> None:
        """Look now, and from then on as often as the settings say."""
        self._hurry.set()

    async def run(self, store: PollingStore) -> None:
        """Look at once, and then on a grid, until cancelled."""
        point = self._clock.now()
        while True:
            if self.paused:
                await self._clock.sleep(IDLE)
                continue
            self._hurry.clear()
            again = await self._try(self.once(store))
            now = self._clock.now()
            point = next_point(point, self.settings.full, now + EARLY)
            while self._unsaved is not None and self._clock.now() + SOONEST < point and not self._hurry.is_set():
                await self._clock.sleep(SOONEST)
                again = await self._try(self._settle(self._unsaved, store))
            now = self._clock.now()
            timer = self._clock.call_later(min(again, max(0.0, point - now)), self._hurry.set)
            try:
                await self._hurry.wait()
            finally:
                timer.cancel()

    async def _try(self, look: Awaitable[object]) -> float:
        """Look now; in how many seconds to look again, if that is before the usual time."""
        try:
            await look
        except DiscoveryError as error:
            outcome = error.outcome
            deferred = outcome is not None and outcome.code is Code.DEFERRED
            if not (deferred and self.trouble):  # which says why the host is left alone for a moment
                self._note(str(error))
            if outcome is not None and (deferred or outcome.blames_host or outcome.status >= 500):
                return max(SOONEST, AGAIN_SHARE * self.settings.full)
        return SOONEST if self.in_doubt else inf

    def _note(self, trouble: str) -> None:
        if self.trouble != trouble:
            log.warning("discovery_failed", why=trouble)
        self.trouble = trouble
        self._writer.measures.discovered(ok=False)

    async def once(self, store: PollingStore) -> Discovered:
        """Look now. What is known is polled on whatever comes of it. Raises DiscoveryError."""
        async with self._one:
            try:
                self._unsaved = discovered = await self._discover()
            except SourceError as error:
                raise _not_found(error) from None
        await self._settle(discovered, store)
        return discovered

    async def _settle(self, discovered: Discovered, store: PollingStore) -> None:
        """Make the targets what was found. Raises DiscoveryError; while the database is away, that is tried again."""
        async with self._one:
            try:
                # First the event, or its documents would wait for it.
                told = PolledDocument("", "", discovered.event, discovered.document, self._clock.wall())
                await self._writer.keep(told)
                self.last = discovered
                await self.reconcile(store)
            except SourceError as error:
                self._unsaved = None
                raise _not_found(error) from None
            except PollingStoreError as error:
                raise DiscoveryError(str(error)) from None
        self._unsaved = None
        self.trouble = ""
        self._writer.measures.discovered(ok=True)
        self.found(discovered)

    async def reconcile(self, store: PollingStore) -> None:
        """Make the targets what was last found, by the settings of now. Raises PollingStoreError."""
        if self.last is None:
            return
        wall = self._clock.wall()
        known = await store.known()
        wanted = [*self.last.wanted, *_kept(known, self.last)]
        plan = await self._desk(reconcile, known, wanted, self.settings, self._source.kinds, wall)
        if any(map(self.is_live, plan.gone)):
            self._vanished = self._clock.now()
        if any(plan):
            await store.apply(plan, wall)

    async def _discover(self) -> Discovered:
        questions = self._source.discover()
        try:
            task = next(questions)
            for _ in range(MOST_QUESTIONS):
                task = questions.send(await self._reply(task))
        except StopIteration as end:
            found: Discovered = end.value
            return found
        finally:
            questions.close()
        raise source_error(Code.TOO_LARGE, f"no end after {MOST_QUESTIONS} questions")

    async def _reply(self, task: Task) -> Reply:
        fetched = await self._fetcher.fetch(task)
        if fetched.reply is None:
            raise SourceError(fetched.outcome)
        self._memory.release(fetched.reply.url)
        return fetched.reply


def _not_found(error: SourceError) -> DiscoveryError:
    outcome = error.outcome
    why = outcome.detail if outcome.code is Code.DEFERRED else f"{outcome.code}: {outcome.detail}"
    return DiscoveryError(why, outcome)


def _kept(known: Iterable[KnownTarget], last: Discovered) -> Iterator[Wanted]:
    """The targets of the event of which the source could not say whether they are still there."""
    for each in known:
        found = each.found
        if each.gone is None and found.kind in last.unread and found.event == last.event:
            yield Wanted(found.kind, found.source_id, found.event, found.only)


def reconcile(
    known: Iterable[KnownTarget],
    wanted: Iterable[Wanted],
    settings: PollingSettings,
    kinds: Sequence[PolledKind],
    wall: float,
) -> Reconciliation:
    """What makes the known targets the wanted ones. Of two that are wanted under one name, the first counts."""
    missing = _found(wanted, settings, kinds)
    ours = {kind.name for kind in kinds}
    update: list[tuple[int, WantedTarget]] = []
    gone: list[int] = []
    delete: list[int] = []
    for target in known:
        if target.found.kind not in ours:
            continue
        found = missing.pop((target.found.kind, target.found.source_id), None)
        if found is None:
            if target.gone is None:
                gone.append(target.id)
            elif wall - target.gone > FORGET:
                delete.append(target.id)
        elif found != target.found or target.gone is not None:
            update.append((target.id, found))
    return Reconciliation(tuple(missing.values()), tuple(update), tuple(gone), tuple(delete))


def _found(
    wanted: Iterable[Wanted], settings: PollingSettings, kinds: Sequence[PolledKind]
) -> dict[Name, WantedTarget]:
    """The wanted targets by name, as they should be stored. There is none of a kind that the source does not have."""
    rules = {kind.name: (settings.usual[kind.name], kind.priority) for kind in kinds}
    found: dict[Name, WantedTarget] = {}
    for each in wanted:
        name = each.kind, each.source_id
        if each.kind in rules and name not in found:
            found[name] = WantedTarget(*name, each.event, each.only, *rules[each.kind])
    return found
