"""One crawl of one folder: the engine, with what is special about documents."""

from collections.abc import Coroutine
from math import inf
from typing import Any

from sanderling.clock import Clock
from sanderling.crawls.errands import ErrandTools
from sanderling.crawls.folder import Checkpoint, failed_line
from sanderling.crawls.run import FrontierRun
from sanderling.crawls.session import CrawlSession, Logins
from sanderling.crawls.sink import LedgerSink
from sanderling.crawls.source import LedgerWriter
from sanderling.engine.backlog import Loader
from sanderling.engine.handover import HandOver
from sanderling.engine.loop import Engine
from sanderling.engine.writer import Writer, WriterRules
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.fetch.transport import Transport
from sanderling.outcome import Code
from sanderling.pages.budgets import TrapBudgets, budgets_of
from sanderling.pages.discovery import LinkDiscovery
from sanderling.pages.files import FileDownloads
from sanderling.pages.folder import CrawlFolder, FolderState
from sanderling.pages.handler import PageHandler, PageReader, Understood
from sanderling.pages.hosts import PageHost, RobotsWork
from sanderling.pages.permissions import Permissions
from sanderling.pages.record import SITEMAP
from sanderling.pages.rendering import PageRendering
from sanderling.pages.rules import CrawlRules
from sanderling.pages.source import PageSource
from sanderling.pages.urls import host_in
from sanderling.pages.visiting import AT_ONCE, Visiting
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, HostBacklog, QueuedUrl, failed_as

# To hand on one row costs as much as to hand on fifty, so rows wait for others, while there is anything else to do.
GATHER = WriterRules(gather=5.0, enough=50)
FIRST_DUE = (-1.0, 0)  # before every due time and id


