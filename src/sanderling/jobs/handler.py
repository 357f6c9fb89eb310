"""Sends one request of a job and has its reply read by the function that the job names. Nothing here decides when."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sanderling.apis.credentials import Answered
from sanderling.clock import Clock
from sanderling.engine.ports import Settled
from sanderling.fetch.attempts import Fetched, Fetcher, Read, Sends
from sanderling.fetch.guard import Refused
from sanderling.jobs.calls import Mistake
from sanderling.jobs.functions import Collected, JobFunctions
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import MOST_PRIORITY, Request, StoredRequest, unpack
from sanderling.jobs.source import Spent, Understood, out_of_scope
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier_requests import QueuedRequest
from sanderling.stores.frontier_rows import End
from sanderling.task import Blame, Reply, Task


class ScopedSender:
    """A client that sends to the hosts of a job and to no other, wherever a redirect leads; it counts requests.

    `strays` has the holders of tasks that led elsewhere.
    """

    def __init__(self, http: Sends, hosts: frozenset[str], spent: Spent) -> None:
        self._http = http
        self._hosts = hosts
        self._spent = spent
        self.strays: set[str] = set()

    async def send(self, task: Task) -> Reply:
        """The reply. Raises Refused, or what the client raises."""
        if task.host not in self._hosts:
            self.strays.add(task.holder)
            raise Refused(out_of_scope(task.host, self._hosts))
        try:
            return await self._http.send(task)
        finally:
            self._spent.requests += 1


class JobHandler:
    """Sends requests for which there is leave."""

    def __init__(
        self,
        fetcher: Fetcher,
        strays: set[str],
        functions: JobFunctions,
        memory: Memory,
        clock: Clock,
        stop: Callable[[], None],
    ) -> None:
        self._strays = strays
        self._stop = stop  # called where nothing can be asked: a token was denied
        self._fetcher = fetcher
        self._functions = functions
        self._memory = memory
        self._clock = clock
        self._reading: set[int] = set()

    async def __call__(self, work: QueuedRequest, permit: Permit, blame: Blame) -> Settled[Understood | Outcome | End]:
        """What came of it. No secret is in what is said of it, whoever says it."""
        settled = await self._settle(work, permit, blame)
        settled.outcome = self._masked(settled.outcome)
        if isinstance(settled.result, Outcome):
            settled.result = self._masked(settled.result)
        return settled

    def _masked(self, outcome: Outcome) -> Outcome:
        return replace(outcome, detail=self._functions.mask(outcome.detail)) if outcome.detail else outcome

    async def _settle(self, work: QueuedRequest, permit: Permit, blame: Blame) -> Settled[Understood | Outcome | End]:
        key, stored = f"{work.id} {work.url}", unpack(work.data)
        request = Request(
            work.url,
            read=work.reader,
            method=stored.method,
            headers=stored.headers,
            body=stored.body,
            data=stored.data,
            priority=max(work.priority, -MOST_PRIORITY),  # one that was stuck is behind all that a job can say
        )
        try:
            sent = await self._functions.prepare(key, request) if self._functions.before else request
            task = Task(sent.url, sent.method, sent.pairs, sent.content, blame=blame, holder=str(work.id))
        except (Mistake, ValueError) as mistake:
            return Settled(Outcome(Code.PARSE_ERROR, detail=str(mistake)))
        if task.host != work.host:  # for which there is no leave
            said = f"a function before the request has changed its host from {work.host} to {task.host}"
            return Settled(Outcome(Code.PARSE_ERROR, detail=said))
        try:
            fetched = await self._fetch(task, permit, self._judging(key, request))
            if str(work.id) in self._strays:
                return Settled(fetched.outcome, End.LEFT_OUT)
            if fetched.outcome.code is Code.NOT_MODIFIED:
                return Settled(
                    replace(fetched.outcome, code=Code.HTTP_ERROR, detail="304 Not Modified: it has no body")
                )
            if fetched.reply is None or not fetched.outcome.ok:
                return Settled(fetched.outcome)
            self._reading.add(work.id)
            understood = await self._understand(key, work, request, stored, fetched.reply)
            return Settled(fetched.outcome, understood, size=len(fetched.reply.body))
        finally:
            self._reading.discard(work.id)
            self._strays.discard(str(work.id))
            self._memory.release(str(work.id))

    async def _fetch(self, task: Task, permit: Permit, read: Read | None) -> Fetched | Answered:
        if self._functions.credentials is None:
            return await self._fetcher.fetch(task, permit, read)
        answered = await self._functions.credentials.fetch(self._fetcher, task, permit, read)
        if self._functions.credentials.denied:
            self._stop()
        return answered

    def received(self, work: QueuedRequest) -> int | None:
        """Bytes of the answer so far; None while it is read, which sends nothing."""
        return None if work.id in self._reading else self._memory.held(str(work.id))

    def _judging(self, key: str, request: Request) -> Read | None:
        """What the job makes of a reply, where it has a word on that."""
        if self._functions.after or self._functions.answers is not None:
            return partial(self._judge, key, request)
        return None

    async def _judge(self, key: str, request: Request, raw: Reply, outcome: Outcome) -> Outcome:
        reply = JobReply(raw, request, self._functions.arguments)
        if self._functions.answers is not None:
            outcome = self._functions.answers.read(reply.parsed, outcome, self._clock.wall())
        try:
            return await self._functions.judge(key, reply, outcome)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, outcome.status, str(mistake))

    async def _understand(
        self, key: str, work: QueuedRequest, request: Request, stored: StoredRequest, raw: Reply
    ) -> Understood | Outcome:
        reply = JobReply(raw, request, self._functions.arguments)
        collected = Collected(self._functions, work, raw.url)
        following = self._functions.next_page(work, stored, reply)  # first: readers may change the document
        if isinstance(following, Outcome):
            return following
        try:
            await self._functions.readers[work.reader].each(key, collected.add, reply)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, raw.status, str(mistake))
        pages = () if following is None else (following,)
        return Understood(tuple(collected.records), (*collected.found, *pages))
