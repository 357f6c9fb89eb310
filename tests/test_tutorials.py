"""Tutorials, how-tos and their like work as they are written: in an empty folder, from top to bottom."""

import re
from pathlib import Path
from shutil import which

import pytest
from page_steps import FOLLOWED, NOT_RUN, Reader, missing, steps, write_shim
from shell_examples import ROOT, Example, accepted, inside, joined

from sanderling.fetch.render import PROGRAMS

TUTORIALS = [page for page in FOLLOWED if "/tutorials/" in page]
# Languages of blocks that are shown, and neither run nor written: units and crontabs are parsed below.
SHOWN = {"cron", "ini"}


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    if "--render" in (ROOT / page).read_text() and not any(map(which, PROGRAMS)):
        pytest.skip("there is no Chromium on this machine")
    folder = tmp_path / "here"
    folder.mkdir()
    reader = Reader(write_shim(tmp_path / "bin"))

    with inside(folder, HOME=str(tmp_path), SHELL="/bin/bash"):
        reader.follow(page)

    assert reader.shown <= SHOWN
    assert reader.ran or page not in TUTORIALS


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_begins_with_the_installation_and_ends_in_a_file(page: str) -> None:
    lines = [example.text for step in steps(page) if step.kind == "sh" for example in step.examples]
    written = re.search(r"sanderling export \S+ --to (\S+\.jsonl)", "\n".join(lines))

    assert lines[0] == "pip install sanderling"
    assert written
    assert "## What next" in (ROOT / page).read_text()


@pytest.mark.parametrize("page", FOLLOWED)
def test_our_parser_takes_what_units_and_crontabs_run(page: str) -> None:
    shown = [step for step in steps(page) if step.kind in SHOWN]
    lines = [
        Example(page, step.line + at, command.partition(">>")[0])
        for step in shown
        for at, text in joined(step.text)
        for command in text.split("&&")
    ]
    wrong = {str(line): accepted(ours) for line in lines if (ours := line.ours)}

    assert {line: error for line, error in wrong.items() if error} == {}


def test_what_is_not_run_is_nobodys_record() -> None:
    """A tool that reads or writes records would be missed."""
    assert {"sanderling", "head", "cat", "wc", "python", "timeout"} & NOT_RUN == set()


def test_lines_that_were_not_printed_are_seen() -> None:
    printed = "0:05  3 records in 12 ms\nfrom 127.0.0.1:8040\nthe end\n"

    assert missing("0:01  3 records in 1.5 s\n…\nthe …", printed) == []
    assert missing("from 127.0.0.1:20000", printed) == []
    assert missing("0:01  4 records in 1.5 s", printed) == ["0:01  4 records in 1.5 s"]
    assert missing("the end\nfrom 127.0.0.1:8040", printed) == ["from 127.0.0.1:8040"]
