"""In which line of a TOML file each table and each key is: `tomllib` does not tell.

The text has to be TOML that `tomllib` takes; of any other, what was found until it went wrong.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping

Keys = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"[ \t]*({_PART}(?:[ \t]*\.[ \t]*{_PART})*)[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# What a value is made of, as far as it matters for where it ends.
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n|[^"\'#\[\]{}\n]+|.',
    re.DOTALL,
)


class TomlLines:
    """Ask it for the line of a key, by the names that lead to it."""

    def __init__(self, text: str) -> None:
        self._lines = dict(_scanned(text))

    def __getitem__(self, keys: Keys) -> int:
        """Its line, or that of what it is in: what is in braces shares the line of these."""
        while keys and keys not in self._lines:
            keys = keys[:-1]
        return self._lines.get(keys, 1)

    def first_in(self, keys: Keys) -> int:
        """The first line of a table, also of one that only those in it name."""
        below = [line for each, line in self._lines.items() if each[: len(keys)] == keys]
        return min(below, default=self[keys])


def _scanned(text: str) -> Iterator[tuple[Keys, int]]:
    """Tables and keys with their lines, in the order of the file; of one that is there again, the last."""
    table: Keys = ()
    at, line, counted = _end_of(_BLANK, text, 0), 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        brackets = 2 if text.startswith("[[", at) else 1 if text[at] == "[" else 0
        found = _KEY.match(text, at + brackets)
        if found is None:
            return
        keys = _parts(found[1])
        if brackets:
            table = keys
            yield table, line
        else:
            yield table + keys, line
        at = _end_of(_BLANK, text, _value_end(text, found.end() + 1))


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _value_end(text: str, at: int) -> int:
    """Where the line ends that a value ends in."""
    depth = 0
    while (found := _PIECE.match(text, at)) is not None:
        at = found.end()
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if found[0] == "\n" and depth <= 0:
            break
    return at


def _parts(key: str) -> Keys:
    """The names that a key with dots is made of."""
    if '"' not in key and "'" not in key:
        return tuple(part.strip() for part in key.split("."))
    names: list[str] = []
    inner: object = tomllib.loads(f"{key} = 0")
    while isinstance(inner, Mapping):
        name, inner = next(iter(inner.items()))
        names.append(name)
    return tuple(names)
