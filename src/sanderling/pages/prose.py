"""Writing Markdown: a line of text with its links and emphasis, blocks of lines, and the quotes and items around them.

Terms. A *frame* is an open link or emphasis, and ends inside its block; where a block ends first, it goes on in the
next. A *box* is an open quote or list item, and is what every line inside begins with.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

# Deeper lists and quotes go on at this level: nobody reads further in, and each line repeats the indents.
DEEPEST = 16
# Stands for a line break until the block is written. No page can hold one: `extract` takes them out.
BREAK = "\0"
LINK, STRONG, EMPHASIS, DELETED = "[", "**", "*", "~~"
# Joining one emphasis after the other to the same piece copies it each time.
_LONGEST_JOINED = 1_000
# Signs that link a heading to itself, for people to copy.
_ANCHORS = frozenset("#¶§🔗")
_EDGE = " \t\n\r\f" + BREAK

_SUSPECT = re.compile(r"[\\`*_\[\]<&~]")
_SPECIAL = re.compile(
    r"\\(?=[\s!-/:-@\[-`{-~]|$)|`|(?<! )\*|\*(?! )|(?<![^\W_])_|_(?![^\W_])|\[|<(?=[a-zA-Z/!?]|$)"
    r"|&(?=#?[a-zA-Z0-9]{1,32};)|~(?=~|$)|(?<=~)~|^~"
)
# What would begin a heading, an item, a quote or a rule, or underline the line before.
_LINE_START = re.compile(r"(?:#{1,6}|[-+*])(?= |$)|>|[0-9]{1,9}(?=[.)](?: |$))|[-=]+$|:?-+[-|: ]*$|\|")
_PARAGRAPH = re.compile(rf"(?: ?{BREAK} ?){{2,}}")
_SPELLED = {" ": "%20", "\\": "%5C", "<": "%3C", ">": "%3E", "(": "\\(", ")": "\\)"}
_AWKWARD = re.compile(r"[ \\<>()]")
_TILDE = re.compile(r"^~|(?<!\\)~$")
_BACKTICKS = re.compile(r"`+")


class _Closed(NamedTuple):
    """An emphasis that is the last piece of a line, if that is still as long."""

    length: int
    mark: str
    bare: str  # the piece without its marks


class _Frame(NamedTuple):
    """What goes around the pieces of the line from `start` on."""

    mark: str
    start: int
    target: str
    prior: _Closed | None  # the emphasis right before it


@dataclass(slots=True)
class _Box:
    """What its next line begins with, and what all lines after that do."""

    first: str
    rest: str
    tight: bool = False  # whether it follows the text before it without a blank line


@dataclass(slots=True)
class Prose:
    """Markdown in the making. Pages are hostile: nothing here takes longer with how deep things are nested."""

    blocks: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    level: int = 0  # of the heading that is being written
    _frames: list[_Frame] = field(default_factory=list)  # at most a link and an emphasis, in either order
    _depths: list[int] = field(default_factory=lambda: [0, 0])  # how many emphases are open, and how many links
    _boxes: list[_Box] = field(default_factory=list)
    _beyond: int = 0  # how many boxes are open past the deepest
    _shared: int = 0  # how many of the boxes around the last block are still open
    _closed: _Closed | None = None
    _coded: int = -1  # how long the line was just after code,
    _code: str = ""  # and which

    def say(self, text: str) -> None:
        """Add literal text."""
        if _SUSPECT.search(text):
            text = _SPECIAL.sub(r"\\\g<0>", text)
            if self._frames:
                text = text.replace("]", "\\]")
        if self._closed and text[0].isalnum() and not self._opening:
            self._soften(self._closed)
        self.line.append(text)

    def code(self, text: str) -> None:
        """Add literal text as code, between more backticks than it has in a row."""
        text = " ".join(text.split())
        if not text:
            return
        if self._frames and "]:" in text:
            # A link whose text holds these may be taken for the definition of one.
            self.say(text)
            return
        if not self._opening:
            text = self._joined_code(text)
        ticks = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
        pad = " " if "`" in (text[0], text[-1]) else ""
        self.line.append(f"{ticks}{pad}{text}{pad}{ticks}")
        self._coded, self._code = len(self.line), text

    def image(self, alt: str, url: str) -> None:
        """Add an image."""
        alt = _SPECIAL.sub(r"\\\g<0>", " ".join(alt.split())).replace("]", "\\]")
        self.line.append(f"![{alt}]({_destination(url)})")

    def begin(self, mark: str, target: str = "") -> None:
        """Open a link or an emphasis; an emphasis inside of another adds nothing, nor does a link inside of one."""
        kind = mark == LINK
        self._depths[kind] += 1
        if self._depths[kind] == 1:
            length, prior = len(self.line), self._closed
            adjoins = prior and prior.length == length and not self._opening
            self._frames.append(_Frame(mark, length, target, prior if adjoins else None))

    def end(self, mark: str) -> None:
        """Close what `begin` opened."""
        kind = mark == LINK
        self._depths[kind] -= 1
        if not self._depths[kind]:
            self._close_frame()

    def enter(self, first: str, rest: str, *, tight: bool = False) -> None:
        """Open a quote or an item."""
        if len(self._boxes) < DEEPEST:
            self._boxes.append(_Box(first, rest, tight))
        else:
            self._beyond += 1

    def leave(self) -> None:
        """Close what `enter` opened."""
        if self._beyond:
            self._beyond -= 1
        else:
            self._boxes.pop()
            self._shared = min(self._shared, len(self._boxes))

    @property
    def in_item(self) -> bool:
        """Whether the innermost box is an item that has begun."""
        return bool(self._boxes) and self._shared == len(self._boxes) and not self._boxes[-1].rest.strip()

    @property
    def _opening(self) -> bool:
        """Whether the innermost frame is still empty."""
        return bool(self._frames) and self._frames[-1].start == len(self.line)

    def taken(self) -> str:
        """The line so far, which then begins anew with the same links and emphasis open."""
        if not self.line:
            return ""
        frames = [frame._replace(start=0, prior=None) for frame in self._frames]
        while self._frames:
            self._close_frame()
        text = " ".join("".join(self.line).split())
        self.line.clear()
        self._closed, self._coded = None, -1
        self._frames = frames
        return text

    def flush(self) -> None:
        """End the block that is being written."""
        text = self.taken()
        if not text:
            return
        if self.level:
            text = text.replace(BREAK, " ").strip()
            # Signs at the end of a heading would be taken for its closing ones.
            text = f"{text[:-1]}\\#" if text.endswith("#") else text
            self.write([f"{'#' * self.level} {text}"])
        elif BREAK not in text:
            self.write([_line(text)])
        elif broken := text.strip(_EDGE):
            self._write_broken(broken)

    def write(self, lines: list[str]) -> None:
        """Add a block of finished lines, each behind what its boxes begin with."""
        if not self._boxes:
            self.blocks += ["\n\n", lines[0]] if self.blocks else lines[:1]
            self.blocks += [f"\n{line}" for line in lines[1:]]
            return
        first = "".join(box.first for box in self._boxes)
        rest = "".join(box.rest for box in self._boxes)
        if self.blocks:
            tight = self._shared < len(self._boxes) and self._boxes[self._shared].tight
            blank = "".join(box.rest for box in self._boxes[: self._shared]).rstrip()
            self.blocks.append("\n" if tight else f"\n{blank}\n")
        for box in self._boxes[self._shared :]:
            box.first = box.rest
        self._shared = len(self._boxes)
        self.blocks.append(first + lines[0])
        self.blocks += [f"\n{rest}{line}" if line else f"\n{rest}".rstrip(" ") for line in lines[1:]]

    def write_code(self, text: str, language: str) -> None:
        """Add a block of code, its fence longer than any it holds."""
        ticks = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
        self.write([ticks + language, *text.split("\n"), ticks])

    def _write_broken(self, text: str) -> None:
        # Two breaks in a row are how many people write paragraphs.
        for paragraph in _PARAGRAPH.split(text):
            lines = [_line(line.strip()) for line in paragraph.split(BREAK)]
            self.write([f"{line}  " for line in lines[:-1]] + lines[-1:])

    def _close_frame(self) -> None:
        """Put the marks of the innermost frame around its text, and the spaces at its edges outside."""
        mark, start, target, prior = self._frames.pop()
        line = self.line
        if start == len(line):
            return
        inner = line[start] if start == len(line) - 1 else "".join(line[start:])
        del line[start:]
        # Whatever closed inside is now part of a longer piece.
        self._closed, self._coded = None, -1
        body = inner.strip(_EDGE)
        if not body:
            line.append(inner)
            return
        before, _, after = inner.partition(body) if body != inner else ("", body, "")
        if mark == LINK:
            self._link(before, body, after, target)
        elif prior and not before:
            self._adjoin(prior, mark, body, after)
        elif not before and line and line[-1][-1].isalnum() and not body[0].isalnum():
            # Marks between a letter and a sign are not read as such.
            line.append(inner)
        else:
            if mark == DELETED:
                body = _TILDE.sub(r"\\~", body)  # what is next to the marks must not lengthen them
            self._emphasise(f"{before}{mark}{body}{mark}", mark, before + body, after)

    def _joined_code(self, text: str) -> str:
        """What to write behind code: two in a row would be read as one, backticks and all."""
        if self._coded == len(self.line) and len(self._code) < _LONGEST_JOINED:
            self.line.pop()
            return self._code + text
        if self.line and self.line[-1].endswith("`") and not self.line[-1].endswith("\\`"):
            self.line.append(" ")
        return text

    def _link(self, before: str, body: str, after: str, target: str) -> None:
        if target:
            if not before and self.line and self.line[-1][-1] == "!":
                self.line[-1] = f"{self.line[-1][:-1]}\\!"
            self.line.append(f"{before}[{body}]({_destination(target)}){after}")
        elif body not in _ANCHORS:
            self.line.append(before + body + after)

    def _adjoin(self, prior: _Closed, mark: str, body: str, after: str) -> None:
        """Emphasise right behind an emphasis: two alike become one, of two others the second is left out."""
        clash = prior.bare[-1] + body[0] in ("``", "![")
        if mark == prior.mark and len(prior.bare) < _LONGEST_JOINED and not clash:
            self._emphasise(f"{self.line.pop()[: -len(mark)]}{body}{mark}", mark, prior.bare + body, after)
            return
        if body[0].isalnum():
            self._soften(prior)
        self.line.append(body + after)

    def _emphasise(self, piece: str, mark: str, bare: str, after: str) -> None:
        self.line.append(piece)
        self._closed = _Closed(len(self.line), mark, bare)
        if after:
            self.line.append(after)

    def _soften(self, closed: _Closed) -> None:
        """A letter follows an emphasis: if that ends in a sign (`Note:`), its marks would not be read as such."""
        if closed.length == len(self.line) and not closed.bare[-1].isalnum():
            code = closed.bare[0] == "`" and len(self.line) > 1 and self.line[-2].endswith("`")
            self.line[-1] = f" {closed.bare}" if code else closed.bare
        self._closed = None


def _line(text: str) -> str:
    """A line of a paragraph, such that it begins nothing else."""
    found = _LINE_START.match(text)
    if not found:
        return text
    at = found.end() if text[0].isdigit() else 0
    return f"{text[:at]}\\{text[at:]}"


def _destination(url: str) -> str:
    return _AWKWARD.sub(lambda sign: _SPELLED[sign[0]], url) if _AWKWARD.search(url) else url
