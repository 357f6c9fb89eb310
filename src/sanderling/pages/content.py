"""Which part of a page is its main text, and which is the furniture around it.

Paragraphs vote for what is around them: one that is long and has many commas is prose, and prose stands together. The
block with the most votes, less the share of its text that is links, holds the main text; blocks beside it that have
enough votes of their own belong to it. What then remains of lists of links, forms and boxes inside is cut. This is the
method of Arc90's Readability, which the reading modes of browsers go by, on our flat list of events: votes and sums
are taken in one pass, and nothing is rendered or rebuilt. A page that has too little text by these rules is read again
with fewer of them, and at last as a whole.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from sanderling.pages.block_names import NAME, is_article, is_for_sharing, is_hidden, is_main, weight_of
from sanderling.pages.content_blocks import LISTS, Blocks, PageBlock, Range
from sanderling.pages.markup import HEADINGS, Event, Markup, attributes, names

ENOUGH = 500  # characters of main text; with less the page is read again by fewer rules
LEAST_SHARE = 0.5  # of what fewer rules would leave: a stricter reading with less is not believed
# Of the text of a page without links, and of any text. With less, the main text is not all that people came to read:
# the page is a list, a shop, a forum. Pages that call themselves articles often have long lists of others below.
LEAST_OF_ARTICLE = 0.3, 0.1
LEAST_OF_OTHERS = 0.7, 0.2
LEAST_CLEANED = 0.7  # of the whole page: if more is in its boxes, they are what people came for
MOST_HIDDEN = 0.6  # of the text of a page: what has more is shown, whatever it says
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
NEAR = 8  # events before a list in which the text is looked for that announces it
SHARED = 500  # characters of a box for sharing

_NEVER = names(
    "template svg video audio canvas select datalist iframe title rt rp annotation annotation-xml"
    " progress meter map dialog textarea object"
)
_DOUBTED = names("noscript button")
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
_BOXES = names("form fieldset table layout ul ol div section dl")
_HEADED_TABLE = names("caption col colgroup tfoot thead th")


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


def readable(markup: Markup) -> list[Event]:
    """The events of the part that people came to read."""
    sizes = [0, *accumulate(len(event) if isinstance(event, str) and event != " " else 0 for event in markup.events)]
    hidden = _hidden(markup, sizes)
    strict = _Reading(markup, hidden, sizes, _STRICT_FIRST[0])
    whole, least = strict.whole(says_article=any(is_article(markup.events[at][1]) for at in markup.opens["meta"]))
    edges = strict.has_content()
    readings = [_sized(strict.main_text())]
    for rules in _STRICT_FIRST[1:]:
        if readings[-1][0] >= ENOUGH:
            break
        readings.append(_sized(_Reading(markup, hidden, sizes, rules, edges=edges).main_text()))
    most = max(size for size, _ in readings)
    size, found = next(each for each in readings if each[0] >= LEAST_SHARE * most)
    if size >= least:
        return found
    size, cleaned = _sized(_Reading(markup, hidden, sizes, _STRICT_FIRST[0]).whole_without_boxes())
    return cleaned if size >= LEAST_CLEANED * _size(whole) else whole


def _sized(events: list[Event]) -> tuple[int, list[Event]]:
    return _size(events), events


def _size(events: list[Event]) -> int:
    """How much text there is; the space between tags does not count."""
    return sum([len(event) for event in events if isinstance(event, str) and event != " "])


def _hidden(markup: Markup, sizes: list[int]) -> list[Range]:
    never = [at for tag in _NEVER if tag in markup.opens for at in markup.opens[tag]]
    doubted = [at for tag in _DOUBTED if tag in markup.opens for at in markup.opens[tag]]
    doubted += [at for at in markup.veiled if is_hidden(markup.events[at][1])]
    # What has most of the text is shown by a script later, or holds the page because it was never closed.
    small = [at for at in doubted if sizes[markup.ends[at]] - sizes[at] <= MOST_HIDDEN * sizes[-1]]
    return sorted((at, markup.ends[at]) for at in (*never, *small))


class _Reading:
    """One reading of a page by rules."""

    def __init__(
        self, markup: Markup, hidden: list[Range], sizes: list[int], rules: _Rules, *, edges: bool = True
    ) -> None:
        self._events = markup.events
        self._rules = rules
        self._blocks = Blocks(markup, hidden, sizes, strict=rules.by_likelihood, edges=edges)

    def has_content(self) -> bool:
        """Whether there is a text or an image outside of furniture."""
        page = self._blocks.all[0]
        return page.size > 0 or page.images > 0

    def main_text(self) -> list[Event]:
        """The events of the main text."""
        self._vote()
        return self._cleaned(self._choose())

    def whole_without_boxes(self) -> list[Event]:
        """The part that calls itself the main one, or the page, cleaned as if it was the main text."""
        return self._cleaned([self._declared()])

    def _cleaned(self, parts: list[PageBlock]) -> list[Event]:
        for part in parts:
            self._clean(part)
        self._blocks.cuts.sort()
        return [event for part in parts for event in self._blocks.kept(part)]

    def whole(self, *, says_article: bool) -> tuple[list[Event], float]:
        """All that is no furniture in the part that calls itself the main one, and the least of it to be content with.

        To be asked before the main text, for which more is cut.
        """
        part = self._declared()
        plain, any_ = LEAST_OF_ARTICLE if says_article else LEAST_OF_OTHERS
        return self._blocks.kept(part), max(plain * (part.size - part.linked), any_ * part.size)

    def _vote(self) -> None:
        for block in self._blocks.all:
            tag = block.tag
            if tag in _VOTERS or (tag == "div" and not block.holds_blocks):
                self._cast(block.around, block.size, block.commas)
            elif tag in _HOLDERS and block.holds_blocks:
                self._cast(block, block.direct, block.direct_commas)
        for block in self._blocks.all:
            if block.votes is not None:
                block.votes *= 1 - min(1.0, block.density)

    def _cast(self, block: PageBlock | None, size: int, commas: int) -> None:
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

    def _weight(self, block: PageBlock) -> int:
        return weight_of(block.raw) if self._rules.by_name and block.raw else 0

    def _choose(self) -> list[PageBlock]:
        """The block that has the main text, and those beside it that go with it."""
        ranked = sorted((each for each in self._blocks.all if each.votes is not None), key=_votes, reverse=True)[:5]
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
        beside = [each for each in self._blocks.all if each.around is around and each.tag != "a"]
        return [each for each in beside if each is best or _goes_with(each, best, needed, self._said)]

    def _declared(self) -> PageBlock:
        """The largest part that calls itself the main one; the page, if there is none that has enough."""
        page = self._blocks.all[0]
        found = [each for each in self._blocks.all[1:] if is_main(each.tag, each.raw)]
        best = max(found, key=lambda each: each.size, default=page)
        return best if best.size > LEAST_DECLARED * page.size else page

    def _said(self, block: PageBlock) -> str:
        return "".join(event for event in self._events[block.start : block.end] if isinstance(event, str))

    def _clean(self, part: PageBlock) -> None:
        """Cut what is inside a part of the main text and does not belong to it: asides, and boxes, the inner first."""
        around: PageBlock | None = part
        while around is not None:
            _inherit(part, around)
            around = around.around
        inside = [each for each in self._blocks.all[1:] if part.start <= each.start <= part.end and each is not part]
        asides: set[int] = set()
        gone = -1  # where the last of them ends
        for block in inside:
            block.is_data = block.tag == "table" and self._is_data(block)
            _inherit(block, block)
            _inherit(block, block.around or part)
            block.is_cut = block.start <= gone
            if not block.is_cut and self._is_aside(block):
                block.is_cut = True
                gone = block.end
                asides.add(block.start)
                self._blocks.cuts.append((block.start, block.end))
        if self._rules.by_links:
            self._sum_and_cut(inside, asides)

    def _sum_and_cut(self, inside: list[PageBlock], asides: set[int]) -> None:
        """From the inside out: what was cut is no part of the sums around it, and boxes are judged by what remains."""
        data = len(self._events)  # where the nearest table of data behind opens
        for block in reversed(inside):
            if block.is_cut and block.start not in asides:
                continue
            block.forget_cuts()
            if block.tag in _BOXES and not block.is_cut and self._is_box(block, holds_data=data <= block.end):
                block.is_cut = True
                self._blocks.cuts.append((block.start, block.end))
            block.tell_cuts()
            if block.is_data:
                data = block.start

    def _is_announced(self, block: PageBlock) -> bool:
        """Whether the text right before it ends with a colon."""
        before = reversed(self._events[max(0, block.start - NEAR) : block.start])
        text = next((event for event in before if isinstance(event, str) and event != " "), "")
        return text.endswith((":", ": ", "\uff1a", "\uff1a "))

    def _is_aside(self, block: PageBlock) -> bool:
        if block.tag == "footer" or (block.tag == "aside" and block.linked):
            return True
        if block.tag in ("h1", "h2") and self._weight(block) < 0:
            return True
        return bool(block.raw) and block.size < SHARED and is_for_sharing(block.raw)

    def _is_data(self, table: PageBlock) -> bool:
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

    def _is_box(self, block: PageBlock, *, holds_data: bool) -> bool:
        """Whether it is a box of links, pictures or controls."""
        if holds_data or block.in_code:
            return False
        weight = self._weight(block)
        if weight < 0 or block.commas >= MANY_COMMAS:
            return weight < 0
        if block.tag in LISTS or block.listed > 0.9 * block.size > 0:
            is_of_links = block.tag in LISTS and block.density > CROWDED_LIST and block.items > 2
            return _is_box_of_pictures(block) or (is_of_links and not self._is_announced(block))
        if _is_box_of_pictures(block) or block.items - 100 > block.paragraphs:
            return True
        if (
            not block.in_figure
            and block.size < SHORTEST_VOTER
            and block.density > 0
            and block.headed < 0.9 * block.size
        ):
            return block.images == 0 or block.images > 2
        return block.density > (CROWDED if weight < NAME else CROWDED_WELL_NAMED)


def _is_box_of_pictures(block: PageBlock) -> bool:
    """Whether it holds nothing, or pictures with less than a paragraph for two of them, and is no figure."""
    if not block.size and not block.images:
        return True
    return not block.in_figure and block.images > 1 and block.paragraphs < block.images / 2


def _inherit(block: PageBlock, around: PageBlock) -> None:
    block.in_figure = block.in_figure or around.in_figure or around.tag == "figure"
    block.in_code = block.in_code or around.in_code or around.is_data or around.tag in ("code", "pre")


def _votes(block: PageBlock) -> float:
    return block.votes or 0.0


def _around_several(ranked: list[PageBlock]) -> PageBlock:
    """The best, or what is around it and three more that are nearly as good."""
    best = ranked[0]
    rivals = [each for each in ranked[1:] if _votes(each) >= 0.75 * _votes(best)]
    around = best.around if len(rivals) >= 3 else None
    while around is not None and around.tag not in ("html", "body"):
        if sum(around.start < each.start <= around.end for each in rivals) >= 3:
            return around
        around = around.around
    return best


def _higher(best: PageBlock) -> PageBlock:
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


def _goes_with(block: PageBlock, best: PageBlock, needed: float, said: Callable[["PageBlock"], str]) -> bool:
    alike = bool(best.raw) and block.raw == best.raw
    if block.votes is not None and block.votes + (SIBLING * _votes(best) if alike else 0) >= needed:
        return True
    if block.tag != "p" or not block.size:
        return False
    if block.size > LONG_PARAGRAPH:
        return block.density < FEW_LINKS
    return not block.linked and bool(_SENTENCE_END.search(said(block)))
