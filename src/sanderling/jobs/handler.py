"""Sends one request of a job and has its reply read by the function that the job names. Nothing here decides when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from sanderling.engine.ports import Settled
from sanderling.fetch.attempts import Fetcher
from sanderling.flow.memory import Memory
from sanderling.ids import HostError
from sanderling.jobs.calls import Mistake, UserFunction, Watches
from sanderling.jobs.job import Job
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import Request, Stored, resolve, to_found, unpack
from sanderling.jobs.source import Spent, Understood
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier_requests import FoundRequest, QueuedRequest
from sanderling.task import Blame, Reply, Task

MOST_YIELDS = 100_000  # of one reply

NOT_RECORDS = (str, bytes, bytearray, int, float, bool, type(None))


class JobFunctions:
    """The functions of a job, ready to be called."""

    def __init__(self, job: Job, arguments: Mapping[str, Any], watch: Watches) -> None:
        self.job = job
        self.arguments = arguments
        self.readers = {name: UserFunction(reader.function, watch) for name, reader in job.readers.items()}
        self.before = [UserFunction(function, watch) for function in job.before_each]
        self.after = [UserFunction(function, watch) for function in job.after_each]
        self.key = None if job.key is None else UserFunction(job.key, watch)
        self.checks = {
            name: msgspec.json.Decoder(reader.record)
            for name, reader in job.readers.items()
            if reader.record is not None
        }

    async def prepare(self, key: str, request: Request) -> Request:
        """The request as the functions before it want it. Raises Mistake."""
        for function in self.before:
            said = await function.value(key, request)
            if isinstance(said, Request):
                request = said
            elif said is not None:
                raise Mistake(f"{function.name} returned {type(said).__name__}, expected a Request or None")
        return request

    async def judge(self, key: str, reply: JobReply, outcome: Outcome) -> Outcome:
        """The outcome as the functions after it want it. Raises Mistake."""
        for function in self.after:
            said = await function.value(key, reply)
            if isinstance(said, Outcome):
                return replace(said, status=outcome.status, retry_after=said.retry_after or outcome.retry_after)
            if said is not None:
                wanted = "job.missing(), job.refused(), job.failed() or None"
                raise Mistake(f"{function.name} returned {type(said).__name__}, expected {wanted}")
        return outcome

    def to_found(
        self, request: Request, *, base: str | None, reader: str, depth: int, stored: Stored | None = None
    ) -> FoundRequest:
        """What goes into the frontier. Raises Mistake."""
        name = request.read or reader
        if name not in self.readers:
            raise Mistake(f"read is {name!r}, which is no reader; expected one of {', '.join(self.readers)}")
        if stored is None:
            paging = None if request.paging is None else msgspec.to_builtins(request.paging)
            stored = Stored(request.method, request.pairs, request.content, request.data, paging)
        try:
            url, key = resolve(request.url, base), request.key
            if key is None and self.key is not None:
                key = self.key.value_now(url, request)
            return to_found(request, url=url, reader=name, depth=depth, key=key, stored=stored)
        except (HostError, ValueError, TypeError) as error:
            raise Mistake(f"{request!r}: {error}") from None


@dataclass(slots=True)
class Collected:
    """What a reader has yielded so far."""

    functions: JobFunctions
    work: QueuedRequest
    base: str
    records: list[bytes]
    found: list[FoundRequest]
    yields: int = 0

    def add(self, value: object) -> None:
        """Take in one value: a further request, or a record. Raises Mistake."""
        self.yields += 1
        if self.yields > MOST_YIELDS:
            raise Mistake(f"more than {MOST_YIELDS:,} values for one reply; none of them is kept")
        if isinstance(value, Request):
            reader, depth = self.work.reader, self.work.depth + 1
            self.found.append(self.functions.to_found(value, base=self.base, reader=reader, depth=depth))
        else:
            self.records.append(self._encode(value))

    def _encode(self, value: object) -> bytes:
        check = self.functions.checks.get(self.work.reader)
        if check is None and isinstance(value, NOT_RECORDS):
            raise Mistake(f"{value!r:.60} is no record, expected a dict, a list, a struct, a dataclass or a Request")
        try:
            record = msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise Mistake(f"record {len(self.records) + 1} is no JSON: {error}") from None
        if check is not None:
            try:
                check.decode(record)
            except msgspec.MsgspecError as error:
                kind = getattr(check.type, "__name__", check.type)
                raise Mistake(f"record {len(self.records) + 1} is no {kind}: {error}: {record[:100]!r}") from None
        return record


class JobHandler:
    """Sends requests for which there is leave, and counts them."""

    def __init__(self, fetcher: Fetcher, functions: JobFunctions, memory: Memory, spent: Spent) -> None:
        self._fetcher = fetcher
        self._functions = functions
        self._memory = memory
        self._spent = spent
        self._reading: set[int] = set()

    async def __call__(self, work: QueuedRequest, permit: Permit, blame: Blame) -> Settled[Understood | Outcome]:
        """What came of it."""
        key, stored = f"{work.id} {work.url}", unpack(work.data)
        request = Request(
            work.url,
            read=work.reader,
            method=stored.method,
            headers=stored.headers,
            body=stored.body,
            data=stored.data,
            priority=work.priority,
        )
        try:
            sent = await self._functions.prepare(key, request)
            task = Task(sent.url, sent.method, sent.pairs, sent.content, blame=blame, holder=str(work.id))
        except (Mistake, ValueError) as mistake:
            return Settled(Outcome(Code.PARSE_ERROR, detail=str(mistake)))
        requests = 1
        try:
            fetched = await self._fetcher.fetch(task, permit, self._judging(key, request))
            requests = fetched.requests
            if fetched.reply is None or not fetched.outcome.ok:
                return Settled(fetched.outcome)
            self._reading.add(work.id)
            understood = await self._understand(key, work, request, fetched.reply)
            return Settled(fetched.outcome, understood, size=len(fetched.reply.body))
        finally:
            self._spent.requests += requests
            self._reading.discard(work.id)
            self._memory.release(str(work.id))

    def received(self, work: QueuedRequest) -> int | None:
        """Bytes of the answer so far; None while it is read, which sends nothing."""
        return None if work.id in self._reading else self._memory.held(str(work.id))

    def _judging(self, key: str, request: Request) -> Callable[[Reply, Outcome], Any] | None:
        """What the job makes of a reply, where it has a word on that."""
        return partial(self._judge, key, request) if self._functions.after else None

    async def _judge(self, key: str, request: Request, reply: Reply, outcome: Outcome) -> Outcome:
        try:
            return await self._functions.judge(key, JobReply(reply, request, self._functions.arguments), outcome)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, outcome.status, str(mistake))

    async def _understand(self, key: str, work: QueuedRequest, request: Request, raw: Reply) -> Understood | Outcome:
        reply = JobReply(raw, request, self._functions.arguments)
        collected = Collected(self._functions, work, raw.url, [], [])
        try:
            await self._functions.readers[work.reader].each(key, collected.add, reply)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, raw.status, str(mistake))
        return Understood(tuple(collected.records), tuple(collected.found))
