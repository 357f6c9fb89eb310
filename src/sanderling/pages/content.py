"""Which part of a page is its text, and which is the furniture around it.

Pages that say so are believed: `main`, `article`, then the class names everyone uses. Of other pages everything is
taken but what is called navigation and the like, and but lists of links. Nothing is taken away that would leave a page
with text without any.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sanderling.pages.markup import Event, Markup, names

# Of the text outside the furniture, a part that calls itself the main one must hold this much to be believed: a page
# with twenty articles is not about its longest.
LEAST_SHARE = 1 / 3
# A block is a list of links if they make up this much of its text, and there are a few of them.
LINKED_SHARE = 0.7
FEWEST_LINKS = 3
# Lists of links are left out only if this much text remains; else they are what the page is.
ENOUGH = 200
# Pages call a dozen things their content; measuring every one of a hundred thousand would take long.
MOST_CANDIDATES = 12

_NEVER = names(
    "template noscript svg video audio canvas select button datalist iframe title rt rp annotation annotation-xml"
    " progress meter map dialog"
)
_FURNITURE = names("nav aside footer")
_INVISIBLE = ("template", "title")
_ROLES = names("navigation banner contentinfo complementary search")
_MAIN_NAMES = names(
    "content main main-content maincontent page-content site-content post-content entry-content article-content"
    " article-body articlebody post-body story-body post entry article hentry body-content markdown-body"
    " mw-content-text bodycontent blog-post"
)
_CONTAINERS = ("div", "section", "td")
_NAMED = re.compile("content|main|post|entry|article|story|body", re.IGNORECASE)
_STYLED_AWAY = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_BLOCKS = names("div section ul ol dl table layout p td menu")
_BLOCK_ENDS = frozenset(f"/{name}" for name in _BLOCKS)

_Range = tuple[int, int]


def readable(markup: Markup) -> list[Event]:
    """The events of the part that people came to read."""
    hidden = [(at, markup.ends[at]) for at in markup.veiled if _is_hidden(markup.attributes(at))]
    never = [*_ranges(markup, _NEVER & markup.opens.keys()), *hidden]
    by_role = [part for part, role in _roles(markup) if role in _ROLES]
    furniture = [*never, *_ranges(markup, _FURNITURE), *by_role]
    page = (0, len(markup.events) - 1)
    bare = _without(markup.events, page, [*furniture, *_ranges(markup, ("header",))])
    size = _size(bare)
    for candidates in (_declared, _named):
        parts = (_without(markup.events, part, furniture) for part in candidates(markup))
        best = max(((_size(part), part) for part in parts), key=lambda found: found[0], default=(0, []))
        if best[0] > LEAST_SHARE * size:
            return best[1]
    if size:
        return _without_link_lists(bare)
    rest = _without(markup.events, page, never)
    return rest if _size(rest) else _without(markup.events, page, _ranges(markup, _INVISIBLE))


def _size(events: list[Event]) -> int:
    """How much text there is; the space between tags does not count."""
    return sum([len(event) for event in events if type(event) is str and event != " "])


def _ranges(markup: Markup, tags: Iterable[str]) -> list[_Range]:
    return [(at, markup.ends[at]) for tag in tags if tag in markup.opens for at in markup.opens[tag]]


def _is_hidden(found: Mapping[str, str]) -> bool:
    return "hidden" in found or found.get("aria-hidden") == "true" or bool(_STYLED_AWAY.search(found.get("style", "")))


def _roles(markup: Markup) -> list[tuple[_Range, str]]:
    return [
        ((at, markup.ends[at]), markup.attributes(at).get("role", ""))
        for tag in _CONTAINERS
        for at in markup.opens.get(tag, ())
        if "role" in markup.events[at][1]
    ]


def _declared(markup: Markup) -> list[_Range]:
    main = [part for part, role in _roles(markup) if role == "main"]
    return [*_ranges(markup, ("main",)), *main, *_ranges(markup, ("article",))][:MOST_CANDIDATES]


def _named(markup: Markup) -> list[_Range]:
    found: list[_Range] = []
    for tag in _CONTAINERS:
        for at in markup.opens.get(tag, ()):
            if len(found) < MOST_CANDIDATES and _NAMED.search(markup.events[at][1]) and _is_main(markup.attributes(at)):
                found.append((at, markup.ends[at]))
    return found


def _is_main(found: Mapping[str, str]) -> bool:
    called = f"{found.get('id', '')} {found.get('class', '')}".lower().split()
    return not _MAIN_NAMES.isdisjoint(called)


def _without(events: list[Event], part: _Range, cuts: list[_Range]) -> list[Event]:
    """The events of `part` without those of the `cuts` inside of it."""
    kept: list[Event] = []
    at, last = part
    for start, end in sorted(cuts):
        if at <= start <= last:
            kept += events[at:start]
            at = end + 1
    return kept + events[at : last + 1]


@dataclass(slots=True)
class _Tally:
    """How much of everything there was so far, and how much by the time each open block began."""

    text: int = 0
    linked: int = 0
    links: int = 0
    inside: int = 0  # how many links are open
    blocks: list[tuple[int, int, int, int]] = field(default_factory=list)
    lists: list[tuple[_Range, int]] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Count a text."""
        if text != " ":
            self.text += len(text)
            self.linked += len(text) if self.inside else 0

    def tag(self, at: int, name: str) -> None:
        """Count what opens or closes."""
        if name == "a":
            self.inside += 1
            self.links += 1
        elif name == "/a":
            self.inside -= 1
        elif name in _BLOCKS:
            self.blocks.append((at, self.text, self.linked, self.links))
        elif name in _BLOCK_ENDS:
            self._judge(at, *self.blocks.pop())

    def _judge(self, at: int, start: int, text: int, linked: int, links: int) -> None:
        size = self.text - text
        if self.links - links < FEWEST_LINKS or self.linked - linked < LINKED_SHARE * size:
            return
        # The outermost counts, and holds those inside of it.
        while self.lists and self.lists[-1][0][0] > start:
            self.lists.pop()
        self.lists.append(((start, at), size))


def _without_link_lists(events: list[Event]) -> list[Event]:
    tally = _Tally()
    for at, event in enumerate(events):
        if isinstance(event, str):
            tally.say(event)
        else:
            tally.tag(at, event[0])
    if tally.text - sum(size for _, size in tally.lists) < ENOUGH:
        return events
    return _without(events, (0, len(events) - 1), [part for part, _ in tally.lists])