class Crawl(FrontierRun[CrawlFolder, PageSource]):
    """One crawl of one folder. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self,
        folder: CrawlFolder,
        transport: Transport[Sends],
        executor: Executor,
        *,
        rules: CrawlRules,
        clock: Clock,
        hand_over: HandOver[bytes] | None = None,
    ) -> None:
        """The executor does blocking work in order and one at a time; `hand_over` gets all that ended."""
        http: Sends = transport.http if rules.leave_out is None else rules.leave_out.before(transport.http)
        limiter, memory, ledger = transport.limiter, transport.memory, folder.ledger
        self.rules = rules
        self._hand_over = hand_over
        self._visiting = folder.visiting if rules.visits is not None else None
        session = CrawlSession(folder.cookies, transport.hosts, clock, new=folder.state is not FolderState.RESUMED)
        http = session.sender(self.across(folder.others, ErrandTools(http, limiter, memory, executor, clock)))
        self._sink = LedgerSink(folder, executor, hand_over, _row, session)
        gather = rules.writing if hand_over is None else GATHER
        writer: LedgerWriter = Writer(self._sink, lambda: Checkpoint(None, folder.positions), clock, gather)
        self._discovery = LinkDiscovery(folder, executor, writer.find)
        # Each try is one request: when the next is due, the engine says.
        follower = Fetcher(http, limiter, clock=clock, retry=False)
        self.permissions = Permissions(follower, ledger, executor, memory, clock, rules.robots_held)
        loader: Loader[PageHost] = Loader(ledger.take, executor, clock, rules.again[-1])
        source = PageSource(writer, self._discovery, self.permissions, loader, limiter, rules)
        source.visiting = self._visiting is not None
        reader = PageReader(executor, rules.reading)
        once = Fetcher(http, limiter, clock=clock, follow=False, retry=False)
        self._logins = Logins(rules.hosts, once, follower, memory, clock, self.stop)
        handler = PageHandler(self._logins, self.permissions, self._discovery, memory, reader, clock)
        if transport.renderer is not None:
            handler.rendering = PageRendering(transport.renderer, follower, limiter, self.permissions, memory)
        handler.files = FileDownloads(folder.path, rules.files, on_disk=folder.plan.keep != "warc")
        engine: Engine[PageHost, QueuedUrl | RobotsWork, Understood] = Engine(
            source, handler, writer, limiter, clock, rules
        )
        super().__init__(folder, source, engine, loader, limiter, executor)

    @property
    def at_depth(self) -> int:
        """How many pages of this run lead further than the crawl goes."""
        return self._discovery.at_depth

    async def run(self) -> bool:
        """Crawl until nothing waits, the page limit is reached, or it was stopped; whether it is complete.

        Raises LoginError if a host does not let us in.
        """
        ledger, source = self.folder.ledger, self.source
        if self.folder.state is not FolderState.RESUMED:
            for url in self.folder.plan.seeds:
                self._discovery.accept(FoundUrl(url, host_in(url), 0))
        # In its thread: a ledger that is shared waits for a server.
        first = await self._executor(self._take_up)
        source.waiting = ledger.counts()[End.WAITING] - sum(each.waiting for each in first)
        source.unread = source.waiting > 0
        after = (first[-1].due, first[-1].id) if source.unread else FIRST_DUE
        try:
            await self.ask_for({each.name: each.waiting for each in first}, self._read_hosts(after), *self._beside())
        finally:
            await self._logins.close()
        self.counts.subtract(self._sink.unhanded)
        left = source.enough(0) and not self.engine.stopped
        if left:
            self.counts[End.LEFT] += await self._executor(ledger.leave)
        unasked = source.set_aside or source.found_late or source.unread or self._sink.unhanded
        # Whoever visits pages goes on until somebody stops it.
        ended = not self.engine.stopped or (self._visiting is not None and not self.waiting)
        return (left or ended) and not unasked

    def _take_up(self) -> list[HostBacklog]:
        """Go by the rules of this run; the hosts to begin with."""
        ledger, source = self.folder.ledger, self.source
        if self.rules.leave_out is not None:
            self.counts[End.LEFT_OUT] -= sum(ledger.reopen(End.LEFT_OUT, Code.REFUSED).values())
        source.sitemaps = ledger.by_code().get((End.FETCHED, SITEMAP), 0)
        self._set_budgets()
        ledger.clear_aside()
        return ledger.waiting_hosts(FIRST_DUE, source.most_hosts, inf)

    def _set_budgets(self) -> None:
        """Take up the budgets. What a larger one lets through waits again, and what is asked for all the same."""
        ledger, source, rules = self.folder.ledger, self.source, self.rules
        bounds = budgets_of(rules)
        raised = [name for name, bound in bounds.items() if bound > ledger.budgets.get(name, 0.0)]
        if rules.retry_cut:
            source.exempt, raised = ledger.meta.last_id, []
        fetched = ledger.fetched() if rules.has_budgets else {}
        number = ledger.by_code().get((End.LEFT_OUT, Code.CANCELLED), 0)
        again = ledger.reopen_at(raised) if number else 0
        source.budgets = TrapBudgets(rules, fetched, ledger.cut_off() if number > again else ())
        if rules.retry_cut:
            again = ledger.reopen_at(bounds)
        source.cut_off = number - again
        self.counts[End.LEFT_OUT] -= again
        ledger.note_budgets(bounds)

    def _beside(self) -> tuple[Coroutine[Any, Any, None], ...]:
        return () if self._visiting is None else (self._visit(self._visiting),)

    async def _visit(self, visiting: Visiting) -> None:
        """Have what is due asked for again, now and then, until it is cancelled."""
        while True:
            # What waits already comes first: a slow host must not gather all of its pages in memory.
            if self.source.waiting < AT_ONCE:
                due = await self._executor(visiting.take, self.clock.wall())
                self.engine.wake([self.source.visit(each) for each in due])
            await self.clock.sleep(await self._executor(visiting.pause, self.clock.wall()))

    def accept(self, found: FoundUrl) -> None:
        """Another part has found a URL, of ours if it is not where a first address of its own has moved."""
        self._discovery.accept(found)

    def rest_of(self, found: list[FoundUrl]) -> list[FoundUrl]:
        """What of it is ours; where first addresses have moved is remembered."""
        return [each for each in found if self._discovery.is_ours(each)]

    async def _read_hosts(self, after: tuple[float, int]) -> None:
        """Bring hosts from disk that did not fit into memory, whenever there is room: those first that are due first.

        One that is found again once it made room is due from then on, behind the others; so all get their turn.
        """
        source, read, met = self.source, self.folder.ledger.waiting_hosts, 0
        while True:
            await source.room.wait()
            if source.unread and (most := source.free_hosts()):
                found = await self._executor(read, after, most, self.clock.wall())
                new = source.read_hosts(found)
                met += len(new)
                after = (found[-1].due, found[-1].id) if len(found) == most else FIRST_DUE
                if after == FIRST_DUE:
                    source.unread = bool(met or source.passed_over)
                    met, source.passed_over = 0, False
                self.engine.wake(new)
            if not source.unread or source.free_hosts() < source.enough_room:
                source.room.clear()
                self.engine.pump()  # it may be done

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        super().stop()
        self._hurry_hand_over()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. See `Engine.control`."""
        super().control(wanted)
        if wanted.ending == "stop":
            self._hurry_hand_over()

    def _hurry_hand_over(self) -> None:
        if self._hand_over is not None:
            self._hand_over.stop()


def _row(ended: Ended) -> bytes:
    """The row of what ended, also of what has none in pages.jsonl."""
    return failed_line(failed_as(ended, host_in(ended.url))) if ended.row is None else ended.row
