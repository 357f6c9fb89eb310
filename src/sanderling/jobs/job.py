"""Job: where to begin, how to ask and what an answer means. The engine does the rest."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import msgspec

from sanderling.apis.answers import Answers
from sanderling.apis.auth import Auth
from sanderling.apis.paging import Paging
from sanderling.ids import HostError, normalise
from sanderling.jobs.page import Page
from sanderling.jobs.patterns import UrlPattern
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import Request
from sanderling.outcome import Code, Outcome

Start = str | Request | Iterable[str | Request] | Callable[[Mapping[str, Any]], Any]
Argument = str | int | float | bool
Render = bool | Literal["empty"]  # in a browser: never, always, or what is empty without scripts
F = TypeVar("F", bound=Callable[..., Any])

# What these say is for us and not for a function: who we are, or to wait.
NOT_READ = frozenset({401, 407, 408, 425, 429, 503})

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class JobError(ValueError):
    """A job is not as it should be. The message says what was found and what was expected."""


class JobStartError(JobError):
    """Nothing can begin with what the job starts with."""

    code = 2  # the command exits with it


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that reads replies, the type that its records must have, which pages it reads, and in what."""

    function: Callable[..., Any]
    record: Any = None
    pattern: UrlPattern | None = None
    render: Render = False
    status: frozenset[int] = frozenset()  # that are read beside 2xx


class JobOptions(TypedDict, total=False):
    """What a job may say beside where it begins."""

    answers: Answers  # what is an error, missing, a refusal
    rps: float  # requests a second to each host at most
    hosts: Iterable[str]  # that may be asked, *.example.org with all below it; by default those that it starts with
    max_depth: int  # links from where it starts, at most; pages that paging walks through do not count
    max_requests: int  # in all runs
    max_records: int  # in all runs; those of the last request are all kept
    arguments: Mapping[str, Argument]  # names and defaults
    key: Callable[[Request], str | None]  # by what a request is known; None for the usual


