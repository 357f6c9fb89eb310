"""Task: what to ask. Blame: whose fault a failure would be. Reply: what came back."""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from sanderling.ids import Host, host_of
from sanderling.redact import HIDDEN, is_secret, redact_url

Headers = tuple[tuple[str, str], ...]

# Among the `secrets` of a task: its body holds one, as that of a log-in does. No redirect takes it to another host, and
# no cache keeps the answer.
SECRET_BODY = ":body"  # noqa: S105 - the word for it

# What would end the request line or a header early, and begin another: a url or a value from a stranger could
# smuggle in a whole request.
_BREAKS = re.compile(r"[\x00-\x20\x7f]")
_ENDS = re.compile(r"[\r\n\0]")
_METHOD = re.compile(r"[A-Z]+")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: a token


def _shown(headers: Headers, secrets: frozenset[str] = frozenset()) -> str:
    """The headers as a repr may show them: it ends up in logs and tracebacks."""
    pairs = ((name, HIDDEN if is_secret(name) or name.lower() in secrets else value) for name, value in headers)
    return "{" + ", ".join(f"{name}: {value!r}" for name, value in pairs) + "}"


def first_header(headers: Headers, name: str) -> str | None:
    """The first value under that name, which is in lower case; None if there is none."""
    size = len(name)
    for key, value in headers:
        if len(key) == size and key.lower() == name:  # by length first: this is asked several times of each reply
            return value
    return None


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"header name is {name!r}, expected letters, digits and hyphens")
    if _ENDS.search(value):
        # The value may be a secret, so the message has only the name.
        raise ValueError(f"header {name} has a line break or a zero byte in its value")


class Blame(NamedTuple):
    """Whose fault a failure of a request would be."""

    item: Hashable  # tells the item from all others of its host
    failures: int = 0  # requests for it that failed in a row before this one
    of_host: bool = False  # a document of the host's own, such as robots.txt: its failure counts against the host


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """What to ask, of which host, and for the how-manieth time."""

    url: str
    method: str = "GET"
    headers: Headers = ()
    body: bytes | None = None
    attempt: int = 1
    blame: Blame | None = field(default=None, compare=False)  # None: a failure is that of an item of its own
    most: int | None = None  # bytes of the body that are wanted; the rest is left unread and is no error
    # Seconds until the answer must have begun, and between two pieces of it, where the client would wait longer.
    wait: float | None = field(default=None, compare=False)
    # Under what name its body takes up memory, where several with the same url are asked at once; else its url.
    holder: str = field(default="", compare=False)
    # Names of headers and parameters, in lower case, that hold secrets whatever they sound like, and SECRET_BODY.
    secrets: frozenset[str] = field(default=frozenset(), compare=False)
    # Given status and headers of the answer, what takes its body in place of memory, or None: `fetch.decode.Receiver`.
    receive: Callable[[int, Headers], Any] | None = field(default=None, compare=False)
    # Follows from the url, so it takes no part in comparing; kept because every station of the road asks for it.
    host: Host = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", host_of(self.url))
        # The messages name the host only: the rest of a url may hold a key.
        if _BREAKS.search(self.url):
            raise ValueError(f"url for {self.host} has a space or a control character in it, expected %20 and the like")
        if not _METHOD.fullmatch(self.method):
            raise ValueError(f"method for {self.host} is {self.method!r}, expected a word like GET")
        if self.attempt < 1:
            raise ValueError(f"attempt for {self.host} is {self.attempt}, expected 1 or more")
        for name, value in self.headers:
            _check(name, value)

    def again(self) -> Self:
        """The same question, asked once more."""
        return replace(self, attempt=self.attempt + 1)

    def __repr__(self) -> str:
        body = "" if self.body is None else f" body={len(self.body)}B"
        headers = f" {_shown(self.headers, self.secrets)}" if self.headers else ""
        return f"<Task {self.method} {redact_url(self.url, self.secrets)} attempt={self.attempt}{headers}{body}>"


@dataclass(frozen=True, slots=True, repr=False)
class Reply:
    """What came back. `url` is the last one of the redirects; `latency` is in seconds."""

    status: int
    headers: Headers
    body: bytes
    url: str
    latency: float
    address: str = ""  # where its host lives, the lowest of several; nothing if that is not known
    sent: Headers = ()  # the headers of the request as they were sent, where the client knows
    challenged: bool = False  # it wants to know who asks, and the client can say so now: ask once more

    def __post_init__(self) -> None:
        # Real hosts do say 999, so any three digits are a reply; what they mean is for the classifier to decide.
        if not 100 <= self.status <= 999:
            raise ValueError(f"status of {self.url} is {self.status}, expected three digits")

    def header(self, name: str) -> str | None:
        """The first value under that name, in whatever case; None if there is none."""
        return first_header(self.headers, name.lower())

    def __repr__(self) -> str:
        headers = f" {_shown(self.headers)}" if self.headers else ""
        return (
            f"<Reply {self.status} {redact_url(self.url)} latency={self.latency:.3f}s{headers} body={len(self.body)}B>"
        )
