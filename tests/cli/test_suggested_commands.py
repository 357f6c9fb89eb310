"""Every command that anything of ours suggests is one that the command line takes as it stands."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import commands, meant, run, running
from cyclopts import CycloptsError

from sanderling import cli

PACKAGE = Path(cli.__file__).parents[1]
SOMETHING = "1"  # for what is known only when it is said; a number, a name and a path alike
# A line of its own, the whole text, or behind "see:", "try:", a backtick or what is known only then.
_COMMAND = re.compile(rf"(?:^ {{4}}|^|: |`|{SOMETHING} )sanderling ([a-z][^`;\n#]*)", re.MULTILINE)


def said(node: ast.expr) -> str | None:
    """A text in the code, with something in the place of what is put into it; None for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(said(each) or SOMETHING for each in values)
    return None


def texts(path: Path) -> Iterator[str]:
    """The texts of a file. Parts of others are among them, too, up to what is put in between."""
    tree = ast.parse(path.read_text())
    parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in parts and (text := said(node)) is not None:
            yield text


def suggested() -> dict[str, str]:
    """All commands in texts of ours, with the file that has them."""
    found = ((each, path) for path in PACKAGE.rglob("*.py") for text in texts(path) for each in _COMMAND.findall(text))
    return {command.strip(): path.name for command, path in found if command.split()[0] in cli.app}


def test_what_is_suggested_is_a_command() -> None:
    def is_one(command: str) -> bool:
        words = shlex.split(command)
        names, _, left = cli.app.parse_commands(words)
        try:
            return bool(meant(*words)) if left else list(names) == words  # some are only named
        except CycloptsError:
            return False

    found = suggested()
    assert len(found) > 100
    assert {command: file for command, file in found.items() if not is_one(command)} == {}


@pytest.mark.parametrize("world", ["site", "pds", "game", "race"])
def test_what_a_world_suggests_is_a_command(world: str) -> None:
    async def main() -> None:
        async with running("world", world) as process:
            assert process.stdout is not None
            shown = (await process.stdout.readuntil(b"Ctrl-C ends it")).decode()

        assert all(meant(*words) for words in commands(shown))
        assert commands(shown), shown

    run(main)
