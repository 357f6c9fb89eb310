"""Command lines that stand in files of deploy/, and what our own command line says to them."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from sanderling.cli import app
from sanderling.cli.command_error import CommandError
from sanderling.cli.config.file import NONE
from sanderling.cli.everywhere import Everywhere, taken

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def refused(words: Sequence[str], configuration: Path | None = None) -> str:
    """Why our command line does not take these words; nothing if it does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SANDERLING_")]:
            patch.delenv(name)
        try:
            rest, said = taken(words)
            patch.setattr(app, "config", Everywhere(said.home, str(configuration) if configuration else NONE))
            app.parse_args(rest, exit_on_error=False, print_error=False)
        except (CycloptsError, CommandError) as error:
            return str(error)
    return ""


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with ${NAME} and ${NAME:-default} filled in."""
    return VARIABLE.sub(lambda found: variables.get(found[1]) or found[2] or "", text)


def variables_of(path: Path) -> dict[str, str]:
    """What a file of NAME=value lines sets."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)
