"""What a command has besides its options: where it was typed, and where it prints."""

import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from sanderling.files import FolderError
from sanderling.observe.report import clean_text
from sanderling.options import OptionError
from sanderling.redact import SecretError
from sanderling.systems import SYSTEMS, System

EXPECTED = (FolderError, OptionError, SecretError)


def expected_error(error: BaseException) -> Exception | None:
    """The error whose sentence a person needs, in a group of tasks too; None for a bug."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(expected_error, error.exceptions)), None)
    return error if isinstance(error, EXPECTED) else None


@dataclass(frozen=True)
class Context:
    """Arguments, environment and streams of one command. Tests make their own."""

    arguments: tuple[str, ...]  # as typed, without the program's name
    environment: Mapping[str, str]
    folder: Path = field(default_factory=Path.cwd)  # where sanderling.toml is looked for
    program: str = "sanderling"  # as it was called
    systems: tuple[System, ...] = SYSTEMS
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def print(self, text: str) -> None:
        """Write what was asked for to standard output, at once: the command may go on, and be read by a program."""
        self.out.write(text + "\n")
        self.out.flush()

    def warn(self, text: str) -> None:
        """Write what a person should know to standard error."""
        self.err.write(text + "\n")

    def command_line(self, words: Iterable[str]) -> str:
        """A command of ours as it can be pasted here: with the program's path if it is not on the path."""
        on_path = shutil.which("sanderling", path=self.environment.get("PATH", ""))
        program = "sanderling" if on_path and Path(on_path).resolve() == Path(self.program).resolve() else self.program
        return clean_text(shlex.join((program, *words)))

    @property
    def width(self) -> int:
        """Characters in a line of the terminal; 100 where there is none."""
        return shutil.get_terminal_size((100, 24)).columns
