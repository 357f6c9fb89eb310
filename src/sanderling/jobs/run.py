"""One run of one job in one folder: the engine, with what is special about jobs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sanderling.clock import Clock
from sanderling.engine.backlog import Loader
from sanderling.engine.loop import Engine
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer
from sanderling.fetch.attempts import Fetcher, LeavingOut, Sends
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.ids import HostError, host_of
from sanderling.jobs.calls import Mistake, Unwatched, UserFunction, Watches
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.handler import JobFunctions, JobHandler
from sanderling.jobs.hosts import JobHost
from sanderling.jobs.job import Job, JobError
from sanderling.jobs.request import Request, Stored
from sanderling.jobs.sink import JobSink
from sanderling.jobs.source import Bounds, JobSource, JobWriter, Spent
from sanderling.limit import Limiter
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_requests import FoundRequest
from sanderling.stores.frontier_rows import End
from sanderling.task import Task

BATCH = 5000  # requests that a job starts with, written at once


@dataclass(frozen=True, slots=True)
class JobTools:
    """What a job is run with."""

    http: Sends
    limiter: Limiter
    clock: Clock
    desk: Desk
    memory: Memory
    watch: Watches = field(default_factory=Unwatched)


class JobRun:
    """One run of one job. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(self, job: Job, folder: JobFolder, hosts: Iterable[str], tools: JobTools, rules: EngineRules) -> None:
        self.job = job
        self.folder = folder
        self.limiter = tools.limiter
        self.clock = tools.clock
        self._desk = tools.desk
        meta = folder.frontier.meta
        self._spent = Spent(meta.requests, meta.records)
        scope = frozenset(hosts)
        self._functions = JobFunctions(job, folder.arguments, tools.watch)
        self._start = start_function(job, tools.watch)
        writer: JobWriter = Writer(JobSink(folder, tools.desk), lambda: self._spent.requests, tools.clock)
        self._loader: Loader[JobHost] = Loader(folder.frontier.take_requests, tools.desk, tools.clock, rules.again[-1])
        bounds = Bounds(frozenset(job.readers), scope, job.max_requests, job.max_records, rules.patience)
        self.source = JobSource(writer, self._loader, bounds, self._spent)
        self.source.counts.update(folder.frontier.counts())
        within = LeavingOut(tools.http, lambda task: out_of_scope(task, scope))
        # Each try is one request: when the next is due, the engine says.
        fetcher = Fetcher(within, tools.limiter, clock=tools.clock, job=job.name, retry=False)
        handler = JobHandler(fetcher, self._functions, tools.memory, self._spent)
        self.engine = Engine(self.source, handler, writer, tools.limiter, tools.clock, rules)

    async def run(self) -> bool:
        """Ask until nothing waits, the budget is spent, or it was stopped; whether all is decided.

        Raises JobError if the job cannot say where to begin.
        """
        frontier = self.folder.frontier
        if not frontier.meta.begun:
            await self._begin()
        if self.source.counts[End.LEFT_OUT]:  # the scope may be another
            self.source.counts[End.LEFT_OUT] -= sum(frontier.reopen(End.LEFT_OUT).values())
        frontier.clear_aside()
        for where, number in frontier.waiting_by_priority().items():
            self.source.add_waiting(where, number)
        await self.engine.run(self._loader.run(self._loaded))
        return not self.source.waiting

    async def _begin(self) -> None:
        """Put all that the job starts with into the frontier. Killed in between, it is done once more."""
        found: list[FoundRequest] = []
        try:
            await self._start.each("start", lambda given: found.append(self._first(given)), self.folder.arguments)
        except Mistake as mistake:
            raise JobError(f"start of {self.job.name}: {mistake}") from None
        for at in range(0, len(found), BATCH):
            await self._desk(self.folder.begin, found[at : at + BATCH])
        self.folder.frontier.note(begun=True)

    def _first(self, given: object) -> FoundRequest:
        if isinstance(given, str):
            given = Request(given)
        if not isinstance(given, Request):
            raise Mistake(f"start brought {given!r:.60}, expected an address or a Request")
        stored = None
        if given.paging is None and self.job.paging is not None:
            stored = Stored(given.method, given.pairs, given.content, given.data, paging=True)
        return self._functions.to_found(given, base=None, reader=self.job.first_reader, depth=0, stored=stored)

    def _loaded(self, hosts: list[JobHost]) -> None:
        self.engine.wake(hosts)
        self._loader.sharing = self.engine.asking

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.engine.stop()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those. What is in flight comes to its end."""
        self.engine.control(wanted)

    @property
    def counts(self) -> Counter[End]:
        """How many requests came to which end."""
        return self.source.counts

    @property
    def requests(self) -> int:
        """Requests that were sent, in all runs."""
        return self._spent.requests

    @property
    def records(self) -> int:
        """Records that were kept, in all runs."""
        return self._spent.records


def start_function(job: Job, watch: Watches) -> UserFunction:
    """What the job starts with, as a function of its arguments."""
    start = job.start
    if callable(start):
        return UserFunction(start, watch)
    given = [start] if isinstance(start, str | Request) else list(start)
    return UserFunction(lambda _: given, watch)


def hosts_of(job: Job) -> tuple[str, ...]:
    """The hosts that may be asked: those of the job, or those of what it starts with. Raises JobError."""
    if job.hosts:
        return job.hosts
    if callable(job.start):
        raise JobError(f"{job.name} has a function as start, and no hosts; expected hosts=(…) that may be asked")
    start = [job.start] if isinstance(job.start, str | Request) else list(job.start)
    urls = [each.url if isinstance(each, Request) else each for each in start]
    try:
        hosts = tuple(dict.fromkeys(host_of(url) for url in urls))
    except (HostError, TypeError, AttributeError) as error:
        raise JobError(f"start of {job.name}: {error}") from None
    if not hosts:
        raise JobError(f"start of {job.name} is empty, expected an address to begin with")
    return hosts


def out_of_scope(task: Task, hosts: frozenset[str]) -> str:
    """Why a request may not be sent, also one that a redirect leads to; empty if it may."""
    return "" if task.host in hosts else f"{task.host} is out of scope"
