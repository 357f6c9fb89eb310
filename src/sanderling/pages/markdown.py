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

_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,32})", re.ASCII)
_MARKS = {
    **dict.fromkeys(("strong", "b"), STRONG),
    **dict.fromkeys(("em", "i", "cite"), EMPHASIS),
    **dict.fromkeys(("del", "s", "strike"), DELETED),
}
_CODE = names("code kbd samp tt")


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

    def part(self) -> None:
        """End the block that is being written; inside a cell, only part the words."""
        if self.table:
            self.prose.line.append(" ")
        elif self.prose.line:
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


def _part(page: _Page, _: str) -> None:
    page.part()


def _heading(level: int) -> Action:
    def opened(page: _Page, _: str) -> None:
        page.part()
        page.prose.level = level

    return opened


def _end_heading(page: _Page, _: str) -> None:
    page.part()
    page.prose.level = 0


def _begin(mark: str) -> Action:
    return lambda page, _: page.prose.begin(mark)


def _end(mark: str) -> Action:
    return lambda page, _: page.prose.end(mark)


def _link(page: _Page, raw: str) -> None:
    href = attributes(raw).get("href", "")
    # A link into the page itself leads nowhere from a text.
    page.prose.begin(LINK, "" if href[:1] in ("", "#") else page.absolute(href) or "")


def _image(page: _Page, raw: str) -> None:
    found = attributes(raw)
    alt = found.get("alt", "")
    # Pages that load images late keep the true address elsewhere.
    url = page.absolute(found.get("data-src") or found.get("src") or "")
    if url:
        page.prose.image(alt, url)
    elif alt:
        page.prose.say(alt)


def _break(page: _Page, _: str) -> None:
    page.prose.line.append(" " if page.table else BREAK)


def _rule(page: _Page, _: str) -> None:
    page.part()
    page.prose.write(["***"])


def _quote(page: _Page, _: str) -> None:
    page.part()
    page.prose.enter("> ", "> ")


def _leave(page: _Page, _: str) -> None:
    page.part()
    if not page.table:
        page.prose.leave()


def _list(page: _Page, _: str) -> None:
    page.part()
    page.lists.append(_Sequence())


def _numbered(page: _Page, raw: str) -> None:
    page.part()
    start = attributes(raw).get("start", "1") if raw else "1"
    page.lists.append(_Sequence(int(start) if re.fullmatch(r"[0-9]{1,9}", start) else 1))


def _end_list(page: _Page, _: str) -> None:
    page.part()
    page.lists.pop()


def _item(page: _Page, _: str) -> None:
    page.part()
    if page.table:
        return
    this = page.lists[-1] if page.lists else _Sequence()
    marker = "- " if this.number is None else f"{this.number}. "
    # A list that begins with another number than 1 may not follow a paragraph directly.
    tight = this.begun or (page.prose.in_item and this.number in (None, 1))
    page.prose.enter(marker, " " * len(marker), tight=tight)
    this.begun = True
    if this.number is not None:
        this.number += 1


def _term(page: _Page, _: str) -> None:
    page.part()
    page.prose.begin(STRONG)


def _end_term(page: _Page, _: str) -> None:
    page.prose.end(STRONG)
    page.part()


def _meaning(page: _Page, _: str) -> None:
    page.part()
    if not page.table:
        page.prose.enter("- ", "  ")


def _span(page: _Page, _: str) -> None:
    page.code, page.depth, page.actions = [], 1, _IN_CODE


def _block_of_code(page: _Page, raw: str) -> None:
    page.part()
    page.code, page.depth, page.actions, page.language = [], 1, _IN_PRE, _language(raw)


def _deeper(page: _Page, _: str) -> None:
    page.depth += 1


def _end_span(page: _Page, _: str) -> None:
    page.depth -= 1
    if not page.depth:
        page.prose.code("".join(page.code or ()))
        page.code, page.actions = None, _ACTIONS


def _end_block_of_code(page: _Page, _: str) -> None:
    page.depth -= 1
    if page.depth:
        return
    # The first line break after <pre> is not part of it.
    text = "".join(page.code or ()).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n").rstrip()
    if text:
        page.prose.write_code(text, page.language)
    page.code, page.actions = None, _ACTIONS


