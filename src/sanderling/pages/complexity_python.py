"""What a page may cost a parser that builds a tree, found without building one: the reference of `_complexity.c`.

The names that may be open are kept as a stack, by the rules of the HTML standard. Those above `floor` are open for
certain. Where the rules get intricate (crossed formatting, ends of what is not open) all that is open now may be or
not: `freeze` lifts the floor, and what is below counts until the end of the page. So the stack is never too short.
"""

import re
from dataclasses import dataclass

from sanderling.pages.markup import ATTRIBUTES, HEADINGS, LOWER, VOID, names

MOST_WORK = 50_000_000  # steps of 2.5 ns: the parser takes one for each element around a tag, a selector as many again
SMALL = 8_192  # characters of a page, or behind what parsers understand differently, that cannot cost much
TAG_STEPS = 40  # for a tag by itself
REBUILT_STEPS = 100  # for an element that is made again, or for 16 characters of its attributes

FINE, COSTLY, UNCLEAR = range(3)

_FORMATTING = names("a b big code em font i nobr s small strike strong tt u")
_RAW = names("script style textarea title xmp iframe noembed noframes")
_MARKERS = names("td th caption object template applet marquee")  # what formatting within them does not outlive
_SCOPE = _MARKERS | names("table")  # what an end tag does not reach past
_CELLS = names("td th caption")
_SAME_ITEMS = {"li": names("li"), "dd": names("dd dt"), "dt": names("dd dt")}  # which end each other
_ITEMS = frozenset(_SAME_ITEMS)
_ROWS = names("tbody thead tfoot")
_TABLE_PARTS = _ROWS | names("td th tr caption")
_BLOCKS = names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup"
    " listing main menu nav ol pre search section summary ul"
)
_CLOSE_P = _BLOCKS | _ITEMS | HEADINGS | names("p form plaintext hr xmp")
_SPECIAL = (
    _BLOCKS | _ITEMS | HEADINGS | _SCOPE | _TABLE_PARTS | names("p form button select noscript plaintext colgroup")
) - names("dialog")
_IGNORED = _TABLE_PARTS | names("html head body colgroup col frame form")  # at times: then text goes on
_IMPLIED = names("dd dt li optgroup option p rb rp rt rtc")
_IN_SELECT = names("option optgroup hr")  # where they end what the standard calls implied
_BREAKS_OUT = HEADINGS | names(
    "b big blockquote body br center code dd div dl dt em embed head hr i img li listing menu meta nobr ol p pre ruby s"
    " small span strong strike sub sup table tt u ul var"
)
# What the end of each closes, unless one of the second is before it.
_ENDS = {
    **{name: (names(name), _SCOPE) for name in _BLOCKS | names("dd dt button select object applet marquee")},
    **{name: (names(name), names("table template")) for name in _TABLE_PARTS | names("table")},
    **{name: (names(name), names("table template caption")) for name in ("td", "th")},
    **dict.fromkeys(HEADINGS, (HEADINGS, _SCOPE)),
    "li": (names("li"), _SCOPE | names("ol ul")),
    "p": (names("p"), _SCOPE | names("button")),
    "template": (names("template"), names("")),
}
_HTML_INSIDE = {"svg": names("foreignobject desc title"), "math": names("mi mo mn ms mtext")}
_ODD = names("font mglyph malignmark frameset")

_TAG = re.compile(rf"<(?:(/?)([a-zA-Z][^\t\n\f\r />]*+)({ATTRIBUTES})>?|!--|!\[CDATA\[|[!?/][^>]*+>?)")
_ATTRIBUTE = re.compile(
    r"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\t\n\f\r >]*+))?+"
)
_COMMENT_END = re.compile(r"--!?>")
_SCRIPT = re.compile(r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)


@dataclass(slots=True)
class _Open:
    name: str
    kind: str = ""  # svg or math, where other rules hold
    weight: int = 0  # of formatting, which is made anew where it was not closed


