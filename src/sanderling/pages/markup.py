"""From HTML to a flat list of what it opens, says and closes, properly nested whatever the page forgot.

Why not a parser that builds a tree: pages come from strangers. The fast one (lexbor) survives them all, but takes time
by the square of the nesting and of the attributes of a tag: 200,000 nested tags, one megabyte, keep it busy for a
minute. Everything here is linear: each character is read by one alternative of one pattern that never goes back, and
each tag costs a few lookups. It is also quicker, since nothing is built that would then have to be walked.

The pattern follows the tokenizer of the HTML standard. The rules for what an opening tag closes are the standard's for
paragraphs, items, cells and the like; how it repairs crossed formatting is of no use to anyone after the text alone.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from string import ascii_uppercase

# Larger than any page meant to be read; what follows is not looked at.
MOST_TAGS = 200_000
# Browsers stop at 512 levels and make siblings of what is deeper. Few pages are past 60.
DEEPEST = 128
# Longer runs of attributes are hostile; state that an application puts into a tag may have hundreds of kilobytes.
LONGEST_ATTRIBUTES = 2**20
USUAL_ATTRIBUTES = 16_384  # what is longer is not remembered

_S = r"\t\n\f\r "
ATTRIBUTES = (
    rf"(?:[{_S}/]++|[^{_S}/>][^{_S}/>=]*+"
    rf"(?:[{_S}]*+=[{_S}]*+(?:\"[^\"]*+\"?|'[^']*+'?|[^{_S}>\"'][^{_S}>]*+|(?=>)))?+)*+"
)
# What is inside these is not markup, and none of it is text to read.
_RAW = "|".join(
    rf"(?i:{name})(?=[{_S}/>]){ATTRIBUTES}>[^<]*+(?:<(?!/(?i:{name})[{_S}/>])[^<]*+)*+(?:</[^>]*+>?)?"
    for name in ("script", "style", "textarea", "xmp", "noembed", "noframes")
)
# Every alternative ends at the latest with the page, so no start is tried twice. Groups: opened, attributes, closed.
TAG = re.compile(
    rf"<(?:{_RAW}"
    rf"|([a-zA-Z][^{_S}/>]*+)({ATTRIBUTES})>?"
    rf"|/([a-zA-Z][^{_S}/>]*+)[^>]*+>?"
    r"|!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"
    r"|[!?/][^>]*+>?)"
)
_ATTRIBUTE = re.compile(rf"([^{_S}/>][^{_S}/>=]*+)(?:[{_S}]*+=[{_S}]*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^{_S}>]*+)))?+")
# In attributes `&copy=1` is no copyright sign: queries are full of such.
_REFERENCE = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8}|[a-zA-Z][a-zA-Z0-9]{1,31})(?:;|(?![=a-zA-Z0-9]))")
# int() refuses thousands of digits, and unescape() does not expect that.
_ENDLESS = re.compile(r"&#[0-9]{9,}+;?")


def names(words: str) -> frozenset[str]:
    """The set of tag names in a line of them."""
    return frozenset(words.split())


VOID = names("area base br col embed frame hr img input keygen link meta param source track wbr")
HEADINGS = names("h1 h2 h3 h4 h5 h6")
BLOCKS = HEADINGS | names(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form frameset header hgroup hr legend li main menu nav ol p pre section summary table tbody td tfoot th"
    " thead tr ul"
)
# A paragraph outside one of these is not closed by what opens inside.
_FENCES = names("table td th caption object button template")
# A table around these arranges a page, and shows no data.
_ARRANGED = HEADINGS | names("table pre blockquote form article section hr")
# Either nothing can be inside, or everything is.
_CHILDLESS = VOID | names("html head body")

# Opening the first closes the second if open, unless one of the third was opened since.
_CELLS = names("td th"), names("table")
_ROWS = names("td th tr"), names("table")
_PARTS = names("td th tr thead tbody tfoot caption"), names("table")
CLOSES = dict.fromkeys(BLOCKS, (names("p title"), _FENCES)) | {
    "li": (names("p li"), _FENCES | names("ul ol menu dir")),
    "dt": (names("p dt dd"), _FENCES | names("dl")),
    "dd": (names("p dt dd"), _FENCES | names("dl")),
    "option": (names("option"), names("select datalist")),
    "optgroup": (names("option optgroup"), names("select")),
    **dict.fromkeys(("td", "th"), _CELLS),
    "tr": _ROWS,
    **dict.fromkeys(("thead", "tbody", "tfoot"), _PARTS),
    "a": (names("a"), _FENCES),
    **dict.fromkeys(("rt", "rp"), (names("rt rp"), names("ruby"))),
}
# What there is to know when a tag opens, in one place to look at.
_NO_TRAITS = None, False, False
_TRAITS = {
    name: (CLOSES.get(name), name in _ARRANGED, name in _CHILDLESS) for name in {*CLOSES, *_ARRANGED, *_CHILDLESS}
}
# What a closing tag does not reach past: cells stay in their table, blocks in their cell, and all else in its block.
_WALLS = (
    dict.fromkeys(BLOCKS, _FENCES - {"button"})
    | {"p": _FENCES}
    | dict.fromkeys(_PARTS[0] | _FENCES, names("table"))
    | {"table": names("")}
)

# A text, an opening tag with its attributes unread, or `/` and the name of what closes.
Event = str | tuple[str, str]

# As the standard does: no other letters become small ones.
LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}
# One string for each usual name, and one event for its end: looking things up by them is quicker than by copies.
_INLINE = names(
    "a abbr b bdi bdo big button cite code data del dfn em font i iframe img input ins kbd label mark noscript object"
    " option q rp rt ruby s samp script select small span strike strong style sub sup svg template time title tt u var"
)
_NAMES = {name: name for name in VOID | BLOCKS | _INLINE | names("html head body")}
_ENDS: dict[str, Event] = {name: (f"/{name}", "") for name in _NAMES}


@dataclass(slots=True)
class Markup:
    """A page as events. `opens` says where which tags open, `ends` where what opens there closes."""

    events: list[Event] = field(default_factory=list)
    opens: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[int, int] = field(default_factory=dict)
    veiled: list[int] = field(default_factory=list)  # where something opens that may be hidden
    cut: bool = False  # whether the page has more tags than are read
    around: list[str] = field(default_factory=list)  # what is open, outermost first,
    _since: list[int] = field(default_factory=list)  # and where it opened

    def attributes(self, at: int) -> Mapping[str, str]:
        """The attributes of the tag that opens at `at`."""
        return attributes(self.events[at][1])

    def outside(self, barrier: str, tags: Iterable[str]) -> Iterator[int]:
        """Where one of `tags` opens that is not inside a `barrier`, in order."""
        until = -1
        for at in sorted(at for tag in (barrier, *tags) if tag in self.opens for at in self.opens[tag]):
            if at > until and self.events[at][0] == barrier:
                until = self.ends[at]
            elif at > until:
                yield at

    def open(self, name: str, raw: str) -> None:
        """Add an opening tag, after closing what cannot go on around it."""
        events, around = self.events, self.around
        rule, arranges, childless = _TRAITS.get(name, _NO_TRAITS)
        if rule and not rule[0].isdisjoint(around):
            self._close_nearest(*rule)
        if arranges and "table" in around:
            self._arrange()
        at = len(events)
        self.opens[name].append(at)
        events.append((name, raw))
        if raw and ("hidden" in raw or "display" in raw):
            self.veiled.append(at)
        if childless:
            self.ends[at] = at
        elif len(around) < DEEPEST:
            around.append(name)
            self._since.append(at)
        else:
            self.ends[at] = at + 1
            events.append((f"/{name}", ""))

    def close(self, name: str) -> None:
        """Add a closing tag, and those missing before it; one that closes nothing here is dropped."""
        around = self.around
        if around and around[-1] == name:
            # As `_close_last`, which most tags do not need to be passed on to.
            around.pop()
            self.ends[self._since.pop()] = len(self.events)
            self.events.append(_ENDS.get(name) or (f"/{name}", ""))
        elif name in around:
            self._close_nearest((name,), _WALLS.get(name, BLOCKS) | {name})

    def finish(self) -> None:
        """Close what is still open."""
        while self.around:
            self._close_last()

    def _close_last(self) -> None:
        events = self.events
        self.ends[self._since.pop()] = len(events)
        name = self.around.pop()
        events.append(_ENDS.get(name) or (f"/{name}", ""))

    def _close_nearest(self, closed: Container[str], walls: Container[str]) -> None:
        """Close all of `closed`, and what is inside, that no wall hides."""
        lowest = level = len(self.around)
        for name in reversed(self.around):
            level -= 1
            if name in closed:
                lowest = level
            if name in walls:
                break
        while len(self.around) > lowest:
            self._close_last()

    def _arrange(self) -> None:
        """What opens now makes the table around it one that only arranges the page."""
        level = max(level for level, name in enumerate(self.around) if name == "table")
        at = self._since[level]
        self.events[at] = ("layout", self.events[at][1])


def parse(html: str, most_tags: int = MOST_TAGS) -> Markup:
    """Read `html`; anything is a page. Behind so many tags nothing is read."""
    markup = Markup()
    events, around, open_ = markup.events, markup.around, markup.open
    pieces = TAG.split(html, most_tags)
    # Behind the last tag there is a text and no tag; after too many tags it is the rest of the page, unread.
    if len(pieces) < 4 * most_tags:
        pieces += [None, None, None]
    else:
        markup.cut = bool(pieces[-1])
    for text, name, raw, closed in zip(*[iter(pieces)] * 4, strict=False):
        if text:
            # The space between tags is one space, unless every space counts.
            if text.isspace() and "pre" not in around:
                events.append(" ")
            else:
                events.append(plain(text) if "&" in text else text)
        if name:
            open_(_NAMES.get(name) or name.translate(LOWER), raw)
        elif closed:
            markup.close(_NAMES.get(closed) or closed.translate(LOWER))
    markup.finish()
    return markup


def attributes(raw: str) -> Mapping[str, str]:
    """The attributes of a tag by name; of two with one name the first counts."""
    return _attributes(raw) if len(raw) <= USUAL_ATTRIBUTES else _attributes.__wrapped__(raw)


@lru_cache(maxsize=1024)  # each page has the navigation of the one before, and links are read twice
def _attributes(raw: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for each in _ATTRIBUTE.finditer(raw[:LONGEST_ATTRIBUTES]):
        name, value = each[1], each[2] or each[3] or each[4] or ""
        found.setdefault(name.translate(LOWER), dereference(value) if "&" in value else value)
    return found


def dereference(value: str) -> str:
    """The value of an attribute with its character references read."""
    return _REFERENCE.sub(lambda match: unescape(match[0]), value)


def plain(text: str) -> str:
    """`text` with its character references read."""
    return unescape(_ENDLESS.sub("\ufffd", text) if "&#" in text else text)
