"""Conditions: what must be true of a document, or of a reply. Descriptions of APIs and jobs use this language.

    path                     holds if the value is neither null nor false; `json_paths.py` has the grammar of paths
    path = value             also != < <= > >=; a value is written as in JSON: 42, true, null, "text"
    path contains value      a text has that text in it, or a list that item
    path exists              the value is not null
    path empty               the value is null, "", [] or {}
    not A, A and B, A or B   `not` binds closest, then `and`; parentheses group

What is not there is null. Values of different kinds are never equal, and only numbers have an order. With [*] a test
holds if it holds for one of the values.

A condition about a reply knows more names: `status` is the HTTP status, `header.x-name` the value of a header (compared
with a number, it is read as one), and `body` the document. Any other path begins in the document; a field of it that is
called status, header or body is written body.status.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from sanderling.apis.json_bodies import decode_body
from sanderling.apis.json_paths import UNREADABLE, Path, is_number, show_value, unexpected
from sanderling.task import Reply

Scalar = str | int | float | bool | None

LONGEST = 1000  # characters of a condition
DEEPEST = 20  # parentheses and nots within each other

ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARISON = re.compile(r"\s*(?:(!=|<=|>=|=|<|>)|(contains|exists|empty)(?=[\s)]|\Z))\s*")
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s()"]+)')
_NOT = re.compile(r"not(?=\s*\(|\s+(?![=!<>)]|(?:and|or|contains|exists|empty)(?:[\s)]|\Z))\S)")
_JOIN = re.compile(r"\s*\b(and|or)(?=[\s(])")
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,20})?")
_UNREAD = object()


class JsonReply:
    """A reply whose body is decoded once, when it is first needed."""

    __slots__ = ("_document", "error", "reply")

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.error = ""  # why it cannot be read, once it was looked at: what goes on after `the body`
        self._document: object = _UNREAD

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON. NaN, an unpaired surrogate and numbers beyond all ranges are not."""
        if self._document is _UNREAD:
            try:
                self._document = decode_body(self.reply)
            except ValueError as error:
                self._document, self.error = None, str(error)
        return not self.error

    @property
    def document(self) -> object:
        """What the body says; None if it is no JSON."""
        return self._document if self.is_json else None


class Subject(Protocol):
    """What a test is about."""

    def values(self, source: Any) -> list[object]:  # noqa: ANN401 - a document, or a JsonReply
        """Its values: one, but with [*] or of a header any number."""


@dataclass(frozen=True, slots=True)
class ReplyBody:
    """A value of a reply's document."""

    path: Path

    def values(self, source: JsonReply) -> list[object]:
        """Its values."""
        return self.path.values(source.document)

    def __str__(self) -> str:
        first = self.path.steps[:1]
        if first == () or first[0] in ("status", "header", "body"):
            return f"body.{self.path}".removesuffix("..")
        return str(self.path)


@dataclass(frozen=True, slots=True)
class ReplyStatus:
    """The status of a reply."""

    def values(self, source: JsonReply) -> list[object]:
        """The status."""
        return [source.reply.status]

    def __str__(self) -> str:
        return "status"


@dataclass(frozen=True, slots=True)
class ReplyHeader:
    """A header of a reply."""

    name: str

    def values(self, source: JsonReply) -> list[object]:
        """The values under that name, in whatever case."""
        found: list[object] = [value for name, value in source.reply.headers if name.lower() == self.name]
        return found or [None]

    def __str__(self) -> str:
        return f"header.{self.name}"


def _read_number(value: object) -> object:
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if found is None else float(found[0]) if found[1] else int(found[0])


def _same(value: object, expected: Scalar) -> bool:
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected


def _contains(value: object, wanted: Scalar) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, list) and any(_same(item, wanted) for item in value)


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[object, Scalar], bool]:
    return lambda value, expected: is_number(value) and is_number(expected) and compare(value, expected)


TESTS: Mapping[str, Callable[[object, Scalar], bool]] = {
    "": lambda value, _: value is not None and value is not False,
    "=": _same,
    "!=": lambda value, expected: not _same(value, expected),
    **{sign: _ordered(compare) for sign, compare in ORDERS.items()},
    "contains": _contains,
    "exists": lambda value, _: value is not None,
    "empty": lambda value, _: value is None or value in ("", [], {}),
}


@dataclass(frozen=True, slots=True)
class Test:
    """What must be true of one value."""

    __test__ = False  # for pytest, to which every Test is a case

    subject: Subject
    comparison: str = ""
    value: Scalar = None

    def holds(self, source: object) -> bool:
        """Whether it is true of one of the values."""
        values = self.subject.values(source)
        if isinstance(self.subject, ReplyHeader) and is_number(self.value):
            values = [_read_number(value) for value in values]
        comparison = TESTS[self.comparison]
        return any(comparison(value, self.value) for value in values)

    def __str__(self) -> str:
        if self.comparison in ("", "exists", "empty"):
            return f"{self.subject} {self.comparison}".rstrip()
        return f"{self.subject} {self.comparison} {msgspec.json.encode(self.value).decode()}"


@dataclass(frozen=True, slots=True)
class Not:
    """What must not be true."""

    part: "Node"

    def holds(self, source: object) -> bool:
        """Whether the part does not hold."""
        return not self.part.holds(source)

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclass(frozen=True, slots=True)
class Joined:
    """Several of which all must be true (`and`), or one (`or`)."""

    word: str
    parts: tuple["Node", ...]

    def holds(self, source: object) -> bool:
        """Whether all hold, or one."""
        return (all if self.word == "and" else any)(part.holds(source) for part in self.parts)

    def __str__(self) -> str:
        return f" {self.word} ".join(f"({part})" if isinstance(part, Joined) else str(part) for part in self.parts)


