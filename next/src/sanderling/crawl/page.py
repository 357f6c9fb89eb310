"""Reply and Page: what the functions of a job are given of a response."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from sanderling.crawl.elements import Element, Elements, HtmlElement, XmlElement, select_by_xpath, select_elements
from sanderling.crawl.meaning import Headers, Seen
from sanderling.crawl.request import Request, Stored
from sanderling.crawl.urls import absolute
from sanderling.extract.charset import charset_of, decode
from sanderling.extract.html import PageFacts, read_page
from sanderling.extract.robots import directives, is_for_us
from sanderling.fetch.messages import in_utf8
from sanderling.ids import UrlError

SHOWN = 60  # bytes of a body that an error quotes
_BYTE = re.compile(r"\(byte (\d+)\)")
_OTHER_SCHEME = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class Reply:
    """A response, the request with its `data`, and the arguments of the job as `args`."""

    def __init__(
        self,
        url: str,
        status: int,
        headers: Headers,
        body: bytes,
        *,
        request: Request | None = None,
        args: Mapping[str, Any] | None = None,
        depth: int = 0,
        screenshot: str = "",
    ) -> None:
        self.url = url  # after redirects
        self.status = status
        self.headers = headers
        self.body = body
        self.request = request or Request(url)
        self.args = args or {}
        self.depth = depth  # links from where the job starts
        self.screenshot = screenshot  # of a rendered page: its file below the folder

    @property
    def data(self) -> Any:  # noqa: ANN401 - any JSON that the job has stored
        """What the request has carried along."""
        return self.request.data

    def header(self, name: str) -> str | None:
        """The first value under that name, in whatever case; None if there is none."""
        wanted = name.lower()
        return next((value for each, value in self.headers if each.lower() == wanted), None)

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The body as JSON. Raises ValueError for what is none, or holds what JSON cannot be made of again."""
        document, error = self.document
        if error:
            found = _BYTE.search(error)
            start = max(0, int(found[1]) - SHOWN // 3) if found else 0
            part = self.body[start : start + SHOWN]
            raise ValueError(
                f"the body is no JSON: {error}; it has {f'{part!r} at byte {start}' if part else 'no bytes'}"
            )
        return document

    @cached_property
    def document(self) -> tuple[Any, str]:
        """The body as JSON, and why it is none."""
        try:
            return msgspec.json.decode(in_utf8(self.body, self.header("Content-Type") or "")), ""
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            return None, str(error)[:200]

    @cached_property
    def seen(self) -> Seen:
        """The response as expressions see it."""
        return Seen(self.url, self.status, self.headers, *self.document)

    def text(self) -> str:
        """The body as text, in the charset that it is said to have, or in UTF-8."""
        label = (charset_of(self.header("Content-Type")) or "utf-8").strip("\"' ")
        try:
            return self.body.decode(label, errors="replace")
        except LookupError:
            return self.body.decode(errors="replace")

    def follow(self, url: str, **arguments: Any) -> Request:  # noqa: ANN401 - those of a request
        """A request for an address that this response names."""
        return Request(absolute(url, self.url), **arguments)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status} {self.url} {len(self.body):,} bytes>"


class Page(Reply):
    """A page: a reply with selectors, its main text, and links to follow."""

    def css(self, selector: str) -> Elements:
        """What a CSS selector finds; `a::text` and `a::attr(href)` find texts. Raises ValueError."""
        return self._root.css(selector)

    def xpath(self, expression: str) -> Elements:
        """What an XPath expression finds. Raises ValueError, or MissingExtraError where lxml is not installed."""
        return self._xml_root.xpath(expression)

    def text(self) -> str:
        """The page as text, in the charset that browsers would read it in."""
        return self._decoded

    def markdown(self) -> str:
        """The main text of the page as Markdown."""
        return self._facts.text or ""

    def links(self) -> tuple[str, ...]:
        """Where the page leads: absolute, each once, in its order; none where it asks not to be followed."""
        if not self._may_be_followed:
            return ()
        return tuple(link.url for link in self._facts.links if "nofollow" not in link.rel.split())

    def re(self, pattern: str) -> list[str]:
        """What a regular expression finds in the page: its groups, or all of it if it has none."""
        return self._root.re(pattern)

    def re_first(self, pattern: str, default: str | None = None) -> str | None:
        """The first of that; `default` if nothing was found."""
        return next(iter(self.re(pattern)), default)

    def urljoin(self, url: str) -> str:
        """An address that the page names, absolute and in one spelling. Raises UrlError."""
        return absolute(url, self._base)

    def follow(self, url: "str | Element", **arguments: Any) -> Request:  # noqa: ANN401 - those of a request
        """A request for an address that the page names, or for that of a link in it. Raises ValueError."""
        return Request(self.urljoin(_address_of(url)), **arguments)

    def follow_all(self, selector: str, **arguments: Any) -> list[Request]:  # noqa: ANN401 - the same
        """Requests for all links that a CSS selector finds, as far as the page lets them be followed."""
        if not isinstance(selector, str):
            raise TypeError(
                f"follow_all is given {selector!r:.60}; expected a CSS selector, as in follow_all('a.next')"
            )
        found: list[Request] = []
        for link in self.css(selector) if self._may_be_followed else ():
            if isinstance(link, str) or "nofollow" in (link.attr("rel") or "").lower():
                continue
            href = link.attr("href")
            if href is None or _OTHER_SCHEME.match(href):
                continue
            try:
                found.append(self.follow(href, **arguments))
            except UrlError:  # a link that no browser could follow
                continue
        return found

    @cached_property
    def _decoded(self) -> str:
        return decode(self.body, charset_of(self.header("Content-Type")))[0]

    @cached_property
    def _root(self) -> HtmlElement:
        if b"\0\0" in self.body[:1024]:
            raise ValueError(f"the body is {self.header('Content-Type')!r:.60} and binary; expected a page")
        return select_elements(self._decoded)

    @cached_property
    def _xml_root(self) -> XmlElement:
        return select_by_xpath(self._decoded)

    @cached_property
    def _facts(self) -> PageFacts:
        return read_page(self.body, self.header("Content-Type"), self.url)

    @cached_property
    def _may_be_followed(self) -> bool:
        said = [value for name, value in self.headers if name.lower() == "x-robots-tag"]
        metas = (meta.attributes for meta in self.css("meta[name][content]") if not isinstance(meta, str))
        said += [meta.get("content") or "" for meta in metas if is_for_us(meta.get("name") or "")]
        return not said or "nofollow" not in directives(said)

    @cached_property
    def _base(self) -> str:
        """What links are relative to: the page says so itself, or it is its URL."""
        if b"<base" not in self.body and b"<BASE" not in self.body:
            return self.url
        try:
            return absolute(self.css("base[href]").attr("href") or "", self.url)
        except UrlError:  # browsers take no notice of it then either
            return self.url


def request_of(url: str, read: str, stored: Stored, priority: int = 0) -> Request:
    """The request that was stored."""
    return Request(
        url,
        read=read,
        method=stored.method,
        headers=stored.headers,
        body=stored.body,
        data=stored.data,
        priority=priority,
        paging=None if isinstance(stored.paging, bool) else stored.paging,
    )


def _address_of(given: object) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, Element):
        found = "None: nothing was found" if given is None else f"{given!r:.60}"
        hint = "; for all of a list there is follow_all(selector)" if isinstance(given, list) else ""
        raise TypeError(f"follow is given {found}; expected an address or a link of the page{hint}")
    address = given.attr("href") or given.attr("src")
    if address is None:
        raise ValueError(f"{given!r} has no href and no src; expected a link")
    return address
