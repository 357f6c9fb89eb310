"""Markdown of a part of a page: CommonMark with the tables and the strikethrough of GitHub.

What was literal in the page stays literal. What Markdown has no word for (underlines, colours) is left out, and its
text kept. Pages are hostile: nothing here takes longer the deeper things are nested.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.extract.content import BLOCKS, HEADINGS, Event, PageElement

MAX_BOXES = 16  # lists and quotes within each other; deeper ones go on at this level, since each line repeats them
MAX_COLUMNS = 50  # of a table: padding each row to the longest must not multiply the page

_BREAK = "\0"  # a line break within a paragraph; the parser leaves no such character in a page
_MARKS = {
    **dict.fromkeys(("strong", "b", "dt"), "**"),
    **dict.fromkeys(("em", "i", "cite"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_BOXES = frozenset({"li", "dd", "blockquote"})
# Pages that load images late have the true address elsewhere.
_SOURCES = ("data-src", "data-lazy-src", "data-original", "src")
_SUSPECT = re.compile(r"[\\`*_\[\]<&~]")  # tested first because that is cheap
_SPECIAL = re.compile(r"[\\`*\[\]]|(?<![^\W_])_|_(?![^\W_])|<(?=[a-zA-Z/!?])|&(?=#?[a-zA-Z0-9]{1,32};)|~(?=~)|(?<=~)~")
# What would begin a heading, an item, a quote, a rule or a table, or underline the line before.
_LINE_START = re.compile(r"(?:#{1,6}|[-+])(?= |$)|>|[0-9]{1,9}(?=[.)](?: |$))|[-=]+$|:?-[-|: ]*$|\|")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-)([\w+#.-]{1,32})", re.ASCII)
_BACKTICKS = re.compile("`+")
_SPELLED = str.maketrans({"(": "%28", ")": "%29"})  # the only signs of a normal URL that would end a link


@dataclass(slots=True)
class _List:
    """An open list."""

    number: int | None  # of its next item; None if it has bullets
    has_begun: bool = False


class _Box(NamedTuple):
    """An open quote or item: what its first line begins with, and those after."""

    first: str
    rest: str
    is_tight: bool  # whether it follows what is before it without an empty line


class _Frame(NamedTuple):
    """An open link or emphasis: what goes around the pieces of the line from `start` on."""

    mark: str
    start: int
    target: str


def to_markdown(events: Iterable[Event], resolve: Callable[[str], str | None]) -> str:
    """Write `events`; `resolve` makes the normal URL of an href."""
    writer = _Writer(resolve)
    opened: list[PageElement] = []
    for event in events:
        if isinstance(event, str):
            writer.say(event)
        elif event is None:
            writer.close(opened.pop())
        else:
            opened.append(event)
            writer.open(event)
    return writer.finish()


class _Writer:
    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        self._written: list[str] = []
        self._resolve = resolve
        self._line: list[str] = []  # pieces of the block that is being written
        self._heading = 0  # its level
        self._frames: list[_Frame] = []
        self._depths: Counter[str] = Counter()  # how many of each mark are open: one within its like adds nothing
        self._bare = ""  # the text of an emphasis that is the last piece of the line
        self._boxes: list[_Box] = []
        self._begun = 0  # how many of the boxes have a line
        self._boxed: list[bool] = []  # whether each open item or quote has a box
        self._lists: list[_List] = []
        self._verbatim: list[str] | None = None  # what is in the open code
        self._code: PageElement | None = None  # the outermost
        self._language = ""
        self._table: PageElement | None = None  # of data
        self._rows: list[list[str]] = []

    def finish(self) -> str:
        """The whole text."""
        self.end_block()
        return "".join(self._written)

    def say(self, text: str) -> None:
        """Add literal text."""
        if self._verbatim is not None:
            self._verbatim.append(text)
            return
        text = _escape(text)
        if self._bare and text[:1].isalnum() and not self._bare[-1].isalnum():
            self._line[-1] = self._bare  # CommonMark does not end an emphasis between a sign and a letter
        if text:
            self._bare = ""
            self._line.append(text)

    def open(self, element: PageElement) -> None:
        """An element begins."""
        tag = element.tag
        if self._verbatim is not None:
            if tag == "br":
                self._verbatim.append("\n")
            self._language = self._language or _language(element)
            return
        if tag in BLOCKS:
            self.end_block()
        if tag in _MARKS:
            self._begin(_MARKS[tag])
        elif tag == "a":
            href = element.attributes.get("href") or ""
            # A link into the page itself leads nowhere from a text.
            self._begin("[", "" if href.startswith("#") else self._resolve(href) or "")
        elif tag in _CODE or tag == "pre":
            self._verbatim, self._code, self._language = [], element, _language(element)
        elif tag == "img":
            self._show_image(element)
        elif tag == "br":
            self._line.append(" " if self._table else _BREAK)
        elif tag == "table" and not self._table and not element.is_layout:
            self._table, self._rows = element, []
        elif self._table and tag == "tr":
            self._rows.append([])
        elif tag in HEADINGS and not self._table:
            self._heading = int(tag[1])
        elif tag == "hr" and not self._table:
            self._write(["***"])
        elif tag in _LISTS:
            start = element.attributes.get("start") or "1"
            first = int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
            self._lists.append(_List(first if tag == "ol" else None))
        elif tag in _BOXES:
            self._boxed.append(not self._table and len(self._boxes) < MAX_BOXES)
            if self._boxed[-1]:
                self._boxes.append(self._box(tag))

    def close(self, element: PageElement) -> None:
        """An element ends."""
        tag = element.tag
        if self._verbatim is not None:
            if element is self._code:
                self._write_code("".join(self._verbatim), is_block=tag == "pre")
            return
        if tag in _MARKS:
            self._end(_MARKS[tag])
        elif tag == "a":
            self._end("[")
        if tag not in BLOCKS:
            return
        if self._table and tag in ("td", "th"):
            span = element.attributes.get("colspan") or ""
            empty = min(int(span), MAX_COLUMNS) - 1 if span.isascii() and span.isdigit() and len(span) < 5 else 0
            if not self._rows:
                self._rows.append([])
            self._rows[-1] += [self._take().replace(_BREAK, " ").replace("|", "\\|"), *[""] * empty]
            return
        self.end_block()
        self._heading = 0
        if element is self._table:
            self._table = None
            self._write_table()
        elif tag in _LISTS:
            self._lists.pop()
        elif tag in _BOXES and self._boxed.pop():
            self._boxes.pop()
            self._begun = min(self._begun, len(self._boxes))

    def end_block(self) -> None:
        """End the paragraph or heading that is being written; within a cell, part the words only."""
        if self._table:
            self._line.append(" ")
            return
        text = self._take()
        if self._heading and text:
            text = text.replace(_BREAK, " ")
            self._write([f"{'#' * self._heading} {text.removesuffix('#')}" + "\\#" * text.endswith("#")])
            return
        if _BREAK not in text:
            if text:
                self._write([_literal(text)])
            return
        # Two breaks in a row are how many people write paragraphs.
        for paragraph in re.split(f"{_BREAK}(?: ?{_BREAK})+", text):
            lines = [_literal(line) for each in paragraph.split(_BREAK) if (line := each.strip())]
            if lines:
                self._write([f"{line}  " for line in lines[:-1]] + lines[-1:])

    def _begin(self, mark: str, target: str = "") -> None:
        self._depths[mark] += 1
        if self._depths[mark] == 1:
            self._frames.append(_Frame(mark, len(self._line), target))

    def _end(self, mark: str) -> None:
        self._depths[mark] -= 1
        if not self._depths[mark]:
            self._close_frame()

    def _close_frame(self) -> None:
        """Put the marks of the innermost frame around its text, and the spaces at its edges outside."""
        mark, start, target = self._frames.pop()
        inner = "".join(self._line[start:])
        del self._line[start:]
        body = inner.strip(" \t\n\r\f\xa0" + _BREAK)
        self._bare = ""
        before, _, after = inner.partition(body) if body else (inner, "", "")
        last = self._line[-1][-1:] if self._line and not before else ""
        if mark == "[":
            marked = f"[{body}]({target.translate(_SPELLED)})" if target and body else body
        elif not body or last in ("*", "~") or (last.isalnum() and not body[0].isalnum()):
            marked = body  # CommonMark would not read the marks as such here
        else:
            marked = mark + body + mark
            self._bare = "" if after else body
        self._line += [piece for piece in (before, marked, after) if piece]

    def _take(self) -> str:
        """The line so far, which begins anew with the same links and emphasis open."""
        frames = [frame._replace(start=0) for frame in self._frames]
        while self._frames:
            self._close_frame()
        text = " ".join("".join(self._line).split())
        self._line.clear()
        self._bare = ""
        self._frames = frames
        return text.replace(f" {_BREAK}", _BREAK).strip(f" {_BREAK}")

    def _show_image(self, element: PageElement) -> None:
        said = element.attributes
        url = self._resolve(next((said[name] or "" for name in _SOURCES if said.get(name)), ""))
        alt = _escape(" ".join((said.get("alt") or "").split()))
        if url or alt:
            self._line.append(f"![{alt}]({url.translate(_SPELLED)})" if url else alt)

    def _box(self, tag: str) -> _Box:
        if tag == "blockquote":
            return _Box("> ", "> ", is_tight=False)
        marker, is_tight = "- ", bool(self._boxes) and self._boxes[-1].rest != "> "
        if tag == "li" and self._lists:
            innermost = self._lists[-1]
            is_tight = is_tight or innermost.has_begun
            innermost.has_begun = True
            if innermost.number is not None:
                marker = f"{innermost.number}. "
                innermost.number += 1
        return _Box(marker, " " * len(marker), is_tight)

    def _write(self, lines: list[str]) -> None:
        """Add a block of finished lines, each behind what its boxes begin with."""
        begun, new = self._boxes[: self._begun], self._boxes[self._begun :]
        rest = "".join(box.rest for box in begun)
        if self._written and new and new[0].is_tight:
            self._written.append("\n")
        elif self._written:
            self._written.append(f"\n{rest.rstrip()}\n")
        self._written.append(rest + "".join(box.first for box in new) + lines[0])
        rest += "".join(box.rest for box in new)
        self._written += [f"\n{rest}{line}" if line else f"\n{rest}".rstrip(" ") for line in lines[1:]]
        self._begun = len(self._boxes)

    def _write_code(self, text: str, *, is_block: bool) -> None:
        self._verbatim = None
        # More backticks around it than it has in a row.
        most = max(map(len, _BACKTICKS.findall(text)), default=0)
        if is_block and not self._table:
            text = text.removeprefix("\n").rstrip()
            fence = "`" * max(3, most + 1)
            if text:
                self._write([fence + self._language, *text.splitlines(), fence])
            return
        text = " ".join(text.split())
        if text:
            pad = " " if "`" in (text[0], text[-1]) else ""
            gap = " " if self._line and self._line[-1].endswith("`") else ""
            self._line.append(f"{gap}{'`' * (most + 1)}{pad}{text}{pad}{'`' * (most + 1)}")

    def _write_table(self) -> None:
        """Write the rows, all as wide as the widest; the first is the head, since Markdown knows none without."""
        last = MAX_COLUMNS - 1
        rows = [[*row[:last], *filter(None, [" ".join(row[last:])])] for row in self._rows if any(row)]
        width = max(map(len, rows), default=0)
        if width > 1:
            lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
            self._write([lines[0], "|" + " --- |" * width, *lines[1:]])
        else:
            for (cell,) in rows:
                self._write([_literal(cell)])


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text) if _SUSPECT.search(text) else text


def _literal(line: str) -> str:
    """A line of a paragraph, such that it begins nothing else."""
    found = _LINE_START.match(line)
    at = found.end() if found and line[0].isdigit() else 0
    return f"{line[:at]}\\{line[at:]}" if found else line


def _language(element: PageElement) -> str:
    found = _LANGUAGE.search((element.attributes.get("class") or "")[:500])
    return found[1] if found else ""
