"""What is sent, and what came back."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from sanderling.outcome import Outcome

Headers = tuple[tuple[str, str], ...]

LARGEST = 32 << 20  # bytes of a body, if the request does not say
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
# What the connection says by itself; another value would make two requests of one, or two lengths of one body.
_OURS = frozenset("host content-length transfer-encoding connection upgrade te trailer proxy-authorization".split())
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Charsets in which JSON does come. Python has others, of which some take quadratic time (punycode).
_CHARSETS = re.compile(r"(iso-8859|latin|windows-125|cp125|shift|euc-|gb|big5|koi8|utf-16|utf-32).{0,20}")


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Raise ValueError for a header that HTTP does not allow or that is not the sender's to set."""
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"found the header {name[:60]!r}, expected a name of letters, digits and dashes")
        if name.lower() in _OURS:
            raise ValueError(f"the header {name} is set by the client; leave it out")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} has control characters; expected one line of text")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request for a normal URL. No header given here follows a redirect to another origin."""

    url: str
    method: str = "GET"
    headers: Headers = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    largest: int = LARGEST  # bytes of the response's body, once unpacked
    cut: bool = False  # take the first `largest` bytes of a larger body instead of refusing it
    anonymous: bool = False  # without cookies and what is set for the host, and nothing is learned of its cookies

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.method):
            raise ValueError(f"found the method {self.method[:60]!r}, expected one like GET or POST")
        check_headers(self.headers)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """How a request ended, and what came back if anything did."""

    outcome: Outcome
    url: str  # of the last request
    requests: int = 0  # that were sent, redirects included
    status: int = 0
    headers: Headers = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    latency: float = 0.0  # seconds to the head of the last response
    location: str | None = None  # where a redirect led that was not followed
    redirects: tuple[tuple[str, str], ...] = ()  # (url, where it led) of those that were
    at: float = 0.0  # when it was there, in seconds since 1970

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        wanted = name.lower()
        return next((value for name, value in self.headers if name.lower() == wanted), None)

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    def json(self) -> object:
        """The body as JSON. Raises ValueError."""
        return msgspec.json.decode(in_utf8(self.body, self.header("content-type") or ""))


def in_utf8(body: bytes, content_type: str) -> bytes:
    """A JSON text in UTF-8, as RFC 8259 wants it, whichever charset it came in. Raises ValueError."""
    charset = _charset_of_json(body)
    if charset == "utf-8":
        body = body.removeprefix(b"\xef\xbb\xbf")
        label = _label(content_type)
        if label in ("", "utf-8", "utf8", "us-ascii", "ascii") or body.isascii() or _is_utf8(body):
            return body
        charset = label  # RFC 8259 knows no such parameter, but what is no UTF-8 must be something
    if not _CHARSETS.fullmatch(charset):
        raise ValueError(f"the charset is {charset[:40]}, in which JSON is not read")
    try:
        return body.decode(charset).removeprefix("\ufeff").encode()
    except (LookupError, UnicodeError):
        raise ValueError(f"the body is not in {charset[:40]}, which it is said to be in") from None


def _charset_of_json(body: bytes) -> str:
    """The first two characters of JSON are ASCII; where their zeros stand tells the charset (RFC 4627, 3)."""
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return charset
    match tuple(bool(byte) for byte in body[:4]):
        case (False, False, False, True):
            return "utf-32-be"
        case (True, False, False, False):
            return "utf-32-le"
        case (False, True, *_):
            return "utf-16-be"
        case (True, False, *_):
            return "utf-16-le"
    return "utf-8"


def _label(content_type: str) -> str:
    for part in content_type[:1000].lower().split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip() == "charset":
            return value.strip("\"' \t")[:40]
    return ""


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
