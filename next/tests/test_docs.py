"""What documents say can be typed: options and commands exist, programs compile, names can be imported."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from sanderling.cli.commands import all_commands
from sanderling.systems import SYSTEMS, load_name

PROJECT = Path(__file__).parents[1]
DOCS = [
    PROJECT / "README.md",
    *sorted((PROJECT / "docs").glob("*.md")),
    *sorted((PROJECT / "docs/how-to").glob("*.md")),
]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"```(\w+)[^\n]*\n(.*?)```", re.DOTALL)
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
# Of the program itself; of benchmarks; of systemctl.
OTHERS = frozenset({"help", "version", "completion", "list", "quick", "rival", "now"})


def commands() -> dict[str, set[str]]:
    """The flags of each command."""
    return {
        each.words: {
            flag for field in load_name(each.options).fields.values() for flag in (*field.flags, f"no-{field.key}")
        }
        for each in all_commands(SYSTEMS)
    }


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_what_a_document_says_can_be_typed(path: Path) -> None:
    text = path.read_text()
    known = commands()
    flags = set().union(*known.values()) | OTHERS
    wrong = [f"--{flag}" for flag in FLAG.findall(text) if flag not in flags]
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sanderling"):
                    module = importlib.import_module(node.module or "")
                    wrong += [alias.name for alias in node.names if not hasattr(module, alias.name)]
        for line in block.splitlines() if kind in ("sh", "console") else ():
            if (typed := line.removeprefix("$ ")).startswith("sanderling "):
                words = typed.removeprefix("sanderling ")
                command = next((each for each in known if f"{words} ".startswith(f"{each} ")), None)
                wrong += [line] if command is None else []
                given = FLAG.findall(line.partition("#")[0])
                wrong += [f"{command} --{flag}" for flag in given if flag not in known.get(command or "", ())]
    wrong += [link for link in LINK.findall(text) if not (path.parent / link).exists()]

    assert not wrong
