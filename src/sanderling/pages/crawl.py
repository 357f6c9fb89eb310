"""One crawl of one folder: the engine, with what is special about documents."""

from collections import Counter

from sanderling.clock import Clock
from sanderling.engine.backlog import Loader
from sanderling.engine.handover import HandOver
from sanderling.engine.loop import Engine
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer, WriterRules
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.fetch.transport import Transport
from sanderling.ids import host_of
from sanderling.pages.discovery import Discovery
from sanderling.pages.folder import CrawlFolder, State
from sanderling.pages.handler import PageHandler
from sanderling.pages.hosts import PageHost
from sanderling.pages.permissions import Permissions
from sanderling.pages.robots import LONGEST_DELAY
from sanderling.pages.rules import CrawlRules
from sanderling.pages.sink import PageSink
from sanderling.pages.source import PageSource, PageWriter
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End

# To hand on one row costs as much as to hand on fifty, so rows wait for others, while there is anything else to do.
GATHER = WriterRules(gather=5.0, enough=50)


class Crawl:
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
        http = transport.http if rules.leave_out is None else rules.leave_out.before(transport.http)
        limiter, memory, ledger = transport.limiter, transport.memory, folder.ledger
        self.folder = folder
        self.rules = rules
        self.limiter = limiter
        self.clock = clock
        self._executor = executor
        self._hand_over = hand_over
        self._sink = PageSink(folder, executor, hand_over)
        writer: PageWriter = Writer(self._sink, lambda: None, clock, None if hand_over is None else GATHER)
        self._discovery = Discovery(folder, executor, writer.find)
        # Each try is one request: when the next is due, the engine says.
        follower = Fetcher(http, limiter, clock=clock, retry=False)
        self.permissions = Permissions(follower, ledger, executor, memory, clock, rules.robots_held)
        self._loader: Loader[PageHost] = Loader(ledger.take, executor, clock, rules.again[-1])
        self._source = PageSource(writer, self._discovery, self.permissions, self._loader, limiter, rules)
        self._source.counts.update(ledger.counts())
        once = Fetcher(http, limiter, clock=clock, follow=False, retry=False)
        handler = PageHandler(once, self.permissions, self._discovery, memory, executor, clock)
        self.engine = Engine(self._source, handler, writer, limiter, clock, engine_rules(rules))

    async def run(self) -> bool:
        """Crawl until nothing waits, the page limit is reached, or it was stopped; whether it is complete."""
        if self.folder.state is not State.RESUMED:
            for url in self.folder.plan.seeds:
                self._discovery.offer(url, host_of(url), 0)
        if self.rules.leave_out is not None:
            self.counts[End.LEFT_OUT] -= sum(self.folder.ledger.reopen(End.LEFT_OUT).values())
        self.folder.ledger.clear_aside()
        for name, number in self.folder.ledger.waiting().items():
            self._source.add_waiting(name, number)
        await self.engine.run(self._loader.run(self._loaded))
        self.counts.subtract(self._sink.unhanded)
        left = self._source.enough(0) and not self.engine.stopped
        if left:
            self.counts[End.LEFT] += await self._executor(self.folder.ledger.leave)
        unasked = self.set_aside or self._source.found_late or self._sink.unhanded
        return (left or not self.engine.stopped) and not unasked

    def _loaded(self, hosts: list[PageHost]) -> None:
        self.engine.wake(hosts)
        self._loader.sharing = self.engine.asking

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.engine.stop()
        self._hurry_hand_over()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. See `Engine.control`."""
        self.engine.control(wanted)
        if wanted.ending == "stop":
            self._hurry_hand_over()

    def _hurry_hand_over(self) -> None:
        if self._hand_over is not None:
            self._hand_over.stop()

    @property
    def wanted(self) -> Control:
        """What somebody wants of the crawl."""
        return self.engine.wanted

    @property
    def hosts(self) -> dict[str, PageHost]:
        """All hosts that were met."""
        return self._source.hosts

    @property
    def counts(self) -> Counter[End]:
        """How many URLs came to which end."""
        return self._source.counts

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return self.engine.inflight

    @property
    def bytes(self) -> int:
        """How many bytes of documents this run has read."""
        return self._source.bytes

    @property
    def waiting(self) -> int:
        """How many URLs have no end yet, those in flight among them."""
        return self._source.waiting

    @property
    def set_aside(self) -> int:
        """How many URLs wait for hosts that did not answer; the next run asks for them."""
        return self._source.set_aside


def engine_rules(rules: CrawlRules) -> EngineRules:
    """The engine's part of the rules."""
    return EngineRules(
        slots=rules.together,
        per_host=rules.per_host,
        again=rules.again,
        patience=rules.patience,
        first_patience=rules.first_patience,
        longest_pace=LONGEST_DELAY,
    )
