"""One run of one job in one folder: the engine, with what is special about jobs."""

from collections import Counter
from dataclasses import replace
from functools import partial

from sanderling.apis.auth import FormLogin, Login, OAuth2
from sanderling.apis.credentials import Credentials
from sanderling.clock import Clock
from sanderling.crawls.errands import ErrandTools
from sanderling.crawls.folder import Checkpoint
from sanderling.crawls.kept import KeepingSender
from sanderling.crawls.run import FrontierRun
from sanderling.crawls.session import CrawlSession, Logins
from sanderling.crawls.sink import LedgerSink
from sanderling.crawls.source import LedgerWriter
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.engine.backlog import Loader
from sanderling.engine.loop import Engine
from sanderling.engine.writer import Writer
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.fetch.cache import CachingFetcher
from sanderling.fetch.transport import Transport
from sanderling.ids import host_of
from sanderling.jobs.aliases import AliasClaim, AliasClaims, AliasVerdict
from sanderling.jobs.calls import CallWatch, Mistake, Unwatched, UserFunction
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.functions import JobFunctions
from sanderling.jobs.handler import JobHandler, Result, ScopedSender
from sanderling.jobs.hosts import JobHost
from sanderling.jobs.job import Job, JobError, JobStartError
from sanderling.jobs.request import LONGEST_URL, Request
from sanderling.jobs.rules import JobRules
from sanderling.jobs.source import JobBudget, JobScope, JobSource, ended
from sanderling.jobs.watchdog import Stuck, read_stuck, write_stuck
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import RobotsWork
from sanderling.pages.permissions import Permissions
from sanderling.pages.rendering import PageRendering
from sanderling.pages.robots import LONGEST_DELAY
from sanderling.pages.urls import normalise
from sanderling.stores.frontier_requests import FoundRequest, QueuedRequest
from sanderling.stores.frontier_rows import End
from sanderling.stores.token_file import FILE as TOKENS
from sanderling.stores.token_file import TokenFile

START = "start"  # what the watchdog knows the function by that says where to begin
ROBOTS_HELD = 16 * 2**20  # bytes of rules of robots.txt in memory
BATCH = 5000  # requests that a job starts with, written at once


