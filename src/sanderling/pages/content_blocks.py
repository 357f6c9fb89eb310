"""The blocks of a page with their sums: how much text, how much of it in links, how many commas, lists, images.

Furniture is cut while they are summed: what is hidden, and by strict rules what its tag or name gives away.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from sanderling.pages.block_names import edge_role, furniture_name
from sanderling.pages.markup import BLOCKS, HEADINGS, Event, Markup, attributes, names

# Of the text of a page: a block that has more is no furniture, whatever it is called, and neither are blocks that
# have more together and are called the same.
MOST_FURNITURE = 0.35
MOST_SMALL = 0.1  # the same for what is furniture only where it is small
INSIDE_PAGE = 0.3  # how much of a link to the page itself counts as a link
LISTS = names("ul ol")

_FURNITURE = names("nav menu aside")
_EDGES = names("header footer")  # of the page, if they are not those of a part of it
_SMALL_FURNITURE = names("form footer")
# However much they are of a page.
_BELIEVED = names("aside banner comment contentinfo footer header menu nav navigation related")
_MAIN_PARTS = names("article main")
_PARTS = names("article main section")
_NODES = BLOCKS | names("layout a img code")
_KEPT_NAMES = names("html body main article a")
_COMMA = re.compile("[,\u060c\u2e32\u2e34\u2e41\u3001\ufe10\ufe50\uff0c]")

Range = tuple[int, int]


@dataclass(slots=True)
class PageBlock:
    """An element with the sums of all that is inside of it, without what was cut."""

    tag: str
    raw: str
    start: int
    end: int
    around: "PageBlock | None"
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
    in_figure: bool = False
    in_code: bool = False  # or in a table that shows data: nothing is cut there
    lost: "PageBlock | None" = None  # the sums of what was cut inside of it

    @property
    def density(self) -> float:
        """Which share of its text is links."""
        return self.linked / self.size if self.size else 0.0

    def add(self, inner: "PageBlock") -> None:
        """Add the sums of a block inside of it."""
        self.add_sums(inner)
        self.paragraphs += inner.tag == "p"
        self.items += inner.tag == "li"
        self.headed += inner.size - inner.headed if inner.tag in HEADINGS else 0
        self.listed += inner.size - inner.listed if inner.tag in LISTS else 0

    def add_sums(self, sums: "PageBlock", times: int = 1) -> None:
        """Add sums as they are, or take them away."""
        self.size += times * sums.size
        self.linked += times * sums.linked
        self.commas += times * sums.commas
        self.paragraphs += times * sums.paragraphs
        self.images += times * sums.images
        self.items += times * sums.items
        self.headed += times * sums.headed
        self.listed += times * sums.listed

    def forget_cuts(self) -> None:
        """Take what was cut inside of it from its sums."""
        if self.lost is not None:
            self.add_sums(self.lost, -1)

    def tell_cuts(self) -> None:
        """Note what was cut, itself or inside of it, for what is around it."""
        if self.around is not None and (self.is_cut or self.lost is not None):
            lost = self.around.lost = self.around.lost or PageBlock("", "", 0, 0, None)
            if self.lost is not None:
                lost.add_sums(self.lost)
            if self.is_cut:
                lost.add(self)


class Blocks:
    """The blocks of a page, and what is cut from it, in the order of their starts."""

    def __init__(self, markup: Markup, hidden: list[Range], sizes: list[int], *, strict: bool, edges: bool) -> None:
        self._events = markup.events
        self._ends = markup.ends
        self._sizes = sizes
        self._links = markup.opens.get("a", [])
        self._strict = strict
        self._edges = edges  # cut what its tag or role alone gives away
        self._main = _largest_main(markup, sizes)
        self._disbelieved: set[str] = set()  # names that are no furniture here
        self._begin(markup)
        self._measure(hidden)
        most = MOST_FURNITURE * sizes[-1]
        self._disbelieved = {name for name, size in self._named.items() if size > most and name not in _BELIEVED}
        if self._disbelieved:
            self._begin(markup)
            self._measure(hidden)

    def _begin(self, markup: Markup) -> None:
        self.cuts: list[Range] = []
        self._named: dict[str, int] = {}  # how much was cut, by what gave it away
        self._inside = PageBlock("html", "", 0, len(markup.events) - 1, None)
        self.all = [self._inside]
        self._fence = self._part = -1  # where what is around us ends: a table or code, and a part of the page

    def _measure(self, hidden_parts: list[Range]) -> None:
        events, count = self._events, len(self._events)
        hidden = iter(hidden_parts)
        skip = next(hidden, (count, 0))
        at = 0
        while at < count:
            while skip[0] < at:
                skip = next(hidden, (count, 0))
            if at == skip[0]:
                self.cuts.append(skip)
                at = skip[1]
            elif isinstance(event := events[at], str):
                self._say(event)
            elif event[0][0] != "/":
                at = self._open(at, *event) if event[0] in _NODES else at
            elif self._inside.end == at:
                self._close(self._inside)
                self._inside = self._inside.around or self.all[0]
            at += 1

    def _say(self, text: str) -> None:
        if text != " ":
            inside, size = self._inside, len(text)
            commas = len(_COMMA.findall(text)) if size > 10 else 0
            inside.size += size
            inside.direct += size
            inside.commas += commas
            inside.direct_commas += commas

    def _open(self, at: int, tag: str, raw: str) -> int:
        """Begin a block, or cut it as furniture; the last event that needs no more looking at."""
        end = self._ends[at]
        size = self._sizes[end] - self._sizes[at]
        name = self._furniture(at, tag, raw, size)
        if name and name not in self._disbelieved:
            self._named[name] = self._named.get(name, 0) + size
            self.cuts.append((at, end))
            return end
        if tag == "img":
            self._inside.images += 1
        elif end > at:
            self._inside.children += tag != "a"
            self._inside = PageBlock(tag, raw, at, end, self._inside)
            self.all.append(self._inside)
            if tag in ("table", "layout", "code"):
                self._fence = max(self._fence, end)
            elif tag in _PARTS:
                self._part = max(self._part, end)
        return at

    def _close(self, block: PageBlock) -> None:
        around = block.around
        if around is None:
            return
        if block.tag == "a":
            href = attributes(block.raw).get("href", "")
            block.linked = block.size * (INSIDE_PAGE if href[:1] == "#" else 1)
        around.add(block)
        if block.tag in BLOCKS or block.tag == "layout":
            around.holds_blocks = True
        else:
            around.direct += block.direct
            around.direct_commas += block.direct_commas
            around.holds_blocks = around.holds_blocks or block.holds_blocks

    def _furniture(self, at: int, tag: str, raw: str, size: int) -> str:
        """The tag, role or word that gives a block away as furniture, if any does."""
        edge = self._edge(at, tag, raw)
        if size > MOST_FURNITURE * self._sizes[-1] and not (edge and self._is_beside_main(at)):
            return ""
        if edge and self._edges:
            return edge
        if not self._strict:
            return ""
        small = size <= MOST_SMALL * self._sizes[-1]
        if small and tag in _SMALL_FURNITURE:
            return tag
        named = raw and tag not in _KEPT_NAMES
        return furniture_name(raw, small=small, fenced=at < self._fence) if named else ""

    def _edge(self, at: int, tag: str, raw: str) -> str:
        """The tag or role by which a block says that it is no part of the main text, if it says so."""
        if tag == "aside" and at < self._part and not self._has_link(at):  # a note
            return ""
        if tag in _FURNITURE or (tag in _EDGES and at >= self._part):
            return tag
        return edge_role(raw) if raw and tag not in _KEPT_NAMES else ""

    def _has_link(self, at: int) -> bool:
        following = bisect_left(self._links, at)
        return following < len(self._links) and self._links[following] < self._ends[at]

    def _is_beside_main(self, at: int) -> bool:
        start, end = self._main
        return self._ends[at] < start or end < at

    def kept(self, part: PageBlock) -> list[Event]:
        """The events of a block without what was cut inside of it."""
        kept: list[Event] = []
        at = part.start
        for start, end in self.cuts[bisect_left(self.cuts, (at, 0)) :]:
            if start > part.end:
                break
            if start >= at:
                kept += self._events[at:start]
                at = end + 1
        return kept + self._events[at : part.end + 1]


def _largest_main(markup: Markup, sizes: list[int]) -> Range:
    """The part with the most text that says by its tag or role that it is the main one; the page, if none has any."""
    best = 0, len(markup.events)
    most = 0
    for at, event in enumerate(markup.events):
        opens = isinstance(event, tuple) and event[0][0] != "/"
        size = sizes[markup.ends[at]] - sizes[at] if opens else 0
        if size > most and (event[0] in _MAIN_PARTS or (event[1] and attributes(event[1]).get("role") == "main")):
            best, most = (at, markup.ends[at]), size
    return best
