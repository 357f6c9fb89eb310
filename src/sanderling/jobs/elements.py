"""What selectors find in a page: elements and texts, by CSS, or by XPath where lxml is installed."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from sanderling.extras import load
from sanderling.pages.complexity import PageTooComplexError, check_complexity

_VALUE = re.compile(r"(?P<of>.*?)::(?:(?P<text>text)|attr\((?P<name>[^()\s]+)\))\s*", re.DOTALL)


class Element(Protocol):
    """An element of a page."""

    @property
    def text(self) -> str:
        """What it says, with one space where there is space."""

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes; None for one without a value."""

    @property
    def html(self) -> str:
        """The element as HTML."""

    def css(self, selector: str) -> "Elements":
        """What a CSS selector finds within it."""

    def xpath(self, expression: str) -> "Elements":
        """What an XPath expression finds from it."""


class Elements(list["Element | str"]):
    """What a selector has found, in the order of the page: elements, or texts where it asks for those."""

    @property
    def text(self) -> str | None:
        """What the first of them says; None if nothing was found."""
        return _text(self[0]) if self else None

    @property
    def texts(self) -> list[str]:
        """What each of them says."""
        return [_text(each) for each in self]

    def attr(self, name: str) -> str | None:
        """The attribute of the first element; None if it has none, or nothing was found."""
        return next((each.attributes.get(name) for each in self if not isinstance(each, str)), None)

    def attrs(self, name: str) -> list[str]:
        """The attribute of each element that has it."""
        found = (each.attributes.get(name) for each in self if not isinstance(each, str))
        return [value for value in found if value is not None]

    def get(self, default: str | None = None) -> str | None:
        """The first of them as HTML, or the first text; `default` if nothing was found."""
        return next(iter(self.getall()), default)

    def getall(self) -> list[str]:
        """Each of them as HTML, or as the text that it is."""
        return [each if isinstance(each, str) else each.html for each in self]

    def css(self, selector: str) -> "Elements":
        """What a CSS selector finds within each of the elements."""
        return Elements(found for each in self if not isinstance(each, str) for found in each.css(selector))

    def xpath(self, expression: str) -> "Elements":
        """What an XPath expression finds from each of the elements."""
        return Elements(found for each in self if not isinstance(each, str) for found in each.xpath(expression))


def _text(found: "Element | str") -> str:
    return found if isinstance(found, str) else found.text


class HtmlElement:
    """An element of a page that was read for CSS selectors."""

    __slots__ = ("_node",)

    def __init__(self, node: LexborNode) -> None:
        self._node = node

    @property
    def text(self) -> str:
        """What it says, with one space where there is space."""
        return " ".join(self._node.text(deep=True).split())

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes; None for one without a value."""
        return self._node.attributes

    @property
    def html(self) -> str:
        """The element as HTML."""
        return self._node.html or ""

    def css(self, selector: str) -> Elements:
        """What a CSS selector finds within it. Raises ValueError for what is none."""
        plain, pick = _split(selector)
        try:
            return Elements(found for node in self._node.css(plain) for found in pick(node))
        except SelectolaxError:
            raise ValueError(f"{selector!r:.200} is no CSS selector, expected one like 'div.price > b'") from None

    def xpath(self, expression: str) -> Elements:
        """Not here: the two kinds of selectors read a page each by itself."""
        raise ValueError(f"{expression!r:.200} is asked of what a CSS selector found, expected page.xpath(…)")

    def __repr__(self) -> str:
        return f"<HtmlElement {self.html[:60]}>"


def select_elements(html: str) -> HtmlElement:
    """The root of a page, to select in. Raises PageTooComplexError."""
    check_complexity(html)
    root = LexborHTMLParser(html).root
    if root is None:
        raise PageTooComplexError("the page could not be read as HTML")
    return HtmlElement(root)


def check_selector(selector: str) -> None:
    """Raise ValueError for what is no CSS selector."""
    select_elements("<p>").css(selector)


@lru_cache(maxsize=256)
def _split(selector: str) -> tuple[str, Callable[[LexborNode], list[HtmlElement | str]]]:
    """The selector that the parser knows, and what is taken of each element: itself, its texts, or an attribute."""
    found = _VALUE.fullmatch(selector)
    if found is None:
        return selector, lambda node: [HtmlElement(node)]
    plain, name = found["of"].strip() or "*", found["name"]
    if name is None:
        return plain, lambda node: [
            text.text_content or "" for text in node.iter(include_text=True) if text.is_text_node
        ]
    return plain, lambda node: [value for value in (node.attributes.get(name),) if value is not None]


class XmlElement:
    """An element of a page that was read for XPath."""

    __slots__ = ("_etree", "_node")

    def __init__(self, node: Any, etree: Any) -> None:  # noqa: ANN401 - of lxml, which has no types
        self._node = node
        self._etree = etree

    @property
    def text(self) -> str:
        """What it says, with one space where there is space."""
        return " ".join("".join(self._node.itertext()).split())

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes."""
        return dict(self._node.attrib)

    @property
    def html(self) -> str:
        """The element as HTML."""
        return str(self._etree.tostring(self._node, encoding="unicode", method="html", with_tail=False))

    def css(self, selector: str) -> Elements:
        """Not here: the two kinds of selectors read a page each by itself."""
        raise ValueError(f"{selector!r:.200} is asked of what an XPath expression found, expected page.css(…)")

    def xpath(self, expression: str) -> Elements:
        """What an XPath expression finds from it; a number or a truth as text. Raises ValueError for what is none."""
        try:
            found = self._node.xpath(expression, smart_strings=False)
        except self._etree.XPathError as error:
            raise ValueError(f"{expression!r:.200} is no XPath expression: {error}") from None
        values = found if isinstance(found, list) else [found]
        return Elements(XmlElement(each, self._etree) if hasattr(each, "itertext") else str(each) for each in values)

    def __repr__(self) -> str:
        return f"<XmlElement {self.html[:60]}>"


def select_by_xpath(html: str) -> XmlElement:
    """The root of a page, to ask with XPath. Raises PageTooComplexError, or MissingExtraError without lxml."""
    etree = load("lxml.etree", "XPath")
    check_complexity(html)
    parser = etree.HTMLParser(encoding="utf-8")
    root = etree.fromstring(html.encode(errors="replace") if html.strip() else b"<html></html>", parser)
    if root is None or any("Excessive depth" in each.message for each in parser.error_log):
        raise PageTooComplexError("the page is nested more deeply than XPath is asked of, expected at most 255 levels")
    return XmlElement(root, etree)