class Job:
    """What to collect. Functions are added with `page`, `read`, `each`, `before` and `after`."""

    drop = object()  # what a function of `each` returns for a record that is not to be kept

    def __init__(
        self,
        name: str,
        *,
        start: Start,
        read: str | None = None,
        paging: Paging | None = None,
        auth: Auth | None = None,
        **options: Unpack[JobOptions],
    ) -> None:
        if not _NAME.fullmatch(name):
            raise JobError(f"the name of the job is {name!r}, expected letters, digits, hyphens, dots and underscores")
        if unknown := options.keys() - JobOptions.__annotations__.keys():
            expected = ", ".join(JobOptions.__annotations__)
            raise JobError(f"{name} has the option {min(unknown)}, expected start, read, paging, auth, {expected}")
        self.name = name
        self.start = start
        self.paging = paging
        self.auth = auth
        self.answers = options.get("answers")
        self.rps = options.get("rps")
        self.max_depth = options.get("max_depth")
        self.max_requests = options.get("max_requests")
        self.max_records = options.get("max_records")
        self.max_answers: int | None = None  # requests with an end that are enough: of a sample
        hosts = options.get("hosts", ())
        self.hosts = tuple(map(_host, [hosts] if isinstance(hosts, str) else hosts))
        self.arguments = dict(options.get("arguments", {}))
        self.key = options.get("key")
        self.readers: dict[str, Reader] = {}
        self.each_record: list[Callable[[Any], Any]] = []
        self.before_each: list[Callable[[Request], Any]] = []
        self.after_each: list[Callable[[JobReply], Any]] = []
        self._first = read
        self._check()

    def _check(self) -> None:
        name = self.name
        for limit in ("rps", "max_requests", "max_records"):
            value = getattr(self, limit)
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise JobError(f"{limit} of {name} is {value!r:.60}, expected a number above 0")
        if self.max_depth is not None and not (type(self.max_depth) is int and self.max_depth >= 0):
            raise JobError(f"max_depth of {name} is {self.max_depth!r:.60}, expected a whole number from 0")
        for argument, default in self.arguments.items():
            if not isinstance(default, Argument):
                raise JobError(
                    f"argument {argument} of {name} is {default!r}, expected a text, a number, true or false"
                )

    @overload
    def read(self, function: F, /) -> F: ...
    @overload
    def read(self, /, *, record: Any) -> Callable[[F], F]: ...  # noqa: ANN401 - a type
    def read(self, function: F | None = None, /, *, record: Any = None) -> F | Callable[[F], F]:
        """Add a reader: it is given a reply, and yields or returns records and further requests."""
        if function is None:
            return lambda given: self._add_reader(given, Reader(given, record))
        return self._add_reader(function, Reader(function, record))

    def page(
        self,
        pattern: str,
        /,
        *,
        record: Any = None,  # noqa: ANN401 - a type
        render: Render = False,
        status: Iterable[int] = (),
    ) -> Callable[[F], F]:
        """Add a page function: it is given each `Page` whose address fits, and yields records, links and requests.

        A job with page functions obeys robots.txt. With `render`, its pages are opened in a browser; "empty": those
        that are empty without scripts. `status` has those that it reads, too, beside 2xx: (404, 410).
        """
        if callable(pattern):
            raise JobError(f"{self.name}: @job.page has no pattern, expected one, as in @job.page('/list/*')")
        if render not in (True, False, "empty"):
            raise JobError(f'{self.name}: render of {pattern} is {render!r:.60}, expected True, False or "empty"')
        read = frozenset(status)
        if wrong := [each for each in read if each in NOT_READ or not 400 <= each < 600]:
            refusals = ", ".join(map(str, sorted(NOT_READ)))
            raise JobError(f"{self.name}: status of {pattern} has {wrong[0]}, expected 400 to 599, and not {refusals}")
        try:
            found = UrlPattern(pattern)
        except (ValueError, TypeError, AttributeError) as error:
            raise JobError(f"{self.name}: {error}") from None

        def add(function: F) -> F:
            try:
                inspect.signature(function).bind(None, **dict.fromkeys(found.names))
            except TypeError as error:
                names = ", ".join(("page", *found.names))
                wanted = f"{function.__name__}({names})"
                raise JobError(f"{function.__name__} reads {pattern}, expected {wanted}: {error}") from None

            @wraps(function)
            def read_page(page: Page) -> Any:  # noqa: ANN401 - whatever it returns
                return function(page, **page.captures)

            self._add_reader(read_page, Reader(read_page, record, found, render, read))
            return function

        return add

    def _add_reader(self, function: F, reader: Reader) -> F:
        name = function.__name__
        if name in self.readers:
            raise JobError(f"{self.name} has two readers called {name}, expected one name for each")
        self.readers[name] = reader
        return function

    @property
    def patterns(self) -> dict[str, UrlPattern]:
        """The page functions by name, with the pages that each reads; the first that fits a page is its own."""
        return {name: reader.pattern for name, reader in self.readers.items() if reader.pattern is not None}

    @property
    def renders(self) -> dict[str, Render]:
        """The page functions whose pages are opened in a browser."""
        return {name: reader.render for name, reader in self.readers.items() if reader.render}

    def each(self, function: F) -> F:
        """Add a function that is given each record: it changes it, returns another one, or returns `job.drop`."""
        if inspect.iscoroutinefunction(function):
            raise JobError(f"{function.__name__} is async, expected a plain function for each record")
        self.each_record.append(function)
        return function

    def before(self, function: F) -> F:
        """Add a function that sees each request before it is sent; it may return another."""
        self.before_each.append(function)
        return function

    def after(self, function: F) -> F:
        """Add a function that sees each reply before it is read; it may return `missing`, `refused` or `failed`."""
        self.after_each.append(function)
        return function

    @staticmethod
    def missing(why: str = "") -> Outcome:
        """What was asked for is not there; it is not asked for again."""
        return Outcome(Code.CONTENT_NOT_FOUND, detail=why[:200])

    @staticmethod
    def refused(seconds: float | None = None, why: str = "") -> Outcome:
        """The host limits us: ask again, after so many seconds, and less often."""
        return Outcome(Code.RATE_LIMITED, detail=why[:200], retry_after=seconds)

    @staticmethod
    def failed(why: str) -> Outcome:
        """The answer is an error: ask again some times, with pauses."""
        return Outcome(Code.HOST_UNAVAILABLE, detail=why[:200])  # as a 500: first the fault of the request

    @property
    def first_reader(self) -> str:
        """The reader of what `start` brings. Raises JobError if there is none."""
        if not self.readers:
            raise JobError(f"{self.name} has no reader; expected a function with @job.page(…) or @job.read")
        first = next(iter(self.readers)) if self._first is None else self._first
        if first not in self.readers:
            raise JobError(f"read of {self.name} is {first!r}, expected one of its readers: {', '.join(self.readers)}")
        return first

    def arguments_with(self, given: Mapping[str, object]) -> dict[str, Argument]:
        """The arguments, with those that were given; texts are read as the type of the default. Raises JobError."""
        found = dict(self.arguments)
        for name, value in given.items():
            if name not in self.arguments:
                known = ", ".join(f"{each} ({type(default).__name__})" for each, default in self.arguments.items())
                raise JobError(
                    f"{self.name} has no argument {name!r}; expected {f'one of: {known}' if known else 'none'}"
                )
            found[name] = _argument(name, value, self.arguments[name])
        for name, value in found.items():
            if not _is_kept(value):
                kind = _KINDS.get(type(self.arguments[name]), "a value")
                raise JobError(f"argument {name} is {value!r:.100}, expected {kind} that can be written as JSON")
        return found

    def __repr__(self) -> str:
        return f"<Job {self.name} readers={', '.join(self.readers)}>"


def _host(name: str) -> str:
    try:
        bare = name.removeprefix("*.")
        return f"{name[: len(name) - len(bare)]}{normalise(bare)}"
    except HostError as error:
        raise JobError(f"hosts: {error}") from None


def _argument(name: str, value: object, default: Argument) -> Argument:
    kind = type(default)
    if isinstance(value, str) and kind is bool and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    try:
        return msgspec.convert(value, kind, strict=not isinstance(value, str))
    except msgspec.ValidationError:
        raise JobError(f"argument {name} is {value!r}, expected {_KINDS[kind]} like {default!r}") from None


def _is_kept(value: Argument) -> bool:
    """Whether the folder of a job can keep it, and know it again: no NaN, no infinity, no half of a character."""
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except (ValueError, msgspec.MsgspecError):
        return False


_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
