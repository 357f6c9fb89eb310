"""What selectors find in a page: elements and texts, by CSS, or by XPath where lxml is installed."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from re import Pattern
from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from sanderling.crawl.values import Selected
from sanderling.extract.html import MissingExtraError

# Words on both sides of these are not one word.
_APART = frozenset(
    "address article aside blockquote body br caption center col colgroup dd details dialog dir div dl dt fieldset"
    " figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu"
    " nav ol optgroup option p pre search section select summary table tbody td textarea tfoot th thead title tr"
    " ul video".split()
)
_UNSAID = frozenset({"script", "style", "template"})  # nobody reads what is inside them

_VALUE = re.compile(r"::(?:(text)|attr\(\s*([^()\s]+)\s*\))\s*\Z")
# Parts of a list of selectors: commas in strings, brackets and parentheses do not separate.
_SIGN = re.compile(r""""[^"]*"|'[^']*'|.""", re.DOTALL)

N = TypeVar("N")


class Element(Selected):
    """An element of a page."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """What it says, with single spaces; without scripts and styles inside it."""
        raise NotImplementedError

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes; None for one without a value."""
        raise NotImplementedError

    @property
    def html(self) -> str:
        """The element as HTML."""
        raise NotImplementedError

    def attr(self, name: str, default: str | None = None) -> str | None:
        """One of its attributes; `default` if it has none of that name."""
        return self.attributes.get(name, default)

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in its HTML: its groups, or all of it if it has none."""
        return _found_in(self.html, pattern)

    def css(self, selector: str) -> "Elements":
        """What a CSS selector finds within it. Raises ValueError."""
        raise ValueError(f"{selector!r:.200} is asked of what an XPath expression found; use page.css(…)")

    def xpath(self, expression: str) -> "Elements":
        """What an XPath expression finds from it. Raises ValueError."""
        raise ValueError(f"{expression!r:.200} is asked of what a CSS selector found; use page.xpath(…)")

    def __repr__(self) -> str:
        return f"<Element {self.html[:60]}>"


class Elements(list["Element | str"], Selected):
    """What a selector found, in the order of the page: elements, or texts where it asks for those."""

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
        return next((each.attr(name, default) for each in self._elements()), default)

    def attrs(self, name: str) -> list[str]:
        """The attribute of each element that has it."""
        return [value for each in self._elements() if (value := each.attr(name)) is not None]

    def get(self, default: str | None = None) -> str | None:
        """The first of them as HTML, or the first text; `default` if nothing was found."""
        return next(iter(self.getall()), default)

    def getall(self) -> list[str]:
        """Each of them as HTML, or as the text that it is."""
        return [each if isinstance(each, str) else each.html for each in self]

    def re(self, pattern: str | Pattern[str]) -> list[str]:
        """What a regular expression finds in the texts or the HTML of all."""
        return [found for each in self.getall() for found in _found_in(each, pattern)]

    def re_first(self, pattern: str | Pattern[str], default: str | None = None) -> str | None:
        """The first of that; `default` if nothing was found."""
        return next(iter(self.re(pattern)), default)

    def css(self, selector: str) -> "Elements":
        """What a CSS selector finds within each of the elements."""
        return Elements(found for each in self._elements() for found in each.css(selector))

    def xpath(self, expression: str) -> "Elements":
        """What an XPath expression finds from each of the elements."""
        return Elements(found for each in self._elements() for found in each.xpath(expression))

    def _elements(self) -> Iterator[Element]:
        return (each for each in self if not isinstance(each, str))


class HtmlElement(Element):
    """An element of a page that was read for CSS selectors."""

    __slots__ = ("_node",)

    def __init__(self, node: LexborNode) -> None:
        self._node = node

    @property
    def text(self) -> str:
        """What it says."""
        return _words(self._node, lambda node: node.tag or "", _children)

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes."""
        return self._node.attributes

    @property
    def html(self) -> str:
        """The element as HTML."""
        return self._node.html or ""

    def css(self, selector: str) -> Elements:
        """What a CSS selector finds within it. Raises ValueError for what is none."""
        picks = _picks(selector)
        try:
            if len(picks) == 1 and not picks[0].value:
                return Elements(map(HtmlElement, self._node.css(selector)))
            return Elements(_picked(self._node, picks))
        except SelectolaxError:
            raise ValueError(f"{selector!r:.200} is no CSS selector; expected one like 'div.price > b'") from None


def select_elements(html: str) -> HtmlElement:
    """The root of a page, to select in."""
    root = LexborHTMLParser(html or "<html></html>").root
    if root is None:
        raise ValueError("the page could not be read as HTML")
    return HtmlElement(root)


class _Pick(NamedTuple):
    """What is taken of the elements that a selector finds: themselves, or values."""

    plain: str  # the selector as the parser knows it; empty for where one looks
    value: str = ""  # "text", or "@" and the name of an attribute
    within: bool = False  # of all that is inside of them too


