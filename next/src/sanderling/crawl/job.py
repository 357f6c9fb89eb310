"""Job: where to begin, how to request, and which functions read what comes back."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import msgspec

from sanderling.crawl.auth import Auth
from sanderling.crawl.meaning import Answers
from sanderling.crawl.page import Reply
from sanderling.crawl.paging import Paging
from sanderling.crawl.request import Request
from sanderling.crawl.scope import UrlPattern
from sanderling.ids import HostError, normalise_host_pattern
from sanderling.options import OptionError, nearest
from sanderling.outcome import Code, Outcome

Start = str | Request | Iterable[str | Request] | Callable[..., Any]
Argument = str | int | float | bool
F = TypeVar("F", bound=Callable[..., Any])

# What these statuses say is for us and not for a function: who we are, or to wait.
NEVER_READ = frozenset({304, 401, 407, 408, 425, 429, 503})

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class JobError(OptionError):
    """A job is not as it should be. The message says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class JobFunction:
    """A function that reads responses: the type that its records must have, and which pages it reads."""

    function: Callable[..., Any]
    record: Any = None
    pattern: UrlPattern | None = None  # None: a reply function
    status: frozenset[int] = frozenset()  # that are read beside 2xx
    render: bool = False  # in a browser, before it is read

    @property
    def is_async(self) -> bool:
        """Whether it runs in the crawl's process, where it may wait."""
        return inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function)


