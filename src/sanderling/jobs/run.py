"""One run of one job in one folder: the engine, with what is special about jobs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sanderling.apis.auth import Login, OAuth2
from sanderling.apis.credentials import Credentials
from sanderling.clock import Clock
from sanderling.engine.backlog import Loader
from sanderling.engine.loop import Engine
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.fetch.cache import Cache, CachingFetcher
from sanderling.jobs.calls import Mistake, Unwatched, UserFunction, Watches
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.functions import JobFunctions, start_hosts
from sanderling.jobs.handler import JobHandler, ScopedSender
from sanderling.jobs.hosts import JobHost
from sanderling.jobs.job import Job, JobError
from sanderling.jobs.request import Request
from sanderling.jobs.sink import JobSink
from sanderling.jobs.source import Bounds, JobSource, JobWriter, Spent
from sanderling.jobs.watchdog import read_stuck, write_stuck
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest
from sanderling.stores.frontier_rows import End
from sanderling.stores.token_file import FILE as TOKENS
from sanderling.stores.token_file import TokenFile

START = "start"  # what the watchdog knows the function by that says where to begin
BATCH = 5000  # requests that a job starts with, written at once


@dataclass(frozen=True, slots=True)
class JobTools:
    """What a job is run with."""

    http: Sends
    limiter: Limiter
    clock: Clock
    desk: Executor
    memory: Memory
    watch: Watches = field(default_factory=Unwatched)
    cache: Cache | None = None  # of answers, for development

    def make_fetcher(self, http: Sends, job: str) -> Fetcher:
        """What asks. Each try is one request: when the next is due, the engine says."""
        if self.cache is None:
            return Fetcher(http, self.limiter, clock=self.clock, job=job, retry=False)
        return CachingFetcher(http, self.limiter, clock=self.clock, job=job, retry=False, cache=self.cache)


class JobRun:
    """One run of one job. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(self, job: Job, folder: JobFolder, hosts: Iterable[str], tools: JobTools, rules: EngineRules) -> None:
        self.job = job
        self.folder = folder
        self.limiter = tools.limiter
        self.clock = tools.clock
        self._watch = tools.watch
        self._first_reader = job.first_reader
        meta = folder.frontier.meta
        self._spent = Spent(meta.requests, meta.records)
        self._scope = scope = frozenset(hosts)
        self._credentials = make_credentials(job, folder, scope, tools)
        self._functions = JobFunctions(job, folder.arguments, self._credentials, tools.watch)
        self._start = start_function(job, tools.watch)
        writer: JobWriter = Writer(JobSink(folder, tools.desk), lambda: self._spent.requests, tools.clock)
        self._loader: Loader[JobHost] = Loader(folder.frontier.take_requests, tools.desk, tools.clock, rules.again[-1])
        bounds = Bounds(frozenset(job.readers), scope, job.max_requests, job.max_records, rules.patience)
        self.source = JobSource(writer, self._loader, bounds, self._spent)
        self.source.counts.update(folder.frontier.counts())
        tokens = {job.auth.host} if isinstance(job.auth, OAuth2 | Login) else set()
        within = ScopedSender(tools.http, scope | tokens, self._spent)
        handler = JobHandler(
            tools.make_fetcher(within, job.name),
            within.strays,
            self._functions,
            tools.memory,
            tools.clock,
            self.stop,
        )
        self.engine = Engine(self.source, handler, writer, tools.limiter, tools.clock, rules)

    async def run(self) -> bool:
        """Ask until nothing waits, the budget is spent, or it was stopped; whether all is decided.

        Raises JobError if the job cannot say where to begin, or is not let in.
        """
        frontier = self.folder.frontier
        self._heed_stuck()
        if not frontier.meta.begun:
            await self._begin()
        if self.source.counts[End.LEFT_OUT]:  # the scope may be another
            self.source.counts[End.LEFT_OUT] -= frontier.reopen_at(self._scope)
        frontier.clear_aside()
        for where, number in frontier.waiting_by_priority().items():
            self.source.add_waiting(where, number)
        try:
            await self.engine.run(self._loader.run(self._loaded))
        finally:
            if self._credentials is not None:
                await self._credentials.close()
        if self._credentials is not None and (why := self._credentials.denied):
            raise JobError(f"auth of {self.job.name}: {why}. Nothing is lost: put the secret right and run again.")
        return not self.source.waiting

    def _heed_stuck(self) -> None:
        """What held the event loop in an earlier run is asked for last; what did so twice has failed."""
        stuck = read_stuck(self.folder.path)
        if not stuck:
            return
        if (start := stuck.pop(START, None)) is not None and start.ends:
            write_stuck(self.folder.path, stuck)
            raise JobError(f"start of {self.job.name}: {start.reason}")
        for key, found in list(stuck.items()):
            queued = self.folder.frontier.waiting_request(int(key.partition(" ")[0]))
            if queued is not None and not found.ends:
                self.folder.frontier.put_last(queued)
                continue
            if queued is not None:
                outcome = Outcome(Code.PARSE_ERROR, detail=found.reason)
                ended = EndedRequest(
                    id=queued.id,
                    url=queued.url,
                    end=End.FAILED,
                    outcome=outcome,
                    depth=queued.depth,
                    priority=queued.priority,
                    requests=found.times,
                )
                self.folder.commit([ended], [], [], self._spent.requests)
                self.counts[End.FAILED] += 1
            del stuck[key]
        write_stuck(self.folder.path, stuck)

    async def _begin(self) -> None:
        """Put all that the job starts with into the frontier. Killed in between, it is done once more."""
        found: list[FoundRequest] = []

        def take(given: object) -> None:
            found.append(self._first(given))
            if len(found) >= BATCH:
                self.folder.begin(found)
                found.clear()
                self._watch.begin(START)  # a long list is no call that hangs

        try:
            await self._start.each(START, take, self.folder.arguments)
        except Mistake as mistake:
            raise JobError(self._functions.mask(f"start of {self.job.name}: {mistake}")) from None
        self.folder.begin(found)
        self.folder.frontier.note(begun=True)

    def _first(self, given: object) -> FoundRequest:
        if isinstance(given, str):
            given = Request(given)
        if not isinstance(given, Request):
            raise Mistake(f"start brought {given!r:.60}, expected an address or a Request")
        return self._functions.to_found(given, None, self._first_reader, 0, starts=True)

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
    def inflight(self) -> int:
        """Requests in flight."""
        return self.engine.inflight

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


def make_credentials(job: Job, folder: JobFolder, hosts: frozenset[str], tools: JobTools) -> Credentials | None:
    """What lets the job in. Raises JobError for a secret that is not there."""
    if job.auth is None:
        return None
    try:
        return Credentials(job.auth, hosts, tools.clock, TokenFile(folder.path / TOKENS), tools.memory)
    except ValueError as error:
        raise JobError(f"auth of {job.name}: {error}") from None


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
        hosts = start_hosts(urls)
    except (ValueError, TypeError, AttributeError) as error:
        raise JobError(f"start of {job.name}: {error}") from None
    if not hosts:
        raise JobError(f"start of {job.name} is empty, expected an address to begin with")
    return hosts
