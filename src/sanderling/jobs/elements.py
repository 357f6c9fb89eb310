"""What selectors find in a page: elements and texts, by CSS, or by XPath where lxml is installed."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from re import Pattern
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeVar, overload

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from sanderling.extras import load
from sanderling.pages.complexity import PageTooComplexError, check_complexity
from sanderling.pages.markup import BLOCKS, names

# Words on both sides of these are not one word; what is within the second kind is not said to anybody.
_APART = BLOCKS | names("br head optgroup option select textarea title")
_UNSAID = names("script style template")

_VALUE = re.compile(r"(?P<of>.*?)::(?:(?P<text>text)|attr\(\s*(?P<name>[^()\s]+)\s*\))\s*", re.DOTALL)
# A selector up to a comma that stands in no string, brackets or parentheses.
_STRING = r""""[^"]*"|'[^']*'"""
_ALONE = re.compile(rf"(?:[^,\"'()\[\]]|{_STRING}|\[(?:[^\]\"']|{_STRING})*\]|\((?:[^()]|\([^()]*\))*\))+")
_WITHIN = re.compile(r"(?P<of>.*[^\s>+~])?\s+\*?|\*?", re.DOTALL)  # all that is within what `of` finds

N = TypeVar("N")


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

    def attr(self, name: str, default: str | None = None) -> str | None:
        """One of its attributes; `default` if it has none of that name."""

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in its HTML."""

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

    @overload
    def __getitem__(self, at: SupportsIndex) -> "Element | str": ...
    @overload
    def __getitem__(self, at: slice) -> "Elements": ...
    def __getitem__(self, at: SupportsIndex | slice) -> "Element | str | Elements":
        """One of them, or some as such a list."""
        return Elements(super().__getitem__(at)) if isinstance(at, slice) else super().__getitem__(at)

    def attr(self, name: str, default: str | None = None) -> str | None:
        """The attribute of the first element; `default` if it has none, or nothing was found."""
        return next((each.attr(name, default) for each in self if not isinstance(each, str)), default)

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

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in the texts or the HTML of all: its groups, or all of it if it has none."""
        return [found for each in self.getall() for found in _found_in(each, pattern)]

    def re_first(self, pattern: str | Pattern[str], default: str | None = None) -> str | None:
        """The first of that; `default` if nothing was found."""
        return next(iter(self.re(pattern)), default)

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
        return _words(self._node, lambda node: node.tag or "", _children)

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes; None for one without a value."""
        return self._node.attributes

    @property
    def html(self) -> str:
        """The element as HTML."""
        return self._node.html or ""

    def attr(self, name: str, default: str | None = None) -> str | None:
        """One of its attributes; `default` if it has none of that name."""
        return self._node.attributes.get(name, default)

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in its HTML: its groups, or all of it if it has none."""
        return _found_in(self.html, pattern)

    def css(self, selector: str) -> Elements:
        """What a CSS selector finds within it. Raises ValueError for what is none."""
        picks = _picks(selector)
        try:
            if any(pick.value for pick in picks):
                return Elements(_values(self._node, picks))
            found = self._node.css(selector)
            return Elements(map(HtmlElement, found if len(picks) == 1 else {n.mem_id: n for n in found}.values()))
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


class _Pick(NamedTuple):
    """What is taken of the elements that a selector finds: themselves, or values."""

    plain: str  # the selector, as the parser knows it; empty for where one looks
    value: str = ""  # "text", or "@" and the name of an attribute
    within: bool = False  # also of all that is inside of them


@lru_cache(maxsize=256)
def _picks(selector: str) -> tuple[_Pick, ...]:
    if "," not in selector and "::" not in selector:
        return (_Pick(selector),)
    alone = _ALONE.findall(selector)
    return tuple(map(_pick, alone)) if ",".join(alone) == selector else (_Pick(selector),)


def _pick(selector: str) -> _Pick:
    found = _VALUE.fullmatch(selector)
    if found is None:
        return _Pick(selector)
    value = "text" if found["name"] is None else f"@{found['name'].lower()}"
    if (within := _WITHIN.fullmatch(found["of"])) is not None:
        return _Pick((within["of"] or "").strip(), value, within=True)
    plain = found["of"].rstrip()
    return _Pick(f"{plain} *" if plain.endswith((">", "+", "~")) else plain, value)