class _Stack:
    def __init__(self) -> None:
        self.all: list[_Open] = []
        self.floor = 0
        self.froze = False  # whether the last search lifted it
        self.listed = 0  # weight of the formatting that may come back
        self.marks: list[int] = []  # the same when each marker opened: what comes later goes with the marker
        self.certain = 0  # weight of that above the floor, which is open
        self.work = 0
        self.options = self.roots = 0
        self.text = 0  # characters of the text that may go on: a parser copies all of it for each piece

    @property
    def top(self) -> _Open | None:
        return self.all[-1] if len(self.all) > self.floor else None

    @property
    def foreign(self) -> str:
        """The kind of markup in which the next tag is, as far as it is certain."""
        top = self.top
        return top.kind if top is not None and top.kind and top.name not in _HTML_INSIDE[top.kind] else ""

    def doubtful(self) -> bool:
        """Whether the next tag may be within a picture or a formula, but need not."""
        return self.top is None and any(each.kind for each in self.all)

    def push(self, entry: _Open) -> None:
        self.all.append(entry)
        self.certain += entry.weight

    def pop_to(self, level: int) -> None:
        while len(self.all) > level:
            self.certain -= self.all.pop().weight

    def close_to(self, level: int) -> None:
        """As `pop_to`, by an end that is proper: formatting goes with a marker, but with one only."""
        if any(each.name in _CELLS for each in self.all[level:]) or self.all[level].name in _MARKERS:
            self.listed = min(self.listed, self.marks.pop()) if self.marks else self.listed
        self.pop_to(level)

    def freeze(self) -> None:
        self.floor = len(self.all)
        self.certain = 0
        self.froze = True

    def find(self, wanted: frozenset[str], walls: frozenset[str]) -> int:
        """Where one of `wanted` is open for certain, and no wall before it; else -1. One that may be is closed then."""
        self.froze = False
        for level in range(len(self.all) - 1, -1, -1):
            entry = self.all[level]
            certain = level >= self.floor
            if entry.kind and certain:
                self.freeze()
                return -1
            if entry.name in wanted and not entry.kind:
                if certain:
                    return level
                if not any(each.kind or each.name in walls for each in self.all[level + 1 :]):
                    entry.name = ""
                self.freeze()
                return -1
            if certain and entry.name in walls:
                return -1
            if certain and entry.name == "select":  # which has become a wall in newer parsers
                self.freeze()
                return -1
        return -1

    def close(self, wanted: frozenset[str], walls: frozenset[str]) -> None:
        if (level := self.find(wanted, walls)) >= 0:
            self.close_to(level)

    def charge(self, attributes: int) -> None:
        lost = self.listed - self.certain
        self.work += TAG_STEPS + len(self.all) + lost * REBUILT_STEPS + attributes * (attributes + 40) // 2

    def open(self, name: str, raw: str, *, closed: bool) -> bool:
        """A tag opens, or opens and closes; False if parsers may differ about what follows."""
        kind = self.foreign
        if kind:
            if name in _ODD or (name == "svg" and kind == "math"):
                return False
            if name not in _BREAKS_OUT:
                if not closed:
                    self.push(_Open(name, kind))
                return name != "annotation-xml" or ("&" not in raw and "html" not in raw.translate(LOWER))
            while self.foreign:
                self.pop_to(len(self.all) - 1)
        if self.doubtful():
            self.push_uncertain(name)
            return name not in _RAW
        if name in ("svg", "math"):
            if not closed:
                self.push(_Open(name, name))
            return True
        return self.open_html(name, raw)

    def open_html(self, name: str, raw: str) -> bool:
        if name in ("frameset", "mglyph", "malignmark"):
            return False
        if name in _CLOSE_P:
            if name in _SAME_ITEMS:
                self.close(_SAME_ITEMS[name], _SPECIAL - names("address div p"))
            self.close(*_ENDS["p"])
        if not self.makes_room(name) or name in VOID or name in ("html", "head", "body", "image", "colgroup"):
            return True
        weight = 1 + len(raw) // 16 if name in _FORMATTING else 0
        self.listed += weight
        if name in _MARKERS:
            self.marks.append(self.listed)
        self.push(_Open(name, weight=weight))
        return True

    def makes_room(self, name: str) -> bool:
        """Close what a tag ends before it opens; False if it does not open then."""
        top = self.top.name if self.top is not None else ""
        if name in ("input", "select"):
            return self.end_select(name)
        if name in _TABLE_PARTS:
            return self.open_part(name) or self.push_uncertain(name)
        if name == "table":
            self.open_table()
        elif name in HEADINGS and top in HEADINGS:
            self.pop_to(len(self.all) - 1)
        elif name == "button":
            self.close(*_ENDS["button"])
        elif name in _IN_SELECT:
            self.open_option(name, top)
        elif name in ("rb", "rt", "rp", "rtc") and top in _IMPLIED:
            self.freeze()
        elif name in ("a", "nobr"):
            self.end_formatting(name)
        return name != "form" or top not in ("table", "tr", *_ROWS)

    def push_uncertain(self, name: str) -> bool:
        self.push(_Open(name))
        self.freeze()
        return False

    def end_select(self, name: str) -> bool:
        """A list ends where another one begins, which then does not."""
        if (level := self.find(*_ENDS["select"])) >= 0:
            self.pop_to(level)
            return False
        return self.push_uncertain(name) if self.froze and name == "select" else True

    def open_option(self, name: str, top: str) -> None:
        if top in _IMPLIED and top != "option" and any(each.name == "select" for each in self.all):
            self.freeze()
        if name != "hr":
            self.options += 1
            self.work += self.options
            if top == "option":
                self.pop_to(len(self.all) - 1)

    def open_table(self) -> None:
        """A table ends a paragraph in some pages, and a table in which it is not in a cell."""
        for entry in reversed(self.all[self.floor :]):
            if entry.name in _MARKERS:
                return
            if entry.name in ("p", "table"):
                self.freeze()
                return

    def open_part(self, name: str) -> bool:
        """A part of a table ends those before it, if it is certain that there is a table."""
        around = names("table template")
        if name in ("td", "th"):
            around |= _ROWS | names("tr")
        elif name == "tr":
            around |= _ROWS
        for level in range(len(self.all) - 1, self.floor - 1, -1):
            entry = self.all[level]
            if entry.kind or entry.name == "template":
                break
            if entry.name in around:
                self.text = 0
                if level + 1 < len(self.all):
                    self.close_to(level + 1)
                if entry.name == "table" and name in ("td", "th", "tr"):
                    self.push(_Open("tbody"))
                if entry.name != "tr" and name in ("td", "th"):
                    self.push(_Open("tr"))
                return True
        return False

    def end(self, name: str) -> bool:
        """A tag closes; False if parsers may differ about what follows."""
        top = self.top
        if top is not None and top.kind:
            if name in ("p", "br"):
                return False
            self.end_foreign(name)
            return True
        if name == "form":
            self.end_form()
        elif name in _FORMATTING:
            self.end_formatting(name)
        elif name not in VOID and name not in ("html", "head", "body"):
            self.close(*_ENDS.get(name, (frozenset((name,)), _SPECIAL)))
        return True

    def end_foreign(self, name: str) -> None:
        for level in range(len(self.all) - 1, self.floor - 1, -1):
            if not self.all[level].kind:
                break
            if self.all[level].name == name:
                self.pop_to(level)
                return
        self.freeze()

    def end_form(self) -> None:
        if (level := self.find(names("form"), _SCOPE)) >= 0:
            while self.all[-1].name in _IMPLIED:
                self.pop_to(len(self.all) - 1)
            del self.all[level]

    def end_formatting(self, name: str) -> None:
        """Formatting ends, or one that cannot be within itself begins."""
        special = False
        for level in range(len(self.all) - 1, -1, -1):
            entry = self.all[level]
            certain = level >= self.floor
            if certain and entry.kind:
                self.freeze()
                return
            if entry.name == name and not entry.kind:
                if certain and not special:
                    self.pop_to(level)
                    self.listed -= entry.weight
                elif certain or not special:
                    self.freeze()
                return
            if certain and entry.name in _MARKERS:
                return
            special = special or (certain and entry.name in _SPECIAL)


