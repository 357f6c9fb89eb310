"""What is written on command lines: the flags that most commands take, and what to type to get the same again."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.flags import SETTING
from sanderling.redact import redact_url
from sanderling.words import printable

AsJson = Annotated[bool, Parameter(negative=(), help="Print JSON, and nothing else.")]
SummaryAsJson = Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")]

# A line of its own, the whole text, or behind a colon or a backtick.
_COMMAND = re.compile(r"(^ {4}|^|: |`)sanderling (?=[a-z])", re.MULTILINE)


def again(command: str, *given: object) -> str:
    """The command with these words and groups of flags, to be copied; `command` is as in "events consume".

    Flags that have their defaults are left out, and so are passwords.
    """
    words = ["sanderling", *command.split()]
    for each in given:
        words += flags(each) if is_dataclass(each) else [str(each)]
    return as_called(printable(shlex.join(words)))


def flags(group: object) -> Iterator[str]:
    """The flags of a group that do not have their defaults, as they are typed."""
    for field in fields(group):  # type: ignore[arg-type] # whoever calls has looked
        value, name = getattr(group, field.name), field.name.removesuffix("_").replace("_", "-")
        if value == field.default or SETTING in getattr(field.type, "__metadata__", ()):
            continue
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no-{name}"
            continue
        for each in value if isinstance(value, tuple) else (value,):
            yield from (f"--{name}", redact_url(str(each).removesuffix(".0") if isinstance(each, float) else str(each)))


def as_called(text: str) -> str:
    """A text whose commands can be copied: with the path that we were called by, if the PATH has no `sanderling`."""
    program = Path(sys.argv[0])
    if program.name != "sanderling" or program.parent == Path() or shutil.which("sanderling"):
        return text
    here = program.absolute()
    shown = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
    return _COMMAND.sub(lambda found: f"{found[1]}{shlex.quote(str(shown))} ", text)
