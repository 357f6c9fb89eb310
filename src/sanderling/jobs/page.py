"""Page: what a page function is given. A reply, with selectors, its main text and links to follow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sanderling.jobs.elements import Element, Elements, HtmlElement, XmlElement, select_by_xpath, select_elements
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import LONGEST_URL, Request
from sanderling.pages.charset import decode
from sanderling.pages.extract import TO_US, ExtractedPage, charset_in, extract
from sanderling.pages.kinds import ContentKind, kind_of
from sanderling.pages.robots import directives
from sanderling.pages.urls import normalise
from sanderling.task import Reply

_OTHER_SCHEME = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageRender:
    """How a page was rendered in a browser."""

    requests: int  # that were sent for it
    blocked: int  # that were not
    onward: str | None = None  # where a script, or a refresh, wanted to go
    cut: str = ""  # why it was not waited for any longer
    screenshot: str | None = None  # the file of its picture, from the folder of the job


class Page(JobReply):
    """A page; `captures` has what stands in its address for the names in the pattern.

    `rendered` says how a browser has made it; None for a page as it came.
    """

    def __init__(
        self,
        raw: Reply,
        request: Request,
        args: Mapping[str, Any],
        captures: Mapping[str, str] | None = None,
        rendered: PageRender | None = None,
    ) -> None:
        super().__init__(raw, request, args)
        self.captures = captures or {}
        self.rendered = rendered

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
        return self._extracted.text

    def links(self) -> tuple[str, ...]:
        """Where the page leads: absolute, each once, in its order; none where it asks not to be followed."""
        return self._extracted.links

    def follow(self, url: "str | Element", **arguments: Any) -> Request:  # noqa: ANN401 - the arguments of a request
        """A request for an address that the page names, or for that of a link in it. Raises ValueError."""
        return Request(self.urljoin(_address_of(url)), **arguments)

    def urljoin(self, url: str) -> str:
        """An address that the page names, absolute and in one spelling, as browsers read it. Raises ValueError."""
        return normalise(url, self._base, LONGEST_URL)

    def follow_all(self, selector: str, **arguments: Any) -> list[Request]:  # noqa: ANN401 - the same
        """Requests for all links that a CSS selector finds, as far as the page lets them be followed.

        What leads nowhere on the web is passed over.
        """
        _check_text(selector)
        found = []
        links = self.css(selector) if self._may_be_followed else ()
        for value in (_led_to(link) for link in links if not isinstance(link, str)):
            if value is None or _OTHER_SCHEME.match(value):
                continue
            try:
                found.append(self.follow(value, **arguments))
            except ValueError:  # a link that no browser could follow
                continue
        return found

    @cached_property
    def _decoded(self) -> str:
        return decode(self.body, charset_in(self.header("Content-Type") or ""))[0]

    @cached_property
    def _html(self) -> str:
        if kind_of(self.header("Content-Type"), self.body) is ContentKind.OTHER:
            raise ValueError(f"the body is {self.header('Content-Type')!r:.60}, expected a page")
        return self._decoded

    @cached_property
    def _root(self) -> HtmlElement:
        return select_elements(self._html)

    @cached_property
    def _xml_root(self) -> XmlElement:
        return select_by_xpath(self._html)

    @cached_property
    def _extracted(self) -> ExtractedPage:
        content_type = self.header("Content-Type") or ""
        spoken = self.header("Content-Language")
        return extract(self.body, content_type=content_type, url=self.url, language=spoken, headers=self.headers)

    @cached_property
    def _may_be_followed(self) -> bool:
        """Whether the page lets robots follow its links."""
        metas = [each for each in self.css("meta[name][content]") if not isinstance(each, str)]
        said = [each.attr("content") or "" for each in metas if (each.attr("name") or "").lower() in TO_US]
        sent = [value for name, value in self.headers if name.lower() == "x-robots-tag"]
        return directives([*said, *sent]).isdisjoint(("nofollow", "none"))

    @cached_property
    def _base(self) -> str:
        """What links are relative to: the page says so itself, or it is its address."""
        if b"<base" not in self.body and b"<BASE" not in self.body:
            return self.url
        try:
            return normalise(self.css("base[href]").attr("href") or "", self.url, LONGEST_URL)
        except ValueError:  # browsers, too, take no notice of it then
            return self.url

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url} {len(self.body):,} bytes>"


def _led_to(link: Element) -> str | None:
    """Where a link leads, if that may be followed."""
    return None if "nofollow" in (link.attr("rel") or "").lower() else link.attr("href")


def _address_of(given: object) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, HtmlElement | XmlElement):
        hint = "; for all of a list there is follow_all(selector)" if isinstance(given, list) else ""
        raise TypeError(f"follow is given {_kind(given)}, expected an address or a link of the page{hint}")
    address = given.attr("href") or given.attr("src")
    if address is None:
        raise ValueError(f"{given!r} has no href and no src, expected a link")
    return address


def _check_text(selector: object) -> None:
    if not isinstance(selector, str):
        raise TypeError(f"follow_all is given {_kind(selector)}, expected a CSS selector, as in follow_all('a.next')")


def _kind(given: object) -> str:
    """What was given, in words."""
    if given is None:
        return "None: nothing was found"
    return f"a list of {len(given)}" if isinstance(given, list) else f"{given!r:.60}"
