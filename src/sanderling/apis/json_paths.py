"""Paths into a JSON document.

    data.items[0].id     names with dots between them; [2] is the third of a list, [-1] its last
    data.items[*].id     the values at all items of a list, as a list
    .                    the whole document

What is not there is null.
"""

import re
from dataclasses import dataclass
from typing import Self, TypeGuard

import msgspec

# Not in a name: what ends it, and what could be meant as something else.
_NAME = r"""[^\s.,\[\](){}=!<>"'`]+"""
_INDEX = r"\[(?:-?[0-9]{1,9}|\*)\]"
_PATH = re.compile(rf"\.|(?:{_NAME}|{_INDEX})(?:\.{_NAME}|{_INDEX})*")
_STEP = re.compile(rf"\.?({_NAME})|\[(-?[0-9]+)\]|\[\*\]")

UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Every:
    """The step to all items of a list."""


EVERY = Every()
Step = str | int | Every


@dataclass(frozen=True, slots=True)
class Path:
    """The way to a value within a document."""

    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The path that a text is. Raises ValueError."""
        path, end = cls.begin(text)
        if end != len(text):
            raise unexpected(text, end, "a path like data.items[0].id")
        return path

    @classmethod
    def begin(cls, text: str, at: int = 0) -> tuple[Self, int]:
        """The path that begins at a place of a text, and where it ends. Raises ValueError."""
        found = _PATH.match(text, at)
        if not found:
            raise unexpected(text, at, "a path like data.items[0].id")
        steps = _STEP.finditer(text, at, found.end()) if found[0] != "." else ()
        return cls(tuple(step[1] or (int(step[2]) if step[2] else EVERY) for step in steps)), found.end()

    @property
    def many(self) -> bool:
        """Whether it leads to a list of values, by way of [*]."""
        return EVERY in self.steps

    def find(self, document: object) -> object:
        """The value there; None if there is none. With [*]: the list of those that are there."""
        if self.many:
            return [value for value in self.values(document) if value is not None]
        return _follow(self.steps, document)

    def values(self, document: object) -> list[object]:
        """The values there: one, or with [*] any number."""
        found, done = [document], 0
        for place, step in enumerate(self.steps):
            if step is EVERY:
                lists = [_follow(self.steps[done:place], each) for each in found]
                found, done = [item for each in lists if isinstance(each, list) for item in each], place + 1
        return [_follow(self.steps[done:], each) for each in found]

    def __str__(self) -> str:
        written = "".join(f".{step}" if isinstance(step, str) else f"[{_index(step)}]" for step in self.steps)
        return written.removeprefix(".") or "."


def _index(step: int | Every) -> str:
    return "*" if isinstance(step, Every) else str(step)


def _follow(steps: tuple[Step, ...], value: object) -> object:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        elif isinstance(step, int):
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
    return value


def unexpected(text: str, at: int, expected: str) -> ValueError:
    """The error for a text in which something else stands at a place than what was expected."""
    found = repr(text[at : at + 20]) if text[at:] else "the end"
    return ValueError(f"{text[:80]!r}, at character {at + 1}: found {found}, expected {expected}")


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number to JSON; to Python, true is one as well."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def show_value(value: object) -> str:
    """A value in few words; of lists and objects only that they are some."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return repr(value[:60])[:60]
        case int() | float():
            return repr(value)[:60]
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"