def _name_language(page: _Page, raw: str) -> None:
    page.language = page.language or _language(raw)


def _break_in_code(page: _Page, _: str) -> None:
    if page.code is not None:
        page.code.append("\n")


def _language(raw: str) -> str:
    found = _LANGUAGE.search(attributes(raw).get("class", "")) if raw else None
    return found[1] if found else ""


def _table(page: _Page, _: str) -> None:
    page.part()
    page.tables.append(_Table())


def _layout(page: _Page, _: str) -> None:
    page.part()
    page.tables.append(None)


def _row(page: _Page, _: str) -> None:
    page.part()
    if page.table:
        page.table.rows.append([])


def _cell(page: _Page, raw: str) -> None:
    page.part()
    if page.table:
        span = attributes(raw).get("colspan", "1") if "colspan" in raw else "1"
        page.table.span = min(int(span), WIDEST) if re.fullmatch(r"[1-9][0-9]{0,3}", span) else 1
        page.table.rows = page.table.rows or [[]]


def _end_cell(page: _Page, _: str) -> None:
    if page.table:
        text = page.prose.taken().replace(BREAK, " ").replace("|", "\\|")
        page.table.rows[-1] += [text.strip()] + [""] * (page.table.span - 1)
    else:
        page.part()


def _end_caption(page: _Page, _: str) -> None:
    if page.table:
        page.table.caption = page.prose.taken().replace(BREAK, " ")
    else:
        page.part()


def _end_table(page: _Page, _: str) -> None:
    table = page.tables.pop()
    if not table:
        page.part()
        return
    if page.table:
        return
    page.prose.flush()
    if table.caption:
        page.prose.write([table.caption])
    rows = [row for row in table.rows if any(row)]
    if any(len(row) > 1 for row in rows):
        page.prose.write(_lines(rows))
        return
    for (cell,) in rows:
        page.prose.line.append(cell)
        page.prose.flush()


def _lines(rows: list[list[str]]) -> list[str]:
    """The rows of a table, all as wide as the widest; the first is its head, as Markdown knows none without."""
    width = min(max(map(len, rows)), WIDEST)
    padded = [row + [""] * (width - len(row)) for row in rows]
    even = [[*row[: width - 1], " ".join(row[width - 1 :])] for row in padded]
    lines = [f"| {' | '.join(row)} |" for row in even]
    return [lines[0], "|" + " --- |" * width, *lines[1:]]


_ACTIONS: Actions = {
    **{name: _part for block in BLOCKS for name in (block, f"/{block}")},
    **{f"h{level}": _heading(level) for level in range(1, 7)},
    **{f"/h{level}": _end_heading for level in range(1, 7)},
    **{name: _begin(mark) for name, mark in _MARKS.items()},
    **{f"/{name}": _end(mark) for name, mark in _MARKS.items()},
    **dict.fromkeys(_CODE, _span),
    **dict.fromkeys(("td", "th"), _cell),
    **dict.fromkeys(("/td", "/th"), _end_cell),
    **dict.fromkeys(("ul", "menu", "dir"), _list),
    **dict.fromkeys(("/ul", "/ol", "/menu", "/dir"), _end_list),
    **dict.fromkeys(("/li", "/dd", "/blockquote"), _leave),
    "a": _link,
    "/a": _end(LINK),
    "img": _image,
    "br": _break,
    "hr": _rule,
    "blockquote": _quote,
    "ol": _numbered,
    "li": _item,
    "dt": _term,
    "/dt": _end_term,
    "dd": _meaning,
    "pre": _block_of_code,
    "table": _table,
    "layout": _layout,
    "tr": _row,
    "/caption": _end_caption,
    "/table": _end_table,
}
_IN_CODE: Actions = {**dict.fromkeys(_CODE, _deeper), **dict.fromkeys((f"/{name}" for name in _CODE), _end_span)}
_IN_PRE: Actions = {"code": _name_language, "br": _break_in_code, "pre": _deeper, "/pre": _end_block_of_code}