@lru_cache(maxsize=256)
def _picks(selector: str) -> tuple[_Pick, ...]:
    if "::" not in selector and "," not in selector:
        return (_Pick(selector),)
    parts, depth = [""], 0
    for sign in _SIGN.findall(selector):
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return tuple(map(_pick, parts))


def _pick(selector: str) -> _Pick:
    found = _VALUE.search(selector)
    if found is None:
        return _Pick(selector.strip())
    value = "text" if found[1] else f"@{found[2].lower()}"
    of = selector[: found.start()]
    bare = of.removesuffix("*").rstrip() if of.endswith(" *") else of.rstrip()
    if not bare or (of != of.rstrip() and not bare.endswith((">", "+", "~"))) or of.endswith(" *"):
        return _Pick("" if bare == "*" else bare, value, within=True)
    return _Pick(f"{bare} *" if bare.endswith((">", "+", "~")) else bare, value)


def _picked(root: LexborNode, picks: tuple[_Pick, ...]) -> Iterator[HtmlElement | str]:
    """Elements and values that were asked for, each once, in the order of the page."""
    wanted: dict[int, set[_Pick]] = {}
    for pick in picks:
        for node in root.css(pick.plain) if pick.plain else (root,):
            wanted.setdefault(node.mem_id, set()).add(pick)
    if not wanted:
        return
    for node in root.traverse(include_text=True):
        above = wanted.get(node.parent.mem_id, ()) if node.parent is not None else ()
        if node.is_text_node and any(pick.value == "text" for pick in above):
            yield node.text_content or ""
        if not node.is_element_node:
            continue
        own = wanted.get(node.mem_id, set()) | {pick for pick in above if pick.within}
        if not own:
            continue
        wanted[node.mem_id] = own
        if any(not pick.value for pick in own):
            yield HtmlElement(node)
        asked = {pick.value[1:] for pick in own if pick.value.startswith("@")}
        if asked:
            yield from (value or "" for name, value in node.attributes.items() if name in asked)


def _text(found: Element | str) -> str:
    return found if isinstance(found, str) else found.text


def _words(node: N, tag: Callable[[N], str], children: Callable[[N], Iterable[N | str]]) -> str:
    """What an element says. Without recursion, as pages may be nested deeply."""
    said: list[str] = []
    waiting: list[N | str] = list(children(node))[::-1]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            said.append(each)
        elif (name := tag(each)) not in _UNSAID:
            apart = [" "] if name in _APART else []
            said += apart
            waiting += [*apart, *list(children(each))[::-1]]
    return " ".join("".join(said).split())


def _children(node: LexborNode) -> Iterator[LexborNode | str]:
    for each in node.iter(include_text=True):
        yield each.text_content or "" if each.is_text_node else each


def _found_in(text: str, pattern: str | Pattern[str]) -> list[str]:
    found = re.findall(pattern, text)
    return [part for each in found for part in (each if isinstance(each, tuple) else (each,))]


class XmlElement(Element):
    """An element of a page that was read for XPath."""

    __slots__ = ("_etree", "_node")

    def __init__(self, node: Any, etree: Any) -> None:  # noqa: ANN401 - of lxml, which has no types
        self._node = node
        self._etree = etree

    @property
    def text(self) -> str:
        """What it says."""
        return _words(self._node, lambda node: node.tag if isinstance(node.tag, str) else "script", _xml_children)

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes."""
        return dict(self._node.attrib)

    @property
    def html(self) -> str:
        """The element as HTML."""
        return str(self._etree.tostring(self._node, encoding="unicode", method="html", with_tail=False))

    def xpath(self, expression: str) -> Elements:
        """What an XPath expression finds from it; a number or a truth as text. Raises ValueError for what is none."""
        try:
            found = self._node.xpath(expression, smart_strings=False)
        except self._etree.XPathError as error:
            raise ValueError(f"{expression!r:.200} is no XPath expression: {error}") from None
        values = found if isinstance(found, list) else [found]
        return Elements(XmlElement(each, self._etree) if hasattr(each, "itertext") else str(each) for each in values)


def select_by_xpath(html: str) -> XmlElement:
    """The root of a page, to ask with XPath. Raises MissingExtraError without lxml."""
    try:
        from lxml import etree  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError(
            "page.xpath needs lxml, which is not installed; type: pip install 'sanderling[xpath]'"
        ) from None
    parser = etree.HTMLParser(encoding="utf-8")
    root = etree.fromstring(html.encode(errors="replace") if html.strip() else b"<html></html>", parser)
    if root is None or any("Excessive depth" in each.message for each in parser.error_log):
        raise ValueError("the page is nested too deeply for XPath; expected at most 255 levels")
    return XmlElement(root, etree)


def _xml_children(node: Any) -> Iterator[Any]:  # noqa: ANN401 - of lxml, which has no types
    yield node.text or ""
    for each in node:
        yield each
        yield each.tail or ""
