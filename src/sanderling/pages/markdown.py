"""What each tag becomes in Markdown.

CommonMark with the tables and the strikethrough of GitHub. What was literal in the page stays literal; what Markdown
has no word for (underlines, colours, subscripts) is left out and its text kept.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sanderling.pages.markup import BLOCKS, Event, attributes, names
from sanderling.pages.prose import BREAK, DELETED, EMPHASIS, LINK, STRONG, Prose

# Cells past this go into the last column: padding every row to the longest must not multiply the page.
WIDEST = 50

_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-|brush: ?)([\w+#.-]{1,32})", re.ASCII)
_PROGRAMMED = re.compile("[a-z+#]{3,32}")  # `lang=en` is a language that people speak
_MARKS = {
    **dict.fromkeys(("strong", "b"), STRONG),
    **dict.fromkeys(("em", "i", "cite"), EMPHASIS),
    **dict.fromkeys(("del", "s", "strike"), DELETED),
}
_CODE = names("code kbd samp tt")
# Pages that load images late keep the true address elsewhere.
_SOURCES = ("data-src", "data-lazy-src", "data-original", "src")


@dataclass(slots=True)
class _Sequence:
    """An open list: the number of its next item, none if it has bullets."""

    number: int | None = None
    begun: bool = False


@dataclass(slots=True)
class _Table:
    """An open table of data."""

    rows: list[list[str]] = field(default_factory=list)
    span: int = 1  # of the open cell
    caption: str = ""


@dataclass(slots=True)
class _Page:
    """Where we are in the page, and what was written of it."""

    absolute: Callable[[str], str | None]
    prose: Prose = field(default_factory=Prose)
    actions: "Actions" = field(default_factory=lambda: _ACTIONS)
    lists: list[_Sequence] = field(default_factory=list)
    tables: list[_Table | None] = field(default_factory=list)  # none for one that only arranges the page
    code: list[str] | None = None  # what the open code holds so far
    depth: int = 0  # how many tags of code are open
    language: str = ""

    @property
    def table(self) -> _Table | None:
        """The table of data whose cell is open; a cell is a single line, and knows no blocks."""
        return self.tables[-1] if self.tables else None

    def part(self, _: str = "") -> None:
        """End the block that is being written; inside a cell, only part the words."""
        if self.table:
            self.prose.line.append(" ")
        elif self.prose.line:
            self.prose.flush()

    # One for each tag, given the attributes as they were written.

    def end_heading(self, _: str) -> None:
        self.part()
        self.prose.level = 0

    def open_link(self, raw: str) -> None:
        href = attributes(raw).get("href", "")
        # A link into the page itself leads nowhere from a text.
        self.prose.begin(LINK, "" if href[:1] in ("", "#") else self.absolute(href) or "")

    def show_image(self, raw: str) -> None:
        found = attributes(raw)
        alt = found.get("alt", "")
        url = self.absolute(next((found[name] for name in _SOURCES if found.get(name)), ""))
        if url:
            self.prose.image(alt, url)
        elif alt:
            self.prose.say(alt)

    def line_break(self, _: str) -> None:
        self.prose.line.append(" " if self.table else BREAK)

    def draw_rule(self, _: str) -> None:
        self.part()
        self.prose.write(["***"])

    def open_quote(self, _: str) -> None:
        self.part()
        self.prose.enter("> ", "> ")

    def close_box(self, _: str) -> None:
        self.part()
        if not self.table:
            self.prose.leave()

    def bullets(self, _: str) -> None:
        self.part()
        self.lists.append(_Sequence())

    def numbers(self, raw: str) -> None:
        self.part()
        start = attributes(raw).get("start", "1") if raw else "1"
        self.lists.append(_Sequence(int(start) if re.fullmatch(r"[0-9]{1,9}", start) else 1))

    def end_list(self, _: str) -> None:
        self.part()
        self.lists.pop()

    def open_item(self, _: str) -> None:
        self.part()
        if self.table:
            return
        this = self.lists[-1] if self.lists else _Sequence()
        marker = "- " if this.number is None else f"{this.number}. "
        # A list that begins with another number than 1 may not follow a paragraph directly.
        tight = this.begun or (self.prose.in_item and this.number in (None, 1))
        self.prose.enter(marker, " " * len(marker), tight=tight)
        this.begun = True
        if this.number is not None:
            this.number += 1

    def open_term(self, _: str) -> None:
        self.part()
        self.prose.begin(STRONG)

    def end_term(self, _: str) -> None:
        self.prose.end(STRONG)
        self.part()

    def open_meaning(self, _: str) -> None:
        self.part()
        if not self.table:
            self.prose.enter("- ", "  ")

    def open_span(self, _: str) -> None:
        self.code, self.depth, self.actions = [], 1, _IN_CODE

    def block_of_code(self, raw: str) -> None:
        self.part()
        self.code, self.depth, self.actions, self.language = [], 1, _IN_PRE, _language(raw)

    def go_deeper(self, _: str) -> None:
        self.depth += 1

    def end_span(self, _: str) -> None:
        self.depth -= 1
        if not self.depth:
            self.prose.code("".join(self.code or ()))
            self.code, self.actions = None, _ACTIONS

    def end_block_of_code(self, _: str) -> None:
        self.depth -= 1
        if self.depth:
            return
        # The first line break after <pre> is not part of it.
        text = "".join(self.code or ()).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n").rstrip()
        if text:
            self.prose.write_code(text, self.language)
        self.code, self.actions = None, _ACTIONS

    def name_language(self, raw: str) -> None:
        self.language = self.language or _language(raw)

    def break_in_code(self, _: str) -> None:
        if self.code is not None:
            self.code.append("\n")

    def open_table(self, _: str) -> None:
        self.part()
        self.tables.append(_Table())

    def open_layout(self, _: str) -> None:
        self.part()
        self.tables.append(None)

    def open_row(self, _: str) -> None:
        self.part()
        if self.table:
            self.table.rows.append([])

    def open_cell(self, raw: str) -> None:
        self.part()
        if self.table:
            span = attributes(raw).get("colspan", "1") if "colspan" in raw else "1"
            self.table.span = min(int(span), WIDEST) if re.fullmatch(r"[1-9][0-9]{0,3}", span) else 1
            self.table.rows = self.table.rows or [[]]

    def end_cell(self, _: str) -> None:
        if self.table:
            text = self.prose.taken().replace(BREAK, " ").replace("|", "\\|")
            self.table.rows[-1] += [text.strip()] + [""] * (self.table.span - 1)
        else:
            self.part()

    def end_caption(self, _: str) -> None:
        if self.table:
            self.table.caption = self.prose.taken().replace(BREAK, " ")
        else:
            self.part()

    def end_table(self, _: str) -> None:
        table = self.tables.pop()
        if not table:
            self.part()
            return
        if self.table:
            return
        self.prose.flush()
        if table.caption:
            self.prose.write([table.caption])
        rows = [row for row in table.rows if any(row)]
        if any(len(row) > 1 for row in rows):
            self.prose.write(_lines(rows))
            return
        for (cell,) in rows:
            self.prose.line.append(cell)
            self.prose.flush()


Action = Callable[[_Page, str], None]
Actions = dict[str, Action]


def render(events: Iterable[Event], absolute: Callable[[str], str | None]) -> str:
    """The events as Markdown; `absolute` makes a URL of what a link says, or nothing."""
    page = _Page(absolute)
    say = page.prose.say
    for event in events:
        if isinstance(event, tuple):
            action = page.actions.get(event[0])
            if action:
                action(page, event[1])
        elif page.code is None:
            say(event)
        else:
            page.code.append(event)
    page.prose.flush()
    return "".join(page.prose.blocks)


def _heading(level: int) -> Action:
    def opened(page: _Page, _: str) -> None:
        page.part()
        page.prose.level = level

    return opened


def _begin(mark: str) -> Action:
    return lambda page, _: page.prose.begin(mark)


def _end(mark: str) -> Action:
    return lambda page, _: page.prose.end(mark)


def _language(raw: str) -> str:
    said = attributes(raw) if raw else {}
    if found := _LANGUAGE.search(said.get("class", "")):
        return found[1]
    lang = said.get("lang", "")
    return lang if _PROGRAMMED.fullmatch(lang) else ""


def _lines(rows: list[list[str]]) -> list[str]:
    """The rows of a table, all as wide as the widest; the first is its head, as Markdown knows none without."""
    width = min(max(map(len, rows)), WIDEST)
    padded = [row + [""] * (width - len(row)) for row in rows]
    even = [[*row[: width - 1], " ".join(row[width - 1 :])] for row in padded]
    lines = [f"| {' | '.join(row)} |" for row in even]
    return [lines[0], "|" + " --- |" * width, *lines[1:]]


_ACTIONS: Actions = {
    **{name: _Page.part for block in BLOCKS for name in (block, f"/{block}")},
    **{f"h{level}": _heading(level) for level in range(1, 7)},
    **{f"/h{level}": _Page.end_heading for level in range(1, 7)},
    **{name: _begin(mark) for name, mark in _MARKS.items()},
    **{f"/{name}": _end(mark) for name, mark in _MARKS.items()},
    **dict.fromkeys(_CODE, _Page.open_span),
    **dict.fromkeys(("td", "th"), _Page.open_cell),
    **dict.fromkeys(("/td", "/th"), _Page.end_cell),
    **dict.fromkeys(("ul", "menu", "dir"), _Page.bullets),
    **dict.fromkeys(("/ul", "/ol", "/menu", "/dir"), _Page.end_list),
    **dict.fromkeys(("/li", "/dd", "/blockquote"), _Page.close_box),
    "a": _Page.open_link,
    "/a": _end(LINK),
    "img": _Page.show_image,
    "br": _Page.line_break,
    "hr": _Page.draw_rule,
    "blockquote": _Page.open_quote,
    "ol": _Page.numbers,
    "li": _Page.open_item,
    "dt": _Page.open_term,
    "/dt": _Page.end_term,
    "dd": _Page.open_meaning,
    "pre": _Page.block_of_code,
    "table": _Page.open_table,
    "layout": _Page.open_layout,
    "tr": _Page.open_row,
    "/caption": _Page.end_caption,
    "/table": _Page.end_table,
}
_IN_CODE: Actions = {
    **dict.fromkeys(_CODE, _Page.go_deeper),
    **dict.fromkeys((f"/{name}" for name in _CODE), _Page.end_span),
}
_IN_PRE: Actions = {
    "code": _Page.name_language,
    "br": _Page.break_in_code,
    "pre": _Page.go_deeper,
    "/pre": _Page.end_block_of_code,
}
