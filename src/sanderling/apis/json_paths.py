"""Paths into a JSON document, and rules about what is found there.

    path:  data.items[0].id      names with dots between them; [2] is the third of a list; . is the whole document
    rule:  path                  holds if the value is neither null nor false
           path = value          also != < <= > >=; a value is written as in JSON: 42, true, null, "text"

What is not there is null. Values of different kinds are never equal, and only numbers have an order.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeGuard

import msgspec

Scalar = str | int | float | bool | None

# Not in a name: what ends it, and what could be meant as something else.
_NAME = r"""[^\s.,\[\](){}=!<>"'`]+"""
_INDEX = r"\[[0-9]{1,9}\]"
_PATH = re.compile(rf"\.|(?:{_NAME}|{_INDEX})(?:\.{_NAME}|{_INDEX})*")
_STEP = re.compile(rf"\.?({_NAME})|\[([0-9]+)\]")
_COMPARISON = re.compile(r"\s*(!=|<=|>=|=|<|>)\s*")

ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Path:
    """The way to a value within a document."""

    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The path that a text is. Raises ValueError."""
        path, end = cls.begin(text)
        if end != len(text):
            raise _unexpected(text, end, "a path like data.items[0].id")
        return path

    @classmethod
    def begin(cls, text: str) -> tuple[Self, int]:
        """The path that a text begins with, and where it ends. Raises ValueError."""
        found = _PATH.match(text)
        if not found:
            raise _unexpected(text, 0, "a path like data.items[0].id")
        steps = _STEP.finditer(text, 0, found.end()) if found[0] != "." else ()
        return cls(tuple(step[1] or int(step[2]) for step in steps)), found.end()

    def find(self, document: object) -> object:
        """The value there; None if there is none."""
        value = document
        for step in self.steps:
            if isinstance(step, str):
                value = value.get(step) if isinstance(value, dict) else None
            else:
                value = value[step] if isinstance(value, list) and step < len(value) else None
        return value

    def __str__(self) -> str:
        written = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in self.steps)
        return written.removeprefix(".") or "."


@dataclass(frozen=True, slots=True)
class Rule:
    """What must be true of a document."""

    path: Path
    comparison: str = ""
    value: Scalar = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """The rule that a text is. Raises ValueError."""
        path, end = Path.begin(text)
        if end == len(text):
            return cls(path)
        found = _COMPARISON.match(text, end)
        if not found:
            raise _unexpected(text, end, "one of = != < <= > >=, or the end")
        try:
            value = msgspec.json.decode(text[found.end() :], type=Scalar)
        except UNREADABLE:
            raise _unexpected(text, found.end(), 'a number, true, false, null or a "text" in quotes') from None
        if found[1] in ORDERS and not is_number(value):
            raise _unexpected(text, found.end(), f"a number behind {found[1]}")
        return cls(path, found[1], value)

    def holds(self, document: object) -> bool:
        """Whether it is true of this one."""
        value = self.path.find(document)
        match self.comparison:
            case "":
                return value is not None and value is not False
            case "=":
                return _same(value, self.value)
            case "!=":
                return not _same(value, self.value)
        return is_number(value) and is_number(self.value) and ORDERS[self.comparison](value, self.value)

    def __str__(self) -> str:
        behind = f" {self.comparison} {msgspec.json.encode(self.value).decode()}" if self.comparison else ""
        return f"{self.path}{behind}"


def _unexpected(text: str, at: int, expected: str) -> ValueError:
    found = repr(text[at : at + 20]) if text[at:] else "the end"
    return ValueError(f"{text[:80]!r}, at character {at + 1}: found {found}, expected {expected}")


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number to JSON; to Python, true is one as well."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: object, expected: Scalar) -> bool:
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected
