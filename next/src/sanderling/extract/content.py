"""Which part of a page is its main text.

Paragraphs vote for what is around them: one that is long and has many commas is prose, and prose stands together. The
element with the most votes, less the share of its text that is links, holds the main text. This is the method of
Arc90's Readability, which the reading modes of browsers go by. Where the winner holds too little of what the page
says, the page is a list, a shop or a forum, and all of it is taken but its menus, headers and footers.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborNode

SHORTEST_VOTER = 25  # characters of a paragraph that counts
FARTHEST = (1, 2, 6, 9, 12)  # a paragraph votes for five levels around it, with its vote divided by these
NAME = 25  # votes for a good name, and against a bad one
MOST_FURNITURE = 0.35  # of the text of a page: what has more is no furniture, whatever it is called
MOST_HIDDEN = 0.6  # the same for what a script shows later
MOST_FORM = 0.1  # the same for forms
# Of the text without links of a page that calls itself an article, and of any other: with less, the winner is only a
# part of what people came to read. Articles often have long lists of others below.
LEAST_OF_ARTICLE, LEAST_OF_OTHERS = 0.3, 0.6
LEAST_DECLARED = 1 / 3  # of the text of a page, to believe an element that calls itself the main one
# Shares of links above which a box within the main text is cut: of any, of one with a good name, of a list.
CROWDED, CROWDED_WELL_NAMED, CROWDED_LIST = 0.2, 0.5, 0.6
MANY_COMMAS = 10  # a box with so many is text, whatever else it is
MAX_NAME = 500  # characters of a class and an id


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HEADINGS = _words("h1 h2 h3 h4 h5 h6")
BLOCKS = HEADINGS | _words(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form header hgroup hr legend li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul"
)
_NEVER = _words(
    "-comment script style template svg video audio canvas select datalist iframe title rt rp object map textarea"
    " progress meter dialog noembed noframes head"
)
_FURNITURE = _words("nav menu aside")
_ROLES = _words("navigation banner contentinfo complementary search menu menubar alert alertdialog dialog")
_BELIEVED = _words("aside banner comment contentinfo footer header hidden menu nav navigation related")  # of any size
_BAD_NAME = re.compile(
    "-ad-|ad-break|advert|agegate|banner|breadcrumb|byline|caption|com-|comment|community|contact|cookie|credit|disqus"
    "|extra|footer|gdpr|header|hidden|legends|masthead|media|menu|meta|modal|most-?(?:popular|read)|newsletter|outbrain"
    "|pager|pagination|paywall|popup|promo|read-?next|recirc|recommend|related|remark|replies|rss|scroll|share|shopping"
    "|shoutbox|sidebar|sign-?up|skyscraper|social|sponsor|subscribe|supplemental|taboola|tags|toolbar|tooltip|trending"
    "|widget",
    re.IGNORECASE,
)
_GOOD_NAME = re.compile("article|blog|body|column|content|entry|main|page|post|story|text", re.IGNORECASE)
_STYLED_AWAY = re.compile(r"display\s?:\s?none|visibility\s?:\s?hidden", re.IGNORECASE)
_COMMA = re.compile("[,\u060c\u3001\uff0c]")
_VOTERS = _words("p td pre section h2 h3 h4 h5 h6")
_HOLDERS = _words("div article main section body center li")  # text right inside of these is a paragraph
_BOXES = _words("form fieldset table ul ol div section dl")
_NAMELESS = _words("body main article a")  # whose names say nothing
_FENCED = _words("table pre code figure")  # within, nothing is cut: cells are short, and code has few commas
_ARRANGED = HEADINGS | _words("table pre blockquote form article section hr ul ol p")  # in a table that shows no data


class PageElement:
    """An element of a page, with the sums of what is inside and was not cut."""

    __slots__ = (
        "around", "attributes", "commas", "cut", "direct", "end", "holds_blocks", "is_layout", "items", "linked",
        "listed", "own", "own_commas", "size", "start", "table", "tag", "total",
    )  # fmt: skip

    def __init__(self, tag: str, attributes: dict[str, str | None], around: "PageElement | None", start: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.around = around
        self.start = self.end = start  # where it opens and closes in the list of events
        self.table: PageElement | None = (
            around if around is None or around.tag == "table" else around.table
        )  # around it
        self.is_layout = False  # a table that shows no data
        self.own = self.own_commas = 0  # characters and commas right inside
        self.total = 0  # characters, with what is cut
        self.cut = False
        self.size = self.direct = self.commas = self.items = 0  # `direct`: characters that are in no block inside
        self.linked = self.listed = 0  # characters within links, within lists
        self.holds_blocks = False

    @property
    def density(self) -> float:
        """Which share of its text is links."""
        return self.linked / self.size if self.size else 0.0

    @property
    def name(self) -> "_Name":
        """What its class and id speak for."""
        return _read_name(f"{self.attributes.get('class') or ''} {self.attributes.get('id') or ''}"[:MAX_NAME])


class _Name(NamedTuple):
    """What a name speaks for."""

    is_good: bool
    bad: str  # the word that speaks for something else than text

    @property
    def weight(self) -> int:
        return NAME * (self.is_good - bool(self.bad))


@lru_cache(maxsize=4096)  # the pages of a site have the same names
def _read_name(name: str) -> _Name:
    bad = _BAD_NAME.search(name)
    return _Name(_GOOD_NAME.search(name) is not None, bad[0].lower() if bad else "")


Event = str | PageElement | None
"""A text, an element that opens, or the end of the innermost open one."""


def main_content(body: LexborNode, *, is_article: bool) -> Iterator[Event]:
    """The part of a page that people came to read."""
    events, elements = _flatten(body)
    _cut_furniture(elements)
    _sum(elements)
    part = whole = _declared_main(elements)
    least = (whole.size - whole.linked) * (LEAST_OF_ARTICLE if is_article else LEAST_OF_OTHERS)
    winner = _winner(elements)
    if winner is not None:
        boxes = _boxes(elements, winner)
        if winner.size - sum(box.size for box in boxes) >= least:
            part = winner
            for box in boxes:
                box.cut = True
    at = part.start
    while at <= part.end:
        event = events[at]
        if isinstance(event, PageElement) and event.cut:
            at = event.end
        else:
            yield event
        at += 1


def _flatten(body: LexborNode) -> tuple[list[Event], list[PageElement]]:
    """The page as a list, without recursion: pages may be nested deeper than any stack."""
    page = inside = PageElement("body", body.attributes, None, 0)
    events: list[Event] = [page]
    elements = [page]

    def close(element: PageElement) -> PageElement | None:
        element.end = len(events)
        events.append(None)
        element.total += element.own
        if element.around is not None:
            element.around.total += element.total
        return element.around

    node = body.first_child
    while node is not None:
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content or ""
            events.append(text)
            if not text.isspace():
                inside.own += len(text)
                inside.own_commas += text.count(",") if text.isascii() else len(_COMMA.findall(text))
        elif tag not in _NEVER:
            inside = PageElement(tag, node.attributes, inside, len(events))
            events.append(inside)
            elements.append(inside)
            if inside.table is not None and tag in _ARRANGED:
                inside.table.is_layout = True
            if node.first_child is not None:
                node = node.first_child
                continue
            inside = close(inside) or page
        while node is not None and node.next is None:
            if inside is page:
                break
            node = node.parent
            inside = close(inside) or page
        node = node and node.next
    close(page)
    return events, elements


def _outermost(elements: list[PageElement]) -> Iterator[PageElement]:
    """All elements but those within one that is cut, which may become so on the way."""
    until = -1
    for element in elements:
        if element.start > until:
            yield element
            if element.cut:
                until = element.end


def _cut_furniture(elements: list[PageElement]) -> None:
    size = elements[0].total
    named: dict[str, list[PageElement]] = defaultdict(list)
    part = fence = -1  # where the outermost part of the page around us ends, and a table or code
    for element in _outermost(elements):
        if element.tag in ("article", "main", "section"):
            part = max(part, element.end)
        elif element.tag in _FENCED:
            fence = max(fence, element.end)
        why = _furniture(element, size, in_part=element.start < part, is_fenced=element.start < fence)
        if why and element.around is not None:
            element.cut = True
            named[why].append(element)
    for why, cut in named.items():
        # What has the same name and is a large share of the page, all together, is no furniture.
        if why not in _BELIEVED and sum(element.total for element in cut) > MOST_FURNITURE * size:
            for element in cut:
                element.cut = False


def _furniture(element: PageElement, page: int, *, in_part: bool, is_fenced: bool) -> str:
    """The tag, role or word that gives an element away as furniture; empty if none does."""
    tag, said = element.tag, element.attributes
    if element.total <= MOST_HIDDEN * page:
        is_hidden = "hidden" in said or said.get("aria-hidden") == "true"
        if is_hidden or tag in ("noscript", "button") or _STYLED_AWAY.search((said.get("style") or "")[:MAX_NAME]):
            return "hidden"
    if element.total > MOST_FURNITURE * page:
        return ""
    if tag in _FURNITURE or (tag in ("header", "footer") and not in_part):
        return tag
    if tag == "form" and element.total <= MOST_FORM * page:
        return tag
    role = said.get("role") or ""
    if role in _ROLES:
        return role
    if tag in _NAMELESS or is_fenced:
        return ""
    return "" if element.name.is_good else element.name.bad


def _sum(elements: list[PageElement]) -> None:
    for element in elements:
        element.size = element.direct = element.own
        element.commas = element.own_commas
    # What is inside stands behind what is around it.
    for element in reversed(elements):
        around = element.around
        if element.cut or around is None:
            continue
        if element.tag == "a":
            element.linked = element.size
        around.size += element.size
        around.commas += element.commas
        around.linked += element.linked
        around.items += element.items + (element.tag == "li")
        around.listed += element.size if element.tag in ("ul", "ol") else element.listed
        if element.tag in BLOCKS:
            around.holds_blocks = True
        else:
            around.direct += element.direct
            around.holds_blocks |= element.holds_blocks


def _declared_main(elements: list[PageElement]) -> PageElement:
    """The largest part that calls itself the main one; the page, if none has enough."""
    declared = [
        element
        for element in _outermost(elements)
        if element.tag in ("main", "article") or element.attributes.get("role") == "main"
    ]
    best = max(declared, key=lambda element: element.size, default=elements[0])
    return best if best.size > LEAST_DECLARED * elements[0].size else elements[0]


def _winner(elements: list[PageElement]) -> PageElement | None:
    """The element with the most votes; None where nobody voted."""
    votes: dict[PageElement, float] = {}
    for element in _outermost(elements):
        target: PageElement | None
        if element.tag in _VOTERS or (element.tag == "div" and not element.holds_blocks):
            size, commas, target = element.size, element.commas, element.around
        elif element.tag in _HOLDERS:
            size, commas, target = element.direct, element.own_commas, element
        else:
            continue
        for divisor in FARTHEST if size >= SHORTEST_VOTER else ():
            if target is None:
                break
            if target not in votes:
                votes[target] = target.name.weight
            votes[target] += (2 + commas + min(size // 100, 3)) / divisor
            target = target.around
    ranked = {element: total * (1 - min(1.0, element.density)) for element, total in votes.items()}
    best = max(ranked, key=ranked.__getitem__, default=elements[0])
    return best if best.around is not None else None


def _boxes(elements: list[PageElement], part: PageElement) -> list[PageElement]:
    """What stands within the main text and is a box of links or controls."""
    found = []
    until = -1
    for element in _outermost(elements):
        if not part.start < element.start < part.end or element.start < until or element.cut:
            continue
        is_aside = element.tag == "footer" or (element.tag == "aside" and element.linked > 0)
        if is_aside or (element.tag in _BOXES and _is_box(element)):
            found.append(element)
        elif element.tag not in _FENCED:
            continue
        until = element.end
    return found


def _is_box(element: PageElement) -> bool:
    weight = element.name.weight
    if weight < 0:
        return True
    if not element.size or element.commas >= MANY_COMMAS:
        return False
    if element.tag in ("ul", "ol") or element.listed > 0.9 * element.size:
        return element.density > CROWDED_LIST and element.items > 2
    return element.density > (CROWDED_WELL_NAMED if weight else CROWDED)
