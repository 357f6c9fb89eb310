"""Which part of a page is its main text, and which is the furniture around it.

Paragraphs vote for what is around them: one that is long and has many commas is prose, and prose stands together. The
block with the most votes, less the share of its text that is links, holds the main text; blocks beside it that have
enough votes of their own belong to it. What then remains of lists of links, forms and boxes inside is cut. This is the
method of Arc90's Readability, which the reading modes of browsers go by, on our flat list of events: votes and sums
are taken in one pass, and nothing is rendered or rebuilt. A page that has too little text by these rules is read again
with fewer of them, and at last as a whole.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from functools import lru_cache

from sanderling.pages.markup import BLOCKS, HEADINGS, LOWER, Event, Markup, attributes, names

ENOUGH = 500  # characters of main text; with less the page is read again by fewer rules
LEAST_SHARE = 0.5  # of what fewer rules would leave: a stricter reading with less is not believed
LEAST_DECLARED = 1 / 3  # of the text of a page, to believe a part that calls itself the main one
SHORTEST_VOTER = 25  # characters of a paragraph that counts
FARTHEST = 5  # levels that a paragraph votes for
SIBLING = 0.2  # share of the best block's score that a block beside it needs
LEAST_SIBLING = 10
LONG_PARAGRAPH = 80  # characters; a paragraph beside the best block belongs to it if few of them are links
FEW_LINKS = 0.25  # of its text
CROWDED = 0.2  # share of links above which a box inside the main text is cut
CROWDED_WELL_NAMED = 0.5  # the same for a box whose name says that it is text
CROWDED_LIST = 0.6  # the same for a list, which may well be of references
MANY_COMMAS = 10  # a block with so many is text, whatever else it is
SHARED = 500  # characters of a box for sharing
NAME = 25  # what a good name is worth, and what a bad one costs
MOST_FURNITURE = 0.35  # of the text of a page: what has more is no furniture, whatever it is called
INSIDE_PAGE = 0.3  # how much of a link to the page itself counts as a link

_NEVER = names(
    "template noscript svg video audio canvas select button datalist iframe title rt rp annotation annotation-xml"
    " progress meter map dialog textarea object"
)
_FURNITURE = names("nav menu aside")
_EDGES = names("header footer")  # of the page, if they are not those of a part of it
_PARTS = names("article main section")
_ROLES = names("navigation banner contentinfo complementary search menu menubar alert alertdialog dialog")
_UNLIKELY = re.compile(
    "-ad-|ad-break|advert|agegate|ai2html|banner|breadcrumb|byline|comment|community|cookie|cover-wrap|disqus|"
    "extra|footer|gdpr|header|legends|menu|modal|most-?(?:popular|read)|newsletter|outbrain|pager|pagination|"
    "paywall|popup|promo|read-?next|recirc|related|remark|replies|rss|share|shoutbox|sidebar|sign-?up|skyscraper|"
    "social|sponsor|subscribe|supplemental|taboola|toolbar|tooltip|trending|widget",
    re.IGNORECASE | re.ASCII,
)
_LIKELY = re.compile("and|article|body|column|content|entry|main|post|shadow|story", re.IGNORECASE | re.ASCII)
_GOOD_NAME = re.compile("article|blog|body|content|entry|main|page|post|story|text", re.IGNORECASE | re.ASCII)
_BAD_NAME = re.compile(
    "-ad-|banner|byline|caption|com-|comment|contact|credit|footer|gdpr|hidden|masthead|media|meta|newsletter|"
    "outbrain|promo|recommend|related|scroll|share|shopping|shoutbox|sidebar|skyscraper|sponsor|subscribe|tags|"
    "widget|^hid$",
    re.IGNORECASE | re.ASCII,
)
_MAIN_NAMES = names(
    "content main main-content maincontent page-content site-content post-content entry-content article-content"
    " article-body articlebody post-body story-body post entry article hentry body-content markdown-body"
    " mw-content-text bodycontent blog-post"
)
_SHARING = re.compile(r"(?:\b|_)share(?:daddy)?(?:\b|_)", re.IGNORECASE | re.ASCII)
_STYLED_AWAY = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE | re.ASCII)
_COMMA = re.compile("[,،、，﹐︐⸲⸴⹁]")
_SENTENCE_END = re.compile(r"\.(?:\s|\Z)")

# What a block is worth before anyone votes for it.
_WORTH = {
    **dict.fromkeys(("div", "article", "main"), 5),
    **dict.fromkeys(("pre", "td", "blockquote"), 3),
    **dict.fromkeys(("address", "ol", "ul", "dl", "dd", "dt", "li", "form"), -3),
    **dict.fromkeys((*HEADINGS, "th"), -5),
}
_VOTERS = names("p td pre section h2 h3 h4 h5 h6")
_HOLDERS = names("div article main section body center li layout")  # text directly inside of these is a paragraph
_LISTS = names("ul ol")
_BOXES = names("form fieldset table layout ul ol div section dl")
_NODES = BLOCKS | names("layout a img code")
_HEADED_TABLE = names("caption col colgroup tfoot thead th")
_KEPT_NAMES = names("html body main article a")

_Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Rules:
    """How strictly a page is read."""

    by_likelihood: bool  # cut what is called a sidebar and the like
    by_name: bool  # names of blocks count
    by_links: bool  # cut boxes of links


_STRICT_FIRST = (
    _Rules(by_likelihood=True, by_name=True, by_links=True),
    _Rules(by_likelihood=False, by_name=True, by_links=True),
    _Rules(by_likelihood=False, by_name=False, by_links=True),
    _Rules(by_likelihood=False, by_name=False, by_links=False),
)


@dataclass(slots=True)
class _Block:
    """An element with the sums of all that is inside of it, without what was cut."""

    tag: str
    raw: str
    start: int
    end: int
    around: "_Block | None"
    size: int = 0  # characters
    linked: float = 0  # of those, inside links
    commas: int = 0
    paragraphs: int = 0
    images: int = 0
    items: int = 0
    listed: int = 0  # characters in lists
    headed: int = 0  # characters in headings
    direct: int = 0  # characters that are in no block inside of it
    direct_commas: int = 0
    children: int = 0  # elements right inside of it, but for links
    holds_blocks: bool = False
    votes: float | None = None
    is_cut: bool = False
    is_data: bool = False  # a table that shows data

    @property
    def density(self) -> float:
        """Which share of its text is links."""
        return self.linked / self.size if self.size else 0.0


def readable(markup: Markup) -> list[Event]:
    """The events of the part that people came to read."""
    hidden = _hidden(markup)
    sizes = [0, *accumulate(len(event) if isinstance(event, str) and event != " " else 0 for event in markup.events)]
    readings: list[tuple[int, list[Event]]] = []
    for rules in _STRICT_FIRST:
        found = _Reading(markup, hidden, sizes, rules).main_text()
        readings.append((_size(found), found))
        if readings[-1][0] >= ENOUGH:
            break
    most = max(size for size, _ in readings)
    return next(found for size, found in readings if size >= LEAST_SHARE * most) if most else markup.events


def _size(events: list[Event]) -> int:
    """How much text there is; the space between tags does not count."""
    return sum([len(event) for event in events if isinstance(event, str) and event != " "])


def _hidden(markup: Markup) -> list[_Range]:
    veiled = [at for at in markup.veiled if _is_hidden(markup.events[at][1])]
    never = [at for tag in _NEVER if tag in markup.opens for at in markup.opens[tag]]
    return sorted((at, markup.ends[at]) for at in (*veiled, *never))


def _is_hidden(raw: str) -> bool:
    found = attributes(raw)
    return "hidden" in found or found.get("aria-hidden") == "true" or bool(_STYLED_AWAY.search(found.get("style", "")))


class _Reading:
    """One reading of a page by rules."""

    def __init__(self, markup: Markup, hidden: list[_Range], sizes: list[int], rules: _Rules) -> None:
        self._events = markup.events
        self._ends = markup.ends
        self._hidden = hidden
        self._rules = rules
        self._cuts: list[_Range] = []
        self._sizes = sizes
        self._blocks: list[_Block] = []

    def main_text(self) -> list[Event]:
        """The events of the main text."""
        self._measure()
        self._vote()
        parts = self._choose()
        for part in parts:
            self._clean(part)
        self._cuts.sort()
        return [event for part in parts for event in self._kept(part)]

    def _kept(self, part: _Block) -> list[Event]:
        """The events of a block without what was cut inside of it."""
        kept: list[Event] = []
        at = part.start
        for start, end in self._cuts[bisect_left(self._cuts, (at, 0)) :]:
            if start > part.end:
                break
            if start >= at:
                kept += self._events[at:start]
                at = end + 1
        return kept + self._events[at : part.end + 1]

    def _measure(self) -> None:
        """Make the blocks, and their sums."""
        events, ends, blocks = self._events, self._ends, self._blocks
        hidden = iter(self._hidden)
        skip = next(hidden, (len(events), 0))
        page = _Block("html", "", 0, len(events) - 1, None)
        blocks.append(page)
        inside, at, count, tables, part = page, 0, len(events), -1, -1
        while at < count:
            while skip[0] < at:
                skip = next(hidden, (count, 0))
            if at == skip[0]:
                self._cuts.append(skip)
                at = skip[1] + 1
                continue
            event = events[at]
            if isinstance(event, str):
                if event != " ":
                    size = len(event)
                    inside.size += size
                    inside.direct += size
                    if size > 10:
                        commas = len(_COMMA.findall(event))
                        inside.commas += commas
                        inside.direct_commas += commas
            else:
                tag, raw = event
                if tag[0] == "/":
                    if inside.end == at:
                        self._close(inside)
                        inside = inside.around or page
                elif tag in _NODES:
                    end = ends[at]
                    if self._is_furniture(tag, raw, fenced=at < tables, in_part=at < part) and (
                        self._sizes[end] - self._sizes[at] <= MOST_FURNITURE * self._sizes[-1]
                    ):
                        self._cuts.append((at, end))
                        at = end + 1
                        continue
                    if tag == "img":
                        inside.images += 1
                    elif end > at:
                        inside.children += tag != "a"
                        inside = _Block(tag, raw, at, end, inside)
                        blocks.append(inside)
                        if tag in ("table", "layout", "code"):
                            tables = max(tables, end)
                        elif tag in _PARTS:
                            part = max(part, end)
            at += 1

    def _close(self, block: _Block) -> None:
        around = block.around
        if around is None:
            return
        tag = block.tag
        if tag == "a":
            href = attributes(block.raw).get("href", "")
            block.linked = block.size * (INSIDE_PAGE if href[:1] == "#" else 1)
        elif tag == "p":
            around.paragraphs += 1
        elif tag == "li":
            around.items += 1
        elif tag in HEADINGS:
            around.headed += block.size
        if tag in _LISTS:
            around.listed += block.size
        else:
            around.listed += block.listed
        around.size += block.size
        around.linked += block.linked
        around.commas += block.commas
        around.paragraphs += block.paragraphs
        around.images += block.images
        around.items += block.items
        if tag not in HEADINGS:
            around.headed += block.headed
        if tag in BLOCKS or tag == "layout":
            around.holds_blocks = True
        else:
            around.direct += block.direct
            around.direct_commas += block.direct_commas
            around.holds_blocks = around.holds_blocks or block.holds_blocks

    def _is_furniture(self, tag: str, raw: str, *, fenced: bool, in_part: bool) -> bool:
        if not self._rules.by_likelihood:
            return False
        if tag in _FURNITURE or (tag in _EDGES and not in_part):
            return True
        return bool(raw) and tag not in _KEPT_NAMES and _is_unlikely(raw, fenced=fenced)

    def _vote(self) -> None:
        for block in self._blocks:
            tag = block.tag
            if tag in _VOTERS or (tag == "div" and not block.holds_blocks):
                self._cast(block.around, block.size, block.commas)
            elif tag in _HOLDERS and block.holds_blocks:
                self._cast(block, block.direct, block.direct_commas)
        for block in self._blocks:
            if block.votes is not None:
                block.votes *= 1 - min(1.0, block.density)

    def _cast(self, block: _Block | None, size: int, commas: int) -> None:
        if size < SHORTEST_VOTER:
            return
        vote = 2 + commas + min(size // 100, 3)
        level = 0
        while block is not None and level < FARTHEST:
            if block.tag != "a":
                if block.votes is None:
                    block.votes = _WORTH.get(block.tag, 0) + self._weight(block)
                block.votes += vote / (level * 3 if level > 1 else level + 1)
                level += 1
            block = block.around

    def _weight(self, block: _Block) -> int:
        return _weight_of(block.raw) if self._rules.by_name and block.raw else 0

    def _choose(self) -> list[_Block]:
        """The block that has the main text, and those beside it that go with it."""
        ranked = sorted((each for each in self._blocks if each.votes is not None), key=_votes, reverse=True)[:5]
        if not ranked or ranked[0].tag in ("html", "body"):
            return [self._declared()]
        best = _around_several(ranked)
        best = _higher(best)
        around = best.around
        while around is not None and around.tag not in ("html", "body", "a") and around.children == 1:
            best, around = around, around.around
        if around is None:
            return [best]
        needed = max(LEAST_SIBLING, SIBLING * _votes(best))
        beside = [each for each in self._blocks if each.around is around and each.tag != "a"]
        return [each for each in beside if each is best or _goes_with(each, best, needed, self._said)]

    def _declared(self) -> _Block:
        """The largest part that calls itself the main one; the page, if there is none that has enough."""
        page = self._blocks[0]
        found = [each for each in self._blocks[1:] if _is_main(each.tag, each.raw)]
        best = max(found, key=lambda each: each.size, default=page)
        return best if best.size > LEAST_DECLARED * page.size else page

    def _said(self, block: _Block) -> str:
        return "".join(event for event in self._events[block.start : block.end] if isinstance(event, str))

    def _clean(self, part: _Block) -> None:
        """Cut what does not belong to the main text from inside a part of it."""
        inside = [each for each in self._blocks if part.start < each.start <= part.end]
        for block in inside:
            if block.tag == "table":
                block.is_data = self._is_data(block)
        for block in inside:
            if not _is_gone(block) and self._is_aside(block):
                self._cut(block)
        if self._rules.by_links:
            data = len(self._events)  # where the nearest table of data behind opens
            for block in reversed(inside):
                if block.tag in _BOXES and not _is_gone(block) and self._is_box(block, holds_data=data <= block.end):
                    self._cut(block)
                if block.is_data:
                    data = block.start

    def _cut(self, block: _Block) -> None:
        block.is_cut = True
        self._cuts.append((block.start, block.end))
        around = block.around
        while around is not None:
            around.size -= block.size
            around.linked -= block.linked
            around.commas -= block.commas
            around.paragraphs -= block.paragraphs + (block.tag == "p")
            around.images -= block.images
            around.items -= block.items + (block.tag == "li")
            around.headed -= block.size if block.tag in HEADINGS else block.headed
            around.listed -= block.size if block.tag in _LISTS else block.listed
            around = around.around

    def _is_aside(self, block: _Block) -> bool:
        if block.tag in ("footer", "aside"):
            return True
        if block.tag in ("h1", "h2") and self._weight(block) < 0:
            return True
        return bool(block.raw) and block.size < SHARED and _is_for_sharing(block.raw)

    def _is_data(self, table: _Block) -> bool:
        said = attributes(table.raw)
        if said.get("role") == "presentation":
            return False
        rows = columns = cells = 0
        for event in self._events[table.start + 1 : table.end]:
            if isinstance(event, tuple):
                tag = event[0]
                if tag in _HEADED_TABLE:
                    return True
                if tag in ("table", "layout"):
                    return False
                if tag == "tr":
                    rows, cells = rows + 1, 0
                elif tag == "td":
                    cells += 1
                    columns = max(columns, cells)
        return rows > 1 < columns and (rows >= 10 or columns > 4 or rows * columns > 10)

    def _is_box(self, block: _Block, *, holds_data: bool) -> bool:
        """Whether it is a box of links, pictures or controls."""
        in_figure = False
        around: _Block | None = block
        while around is not None:
            if around.is_data or around.tag in ("code", "pre"):
                return False
            in_figure = in_figure or around.tag == "figure"
            around = around.around
        if holds_data:
            return False
        weight = self._weight(block)
        if weight < 0:
            return True
        if block.commas >= MANY_COMMAS:
            return False
        size, density = block.size, block.density
        if not size and not block.images:
            return True
        if not in_figure and block.images > 1 and block.paragraphs < block.images / 2:
            return True
        if block.tag in _LISTS or block.listed > 0.9 * size:
            return block.tag in _LISTS and density > CROWDED_LIST and block.items > 2
        if block.items - 100 > block.paragraphs:
            return True
        if not in_figure and size < SHORTEST_VOTER and density > 0 and block.headed < 0.9 * size:
            return block.images == 0 or block.images > 2
        return density > (CROWDED if weight < NAME else CROWDED_WELL_NAMED)


def _votes(block: _Block) -> float:
    return block.votes or 0.0


def _around_several(ranked: list[_Block]) -> _Block:
    """The best, or what is around it and three more that are nearly as good."""
    best = ranked[0]
    rivals = [each for each in ranked[1:] if _votes(each) >= 0.75 * _votes(best)]
    around = best.around if len(rivals) >= 3 else None
    while around is not None and around.tag not in ("html", "body"):
        if sum(around.start < each.start <= around.end for each in rivals) >= 3:
            return around
        around = around.around
    return best


def _higher(best: _Block) -> _Block:
    """What is around the best block, if it has more votes: text that stands in several blocks."""
    last = _votes(best)
    least = last / 3
    around = best.around
    while around is not None and around.tag not in ("html", "body"):
        if around.votes is not None:
            if around.votes < least:
                break
            if around.votes > last:
                return around
            last = around.votes
        around = around.around
    return best


def _goes_with(block: _Block, best: _Block, needed: float, said: Callable[["_Block"], str]) -> bool:
    alike = bool(best.raw) and block.raw == best.raw
    if block.votes is not None and block.votes + (SIBLING * _votes(best) if alike else 0) >= needed:
        return True
    if block.tag != "p" or not block.size:
        return False
    if block.size > LONG_PARAGRAPH:
        return block.density < FEW_LINKS
    return not block.linked and bool(_SENTENCE_END.search(said(block)))


def _is_gone(block: _Block) -> bool:
    """Whether it was cut, or something around it was."""
    around: _Block | None = block
    while around is not None:
        if around.is_cut:
            return True
        around = around.around
    return False


def _is_main(tag: str, raw: str) -> bool:
    if tag in ("main", "article"):
        return True
    found = attributes(raw) if raw and tag != "a" else {}
    called = f"{found.get('id', '')} {found.get('class', '')}".split()
    return found.get("role") == "main" or any(each.translate(LOWER) in _MAIN_NAMES for each in called)


@lru_cache(maxsize=4096)  # the pages of a site have the same names
def _is_unlikely(raw: str, *, fenced: bool) -> bool:
    found = attributes(raw)
    if found.get("role") in _ROLES:
        return True
    called = f"{found.get('class', '')}\n{found.get('id', '')}"
    return not fenced and bool(_UNLIKELY.search(called)) and not _LIKELY.search(called)


@lru_cache(maxsize=4096)
def _weight_of(raw: str) -> int:
    found = attributes(raw)
    called = [found[each] for each in ("class", "id", "itemprop") if found.get(each)]
    return NAME * sum(bool(_GOOD_NAME.search(each)) - bool(_BAD_NAME.search(each)) for each in called)


@lru_cache(maxsize=4096)
def _is_for_sharing(raw: str) -> bool:
    found = attributes(raw)
    return bool(_SHARING.search(f"{found.get('class', '')}\n{found.get('id', '')}"))