class JobRun(FrontierRun[JobFolder, JobSource]):
    """One run of one job. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self,
        folder: JobFolder,
        transport: Transport[Sends],
        executor: Executor,
        *,
        rules: JobRules,
        clock: Clock,
        watch: CallWatch | None = None,
    ) -> None:
        """The executor does blocking work in order and one at a time."""
        self.job = job = folder.job
        self._watch = watch or Unwatched()
        self._first_reader = job.first_reader
        ledger, limiter, memory = folder.ledger, transport.limiter, transport.memory
        self._scope = scope = JobScope(hosts_of(job))
        # Pages that were kept are asked of nobody.
        obeys = bool(job.patterns) and not isinstance(transport.http, StoredReplies)
        self._budget = JobBudget(job, scope, obeys, ledger.meta.requests, ledger.meta.records)
        self._budget.twice = lambda: folder.twice
        self._credentials = make_credentials(job, folder, scope, clock, memory)
        self.functions = JobFunctions(job, folder.arguments, self._credentials, self._watch, scope)
        session = CrawlSession(folder.cookies, transport.hosts, clock)
        sink = LedgerSink(folder, executor, session=session)
        writer: LedgerWriter = Writer(
            sink, lambda: Checkpoint(self._budget.requests, folder.positions), clock, rules.writing
        )
        loader: Loader[JobHost] = Loader(ledger.take_requests, executor, clock, rules.again[-1])
        if obeys:
            rules = replace(rules, longest_pace=max(rules.longest_pace, LONGEST_DELAY))
        asks = self.across(folder.others, ErrandTools(folder.before(transport.http), limiter, memory, executor, clock))
        if folder.keep is not None:
            clean = str if self._credentials is None else self._credentials.clean
            asks = KeepingSender(asks, folder.keep, writer.add, clock, clean)
        # Wherever robots.txt is: a redirect of it is followed, and it is no request of the job's budget.
        follower = Fetcher(session.sender(asks), limiter, clock=clock, job=job.name, retry=False)
        permissions = Permissions(follower, ledger, executor, memory, clock, ROBOTS_HELD)
        source = JobSource(writer, loader, self._budget, permissions, limiter, rules)
        tokens = {job.auth.host} if isinstance(job.auth, OAuth2 | Login | FormLogin) else set()
        logins = rules.logins + ((job.auth,) if isinstance(job.auth, FormLogin) else ())
        obeyed = permissions if obeys else None
        within = ScopedSender(asks, JobScope(scope | tokens | {each.host for each in logins}), self._budget, obeyed)
        within.open = lambda url: any(each.is_page(url) for each in logins)
        http = session.sender(within)
        # Each try is one request: when the next is due, the engine says.
        if transport.cache is None:
            fetcher = Fetcher(http, limiter, clock=clock, job=job.name, retry=False)
        else:
            fetcher = CachingFetcher(http, limiter, clock=clock, job=job.name, retry=False, cache=transport.cache)
        self._logins = Logins(rules.hosts, fetcher, follower, memory, clock, self.stop)
        handler = JobHandler(self._logins, within, self.functions, memory, clock, self.stop)
        if transport.renderer is not None:
            handler.rendering = PageRendering(transport.renderer, follower, limiter, permissions, memory)
        engine: Engine[JobHost, QueuedRequest | RobotsWork, Result] = Engine(
            source, handler, writer, limiter, clock, rules
        )
        super().__init__(folder, source, engine, loader, limiter, executor)
        self._claims = handler.claims = None
        if folder.others is not None:
            self._claims = handler.claims = AliasClaims(folder.others, executor, self._is_ending)

    async def run(self) -> bool:
        """Ask until nothing waits, the budget is spent, or it was stopped; whether all is decided.

        Raises JobError if the job cannot say where to begin, or is not let in, and LoginError if a host is not.
        """
        ledger = self.folder.ledger
        self._heed_stuck()
        if not ledger.meta.begun and self.folder.is_first:
            await self._begin()
        if self.counts[End.LEFT_OUT]:  # the scope may be another
            self.source.counts[End.LEFT_OUT] -= ledger.reopen_at(self._scope)
        try:
            await self.ask_for(ledger.waiting_by_priority())
        finally:
            if self._credentials is not None:
                await self._credentials.close()
            await self._logins.close()
        if self._credentials is not None and (why := self._credentials.denied):
            raise JobError(f"auth of {self.job.name}: {why}. Nothing is lost: put the secret right and run again.")
        return not self.source.waiting

    def accept(self, found: FoundRequest | AliasClaim | AliasVerdict) -> None:
        """Another part has found a request of ours, or asks or tells who keeps a page."""
        if not isinstance(found, AliasVerdict):
            super().accept(found)
        elif self._claims is not None:
            self._claims.hear(found)

    def rest_of(self, found: list[FoundRequest | AliasClaim | AliasVerdict]) -> list[FoundRequest | AliasClaim]:
        """All but verdicts, which nobody waits for any more."""
        return [each for each in found if not isinstance(each, AliasVerdict)]

    def _heed_stuck(self) -> None:
        """What held the event loop in an earlier run is asked for last; what did so twice has failed."""
        stuck = read_stuck(self.folder.path)
        if not stuck:
            return
        if (start := stuck.pop(START, None)) is not None and start.ends:
            write_stuck(self.folder.path, stuck)
            raise JobError(f"start of {self.job.name}: {start.reason}")
        for key, found in list(stuck.items()):
            queued = queued_by(self.folder, key)
            if queued is not None:
                self.source.counts[End.FAILED] += heed_stuck(self.folder, queued, found)
            if queued is None or found.ends:
                del stuck[key]
        write_stuck(self.folder.path, stuck)

    async def _begin(self) -> None:
        """Put all that the job starts with into the frontiers. Killed in between, it is done once more."""
        found: list[FoundRequest] = []
        broken: list[Exception] = []  # what went wrong with the folder, which is no mistake of the job's

        def take(given: object) -> None:
            found.extend(self._first(given))
            if len(found) >= BATCH:
                self._watch.end()  # a long list is no call that hangs, and a disk or a server that is slow is none
                try:
                    self.folder.commit([], found)
                except Exception as error:
                    broken.append(error)
                    raise
                found.clear()
                self._watch.begin(START)

        try:
            if callable(self.job.start):
                await UserFunction(self.job.start, self._watch).each(START, take, self.folder.arguments)
            else:
                for given in started_with(self.job):
                    take(given)
        except Mistake as mistake:
            if broken:
                raise broken[0] from None
            raise JobStartError(self.functions.mask(f"start of {self.job.name}: {mistake}")) from None
        await self._executor(self.folder.commit, [], found)
        await self._executor(partial(self.folder.ledger.note, begun=True))

    def _first(self, given: object) -> list[FoundRequest]:
        if isinstance(given, str):
            given = Request(given)
        if not isinstance(given, Request):
            raise Mistake(f"start brought {given!r:.60}, expected an address or a Request")
        found = self.functions.to_found(given, None, self._first_reader, 0, starts=True)
        return [] if found is None else [found]

    @property
    def counts(self) -> Counter[End]:
        """Requests by their end."""
        found = Counter(self.source.counts)
        found.update(self.folder.more)
        return found

    @property
    def requests(self) -> int:
        """Requests that were sent, in all runs."""
        return self._budget.requests

    @property
    def records(self) -> int:
        """Records that were kept, in all runs."""
        return self._budget.kept


def queued_by(folder: JobFolder, key: str) -> QueuedRequest | None:
    """The request that the watchdog knows by this key, if it waits."""
    return folder.ledger.waiting_request(int(key.partition(" ")[0]))


def heed_stuck(folder: JobFolder, queued: QueuedRequest, stuck: Stuck) -> bool:
    """Have a request that held the event loop asked for last; one that did so twice has failed. Whether it has."""
    if not stuck.ends:
        folder.ledger.put_last(queued)
        return False
    outcome = Outcome(Code.PARSE_ERROR, detail=stuck.reason)
    folder.commit([ended(queued, outcome, End.FAILED, requests=stuck.times)], [])
    return True


def make_credentials(
    job: Job, folder: JobFolder, hosts: frozenset[str], clock: Clock, memory: Memory
) -> Credentials | None:
    """What lets the job in. Raises JobError for a secret that is not there."""
    if job.auth is None:
        return None
    try:
        return Credentials(job.auth, hosts, clock, TokenFile(folder.root / TOKENS), memory)
    except ValueError as error:
        raise JobError(f"auth of {job.name}: {error}") from None


def started_with(job: Job) -> list[str | Request]:
    """What a job starts with that has no function for it."""
    assert not callable(job.start)  # noqa: S101 - the caller has looked
    return [job.start] if isinstance(job.start, str | Request) else list(job.start)


def hosts_of(job: Job) -> tuple[str, ...]:
    """The hosts that may be asked: those of the job, or those of what it starts with. Raises JobError."""
    if job.hosts:
        return job.hosts
    if callable(job.start):
        raise JobError(f"{job.name} has a function as start, and no hosts; expected hosts=(…) that may be asked")
    try:
        urls = [each.url if isinstance(each, Request) else each for each in started_with(job)]
        if job.patterns:
            urls = [normalise(each, None, LONGEST_URL) for each in urls]
        hosts = tuple(dict.fromkeys(map(host_of, urls)))
    except (ValueError, TypeError, AttributeError) as error:
        raise JobError(f"start of {job.name}: {error}") from None
    if not hosts:
        raise JobError(f"start of {job.name} is empty, expected an address to begin with")
    return hosts
