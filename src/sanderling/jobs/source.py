"""What a job asks next, within its scope and budget; and what becomes of each request."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sanderling.crawls.source import LedgerWriter
from sanderling.engine.backlog import Loader
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.jobs.hosts import JobHost
from sanderling.jobs.job import Job
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import RobotsWork
from sanderling.pages.permissions import Permissions, RobotsAnswer
from sanderling.pages.robots_source import RobotsSource
from sanderling.pages.urls import CrawlScope
from sanderling.stores.board import BoardField
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, QueuedRequest, SpoiledRecords
from sanderling.stores.frontier_rows import BodyFile, End

REQUEST = 400  # bytes of memory that a request takes up until it is written, beside its data


class Understood(NamedTuple):
    """What a reader made of a reply."""

    records: tuple[bytes, ...]
    found: tuple[FoundRequest, ...]
    body: BodyFile | None = None  # a screenshot
    spoiled: SpoiledRecords | None = None
    alias: FoundRequest | None = None  # the address that a redirect led to


class JobScope(frozenset[str]):
    """The hosts of a job. `*.example.org` stands for example.org and everything below it."""

    def __contains__(self, host: object) -> bool:
        return super().__contains__(host) or (isinstance(host, str) and CrawlScope(frozenset(self), 0).allows(host))


@dataclass(slots=True)
class JobBudget:
    """What a job may ask for, and what it has used up of that in all of its runs."""

    job: Job
    hosts: JobScope  # that may be asked
    obeys_robots: bool = False
    requests: int = 0  # that were sent
    records: int = 0
    twice: Callable[[], int] = lambda: 0  # of these, records that were there already

    @property
    def kept(self) -> int:
        """Records that are kept, or will be once they are written."""
        return self.records - self.twice()


def reaches(number: int, most: int | None) -> bool:
    """Whether there are as many as may be, if there is a limit."""
    return most is not None and number >= most


def out_of_scope(host: str, hosts: Collection[str]) -> str:
    """Why a request is left out. The first word is the host, by which `RequestFrontier.reopen_at` finds it again."""
    return f"{host} is out of scope; hosts of the job: {', '.join(sorted(hosts)[:5])}"


class JobSource(RobotsSource[JobHost, QueuedRequest]):
    """Hosts with the requests that wait for them, and how many came to which end."""

    def __init__(
        self,
        writer: LedgerWriter,
        loader: Loader[JobHost],
        budget: JobBudget,
        permissions: Permissions,
        limiter: Limiter,
        rules: EngineRules,
    ) -> None:
        super().__init__(writer, loader, JobHost, permissions, limiter, rules)
        self.budget = budget
        self.gone: Counter[str] = Counter()  # requests that wait for a reader that the job has not any more

    # What is next.

    def enough(self, inflight: int) -> bool:
        """Whether the budget is spent, once those in flight are answered."""
        job = self.budget.job
        return (
            self._is_full
            or self._reaches(BoardField.REQUESTS, self.budget.requests + inflight, job.max_requests)
            or self._reaches(BoardField.ANSWERED, self.answered + inflight, job.max_answers)
        )

    def _reaches(self, field: BoardField, own: int, most: int | None) -> bool:
        """Whether all parts together have as many as may be, if there is a limit."""
        return most is not None and self.with_others(field, own) >= most

    @property
    def _is_full(self) -> bool:
        """Whether there are as many records as were wanted."""
        return self._reaches(BoardField.RECORDS, self.budget.kept, self.budget.job.max_records)

    @property
    def answered(self) -> int:
        """Requests that were asked for and have their end, also from what was kept."""
        return self.counts[End.FETCHED] + self.counts[End.FAILED]

    def check(self, host: JobHost, queued: QueuedRequest, now: float) -> QueuedRequest | RobotsWork | None:
        """The request if it may be sent; if not, it waits or has its end."""
        if queued.reader not in self.budget.job.readers:
            self.gone[queued.reader] += 1
            self.withhold(host)
            return None
        if host.name not in self.budget.hosts:
            why = out_of_scope(host.name, self.budget.hosts)
            self.end(host, queued, Outcome(Code.REFUSED, detail=why), End.LEFT_OUT, requests=0)
            return None
        return self.check_robots(host, queued, now) if self.budget.obeys_robots else queued

    # What became of it.

    def settled(
        self,
        host: JobHost,
        work: QueuedRequest | RobotsWork,
        settled: Settled[Understood | Outcome | End | RobotsAnswer],
        now: float,
    ) -> None:
        """The host answered, or robots.txt was asked for."""
        result = settled.result
        if isinstance(work, RobotsWork):
            self.learned(host, work.key, settled.outcome, result, now)
        elif isinstance(result, Understood):
            self._keep(host, work, settled.outcome, result, settled.size)
        else:
            outcome = result if isinstance(result, Outcome) else settled.outcome
            end = result if isinstance(result, End) else End.FAILED
            self.end(host, work, outcome, end, requests=host.failures(work.key) + 1)

    def _keep(self, host: JobHost, work: QueuedRequest, outcome: Outcome, read: Understood, size: int) -> None:
        if self._is_full:  # since it was sent: it is asked for again by a run that may have more
            host.put_back(work)
            return
        self.bytes += size
        self.budget.records += len(read.records)
        self.counts[End.FAILED] += read.spoiled is not None
        self.add(
            host,
            ended(work, outcome, End.FETCHED, **read._asdict()),
            sum(map(len, read.records))
            + sum(REQUEST + len(each.data or b"") for each in read.found)
            + (0 if read.body is None else len(read.body.data)),
        )

    def unfetched(self, queued: QueuedRequest, outcome: Outcome, end: End, requests: int) -> EndedRequest:
        """No record of it: the ledger keeps the reason."""
        return ended(queued, outcome, end, requests=requests)

    def add_waiting(self, name: tuple[str, int], number: int) -> JobHost:
        """So many more requests wait on disk, for a host and of a priority."""
        host = self.host(name[0])
        host.wait_on_disk(name[1], number)
        self._wait(host, number)
        self._loader.want(host)
        return host


def ended(queued: QueuedRequest, outcome: Outcome, end: End, **more: Any) -> EndedRequest:  # noqa: ANN401 - its fields
    """What became of a request."""
    return EndedRequest(
        id=queued.id,
        url=queued.url,
        end=end,
        outcome=outcome,
        depth=queued.depth,
        priority=queued.priority,
        **more,
    )