def _values(root: LexborNode, picks: Sequence[_Pick]) -> Iterator[HtmlElement | str]:
    """Elements and values that were asked for, each once, in the order of the page."""
    wanted: dict[int, set[_Pick]] = {}
    tops: dict[int, LexborNode] = {}
    for pick in picks:
        for node in root.css(pick.plain) if pick.plain else (root,):
            wanted.setdefault(node.mem_id, set()).add(pick)
            tops[node.mem_id] = node
    if len(picks) > 1:
        tops = {node.mem_id: node for node in root.traverse() if node.mem_id in tops}  # in order
    seen: set[int] = set()
    for top in tops.values():
        if top.mem_id not in seen:
            yield from _values_of(top, wanted, seen)


def _values_of(top: LexborNode, wanted: dict[int, set[_Pick]], seen: set[int]) -> Iterator[HtmlElement | str]:
    for node in top.traverse(include_text=True):
        above = set() if node.parent is None else wanted.get(node.parent.mem_id, set())
        if node.is_text_node and any(pick.value == "text" for pick in above):
            yield node.text_content or ""
        if not node.is_element_node:
            continue
        seen.add(node.mem_id)
        own = wanted.get(node.mem_id, set()) | {pick for pick in above if pick.within}
        wanted[node.mem_id] = own
        if any(not pick.value for pick in own):
            yield HtmlElement(node)
        asked = {pick.value[1:] for pick in own if pick.value.startswith("@")}
        yield from (value or "" for name, value in node.attributes.items() if name in asked)


def _words(node: N, tag: Callable[[N], str], children: Callable[[N], Iterable[N | str]]) -> str:
    """What an element says, with one space between words that are apart, and without scripts and styles inside it."""
    said: list[str] = []
    todo: list[N | str] = list(children(node))[::-1]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            said.append(each)
        elif (name := tag(each)) not in _UNSAID:
            apart = [" "] if name in _APART else []
            said += apart
            todo += [*apart, *list(children(each))[::-1]]
    return " ".join("".join(said).split())


def _children(node: LexborNode) -> Iterator[LexborNode | str]:
    for each in node.iter(include_text=True):
        yield each.text_content or "" if each.is_text_node else each


def _found_in(text: str, pattern: str | Pattern[str]) -> list[str]:
    """All groups of all that was found, or all of it where there are no groups."""
    found = re.findall(pattern, text)
    return [part for each in found for part in (each if isinstance(each, tuple) else (each,))]


class XmlElement:
    """An element of a page that was read for XPath."""

    __slots__ = ("_etree", "_node")

    def __init__(self, node: Any, etree: Any) -> None:  # noqa: ANN401 - of lxml, which has no types
        self._node = node
        self._etree = etree

    @property
    def text(self) -> str:
        """What it says, with one space where there is space."""
        return _words(self._node, lambda node: node.tag if isinstance(node.tag, str) else "script", _xml_children)

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes."""
        return dict(self._node.attrib)

    @property
    def html(self) -> str:
        """The element as HTML."""
        return str(self._etree.tostring(self._node, encoding="unicode", method="html", with_tail=False))

    def attr(self, name: str, default: str | None = None) -> str | None:
        """One of its attributes; `default` if it has none of that name."""
        return self.attributes.get(name, default)

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in its HTML: its groups, or all of it if it has none."""
        return _found_in(self.html, pattern)

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


def _xml_children(node: Any) -> Iterator[Any]:  # noqa: ANN401 - of lxml, which has no types
    yield node.text or ""
    for each in node:
        yield each
        yield each.tail or ""


def select_by_xpath(html: str) -> XmlElement:
    """The root of a page, to ask with XPath. Raises PageTooComplexError, or MissingExtraError without lxml."""
    etree = load("lxml.etree", "XPath")
    check_complexity(html)
    parser = etree.HTMLParser(encoding="utf-8")
    root = etree.fromstring(html.encode(errors="replace") if html.strip() else b"<html></html>", parser)
    if root is None or any("Excessive depth" in each.message for each in parser.error_log):
        raise PageTooComplexError("the page is nested more deeply than XPath is asked of, expected at most 255 levels")
    return XmlElement(root, etree)
