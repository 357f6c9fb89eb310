"""The functions of a job at work: they are given responses, and what they yield becomes lines and requests.

In a reader process this is all that runs of a job; `async` functions run in the crawl's own process by the same code.
"""

import asyncio
import inspect
import sys
import traceback
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from sanderling.crawl.job import Job, JobError, JobFunction
from sanderling.crawl.page import Page, Reply, request_of
from sanderling.crawl.paging import Chain, Target
from sanderling.crawl.request import Request, Stored, request_key
from sanderling.crawl.scope import CrawlScope, ScopeRules
from sanderling.crawl.urls import absolute
from sanderling.crawl.values import encode_value
from sanderling.crawl.work import LARGEST_MEANING, SITEMAP, FoundRequest, Head, ReadAnswer, Work
from sanderling.ids import host_of, url_key
from sanderling.outcome import Code, Outcome
from sanderling.redact import redact

MOST_VALUES = 100_000  # of one response
MOST_NAMED = 20  # records that are wrong, in the words on their page
LONGEST = 60.0  # seconds that an async function may take

_PLAIN = (str, bytes, bytearray, int, float, bool, type(None))
# Set in a process that runs a job's file to read its functions, and not to crawl.
reading_only = False


class FunctionError(Exception):
    """What a function of a job did is wrong. The message says what, and where."""


def load_job(source: bytes, path: Path) -> Job:
    """The job in a file with this text. Raises JobError for a file that does not run, or has not one job."""
    global reading_only  # noqa: PLW0603 - what the file calls has to know
    name = f"sanderling_job_{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    before, reading_only = reading_only, True
    try:
        exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102 - the file is the user's own program
    except JobError as error:
        raise JobError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        raise JobError(f"{path} does not run: {place_of(error, str(path))}") from error
    finally:
        reading_only = before
    jobs = {id(each): each for each in vars(module).values() if isinstance(each, Job)}
    if len(jobs) != 1:
        found = f"{len(jobs)} jobs" if jobs else "no job"
        raise JobError(f'{path} has {found}; expected one, as in job = Job("posts", start="https://…")')
    return next(iter(jobs.values()))


