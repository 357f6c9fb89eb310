"""What a reader process does with a response: it makes finished lines and further requests of it.

The main process hands over a `Head` and the body, and gets an `ReadAnswer`. Both are plain data in msgpack.
"""

from collections.abc import Callable

import msgspec

from sanderling.crawl.meaning import Headers
from sanderling.crawl.scope import ScopeRules

LARGEST_MEANING = 1 << 20  # bytes of a document that is judged on the event loop; larger ones are here


class Head(msgspec.Struct, frozen=True, array_like=True):
    """All that is known of a response but its body."""

    id: int
    url: str  # of the last request
    status: int
    headers: Headers
    depth: int
    function: str
    data: bytes  # what is stored with the request
    run: int
    at: float  # when it came, in seconds since 1970
    seconds: float  # until it began
    stored: bytes = b'""'  # that time as JSON
    hosts: tuple[str, ...] = ()  # that came to belong to the crawl
    first: str = ""  # the URL that was to be requested, where it is not the last
    priority: int = 0
    screenshot: str = ""  # where the picture of a rendered page is


class FoundRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request that a response leads to and that is not a plain link."""

    url: str
    function: str = ""
    key: bytes = b""
    data: bytes = b""
    priority: int = 0
    no_deeper: bool = False  # the next page of a list: it is no deeper than this one
    is_deep: bool = False  # deeper than the job allows, so that it is only counted


class ReadAnswer(msgspec.Struct, array_like=True):
    """What came of a response."""

    lines: tuple[bytes, ...] = ()  # records, each a line of JSON
    links: tuple[str, ...] = ()  # normal addresses that belong to the crawl
    requests: tuple[FoundRequest, ...] = ()
    passed: int = 0  # links that do not belong to it
    deep: int = 0  # that lead too deep
    text: bytes = b""  # digest of the whole text, by which repeats are known
    is_shown: bool = True  # what it says is in its row
    end: str = "fetched"
    code: str = "OK"
    detail: str = ""
    wait: float | None = None  # where the response says when to come again
    is_bare: bool = False  # a page that is empty without its scripts


class PagesWork(msgspec.Struct, frozen=True, tag="pages"):
    """How pages are read."""

    scope: ScopeRules
    text: str = "fast"
    keep_noindex: bool = False
    follows: bool = True  # whether links are followed at all
    finds_bare: bool = False  # whether it is of interest which pages are empty without their scripts


class JobWork(msgspec.Struct, frozen=True, tag="job"):
    """Which job reads, and how it was called."""

    source: bytes  # the text of its file, as the crawl has read it
    file: str
    scope: ScopeRules
    arguments: dict[str, str | int | float | bool] = {}


_head = msgspec.msgpack.Decoder(Head)
_encode = msgspec.msgpack.Encoder().encode


class ReaderWork:
    """The work of a reader of this crawl."""

    def __init__(self, read: Callable[[Head, bytes], ReadAnswer], close: Callable[[], None]) -> None:
        self._read = read
        self.close = close

    def __call__(self, head: bytes, body: bytes) -> bytes:
        """The answer for a response."""
        return _encode(self._read(_head.decode(head), body))


def open_work(argument: bytes) -> ReaderWork:
    """What a reader is told to open."""
    work: PagesWork | JobWork = msgspec.msgpack.decode(argument, type=PagesWork | JobWork)
    if isinstance(work, PagesWork):
        from sanderling.crawl.pages import PageReader  # noqa: PLC0415 - a reader imports what its crawl needs

        return ReaderWork(PageReader(work).read, lambda: None)
    from sanderling.crawl.functions import Functions  # noqa: PLC0415

    functions = Functions.open(work)
    return ReaderWork(functions.read, functions.close)
