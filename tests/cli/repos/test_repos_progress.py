"""`sanderling status` of repos and `repos reset`: what is said, and what is deleted and what is not."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from command_line import called
from forked import Command
from known_reports import REPOS, changed
from services.process import Missing, private_folder
from services.redis import REDIS

from sanderling.apis.atproto import AtprotoCategory
from sanderling.cli.repos.progress import CATEGORIES, MEANINGS, ArchiveFolder, SavedProgress
from sanderling.cli.repos.summary import summarise, words
from sanderling.clock import SystemClock
from sanderling.repos.segments import Segments
from sanderling.stores.ports import Finished, HostAside, Unfinished
from sanderling.stores.redis_progress import RedisProgress
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import write_status

DONE = [Finished("did:plc:a", 1500), Finished("did:plc:b", 500)]
RUNNING = changed(REPOS, hosts=(), categories={}, pid=4711)
FAILED = [Unfinished("did:plc:c", "not_found", permanent=True), Unfinished("did:plc:d", "timeout", permanent=False)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl that is under way."""
    out = tmp_path / "out"
    with closing(SqliteProgress(out / "progress.db")) as progress:
        progress.record(DONE, FAILED, cursor="did:plc:c", segment=2)
    (out / "segment_0001.rca").write_bytes(b"one")
    (out / "segment_0002.rca.part").write_bytes(b"two")
    (out / "segment_0001.rca.txt").write_bytes(b"mine")
    (out / "thesis.rca").write_bytes(b"mine as well")
    return out


def test_status_says_what_there_is_in_words(folder: Path) -> None:
    done = called("status", str(folder))

    assert (done.code, done.err) == (0, "")
    for line in (
        "2  archived, 2.0 kB",
        "1  not found at its host (not_found)",
        "3  complete",
        "1  no answer in time (timeout)",
        "Segment: 2. All DIDs up to did:plc:c were seen to.",
    ):
        assert line in done.out


def test_the_numbers_of_a_status_add_up_where_hosts_are_left_out(folder: Path) -> None:
    listed = [Unfinished(f"did:plc:{n}", "left_out", permanent=n == 0) for n in range(4)]
    with closing(SqliteProgress(folder / "progress.db")) as progress:
        progress.record([], listed, cursor="did:plc:c", segment=2)

    done = called("status", str(folder))

    numbers = [int(line.split()[0]) for line in done.out.splitlines() if line.startswith("   ")][:5]
    assert numbers == [2, 1, 1, 4, 3], "archived, left out, not found: complete; and left out with their host"
    assert "3  left out for as long as their host is (left_out)" in done.out


NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("aside", "due", "said"),
    [
        ([], NOW - 500, "What is left is on disk. The same"),
        ([HostAside("a.example", "timeout", NOW + 60)], NOW + 60, "1 host set aside, with the repos that wait for it:"),
        (
            [HostAside("a.example", "timeout", NOW - 1), HostAside("b.example", "left_alone", NOW - 9)],
            NOW - 1,
            "2 hosts set aside, with the repos that wait for them:",
        ),
        (
            [HostAside("b.example", "left_alone", NOW)],
            None,
            "    b.example  left alone, as sanderling control says (left_alone)\n",
        ),
    ],
)
def test_a_run_that_leaves_something_is_not_complete_and_says_when_that_is_due(
    folder: Path, aside: list[HostAside], due: int | None, said: str
) -> None:
    left = Unfinished("did:plc:e", "timeout", permanent=False, due=NOW - 500)
    with closing(SqliteProgress(folder / "progress.db")) as progress:
        progress.record([], [left], cursor="", segment=2, hosts=aside)
        kept, place = SavedProgress(progress.view(), tuple(progress.aside(5))), ArchiveFolder(out=folder)

    summary = summarise(place, RUNNING, kept, complete=True, again="again")

    assert (summary.as_json()["complete"], summary.due, kept.as_json()["due"]) == (False, due, due)
    assert said in "\n".join(words(summary, place, NOW))
    assert ("the first is due in " in "\n".join(words(summary, place, NOW))) == (due == NOW + 60)


def test_status_as_json(folder: Path) -> None:
    done = called("status", str(folder), "--json")

    kept = {
        "cursor": "did:plc:c",
        "completed": 3,
        "failed": {"not_found": 1, "timeout": 1},
        "segment": 2,
        "total_crawled": 2,
        "bytes_written": 2000,
        "scheduled": 0,
        "due": None,
        "hosts_aside": 0,
        "aside": [],
    }
    assert json.loads(done.out) == {"running": False, "age": None, "status": None, "kept": kept}