def place_of(error: BaseException, file: str) -> str:
    """An error in words, with the line of the user's file that it is from."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({Path(error.filename or file).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file] or frames[-1:]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return redact(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place}")


class Functions:
    """A job's functions, ready to read responses."""

    def __init__(self, job: Job, rules: ScopeRules, arguments: Mapping[str, Any], file: str) -> None:
        self.job = job
        self.arguments = arguments
        self._file = file
        self._scope = CrawlScope(rules)
        self._checks = {
            name: msgspec.json.Decoder(each.record) for name, each in job.functions.items() if each.record is not None
        }

    @classmethod
    def open(cls, work: Work) -> "Functions":
        """Those of a reader process, with what `@job.start` opens there."""
        own = cls(load_job(work.source, Path(work.file)), work.scope, work.arguments, work.file)
        for opener in own.job.openers:
            opener()
        return own

    def read(self, head: Head, body: bytes) -> ReadAnswer:
        """What came of a response; all that a function does wrong is in it."""
        if head.function == SITEMAP:
            from sanderling.crawl.pages import read_listed  # noqa: PLC0415 - for jobs that read sitemaps

            return read_listed(head, body, self._scope, self.job.function_for)
        try:
            reading = Reading(self, head, body)
            if (judged := self.judge(reading.reply, head.at)) is not None:
                return judged
            values = self.call(reading)
            if inspect.isgenerator(values):
                for value in values:
                    reading.take(value)
            else:
                reading.take_all(values)
            return reading.answer()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function does is its page's failure
            return self.failure(error)

    async def read_async(self, head: Head, body: bytes) -> ReadAnswer:
        """The same for an async function, in the crawl's process."""
        try:
            reading = Reading(self, head, body)
            if (judged := self.judge(reading.reply, head.at)) is not None:
                return judged
            async with asyncio.timeout(LONGEST):
                values = self.call(reading)
                if isinstance(values, AsyncIterator):
                    async for value in values:
                        reading.take(value)
                else:
                    reading.take_all(await values)
            return reading.answer()
        except TimeoutError as error:
            said = f"it took more than {LONGEST:.0f} s" if not str(error) else str(error)
            return self.failure(FunctionError(f"TimeoutError: {said}"))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the same
            return self.failure(error)

    def prepare(self, request: Request, url: str) -> Request:
        """The request for `url` after the functions before each request. Raises FunctionError, and what they raise."""
        for function in self.job.before_each:
            said = function(request)
            if said is not None and not isinstance(said, Request):
                raise FunctionError(f"{function.__name__} returned {type(said).__name__}; expected a Request or None")
            request = request if said is None else said
        host, wanted = host_of(absolute(request.url, None)), host_of(url)
        if host != wanted:  # for which there is no leave
            raise FunctionError(f"a function before each request changed the host from {wanted} to {host}")
        return request

    def close(self) -> None:
        """Call what `@job.end` has."""
        for closer in self.job.closers:
            closer()

    def failure(self, error: BaseException) -> ReadAnswer:
        """The answer for a page whose function failed; nothing of it is kept."""
        said = str(error) if isinstance(error, FunctionError) else place_of(error, self._file)
        return ReadAnswer(end="", code=Code.PARSE_ERROR, detail=said[:1000])

    def judge(self, reply: Reply, wall: float) -> ReadAnswer | None:
        """What the job declares of a large reply, and the functions after each reply say of it."""
        if self.job.answers is not None and len(reply.body) > LARGEST_MEANING:
            meant = self.job.answers.read(reply.seen, wall)
            if meant is not None:
                return ReadAnswer(end="", code=meant.code, detail=meant.detail, wait=meant.retry_after)
        for function in self.job.after_each:
            said = function(reply)
            if isinstance(said, Outcome):
                return ReadAnswer(end="", code=said.code, detail=redact(said.detail), wait=said.retry_after)
            if said is not None:
                wanted = "job.missing(), job.refused(), job.failed() or None"
                raise FunctionError(f"{function.__name__} returned {type(said).__name__}; expected {wanted}")
        return None

    def call(self, reading: "Reading") -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function of a response."""
        return reading.function.function(reading.reply, **reading.captures)

    def pass_through(self, record: object) -> object:
        """The record after the functions for each; `job.drop` if one of them wants it left out."""
        for function in self.job.for_each:
            said = function(record)
            if said is self.job.drop:
                return said
            if said is not None and isinstance(said, _PLAIN) and not isinstance(record, _PLAIN):
                wanted = "a record, job.drop, or None for the record as it is"
                raise FunctionError(f"{function.__name__} returned {said!r:.60}; expected {wanted}")
            record = record if said is None else said
        return record

    def encode(self, value: object, function: str) -> bytes:
        """A record as JSON, checked. Raises FunctionError."""
        check = self._checks.get(function)
        if check is None and isinstance(value, _PLAIN):
            raise FunctionError(f"it is {value!r:.60}; expected a dict, a list, a struct, a dataclass or a Request")
        try:
            line = encode_value(value)
        except ValueError as error:
            raise FunctionError(f"it is no JSON: {error}") from None
        check = check or _check_of(type(value))  # type: ignore[arg-type] # a type can be hashed
        if check is not None:
            try:
                check.decode(line)
            except msgspec.MsgspecError as error:
                name = getattr(check.type, "__name__", check.type)
                raise FunctionError(f"it is no {name}: {error}: {line[:100]!r}") from None
        return line

    def found(self, request: Request, base: str | None, by: str, depth: int) -> FoundRequest | None:
        """What is stored of a request that the function `by` has made; "" for a start.

        None for a link that leads to no page of the job. Raises ValueError and TypeError for one that is wrong.
        """
        job, starts = self.job, not by
        url = absolute(request.url, base)
        name = request.read or (job.first_function if starts else None)
        patterns = job.patterns
        if name is None and (starts and not patterns):
            name = next(iter(job.functions))
        if name is None and patterns and (starts or by in patterns):
            name = job.function_for(url) if starts or self._scope.has_host(url.split("/", 3)[2]) else None
            if name is None and starts:
                known = ", ".join(each.text for each in patterns.values())
                raise JobError(f"{url[:200]} is no page of {job.name}; expected one of {known}")
            if name is None:
                return None
        name = name or by
        if name not in job.functions:
            raise FunctionError(f"read is {name!r:.60}; expected one of {', '.join(job.functions)}")
        is_outside = patterns or self._scope.has_host(url.split("/", 3)[2])  # of the pages; another host is said
        if is_outside and not (request.read or starts or self._scope.wants(url)):
            return None
        if job.max_depth is not None and depth > job.max_depth:
            return FoundRequest(url, name, is_deep=True)
        paging = request.paging or (job.paging if starts else None)
        target = Target(url, request.headers, request.body)
        if paging is not None:
            target = paging.begin(target)
            target = target._replace(url=absolute(target.url, None))
        encode_value(request.data)  # raises for what would be changed
        own = request.key
        if own is None and job.key is not None:
            own = job.key(request)
        walks = request.paging or (starts and job.paging is not None)
        stored = Stored(request.method, target.headers, target.body, request.data, walks, keyed=own is not None)
        key = request_key(target.url, request.method, target.body, None if own is None else str(own))
        return FoundRequest(
            target.url, name, b"" if key == url_key(target.url) else key, stored.pack(), request.priority
        )


class Reading:
    """One response that is being read."""

    def __init__(self, functions: Functions, head: Head, body: bytes) -> None:
        self._functions = functions
        self._head = head
        self._stored = Stored.unpack(head.data)
        job = functions.job
        self.function: JobFunction = job.functions[head.function]
        request = request_of(head.url, head.function, self._stored, head.priority)
        kind = Reply if self.function.pattern is None else Page
        self.reply = kind(
            head.url,
            head.status,
            head.headers,
            body,
            request=request,
            args=functions.arguments,
            depth=head.depth,
            screenshot=head.screenshot,
        )
        self.captures = self._captured(head.url)
        self._next = self._next_page()
        self._is_page = self.function.pattern is not None
        self._only = frozenset(self._stored.only)
        self._bad: dict[int, str] = {}  # why records were not kept
        self._number = 0  # of records that were yielded
        self._links: list[str] = []
        self._lines: list[bytes] = []
        self._found: list[FoundRequest] = []
        self._deep = 0

    def _captured(self, url: str) -> dict[str, str]:
        pattern = self.function.pattern
        if pattern is None:
            return {}
        captures = pattern.match(url)
        if captures is None and pattern.names:
            raise FunctionError(f"{self._head.function} reads {pattern.text}, which does not fit {url[:200]}")
        return captures or {}

    def _next_page(self) -> FoundRequest | None:
        """The request for the page behind this one. Raises FunctionError if this one does not say what follows."""
        stored, head = self._stored, self._head
        paging = self._functions.job.paging if stored.paging is True else stored.paging
        if not paging or isinstance(paging, bool):
            return None
        target = Target(head.url, stored.headers, stored.body)
        try:
            following = paging.next(target, self.reply.seen, stored.chain)
            if following is None:
                return None
            after, chain = following
            url = absolute(after.url, None)
        except ValueError as error:
            raise FunctionError(f"paging: {error}") from None
        key = request_key(url, stored.method, after.body)
        if (url, after.body) == (target.url, target.body):  # what tells it from this page is in a header
            key = request_key(url, stored.method, msgspec.msgpack.encode((after.headers, after.body)))
        data = Stored(stored.method, after.headers, after.body, stored.data, stored.paging, chain, keyed=stored.keyed)
        own = b"" if key == url_key(url) else key
        return FoundRequest(url, head.function, own, data.pack(), head.priority, no_deeper=True)

    def take_all(self, values: object) -> None:
        """What a function returned: nothing, one value, or several."""
        if (isinstance(values, list | tuple) and not hasattr(values, "_fields")) or isinstance(values, Iterator):
            for value in values:
                self.take(value)
        elif values is not None:
            self.take(values)

    def take(self, value: object) -> None:
        """One value: a further request, a link, or a record."""
        if self._number + len(self._found) + len(self._links) >= MOST_VALUES:
            raise FunctionError(f"more than {MOST_VALUES:,} values for one response; none of them is kept")
        if isinstance(value, str) and self._is_page:
            value = Request(value)
        if isinstance(value, Request):
            self._follow(value)
            return
        self._number += 1
        if self._only and self._number not in self._only:
            return
        functions = self._functions
        try:
            if (record := functions.pass_through(value)) is not functions.job.drop:
                self._lines.append(self._stamped(functions.encode(record, self._head.function)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it costs its record, and no other
            said = functions.failure(error).detail
            self._bad[self._number] = f"record {self._number}: {said}"

    def _stamped(self, line: bytes) -> bytes:
        """A record with the run and the time, where it has no such fields of its own."""
        if not line.startswith(b"{"):
            line = b'{"value":' + line + b"}"
        more = b"".join(
            b',"%b":%b' % (name, value)
            for name, value in ((b"run", b"%d" % self._head.run), (b"stored", b'"%b"' % self._head.stored.encode()))
            if b'"%b":' % name not in line
        )
        return line[:-1] + (more if line != b"{}" else more[1:]) + b"}"

    def _follow(self, request: Request) -> None:
        try:
            found = self._functions.found(request, self.reply.url, self._head.function, self._head.depth + 1)
        except (ValueError, TypeError) as error:
            if self._is_page and request.read is None and isinstance(error, ValueError):
                return  # a link that no browser could follow
            raise FunctionError(f"{request!r}: {error}") from None
        if found is not None and found.is_deep:
            self._deep += 1
        elif found is not None:
            self._found.append(found)

    def answer(self) -> ReadAnswer:
        """All that came of it."""
        for number in self._only:
            if number > self._number:
                self._bad[number] = f"record {number} is not there any more"
        requests = [*self._found, *([self._next] if self._next is not None else ())]
        detail = ""
        if self._bad:
            (_, detail), *more = sorted(self._bad.items())
            if more:
                named = ", ".join(str(number) for number, _ in more[:MOST_NAMED])
                detail += f"; also records {named}{' …' if len(more) > MOST_NAMED else ''}"
        if self._bad and not self._lines and not requests:
            return ReadAnswer(end="", code=Code.PARSE_ERROR, detail=detail[:1000])
        if self._bad:
            requests.append(self._spoiled(detail[:1000]))
        return ReadAnswer(
            lines=tuple(self._lines), requests=tuple(requests), deep=self._deep,
            is_whole=not (self._bad or self._only),
        )  # fmt: skip

    def _spoiled(self, why: str) -> FoundRequest:
        """The same request once more, for the records that were not kept; it waits as failed."""
        head = self._head
        data = msgspec.structs.replace(
            self._stored, only=tuple(sorted(self._bad)), paging=False, chain=Chain(), keyed=True, flaw=why
        )
        url = head.url
        key = request_key(url, "RECORDS", msgspec.msgpack.encode((head.id, head.run)))
        return FoundRequest(url, head.function, key, data.pack(), head.priority, no_deeper=True)


@lru_cache(maxsize=256)
def _check_of(kind: Any) -> msgspec.json.Decoder[Any] | None:  # noqa: ANN401 - a type
    """What checks records of a type of the user's, which says what its fields are and does not look."""
    if not (issubclass(kind, msgspec.Struct) or is_dataclass(kind)):
        return None
    try:
        return msgspec.json.Decoder(kind)
    except TypeError:  # it says what JSON cannot tell apart
        return None


def starts_of(functions: Functions, more: Iterable[str], *, only_more: bool = False) -> Iterator[FoundRequest]:
    """Where a job begins, and at `more` addresses. Raises JobError."""
    job = functions.job
    try:
        given: Any = job.first(functions.arguments) if callable(job.first) and not only_more else job.first
        given = [] if only_more else given
        every: list[Any] = [given] if isinstance(given, str | Request) else list(given)
        for each in [*every, *more]:
            request = Request(each) if isinstance(each, str) else each
            if (found := functions.found(request, None, "", 0)) is not None:
                yield found
    except JobError:
        raise
    except Exception as error:
        said = "it is async; expected a plain function" if inspect.isawaitable(given) else str(error)
        raise JobError(f"start of {job.name}: {said}; expected addresses and Requests") from error