def weigh(html: str) -> tuple[int, int]:
    """Whether a page can be parsed soon (FINE), cannot (COSTLY) or may not (UNCLEAR); and its work."""
    stack = _Stack()
    html = html.encode(errors="replace").decode()  # as parsers are given it
    at = behind = 0
    while (at := html.find("<", at)) >= 0:
        found = _TAG.match(html, at)
        if found is None:
            at += 1
            continue
        stack.text += at - behind
        stack.work += stack.text // 16
        behind, clear = _read_token(stack, html, found)
        if stack.work > MOST_WORK:
            return COSTLY, stack.work
        if not clear:
            return FINE if len(html) - at <= SMALL else UNCLEAR, stack.work
        at = behind
    return FINE, stack.work


def _read_token(stack: _Stack, html: str, found: re.Match[str]) -> tuple[int, bool]:  # noqa: PLR0911 - one for each kind
    """Where it ends, and whether all parsers agree about what follows."""
    slash, name, raw = found.groups()
    if found[0] == "<!--":
        return _behind_comment(html, found.end()), True
    if found[0] == "<![CDATA[":
        if stack.foreign:
            return _behind(html, "]]>", found.end()), True
        return _behind(html, ">", found.start()), not any(each.kind for each in stack.all)
    if name is None:
        return found.end(), True
    name = name.translate(LOWER)
    ends = [each.end() for each in _ATTRIBUTE.finditer(raw)]
    attributes = len(ends)
    if name in ("html", "body"):
        attributes = stack.roots = stack.roots + attributes
    stack.charge(attributes)
    if slash:
        before, clear = len(stack.all), stack.end(name)
        stack.text = 0 if len(stack.all) < before else stack.text
        return found.end(), clear
    if name not in _IGNORED:
        stack.text = 0
    if name in _RAW and not stack.foreign and not stack.doubtful():
        if name == "xmp":
            stack.close(*_ENDS["p"])
        return _behind_raw(html, found.end(), name), True
    return found.end(), stack.open(name, raw, closed=raw.endswith("/") and len(raw) not in ends[-1:])


def _behind(html: str, text: str, at: int) -> int:
    end = html.find(text, at)
    return len(html) if end < 0 else end + len(text)


def _behind_comment(html: str, at: int) -> int:
    if html.startswith((">", "->"), at):
        return html.index(">", at) + 1
    end = _COMMENT_END.search(html, at)
    return end.end() if end else len(html)


def _behind_raw(html: str, at: int, name: str) -> int:
    if name == "script":
        at = _script_end(html, at)
    else:
        found = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(html, at)
        at = found.start() if found else len(html)
    found = _TAG.match(html, at)
    return found.end() if found else len(html)


def _script_end(html: str, at: int) -> int:
    """Where the end of a script is; one in a comment that has an opening tag is none."""
    escaped = doubly = False
    while (found := _SCRIPT.search(html, at)) is not None:
        at = found.end()
        if found[0] == "<!--":
            escaped = True
            at -= 2  # they may be those of its end
        elif found[0] == "-->":
            escaped = doubly = False
        elif not found[1]:
            doubly = escaped
        elif doubly:
            doubly = False
        else:
            return found.start()
    return len(html)