def test_status_says_whether_anybody_crawls(folder: Path) -> None:
    now = SystemClock().wall()
    write_status(folder, changed(RUNNING, wall=now, started=now - 100))

    words = called("status", str(folder))
    whole = json.loads(called("status", str(folder), "--json").out)

    assert words.out.startswith(f"The crawl in {folder}, running for 1:40 as process 4711, as of now:\n\n")
    assert (whole["running"], whole["status"]["process"]["pid"], whole["kept"]["completed"]) == (True, 4711, 3)


def test_status_of_nothing_makes_nothing(tmp_path: Path) -> None:
    done = called("status", str(tmp_path / "none"))

    assert (done.code, done.out) == (2, "")
    assert f"there is no folder {tmp_path / 'none'}" in done.err
    assert not (tmp_path / "none").exists()


def test_reset_without_a_terminal_wants_to_be_sure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("yes\n"))
    before = sorted(path.name for path in folder.iterdir())

    done = called("repos", "reset", "--out", str(folder))

    assert done.code == 2
    assert "3 complete DIDs and 2 segments in " in done.err
    assert "say --yes" in done.err
    assert sorted(path.name for path in folder.iterdir() if path.name != "lock") == before


def test_reset_deletes_the_segments_and_nothing_else(folder: Path) -> None:
    done = called("repos", "reset", "--out", str(folder), "--yes")

    assert (done.code, done.out) == (0, f"Forgotten: 3 complete DIDs and 2 segments in {folder}.\n")
    assert {path.name for path in folder.glob("*rca*")} == {"segment_0001.rca.txt", "thesis.rca"}
    assert called("status", str(folder)).code == 2


def test_reset_of_nothing_says_so(tmp_path: Path) -> None:
    done = called("repos", "reset", "--out", str(tmp_path / "none"), "--yes")

    assert (done.code, done.out) == (0, f"Nothing to forget in {tmp_path / 'none'}.\n")
    assert not (tmp_path / "none").exists()


def test_reset_while_a_crawl_is_running_changes_nothing(folder: Path) -> None:
    (folder / "segment_0002.rca.part").unlink()
    with Segments(folder, size=100, created_at=lambda: 1):
        done = called("repos", "reset", "--out", str(folder), "--yes")

    assert done.code == 1
    assert "another crawl is running" in done.err
    assert (folder / "segment_0001.rca").exists()


@pytest.mark.parametrize(("typed", "code", "left"), [(b"yes\n", 0, 0), (b"no\n", 1, 2), (b"\n", 1, 2)])
def test_on_a_terminal_reset_asks_first(folder: Path, typed: bytes, code: int, left: int) -> None:
    ours, theirs = pty.openpty()
    command = ["repos", "reset", "--out", str(folder)]
    with Command[bytes](command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        os.write(ours, typed)
        out, _ = child.communicate(timeout=300)
    os.close(ours)
    os.close(theirs)

    assert child.returncode == code
    assert b"Nothing brings them back" in out
    assert len([*folder.glob("segment_*.rca"), *folder.glob("*.part")]) == left


@pytest.fixture
def redis_address() -> Iterator[str]:
    """Of one of our own: the keys are those of any crawl."""
    with private_folder() as folder:
        try:
            with REDIS.start(Path(folder)) as server:
                yield server.url.removeprefix("redis://").removesuffix("/0")
        except Missing as why:
            pytest.skip(f"redis: {why}")


def test_both_work_with_redis(tmp_path: Path, redis_address: str) -> None:
    with closing(RedisProgress(f"redis://{redis_address}/0", categories=CATEGORIES)) as progress:
        progress.record(DONE, FAILED, cursor="did:plc:c", segment=2)
    (tmp_path / "segment_0001.rca").touch()
    there = ["@repos.redis-address", redis_address]

    status = called("status", str(tmp_path), *there)
    reset = called("repos", "reset", "--out", str(tmp_path), *there, "--yes")
    after = called("status", str(tmp_path), *there)

    assert f"Its progress is in Redis at {redis_address}." in status.out
    assert reset.code == 0
    assert (after.code, after.out) == (2, "")


def test_every_category_has_its_words() -> None:
    assert set(MEANINGS) == set(AtprotoCategory)
