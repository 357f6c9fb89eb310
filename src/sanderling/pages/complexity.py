"""Pages that would cost a tree-building parser too much are refused before it sees them.

The fast one (lexbor) takes time by the square of the nesting and of the attributes of a tag, and memory by the product
of formatting that was never closed and the blocks behind it: 80,000 nested tags cost it ten seconds, 43 KB of such
formatting a hundred megabytes. Here is one pass over the tags that tells all three beforehand. A page that deceives it
(with other rules inside of pictures, say) is left to the watchdog of jobs.
"""

import re

from sanderling.pages.markup import BLOCKS, CLOSES, TAG, VOID, names

LONGEST = 8 * 2**20  # characters of a page that is made a tree of
SMALL = 4096  # characters of one that cannot cost much
DEEPEST = 512  # levels; browsers stop there, too
MOST_ATTRIBUTES = 1000  # of one tag; a dozen are usual
MOST_REBUILT = 500_000  # elements that a parser makes anew of formatting that was not closed; 40 MB
LONG = 4096  # characters of attributes, from which on they are counted
MOST_INSIDE = 2000  # tags within the quotes of one tag: that is a quote that was not closed, or hostile

_ATTRIBUTE = re.compile(r"[^\s/>\"'=]+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"']++)?)?")
_FORMATTING = names("b big code em font i nobr s small strike strong tt u")  # an `a` is closed by the next one
_MARKERS = names("td th caption object template applet marquee")  # what formatting within them does not outlive
_FENCES = _MARKERS | names("button table")
_ROWS = names("tr tbody thead tfoot")  # which end with the cells in them
# An item does not end another one outside of its own section.
_OWN = BLOCKS - names("p div address li dt dd")
_ENDED = {
    name: (closed, walls | _OWN if name in ("li", "dt", "dd") else walls) for name, (closed, walls) in CLOSES.items()
}
_NOTHING: frozenset[str] = frozenset()


class PageTooComplexError(ValueError):
    """A page that no parser should be given. The message says what it has too much of."""


def check_complexity(html: str) -> None:
    """Raise PageTooComplexError for a page that would cost a parser more than a page may."""
    if len(html) > LONGEST:
        raise PageTooComplexError(f"the page has {len(html):,} characters, expected at most {LONGEST:,}")
    if len(html) <= SMALL:
        return
    nesting = Nesting()
    for name, raw, closed in TAG.findall(html):
        if name:
            if len(raw) > LONG:
                _check_attributes(name, raw)
            nesting.open(name.lower())
        elif closed:
            nesting.close(closed.lower())


def _check_attributes(name: str, raw: str) -> None:
    number = sum(1 for _ in _ATTRIBUTE.finditer(raw))
    if number > MOST_ATTRIBUTES:
        raise PageTooComplexError(f"<{name[:20]}> has {number:,} attributes, expected at most {MOST_ATTRIBUTES:,}")
    if (inside := raw.count("<")) > MOST_INSIDE:
        most = f"expected at most {MOST_INSIDE:,}"
        raise PageTooComplexError(f"<{name[:20]}> has {inside:,} tags in its attributes, {most}")


class Nesting:
    """What is open, and how much formatting was lost with a block around it, which a parser makes anew each time."""

    def __init__(self) -> None:
        self._around: list[str] = []
        self._marks: list[int] = []  # what was lost when each marker opened
        self._lost = 0
        self._rebuilt = 0

    def open(self, name: str) -> None:
        """A tag opens."""
        if self._lost:
            self._rebuilt += self._lost
            if self._rebuilt > MOST_REBUILT:
                raise PageTooComplexError(f"the page has {self._lost:,} tags like <font> that are never closed")
        if name in VOID:
            return
        around = self._around
        if (rule := _ENDED.get(name)) is not None:
            self._end(*rule)
        around.append(name)
        if name in _MARKERS:
            self._marks.append(self._lost)
        if len(around) > DEEPEST:
            raise PageTooComplexError(f"the page is nested more than {DEEPEST} levels deep, at <{name[:20]}>")

    def close(self, name: str) -> None:
        """A tag closes, and what is inside with it; one that reaches too far closes nothing."""
        around = self._around
        if around and around[-1] == name:
            self._pop()
            return
        level = self._level_of(name)
        if level is None:
            self._lost = max(0, self._lost - (name in _FORMATTING))
            return
        self._pop_to(level)
        self._lost -= name in _FORMATTING

    def _end(self, closed: frozenset[str], walls: frozenset[str]) -> None:
        """Close all of `closed`, and what is inside, that no wall hides."""
        around = self._around
        if closed.isdisjoint(around):
            return
        lowest = len(around)
        for level in range(len(around) - 1, -1, -1):
            if around[level] in closed:
                lowest = level
            if around[level] in walls:
                break
        self._pop_to(lowest)

    def _pop_to(self, level: int) -> None:
        while len(self._around) > level:
            name = self._pop()
            self._lost += name in _FORMATTING

    def _pop(self) -> str:
        name = self._around.pop()
        if name in _MARKERS:
            self._lost = self._marks.pop()
        return name

    def _level_of(self, name: str) -> int | None:
        """Where the innermost of that name is open, unless it is out of reach: tables end cells, blocks all else."""
        walls = _NOTHING if name == "table" else _FENCES if name in BLOCKS or name in _FENCES else BLOCKS | _FENCES
        for level in range(len(self._around) - 1, -1, -1):
            if self._around[level] == name:
                return level
            if self._around[level] in walls and (name not in _ROWS or self._around[level] == "table"):
                return None
        return None