class Job:
    """What to collect. Functions are added with `page`, `read`, `each`, `before`, `after`, `start` and `end`."""

    drop = object()  # what a function of `each` returns for a record that is not to be kept

    def __init__(
        self,
        name: str,
        *,
        start: Start,
        read: str | None = None,
        hosts: str | Iterable[str] = (),
        rps: float | None = None,
        max_depth: int | None = None,
        max_requests: int | None = None,
        max_records: int | None = None,
        arguments: Mapping[str, Argument] | None = None,
        key: Callable[[Request], str | None] | None = None,
        paging: Paging | None = None,
        auth: Auth | None = None,
        answers: Answers | None = None,
        only: Iterable[str] = (),
        skip: Iterable[str] = (),
        robots: bool | None = None,
        sitemaps: bool = False,
        conditional: bool = False,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise JobError(f"the name of the job is {name!r:.60}; expected letters, digits, hyphens, dots, underscores")
        self.name = name
        self.first = start
        self.first_function = read
        self.hosts = tuple(map(_host, [hosts] if isinstance(hosts, str) else hosts))
        self.rps = _above_zero(name, "rps", rps)
        self.max_depth = max_depth
        self.max_requests = _above_zero(name, "max_requests", max_requests)
        self.max_records = _above_zero(name, "max_records", max_records)
        self.arguments = dict(arguments or {})
        self.key = key
        self.paging = _of_kind(name, "paging", paging, Paging)
        self.auth = _of_kind(name, "auth", auth, Auth)
        self.answers = _of_kind(name, "answers", answers, Answers)
        self.only = tuple(_pattern(name, "only", each) for each in only)
        self.skip = tuple(_pattern(name, "skip", each) for each in skip)
        self.sitemaps = sitemaps
        self.conditional = conditional
        self._robots = robots
        self.functions: dict[str, JobFunction] = {}
        self.for_each: list[Callable[[Any], Any]] = []
        self.before_each: list[Callable[[Request], Any]] = []
        self.after_each: list[Callable[[Reply], Any]] = []
        self.openers: list[Callable[[], Any]] = []
        self.closers: list[Callable[[], Any]] = []
        if max_depth is not None and not (type(max_depth) is int and max_depth >= 0):
            raise JobError(f"max_depth of {name} is {max_depth!r:.60}; expected a whole number from 0")
        for argument, default in self.arguments.items():
            if not isinstance(default, Argument):
                raise JobError(f"argument {argument} of {name} is {default!r:.60}; expected a text, a number or a bool")

    @property
    def robots(self) -> bool:
        """Whether robots.txt is obeyed: by a job with page functions, unless it says otherwise."""
        return bool(self.patterns) if self._robots is None else self._robots

    @property
    def patterns(self) -> dict[str, UrlPattern]:
        """The page functions by name; the first whose pattern fits a page reads it."""
        return {name: each.pattern for name, each in self.functions.items() if each.pattern is not None}

    @overload
    def read(self, function: F, /) -> F: ...
    @overload
    def read(self, /, *, record: Any = None) -> Callable[[F], F]: ...  # noqa: ANN401 - a type
    def read(self, function: F | None = None, /, *, record: Any = None) -> F | Callable[[F], F]:
        """Add a reply function: it is given a `Reply`, and yields or returns records and further requests."""
        if function is None:
            return lambda given: self._add(given, JobFunction(given, record))
        return self._add(function, JobFunction(function, record))

    def page(
        self,
        pattern: str,
        /,
        *,
        record: Any = None,  # noqa: ANN401 - a type
        status: Iterable[int] = (),
        render: bool = False,
    ) -> Callable[[F], F]:
        """Add a page function: it is given each `Page` whose URL fits, and yields records, links and requests.

        `status` has those that it reads beside 2xx: (301, 404, 410). With `render` a browser runs the page's scripts
        first. A job with page functions obeys robots.txt.
        """
        if callable(pattern):
            raise JobError(f"{self.name}: @job.page has no pattern; expected one, as in @job.page('/list/*')")
        read = frozenset(status)
        if wrong := sorted(each for each in read if each in NEVER_READ or not 300 <= each < 600):
            never = ", ".join(map(str, sorted(NEVER_READ)))
            raise JobError(f"{self.name}: status of {pattern} has {wrong[0]}; expected 300 to 599, and not {never}")
        found = _pattern(self.name, "page", pattern)

        def add(function: F) -> F:
            try:
                inspect.signature(function).bind(None, **dict.fromkeys(found.names))
            except TypeError as error:
                wanted = f"{function.__name__}({', '.join(('page', *found.names))})"
                raise JobError(f"{function.__name__} reads {pattern}; expected {wanted}: {error}") from None
            return self._add(function, JobFunction(function, record, found, read, render))

        return add

    def each(self, function: F) -> F:
        """Add a function that is given each record: it changes it, returns another one, or returns `job.drop`."""
        return self._add_plain(self.for_each, function, "for each record")

    def before(self, function: F) -> F:
        """Add a function that is given each request before it is sent, and may return another one."""
        return self._add_plain(self.before_each, function, "before each request")

    def after(self, function: F) -> F:
        """Add a function that is given each reply before it is read; it may return `missing`, `refused` or `failed`."""
        return self._add_plain(self.after_each, function, "after each reply")

    def start(self, function: F) -> F:
        """Add a function that a reader process calls before its first response: it opens what the others need."""
        return self._add_plain(self.openers, function, "at the start of a reader")

    def end(self, function: F) -> F:
        """Add a function that a reader process calls at its end."""
        return self._add_plain(self.closers, function, "at the end of a reader")

    def missing(self, why: str = "") -> Outcome:
        """What was requested is not there; it is not requested again."""
        return Outcome(Code.CONTENT_NOT_FOUND, detail=why[:200])

    def refused(self, seconds: float | None = None, why: str = "") -> Outcome:
        """The host limits us: request it again, after so many seconds, and less often."""
        return Outcome(Code.RATE_LIMITED, detail=why[:200], retry_after=seconds)

    def failed(self, why: str) -> Outcome:
        """The response is an error: request it again some times, with pauses."""
        return Outcome(Code.HOST_UNAVAILABLE, detail=why[:200])

    def function_for(self, url: str) -> str | None:
        """The page function that reads a normal URL."""
        return next((name for name, pattern in self.patterns.items() if pattern.match(url) is not None), None)

    def check(self) -> None:
        """Raise JobError for a job that cannot run."""
        if not self.functions:
            raise JobError(f"{self.name} has no function; expected one with @job.page(…) or @job.read")
        if self.first_function is not None and self.first_function not in self.functions:
            known = ", ".join(self.functions)
            raise JobError(f"read of {self.name} is {self.first_function!r:.60}; expected one of {known}")

    def arguments_with(self, given: Mapping[str, object]) -> dict[str, Argument]:
        """The arguments, with those that were given; texts are read as the type of the default. Raises JobError."""
        found = dict(self.arguments)
        for name, value in given.items():
            if name not in found:
                hint = nearest(name, found) or f"; it has {', '.join(found) or 'none'}"
                raise JobError(f"{self.name} has no argument {name!r:.60}{hint}")
            kind = type(found[name])
            try:
                found[name] = msgspec.convert(value, kind, strict=not isinstance(value, str))
                msgspec.json.decode(msgspec.json.encode(found[name]), type=kind)  # no NaN, which is written as null
            except (msgspec.MsgspecError, UnicodeEncodeError):
                said = f"argument {name} is {value!r:.60}; expected {_KINDS[kind]} like {found[name]!r:.60}"
                raise JobError(said) from None
        return found

    def _add(self, given: F, function: JobFunction) -> F:
        name = getattr(given, "__name__", "<lambda>")
        if name == "<lambda>":
            raise JobError(f"{self.name}: a function that reads is a lambda; expected def name(reply), which is stored")
        if name in self.functions:
            raise JobError(f"{self.name} has two functions called {name}; expected one name for each")
        self.functions[name] = function
        return given

    def _add_plain(self, functions: list[Callable[..., Any]], function: F, when: str) -> F:
        if inspect.iscoroutinefunction(function):
            raise JobError(f"{function.__name__} is async; expected a plain function {when}")
        functions.append(function)
        return function

    def __repr__(self) -> str:
        return f"<Job {self.name}: {', '.join(self.functions)}>"


def _host(name: str) -> str:
    try:
        return normalise_host_pattern(name)
    except HostError as error:
        raise JobError(f"hosts: {error}") from None


def _above_zero(name: str, field: str, value: Any) -> Any:  # noqa: ANN401 - an int or a float
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not value > 0):
        raise JobError(f"{field} of {name} is {value!r:.60}; expected a number above 0")
    return value


def _of_kind(name: str, field: str, value: Any, kind: Any) -> Any:  # noqa: ANN401 - a type or a union of some
    if value is not None and not isinstance(value, kind):
        kinds = ", ".join(each.__name__ for each in getattr(kind, "__args__", (kind,)))
        raise JobError(f"{field} of {name} is {value!r:.60}; expected {kinds}")
    return value


def _pattern(name: str, field: str, text: object) -> UrlPattern:
    if not isinstance(text, str):
        raise JobError(f"{name}: {field} has {text!r:.60}; expected a pattern, as in '/list/*'")
    try:
        return UrlPattern(text)
    except ValueError as error:
        raise JobError(f"{name}: {error}") from None
