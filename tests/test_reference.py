"""The reference is what the code says: written anew it is the same, and nothing that can be typed is missing."""

import re
from pathlib import Path

import pytest
import reference
from cyclopts import App

from sanderling.cli.config.settings import known

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
CLI = (FOLDER / "cli.md").read_text()
COMMANDS = list(reference.commands())


@pytest.mark.parametrize("name", list(reference.PAGES))
def test_it_is_what_the_code_says(name: str) -> None:
    """If this fails, `make reference`."""
    assert (FOLDER / name).read_text() == reference.PAGES[name]()


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[" ".join(name) for name, _ in COMMANDS])
def test_every_command_is_there_with_all_its_flags_an_example_and_its_exit_codes(
    name: tuple[str, ...], command: App
) -> None:
    title = " ".join(name)
    section = re.split(r"^#+ ", CLI.partition(f"# sanderling {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    taken = {flag for each in command.assemble_argument_collection() if each.show for flag in reference.spellings(each)}

    rows = re.findall(r"^\| (`--.*?) \|", section, re.MULTILINE)
    documented = {flag for row in rows for flag in re.findall(r"`(--[a-z-]+)`", row)}
    # Two are those of every command.
    assert {flag for flag in taken if flag.startswith("--")} - {"--home", "--config"} == documented
    assert re.search(rf"```text\nsanderling {title}\b", section)
    assert "```sh\n" in section, "no example"


def test_every_setting_is_there_once_where_it_is_best_set() -> None:
    text = (FOLDER / "settings.md").read_text()
    tables = {
        head: re.findall(r"^\| `([a-z-]+)`", body, re.MULTILINE)
        for head, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    }

    expected = {
        f"`[{'.'.join(table)}]`" if table else "At the top level": sorted(known().placed(table))
        for table in known().tables
        if known().placed(table)
    }
    assert tables == expected


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("*.example.org and SOME_NAME", r"\*.example.org and SOME\_NAME"),
        ("lines `did_x <host>` only", "lines `did_x <host>` only"),
        ("a | b", r"a \| b"),
    ],
)
def test_a_help_text_stays_what_it_is_in_markdown(said: str, written: str) -> None:
    assert reference.plain(said) == written
