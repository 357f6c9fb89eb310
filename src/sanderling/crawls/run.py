"""One run of a crawl in its folder: the engine with the crawl's source, and the function that people call."""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar

from sanderling.clock import Clock
from sanderling.crawls.errands import Brought, Errand, Errands, ErrandTools
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.folder import Checkpoint, LedgerFolder
from sanderling.crawls.source import FrontierSource
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.engine.backlog import Loader
from sanderling.engine.loop import Engine
from sanderling.executor import Executor, in_threads
from sanderling.fetch.attempts import Sends
from sanderling.fetch.hosts import NO_HOSTS, HostTable
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport, connections_for, contexts_of
from sanderling.limit import Limiter
from sanderling.stores.board import BoardField
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status

F = TypeVar("F", bound=LedgerFolder[Any])
S = TypeVar("S", bound=FrontierSource[Any, Any, Any])


class FrontierRun(Generic[F, S]):
    """One run of one folder. `run` it once; `stop` lets it finish what is in flight."""

    errands: Errands | None = None  # where there are other parts

    def __init__(
        self,
        folder: F,
        source: S,
        engine: Engine[Any, Any, Any],
        loader: Loader[Any],
        limiter: Limiter,
        executor: Executor,
    ) -> None:
        self.folder = folder
        folder.ledger.wall = engine.clock.wall
        self.source = source
        source.counts.update(folder.ledger.counts())
        self.engine = engine
        self.limiter = limiter
        self.clock = engine.clock
        self._loader = loader
        self._executor = executor
        source.others = folder.others
        if folder.others is not None:
            # What is held in memory is that of the crawl, not of each of its parts.
            loader.most //= folder.others.board.parts
            source.most_hosts //= folder.others.board.parts

    def across(self, others: PartExchange | None, tools: ErrandTools) -> Sends:
        """The client of `tools`, which has other parts ask what is theirs. Answers that were kept are of no host."""
        if others is None or isinstance(tools.http, StoredReplies):
            return tools.http
        self.errands = Errands(others, tools, self._is_ending)
        return self.errands

    async def run(self) -> bool:
        """Ask until nothing waits, as much was asked as is wanted, or it was stopped; whether all is decided."""
        raise NotImplementedError

    async def ask_for(self, waiting: Mapping[Any, int], *beside: Coroutine[Any, Any, object]) -> None:
        """Ask for what waits, by host, and for all that it leads to; `beside` run with it, and end with it."""
        await self._executor(self.folder.ledger.clear_aside)
        for name, number in waiting.items():
            self.source.add_waiting(name, number)
        exchange = [] if self.folder.others is None else [self._receive(self.folder.others)]
        exchange += [] if self.errands is None else [self.errands.serve()]
        await self.engine.run(self._loader.run(self._loaded), *exchange, *beside)

    def accept(self, found: Any) -> None:  # noqa: ANN401 - what the system finds
        """Another part has found something that is ours."""
        self.engine.writer.find(found)

    def _take(self, mail: Any) -> None:  # noqa: ANN401 - as above, or an errand
        if not isinstance(mail, Errand | Brought):
            self.accept(mail)
        elif self.errands is not None:
            self.errands.take(mail)

    def _is_ending(self) -> bool:
        """Whether nobody should wait for other parts any more."""
        return self.engine.stopped or self.source.enough(0)

    async def _receive(self, others: PartExchange) -> None:
        """Take what other parts find for this one, until none has anything to do."""
        engine = self.engine

        def is_idle() -> bool:
            others.board.put(others.own, BoardField.INFLIGHT, engine.inflight)
            if self.source.enough(engine.inflight):
                engine.pump()  # others have asked for as much as was wanted
            return not (engine.inflight or engine.asking or self.source.reading) and engine.writer.idle

        await others.receive(self._executor, self.clock, self._take, lambda: engine.writer.finds, is_idle)
        engine.pump()  # it may be done

    async def take_rest(self) -> None:
        """Keep what other parts find for this one once it has ended by itself: a run that may ask for more does."""
        if self.folder.others is not None:
            await self.folder.others.take_rest(self._executor, self._keep_rest)

    def _keep_rest(self, found: list[Any], positions: Mapping[str, int]) -> None:
        found = [each for each in found if not isinstance(each, Errand | Brought)]  # nobody waits any more
        new = self.folder.commit([], self.rest_of(found), checkpoint=Checkpoint(None, positions))
        self.source.waiting += sum(new.values())

    def rest_of(self, found: list[Any]) -> list[Any]:
        """What of it is to be kept."""
        return found

    def _loaded(self, hosts: list[Any]) -> None:
        self.engine.wake(hosts)
        self._loader.sharing = self.engine.asking

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.engine.stop()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. See `Engine.control`."""
        self.engine.control(wanted)

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return self.engine.inflight

    @property
    def counts(self) -> Counter[End]:
        """How many items came to which end."""
        return self.source.counts

    @property
    def wanted(self) -> Control:
        """What somebody wants of the crawl."""
        return self.engine.wanted

    @property
    def hosts(self) -> dict[str, Any]:
        """All hosts that were met."""
        return self.source.hosts

    @property
    def bytes(self) -> int:
        """How many bytes of replies this run has read."""
        return self.source.bytes

    @property
    def waiting(self) -> int:
        """How many items have no end yet, those in flight among them."""
        return self.source.waiting

    @property
    def set_aside(self) -> int:
        """How many items wait for hosts that did not answer; the next run asks for them."""
        return self.source.set_aside


R = TypeVar("R", bound=FrontierRun[Any, Any])


async def run_to_end(
    folder: LedgerFolder[Any],
    transport: Transport[Http],
    clock: Clock,
    make_run: Callable[[Executor], R],
    status: Callable[..., Any],
) -> tuple[R, bool]:
    """Run in a folder until all is decided, and leave there what the next run needs; the run, and whether all was."""
    path, limiter = folder.path, transport.limiter
    with folder, ThreadPoolExecutor(1, "writer") as thread:
        recall(limiter, path)
        executor, started = in_threads(thread), clock.now()
        run = make_run(executor)
        async with AsyncExitStack() as stack:
            for each in contexts_of(transport):
                await stack.enter_async_context(each)
            complete = await run.run()
        await executor(folder.finish, clock.wall(), complete)
        await executor(write_status, path, status(run, clock.now() - started, running=False))
        await executor(keep, path, list(limiter.saving()))
    return run, complete


def http_rules(
    rps: float, contact: str | None, most_raw: int, most_decoded: int, hosts: HostTable = NO_HOSTS
) -> HttpRules:
    """How replies are read, of hosts that are asked so often; sizes are bytes of one reply."""
    return HttpRules(
        contact=contact,
        most_raw=most_raw,
        most_decoded=most_decoded,
        connections_per_host=connections_for(rps),
        hosts=hosts,
    )
