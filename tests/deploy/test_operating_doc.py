"""The manual of operating: its commands are ours, its files exist, and what it says of backups is so."""

import re
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path
from threading import Event, Thread

import pytest
from deploy_lines import DEPLOY, ROOT, refused

TEXT = (ROOT / "docs" / "operating.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
SHELL = [line for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
# In a block, also behind sudo; and within a sentence, if it has a flag.
OURS = [line.partition("sanderling ")[2] for line in SHELL if re.match(r"(sudo -u sanderling )?sanderling ", line)]
SPOKEN = [words.removeprefix("sanderling ") for words in re.findall(r"`(sanderling [a-z][^`…]*)`", TEXT)]
UNITS = (DEPLOY / "systemd").glob("sanderling-*.*")


@pytest.mark.parametrize("line", [*OURS, *SPOKEN])
def test_our_command_line_takes_what_the_manual_shows(line: str) -> None:
    line = line.removeprefix("sanderling ").replace("HOST", "example.org")

    assert refused(shlex.split(line)) == ""


def test_every_file_of_the_manual_exists() -> None:
    named = re.findall(r"(?<![\w/])(deploy/[\w./*-]+[\w*])", TEXT)
    later = {"deploy/.env"}  # made by the reader

    assert named
    assert [name for name in named if name not in later and not list(ROOT.glob(name))] == []


def test_every_unit_is_in_the_manual_with_its_ports() -> None:
    for unit in UNITS:
        name = unit.name.replace("events@", "events@N").replace("pages@", "pages@NAME")
        assert re.search(rf"\| `{re.escape(name.rpartition('.')[0])}\.", TEXT), name
        for port in re.findall(r"--(?:metrics-)?port (\d+)(?:%i)?", unit.read_text()):
            assert re.search(rf"\| {port}N? \|", TEXT), f"{name}: {port}"


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_every_exit_code_is_explained(code: int) -> None:
    assert re.search(rf"^\| {code} \| ", TEXT, re.MULTILINE)


def test_a_copy_of_sqlite_as_the_manual_makes_it_is_whole_while_somebody_writes(tmp_path: Path) -> None:
    program = shutil.which("sqlite3")
    if program is None:
        pytest.skip("there is no sqlite3 on this machine")
    (line,) = [line for line in SHELL if line.startswith("sqlite3 ")]
    source, copy = tmp_path / "polling.db", tmp_path / "copy.db"
    _, _, order = shlex.split(line)
    command = [program, str(source), order.replace("/backup/polling.db", str(copy))]
    begun, enough = Event(), Event()

    def write() -> None:
        """Rows in pairs, each pair in one transaction."""
        with sqlite3.connect(source, isolation_level=None) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE pairs (number INTEGER, half TEXT)")
            number = 0
            while not enough.is_set():
                db.execute("BEGIN")
                db.executemany("INSERT INTO pairs VALUES (?, ?)", [(number, "x" * 500), (number, "y" * 500)])
                db.execute("COMMIT")
                number += 1
                if number == 50:
                    begun.set()
        db.close()

    writing = Thread(target=write)
    writing.start()
    try:
        assert begun.wait(300)
        subprocess.run(command, check=True, capture_output=True, timeout=300)  # noqa: S603 - from our own manual
    finally:
        enough.set()
        writing.join()

    with sqlite3.connect(copy) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows, numbers = db.execute("SELECT count(*), count(DISTINCT number) FROM pairs").fetchone()
    db.close()
    assert rows == 2 * numbers >= 100