Node = Test | Not | Joined


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be true of a document, or of a reply if it was read as one about replies."""

    root: Node

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """The condition about a document that a text is. Raises ValueError."""
        return cls(_Parser(text, _of_document).parse())

    def holds(self, source: object) -> bool:
        """Whether it is true of this document, or JsonReply."""
        return self.root.holds(source)

    @property
    def tests(self) -> list[Test]:
        """All tests in it, from left to right."""
        return _tests(self.root)

    @property
    def reads_body(self) -> bool:
        """Whether it says something about a reply's body."""
        return any(isinstance(test.subject, ReplyBody) for test in self.tests)

    def explain(self, source: object) -> str:
        """What was found and what was expected, for a source of which it does not hold."""
        found: dict[str, str] = {}
        for test in self.tests:
            found[str(test.subject)] = ", ".join(map(show_value, test.subject.values(source)[:3])) or "nothing"
        return f"{', '.join(f'{subject} is {value}' for subject, value in found.items())}, expected {self}"

    def __str__(self) -> str:
        return str(self.root)


@lru_cache(maxsize=256)
def parse_subject(text: str) -> Subject:
    """Where a reply has a value: a path, `status` or `header.x-name`. Raises ValueError."""
    return _of_reply(text, 0, Path.parse(text))


@lru_cache(maxsize=256)
def reply_condition(text: str) -> Condition:
    """The condition about a `JsonReply` that a text is. Raises ValueError."""
    return Condition(_Parser(text, _of_reply).parse())


def find_value(text: str, reply: JsonReply) -> object:
    """The first value that a reply has where a text says; None if there is none. Raises ValueError."""
    values = parse_subject(text).values(reply)
    return values[0] if values else None


def check_setting(name: str, text: str, parse: Callable[[str], object]) -> None:
    """Raise ValueError, with the name of the setting, for a text that cannot be parsed."""
    try:
        parse(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _tests(node: Node) -> list[Test]:
    match node:
        case Test():
            return [node]
        case Not(part):
            return _tests(part)
    return [test for part in node.parts for test in _tests(part)]


def _of_document(text: str, at: int, path: Path) -> Subject:  # noqa: ARG001 - the other one needs them
    return path


def _of_reply(text: str, at: int, path: Path) -> Subject:
    match path.steps:
        case ("status",):
            return ReplyStatus()
        case ("status", *_):
            raise unexpected(text, at, "status alone; body.status… for the field of a document")
        case ("header", str(name)):
            return ReplyHeader(name.lower())
        case ("header", *_):
            raise unexpected(text, at, "header.x-name; body.header… for the field of a document")
        case ("body", *steps):
            return ReplyBody(Path(tuple(steps)))
    return ReplyBody(path)


class _Parser:
    """Reads a condition from left to right."""

    def __init__(self, text: str, subject: Callable[[str, int, Path], Subject]) -> None:
        self._text = text
        self._subject = subject
        self._at = 0

    def parse(self) -> Node:
        if len(self._text) > LONGEST:
            raise unexpected(self._text, LONGEST, f"at most {LONGEST} characters")
        node = self._joined("or", 0)
        self._skip(_SPACE)
        if self._at != len(self._text):
            raise unexpected(self._text, self._at, self._behind(node))
        return node

    def _behind(self, node: Node) -> str:
        last = _tests(node)[-1]
        comparisons = "one of = != < <= > >=, contains, exists, empty, " if not last.comparison else ""
        return f"{comparisons}and, or, or the end"

    def _joined(self, word: str, depth: int) -> Node:
        """Parts with that word between them; those of an `or` are themselves joined by `and`."""
        parts = []
        while True:
            parts.append(self._joined("and", depth) if word == "or" else self._part(depth))
            found = _JOIN.match(self._text, self._at)
            if not found or found[1] != word:
                return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))
            self._at = _SPACE.match(self._text, found.end()).end()  # type: ignore[union-attr] # it always matches

    def _part(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise unexpected(self._text, self._at, f"at most {DEEPEST} parentheses and nots within each other")
        if self._skip(_NOT):
            self._skip(_SPACE)
            return Not(self._part(depth + 1))
        if self._text.startswith("(", self._at):
            self._at += 1
            self._skip(_SPACE)
            node = self._joined("or", depth + 1)
            self._skip(_SPACE)
            if not self._text.startswith(")", self._at):
                raise unexpected(self._text, self._at, "and, or, or a closing parenthesis")
            self._at += 1
            return node
        return self._test()

    def _test(self) -> Test:
        began = self._at
        path, self._at = Path.begin(self._text, began)
        subject = self._subject(self._text, began, path)
        found = _COMPARISON.match(self._text, self._at)
        if not found:
            return Test(subject)
        comparison = found[1] or found[2]
        self._at = found.end()
        return Test(subject, comparison, None if comparison in ("exists", "empty") else self._value(comparison))

    def _value(self, comparison: str) -> Scalar:
        began, found = self._at, _VALUE.match(self._text, self._at)
        try:
            value: Scalar = msgspec.json.decode(found[0] if found else "", type=Scalar)
        except UNREADABLE:
            raise unexpected(self._text, began, 'a number, true, false, null or a "text" in quotes') from None
        if comparison in ORDERS and not is_number(value):
            raise unexpected(self._text, began, f"a number behind {comparison}")
        self._at = found.end() if found else began
        return value

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found is not None
