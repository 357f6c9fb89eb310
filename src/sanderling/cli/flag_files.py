"""What is in the files that flags name: secrets, lists, and descriptions of APIs."""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from sanderling.cli.command_error import CommandError
from sanderling.formats.list_file import ListError

T = TypeVar("T")


def read(flag: str, path: Path) -> str:
    """What a small file holds, without the blanks around it. Raises CommandError."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{flag}: cannot read {path} ({type(error).__name__})", code=2) from None


def secret(flag: str, path: Path | None, variable: str, environment: Mapping[str, str] = os.environ) -> str:
    """What the file holds, or else the variable; empty if there is neither. Raises CommandError."""
    return environment.get(variable, "") if path is None else read(flag, path)


def listing(flag: str, path: Path, read_it: Callable[[Path], T]) -> T:
    """What `read_it` makes of a list that people write. Raises CommandError."""
    try:
        return read_it(path)
    except ListError as error:
        raise CommandError(f"{flag}: {error}", code=2) from None


def section(flag: str, path: Path, name: str) -> Mapping[str, object]:
    """The section of that name of a TOML file. Raises CommandError."""
    try:
        document = tomllib.loads(read(flag, path))
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{flag}: {path} is no TOML: {error}", code=2) from None
    found = document.get(name)
    if not isinstance(found, dict):
        raise CommandError(f"{flag}: {path} has no section [{name}]", code=2)
    return found
