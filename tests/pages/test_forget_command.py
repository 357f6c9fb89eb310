"""`forget`: what somebody wants gone is nowhere in the folder, whenever the command is killed."""

import gzip
import json
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from command_line import called
from small_web import crawl, page, reply, web

from sanderling.crawls.archive import PageArchive
from sanderling.pages.verify import verify

A = "http://a.example"
MARKER = b"xyzzy of ann"
SITE = {
    f"{A}/": page(*(f"/ann/{number}" for number in range(30)), *(f"/bob/{number}" for number in range(30)), "/ann.pdf"),
    **{f"{A}/ann/{number}": page(f"/ann/{number}/gone", title=f"{MARKER.decode()} {number}") for number in range(30)},
    **{f"{A}/bob/{number}": page(title=f"Bob {number % 7}") for number in range(30)},
    f"{A}/ann.pdf": reply(200, b"%PDF-1.4 " + MARKER, Content_Type="application/pdf"),
}
ANN = (f"{A}/ann/*", f"{A}/ann.pdf")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Crawled twice, kept as WARC in small segments, and exported to SQLite and to lines."""
    monkeypatch.setattr(PageArchive.__init__, "__kwdefaults__", {"segment": 8_000})
    for epoch in (1_800_000_000.0, 1_800_100_000.0):
        crawl(tmp_path / "out", web(**SITE), f"{A}/", keep="warc", epoch=epoch)
    for target in ("out.sqlite", "out.jsonl"):
        assert called("export", str(tmp_path / "out"), "--to", str(tmp_path / target)).code == 0
    return tmp_path / "out"


def holding(folder: Path, marker: bytes = MARKER) -> set[str]:
    """The files that speak of something, packed or not, beside the folder and in it."""
    files = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    unpacked = {path: gzip.decompress(data) for path, data in files.items() if path.suffix == ".gz"}
    return {path.name for path, data in files.items() if marker in data or marker in unpacked.get(path, b"")}


# The command as it is, in a process of its own, which is killed by the system before a step of its number.
KILLED = """
import os, signal, sys
left = int(sys.argv.pop(1))

def last(step):
    def taken(*given, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*given, **more)
    return taken

for name in ("fsync", "fdatasync", "replace", "unlink", "truncate"):
    setattr(os, name, last(getattr(os, name)))
from sanderling.__main__ import main
main()
"""


def killed_before(step: int, *words: str) -> bool:
    """Whether the command was killed before it came to its end."""
    command = [sys.executable, "-c", KILLED, str(step), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 - ourselves
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_killed_at_many_moments_nothing_is_left_of_it(folder: Path) -> None:
    assert {"pages.jsonl", "out.sqlite", "out.jsonl"} <= holding(folder)

    # From the second time on, without a name: it goes on with what was cut short.
    steps = iter((3, 10, 21, 34, 48, 1000))
    assert killed_before(next(steps), "forget", str(folder), *ANN)
    kills = sum(takewhile(bool, (killed_before(step, "forget", str(folder)) for step in steps)))
    done = called("forget", str(folder), "--json")

    assert kills >= 3
    assert done.code == 0, done.err
    assert json.loads(done.out)["unreached"] == []
    assert holding(folder) == set()
    # The page of somebody else leads there, and goes on saying so.
    assert holding(folder, b"a.example/ann/1") == {"pages.jsonl", "out.jsonl", "out.sqlite"}
    for each in (folder, folder / "earlier" / "0001"):
        assert verify(each).problems == []
    rows = [json.loads(line) for line in (folder / "pages.jsonl").read_text().splitlines()]
    assert len([row for row in rows if "/bob/" in row["url"]]) == 30


def test_what_would_go_is_said_and_nothing_goes(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    said = json.loads(called("forget", str(folder), *ANN, "--dry-run", "--json").out)
    words = called("forget", str(folder), *ANN, "--dry-run").out

    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert (said["dry_run"], said["rows"], said["captures"], said["files"], len(said["unreached"])) == (
        True,
        62,
        62,
        1,
        2,
    )
    assert words.startswith("Would remove: 62 rows, ")
    done = json.loads(called("forget", str(folder), *ANN, "--json").out)
    assert {key: done[key] for key in ("rows", "urls", "files", "captures")} == {
        key: said[key] for key in ("rows", "urls", "files", "captures")
    }
    assert done["forgotten"] == {"beginning": 1, "url": 1}


def test_a_forgotten_page_is_said_to_be_forgotten(folder: Path) -> None:
    assert called("forget", str(folder), *ANN).code == 0

    assert "forgotten" in called("show", str(folder), f"{A}/ann/3").out
    assert "Forgotten in this folder: 1 x beginning of URLs, 1 x URL." in called("forget", str(folder)).out
