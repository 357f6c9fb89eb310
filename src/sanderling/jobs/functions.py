"""The functions and declarations of a job, ready to be used: before a request, after a reply, and for the next page."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass, replace
from functools import lru_cache, partial
from typing import Any

import msgspec

from sanderling.apis.credentials import Credentials
from sanderling.apis.paging import NextPage
from sanderling.apis.paging_chain import Chain
from sanderling.ids import host_of
from sanderling.jobs import json_values
from sanderling.jobs.calls import BadRecord, CallWatch, Mistake, UserFunction
from sanderling.jobs.job import Job
from sanderling.jobs.page import Page, PageRender
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import LONGEST_URL, Request, StoredRequest, key_of, own_key, pack, resolve
from sanderling.outcome import Code, Outcome
from sanderling.pages.urls import normalise
from sanderling.redact import HIDDEN
from sanderling.stores.frontier_requests import FoundRequest, QueuedRequest
from sanderling.task import Reply, Task

MOST_YIELDS = 100_000  # of one reply
MOST_NAMED = 20  # records that are wrong, in the words on their page
MOST_PASSED_OVER = 1000  # links that lead to no page of the job and are told apart

NOT_RECORDS = (str, bytes, bytearray, int, float, bool, type(None))


class JobFunctions:
    """The functions of a job. All that they do wrong is raised as a Mistake."""

    def __init__(
        self,
        job: Job,
        arguments: Mapping[str, Any],
        credentials: Credentials | None,
        watch: CallWatch,
        hosts: Collection[str] = (),
    ) -> None:
        self.passed_over: Counter[str] = Counter()  # links of pages that lead to no page of the job, in this run
        self.arguments = arguments
        self.credentials = credentials
        self.answers = job.answers
        self.readers = {name: UserFunction(reader.function, watch) for name, reader in job.readers.items()}
        self.each = [UserFunction(function, watch) for function in job.each_record]
        self.before = [UserFunction(function, watch) for function in job.before_each]
        self.after = [UserFunction(function, watch) for function in job.after_each]
        self.checks = {
            name: msgspec.json.Decoder(reader.record)
            for name, reader in job.readers.items()
            if reader.record is not None
        }
        self.dropped = job.drop
        self.renders = job.renders
        self.statuses = {name: reader.status for name, reader in job.readers.items() if reader.status}
        self._max_depth = job.max_depth
        self._patterns = job.patterns
        self._hosts = hosts
        self._key = None if job.key is None else UserFunction(job.key, watch)
        self._paging = job.paging

    async def prepare(self, key: str, request: Request) -> Request:
        """The request as the functions before it want it."""
        for function in self.before:
            said = await function.value(key, request)
            if isinstance(said, Request):
                request = said
            elif said is not None:
                raise Mistake(f"{function.name} returned {type(said).__name__}, expected a Request or None")
        return request

    async def judge(self, key: str, reply: JobReply, outcome: Outcome) -> Outcome:
        """The outcome as the functions after it want it."""
        for function in self.after:
            said = await function.value(key, reply)
            if isinstance(said, Outcome):
                return replace(said, status=outcome.status, retry_after=said.retry_after or outcome.retry_after)
            if said is not None:
                wanted = "job.missing(), job.refused(), job.failed() or None"
                raise Mistake(f"{function.name} returned {type(said).__name__}, expected {wanted}")
        return outcome

    def reply_for(self, reader: str, raw: Reply, request: Request, rendered: PageRender | None = None) -> JobReply:
        """What a reader is given: a page if it reads pages. Raises Mistake for one that its pattern does not fit."""
        pattern = self._patterns.get(reader)
        if pattern is None:
            return JobReply(raw, request, self.arguments)
        captures = pattern.match(request.url)
        if captures is None and pattern.names:
            raise Mistake(f"{reader} reads {pattern.text}, which does not fit {request.url[:200]}")
        return Page(raw, request, self.arguments, captures, rendered)

    def reader_of(self, url: str, reader: str) -> str | None:
        """Who reads an address that `reader` has named: of pages the function that it fits, if there is one."""
        if reader not in self._patterns:
            return reader
        host = host_of(url)
        if self._hosts and host not in self._hosts:
            return None
        return next((name for name, pattern in self._patterns.items() if pattern.match(url) is not None), None)

    def to_found(
        self, request: Request, base: str | None, reader: str, depth: int, *, starts: bool
    ) -> FoundRequest | None:
        """What goes into the frontier; what a job `starts` with is paged as the job says.

        None for a link of a page that leads to no page of the job.
        """
        name = request.read
        try:
            url = self._clean(self._resolved(request.url, base))
            name = name or self.reader_of(url, reader)
        except (ValueError, TypeError) as error:
            if reader not in self._patterns or starts or name is not None:
                raise Mistake(f"{request!r}: {error}") from None
            url = request.url
        if starts and name is None:
            raise Mistake(self._stray_words(url))
        if name is None or (self._max_depth is not None and depth > self._max_depth):
            self._pass_over(url)
            return None
        if name not in self.readers:
            raise Mistake(f"read is {name!r}, which is no reader; expected one of {', '.join(self.readers)}")
        paging = request.paging or (self._paging if starts else None)
        try:
            task = Task(url, request.method, request.pairs, request.content)
            task = task if paging is None else paging.begin(task)
            json_values.encode(request.data)  # raises for what would be changed
            own = request.key
            if own is None and self._key is not None:
                own = self._key.value_now(request)
            keyed = own is not None and bool(self._patterns)
            walks = request.paging or (starts and self._paging is not None)
            data = pack(StoredRequest(task.method, task.headers, task.body, request.data, walks, keyed=keyed))
        except (ValueError, TypeError, RecursionError) as error:
            raise Mistake(f"{request!r}: {error}") from None
        known_by = key_of(task.method, task.url, task.body) if own is None else own_key(str(own))
        return FoundRequest(task.url, task.host, depth, known_by, name, request.priority, data)

    def _resolved(self, url: str, base: str | None) -> str:
        """The address; in a job of pages in its one spelling, which robots.txt is asked about. Raises ValueError."""
        return normalise(url, base, LONGEST_URL) if self._patterns else resolve(url, base)

    def _stray_words(self, url: str) -> str:
        """Why a job cannot start with an address."""
        if self._hosts and (host := host_of(url)) not in self._hosts:
            return f"{host} is none of the job's hosts, expected one of {', '.join(sorted(self._hosts)[:5])}"
        known = ", ".join(pattern.text for pattern in self._patterns.values())
        return f"{url[:200]} is no page of the job, expected one of {known}"

    def _pass_over(self, url: str) -> None:
        if url in self.passed_over or len(self.passed_over) < MOST_PASSED_OVER:
            self.passed_over[url] += 1

    def next_page(self, work: QueuedRequest, stored: StoredRequest, reply: JobReply) -> FoundRequest | Outcome | None:
        """The request for the page behind this one; an Outcome if this page does not say what follows it."""
        paging = self._paging if stored.paging is True else stored.paging
        if not paging:
            return None
        task = Task(work.url, stored.method, stored.headers, stored.body)
        following = paging.next(task, reply.parsed, stored.chain)
        if not isinstance(following, NextPage):
            return following
        try:
            page = replace(following.task, url=self._clean(following.task.url))
        except ValueError as error:
            return Outcome(Code.INVALID_RESPONSE, reply.status, f"paging: {error}")
        known = key_of(page.method, page.url, page.body)
        if (page.url, page.body) == (task.url, task.body):  # what tells it from this page is in a header
            known = key_of(page.method, page.url, msgspec.json.encode((page.headers, page.body)))
        data = pack(StoredRequest(page.method, page.headers, page.body, stored.data, stored.paging, following.chain))
        return FoundRequest(page.url, page.host, work.depth + 1, known, work.reader, work.priority, data)

    def alias_of(self, work: QueuedRequest, stored: StoredRequest, url: str) -> FoundRequest | None:
        """The address that a redirect led to, where a page is known by its address."""
        if (
            work.reader not in self._patterns
            or stored.keyed
            or stored.only
            or (stored.method, stored.body) != ("GET", None)
        ):
            return None
        try:
            final = self._clean(normalise(url, None, LONGEST_URL))
        except ValueError:
            return None
        key = key_of("GET", final, None)
        if key == key_of("GET", work.url, None):
            return None
        return FoundRequest(final, host_of(final), work.depth, key, work.reader)

    def reads_pages(self, reader: str) -> bool:
        """Whether it is a page function."""
        return reader in self._patterns

    def pass_through(self, record: object) -> object:
        """The record after the functions for each; `dropped` if one of them wants it left out. Raises Mistake."""
        for function in self.each:
            said = function.value_now(record)
            if said is self.dropped:
                return said
            if said is not None and isinstance(said, NOT_RECORDS) and not isinstance(record, NOT_RECORDS):
                wanted = "a record, job.drop, or None for the record as it is"
                raise function.locate(f"{function.name} returned {said!r:.60}, expected {wanted}")
            record = record if said is None else said
        return record

    def mask(self, text: str) -> str:
        """A text without the secrets of the job."""
        return text if self.credentials is None else self.credentials.mask(text)

    def _clean(self, url: str) -> str:
        """The address without the secrets of the job, which hosts repeat in links. Raises ValueError."""
        cleaned = url if self.credentials is None else self.credentials.clean(url)
        if HIDDEN in cleaned and HIDDEN not in url:
            raise ValueError(f"{cleaned[:200]} holds a secret of the job, expected it in the query or nowhere")
        return cleaned


class Collected:
    """What a reader has yielded for one reply so far; where only some records are wanted, no others are kept."""

    def __init__(self, functions: JobFunctions, work: QueuedRequest, base: str, only: Collection[int] = ()) -> None:
        self._only = frozenset(only)
        self._bad: dict[int, str] = {}  # why records were not kept
        self._number = 0  # of records that were yielded
        self.records: list[bytes] = []
        self.found: list[FoundRequest] = []
        self._functions = functions
        self._work = work
        self._base = base
        self._check = functions.checks.get(work.reader)
        self._is_page = functions.reads_pages(work.reader)

    def add(self, value: object) -> None:
        """Take in one value: a further request, or a record. Raises Mistake, or BadRecord if only that is wrong."""
        if self._number + len(self.found) >= MOST_YIELDS:
            raise Mistake(f"more than {MOST_YIELDS:,} values for one reply; none of them is kept")
        if isinstance(value, str) and self._is_page:
            value = Request(value)
        if isinstance(value, Request):
            work = self._work
            found = self._functions.to_found(value, self._base, work.reader, work.depth + 1, starts=False)
            self.found += [] if found is None else [found]
            return
        self._number += 1
        if self._only and self._number not in self._only:
            return
        try:
            if (value := self._functions.pass_through(value)) is not self._functions.dropped:
                self.records.append(self._encode(value))
        except Mistake as mistake:
            said = str(mistake)
            said = said if said.startswith("record ") else f"record {self._number}: {said}"
            raise BadRecord(said, partial(self._bad.__setitem__, self._number)) from mistake

    def wrong(self, status: int) -> Outcome | None:
        """Why some records were not kept, if it is so."""
        for number in self._only:
            if number > self._number:
                self._bad.setdefault(number, f"record {number} is not there any more")
        if not self._bad:
            return None
        (_, said), *more = sorted(self._bad.items())
        also = f"; also records {', '.join(str(number) for number, _ in more[:MOST_NAMED])}" if more else ""
        return Outcome(Code.PARSE_ERROR, status, f"{said}{also}{' …' if len(more) > MOST_NAMED else ''}")

    def spoiled(self, stored: StoredRequest) -> FoundRequest:
        """The same request once more, for the records that were not kept."""
        work = self._work
        again = msgspec.structs.replace(stored, only=tuple(sorted(self._bad)), paging=False, chain=Chain())
        key = key_of("RECORDS", str(work.id), None)
        return FoundRequest(work.url, work.host, work.depth, key, work.reader, work.priority, pack(again))

    def _encode(self, value: object) -> bytes:
        if self._check is None and isinstance(value, NOT_RECORDS):
            raise Mistake(f"{value!r:.60} is no record, expected a dict, a list, a struct, a dataclass or a Request")
        number = self._number
        try:
            record = json_values.encode(value)
        except ValueError as error:
            raise Mistake(f"record {number} is no JSON: {error}") from None
        kind: Any = type(value)
        if (check := self._check or _check_of(kind)) is not None:
            try:
                check.decode(record)
            except msgspec.MsgspecError as error:
                name = getattr(check.type, "__name__", check.type)
                raise Mistake(f"record {number} is no {name}: {error}: {record[:100]!r}") from None
        return record


@lru_cache(maxsize=256)
def _check_of(kind: Any) -> msgspec.json.Decoder[Any] | None:  # noqa: ANN401 - a type
    """What checks records of a type of the user's, which says what its fields are and does not look."""
    if not (issubclass(kind, msgspec.Struct) or is_dataclass(kind)):
        return None
    try:
        return msgspec.json.Decoder(kind)
    except TypeError:  # it says what JSON cannot tell apart
        return None
