"""What a job asks next, within its scope and budget; and what becomes of each request."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.engine.backlog import Backlog, Loader
from sanderling.engine.classes import Class
from sanderling.engine.ports import Settled
from sanderling.engine.writer import Writer
from sanderling.jobs.hosts import JobHost
from sanderling.jobs.sink import Note
from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, QueuedRequest, Waiting
from sanderling.stores.frontier_rows import End

REQUEST = 400  # bytes of memory that a request takes up until it is written, beside its data

JobWriter = Writer[Note, object, int, Waiting]


class Understood(NamedTuple):
    """What a reader made of a reply."""

    records: tuple[bytes, ...]
    found: tuple[FoundRequest, ...]


@dataclass(slots=True)
class Spent:
    """What a job has used up, in all of its runs."""

    requests: int = 0  # that were sent
    records: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a job may ask, and how much of it. Counts are those of all runs."""

    readers: Collection[str]
    hosts: Collection[str]
    max_requests: int | None = None
    max_records: int | None = None
    patience: float = 600.0


def out_of_scope(host: str, hosts: Collection[str]) -> str:
    """Why a request is left out. The first word is the host, by which `RequestFrontier.reopen_at` finds it again."""
    return f"{host} is out of scope; hosts of the job: {', '.join(sorted(hosts)[:5])}"


class JobSource(Backlog[JobHost, QueuedRequest]):
    """Hosts with the requests that wait for them, and how many came to which end."""

    def __init__(self, writer: JobWriter, loader: Loader[JobHost], bounds: Bounds, spent: Spent) -> None:
        super().__init__(loader, writer.add, JobHost)
        self.counts: Counter[End] = Counter()
        self.spent = spent
        self.bytes = 0  # of replies, in this run
        self.gone: Counter[str] = Counter()  # requests that wait for a reader that the job has not any more
        self._writer = writer
        self._bounds = bounds

    # What is next.

    def enough(self, inflight: int) -> bool:
        """Whether the budget is spent, once those in flight are answered."""
        most = self._bounds.max_requests
        return self.is_full or (most is not None and self.spent.requests + inflight >= most)

    @property
    def is_full(self) -> bool:
        """Whether there are as many records as were wanted."""
        return self._bounds.max_records is not None and self.spent.records >= self._bounds.max_records

    def take(self, host: JobHost, of: Class, now: float) -> QueuedRequest | None:
        """The next request that may be sent."""
        return self._next(host, host.pop_new if of is Class.NEW else lambda: host.pop_again(now))

    def take_untried(self, host: JobHost, now: float) -> QueuedRequest | None:
        """A request that was not sent yet, from the far end of what is known."""
        del now
        return self._next(host, host.pop_last)

    def _next(self, host: JobHost, pop: Callable[[], QueuedRequest | None]) -> QueuedRequest | None:
        found = pop()
        while found is not None and not self._may_ask(host, found):
            found = pop()
        self._loader.want(host)
        return found

    def _may_ask(self, host: JobHost, queued: QueuedRequest) -> bool:
        """Whether the request may be sent; if not, it waits or has its end."""
        if queued.reader not in self._bounds.readers:
            self.gone[queued.reader] += 1
            self.withhold(host)
            return False
        if host.name not in self._bounds.hosts:
            why = out_of_scope(host.name, self._bounds.hosts)
            self._end(host, queued, Outcome(Code.REFUSED, detail=why), End.LEFT_OUT, requests=0)
            return False
        return True

    # What became of it.

    def settled(
        self, host: JobHost, work: QueuedRequest, settled: Settled[Understood | Outcome | End], now: float
    ) -> None:
        """The host answered."""
        del now
        result = settled.result
        if isinstance(result, Understood):
            self._keep(host, work, settled.outcome, result, settled.size)
        else:
            outcome = result if isinstance(result, Outcome) else settled.outcome
            end = result if isinstance(result, End) else End.FAILED
            self._end(host, work, outcome, end, requests=host.failures(work.key) + 1)

    def _keep(self, host: JobHost, work: QueuedRequest, outcome: Outcome, found: Understood, size: int) -> None:
        if self.is_full:  # since it was sent: it is asked for again by a run that may have more
            host.put_back(work)
            return
        self.bytes += size
        self.spent.records += len(found.records)
        self._add(
            host,
            EndedRequest(
                id=work.id,
                url=work.url,
                end=End.FETCHED,
                outcome=outcome,
                depth=work.depth,
                priority=work.priority,
                records=found.records,
                found=found.found,
            ),
            sum(map(len, found.records)) + sum(REQUEST + len(each.data or b"") for each in found.found),
        )

    def later(self, host: JobHost, work: QueuedRequest, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        self.postpone(host, work, outcome, due, self._bounds.patience)

    def failed(self, host: JobHost, work: QueuedRequest, outcome: Outcome, failures: int, due: float | None) -> None:
        """It failed so many times in a row; without a due time, for good."""
        if due is None:
            self._end(host, work, outcome, End.FAILED, requests=failures)
        else:
            self.retry(host, work, outcome, failures, due)

    def _end(self, host: JobHost, work: QueuedRequest, outcome: Outcome, end: End, *, requests: int) -> None:
        self._add(
            host,
            EndedRequest(
                id=work.id,
                url=work.url,
                end=end,
                outcome=outcome,
                depth=work.depth,
                priority=work.priority,
                requests=requests,
            ),
        )

    def _add(self, host: JobHost, ended: EndedRequest, size: int = 0) -> None:
        self.counts[ended.end] += 1
        self._wait(host, -1)
        self._writer.add(ended, size)

    def add_waiting(self, name: tuple[str, int], number: int) -> JobHost:
        """So many more requests wait on disk, for a host and of a priority."""
        host = self.host(name[0])
        host.wait_on_disk(name[1], number)
        self._wait(host, number)
        self._loader.want(host)
        return host
