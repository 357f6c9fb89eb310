"""What a reader process does with a response: it makes finished lines and further requests of it.

The main process hands over a `Head` and the body, and gets a `ReadAnswer`. Both are plain data in msgpack.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from sanderling.crawl.meaning import Headers
from sanderling.crawl.scope import CrawlScope, ScopeRules

LARGEST_MEANING = 1 << 20  # bytes of a document that is judged on the event loop; larger ones are here
SITEMAP = "(sitemap)"  # the function of requests for sitemaps; no function of a job is called so


class Head(msgspec.Struct, frozen=True, array_like=True):
    """All that is known of a response but its body."""

    id: int
    url: str
    status: int
    headers: Headers
    depth: int
    function: str
    data: bytes  # what is stored with the request
    run: int
    at: float  # when it came, in seconds since 1970
    seconds: float  # until it began
    stored: str  # when it came, as rows have it
    hosts: tuple[str, ...] = ()  # that came to belong to the crawl
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
    modified: float = 0.0  # when it last changed, by a sitemap, in seconds since 1970


class ReadAnswer(msgspec.Struct, array_like=True):
    """What came of a response."""

    lines: tuple[bytes, ...] = ()  # records, each a line of JSON
    links: tuple[str, ...] = ()  # normal addresses that belong to the crawl
    requests: tuple[FoundRequest, ...] = ()
    deep: int = 0  # that lead too deep
    text: bytes = b""  # digest of the whole text, by which repeats are known
    is_whole: bool = True  # all that it says was kept, so that it need not come again before it changes
    end: str = "fetched"
    code: str = "OK"
    detail: str = ""
    wait: float | None = None  # where the response says when to come again
    version: bytes = b""  # digest of what it says, word for word, by which a change is known
    is_bare: bool = False  # a page that is empty without its scripts


class PageRules(msgspec.Struct, frozen=True):
    """How `pages crawl` reads pages."""

    text: Literal["fast", "best", "none"] = "fast"
    keep_noindex: bool = False
    depth: int = 100  # of links that are followed
    finds_bare: bool = False  # whether it is of interest which pages are empty without their scripts


class Work(msgspec.Struct, frozen=True):
    """How this crawl reads: by the rules of pages, or by the file of a job."""

    scope: ScopeRules
    pages: PageRules | None = None
    source: bytes = b""  # the text of the job's file, as the crawl has read it
    file: str = ""
    arguments: Mapping[str, Any] = {}


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
    work = msgspec.msgpack.decode(argument, type=Work)
    if work.pages is not None:
        from sanderling.crawl.pages import PageReader  # noqa: PLC0415 - a reader imports what its crawl needs

        return ReaderWork(PageReader(work.pages, CrawlScope(work.scope)).read, lambda: None)
    from sanderling.crawl.functions import Functions  # noqa: PLC0415

    functions = Functions.open(work)
    return ReaderWork(functions.read, functions.close)
