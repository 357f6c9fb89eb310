"""The commands over archives, as people run them: what they print, what they leave, and their exit codes."""

import io
import json
import os
import pty
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import called
from forked import Command

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import encode_block
from sanderling.formats.rca_writer import RcaWriter
from sanderling.stores.clickhouse import open_clickhouse

POST, LIKE = "app.bsky.feed.post", "app.bsky.feed.like"
AT = 1_750_000_000_000_000
Records = dict[str, dict[str, bytes]]
REPOS: dict[str, Records] = {
    "did:plc:a": {POST: {"3k2": b'{"text":"\xc3\xa9 one"}', "3k3": b'{"text":"two"}'}, LIKE: {"3k4": b'{"n":1}'}},
    "did:plc:b": {LIKE: {"3k5": b'{"n":2}'}},
}


def block(did: str, records: Records, crawled_at: int = AT) -> bytes:
    collections = []
    for name, kept in records.items():
        data = [
            struct.pack(f"<H{len(rkey)}sI", len(rkey), rkey.encode(), len(text)) + text for rkey, text in kept.items()
        ]
        collections.append(Collection(name, len(kept), b"".join(data)))
    return encode_block(did, "https://host.example", "3krev", crawled_at, collections)


def write(path: Path, repos: dict[str, Records] | None = None, crawled_at: int = AT) -> Path:
    file = io.BytesIO()
    writer = RcaWriter(file, created_at=AT)
    for did, records in (REPOS if repos is None else repos).items():
        writer.append(did, block(did, records, crawled_at))
    writer.finalise()
    path.write_bytes(file.getvalue())
    return path


def damage(path: Path, did: str) -> int:
    """Spoil the last byte of a repo; where its block is."""
    data = bytearray(path.read_bytes())
    bad = block(did, REPOS[did])
    offset = data.index(bad)
    data[offset + len(bad) - 1] ^= 0xFF
    path.write_bytes(data)
    return offset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two segments; did:plc:a is in both."""
    folder = tmp_path / "an archive"
    folder.mkdir()
    write(folder / "segment_0001.rca")
    write(folder / "segment_0002.rca", {"did:plc:a": {POST: {"3k2": b'{"text":"new"}'}}}, AT + 1)
    return folder


@pytest.fixture
def segment(folder: Path) -> Path:
    return folder / "segment_0001.rca"


# --- replay ---


def test_replay_loads_a_folder_into_clickhouse_once(folder: Path, clickhouse_url: str) -> None:
    first = called("repos", "replay", str(folder), "--to", clickhouse_url)
    again = called("repos", "replay", str(folder), "--to", clickhouse_url)
    store = open_clickhouse(clickhouse_url, {})
    rows = store.rows("SELECT repo, rkey, record_json FROM repo_records FINAL ORDER BY repo, rkey")
    store.close()

    assert (first.code, first.err, again.code, again.err) == (0, "", 0, "")
    assert first.out.startswith("5 records of 3 repos from 2 segments into ")
    assert "2 segments loaded before and left alone; --again" in again.out
    assert rows == [("did:plc:a", "3k2", '{"text":"new"}'), ("did:plc:b", "3k5", '{"n":2}')], (
        "as they were crawled last"
    )
    assert "3 rows of earlier crawls of these repos removed.\n" in first.out
    assert "earlier crawls" not in again.out


def test_replay_says_what_it_did_in_json(folder: Path, tmp_path: Path) -> None:
    done = called(
        "repos", "replay", str(folder), "--to", f"parquet:{tmp_path / 'out'}", "--json", "--collections", LIKE
    )

    told = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert told.pop("seconds") >= 0
    assert told.pop("bytes") > 0
    assert told == {
        "segments": 2,
        "before": 0,
        "repos": 3,
        "left_out": 0,
        "records": 2,
        "torn": 0,
        "superseded": 0,
        "wrong": 0,
        "problems": [],
        "to": f"parquet:{tmp_path / 'out'}",
    }


def test_replay_and_get_leave_out_who_is_listed(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "out.txt"
    listed.write_text("# who wrote to us\ndid:plc:a\n")

    replayed = called("repos", "replay", str(folder), "--to", f"parquet:{tmp_path / 'out'}", "--leave-out", str(listed))
    got = called("repos", "get", "did:plc:a", str(folder), "--leave-out", str(listed))
    other = called("repos", "get", "did:plc:b", str(folder), "--leave-out", str(listed))

    assert (replayed.code, got.code, other.code) == (0, 1, 0)
    assert replayed.out.startswith("1 record of 1 repo from 2 segments into ")
    assert "2 repos left out: see --leave-out.\n" in replayed.out
    assert (got.out, "did:plc:a is left out" in got.err) == ("", True)


def test_a_bad_line_of_a_list_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("did:plc:a\n\nhttps://a.example/xrpc\n")

    done = called("repos", "get", "did:plc:a", str(folder), "--leave-out", str(tmp_path / "out.txt"))

    assert (done.code, "out.txt, line 3: path: '/xrpc', expected nothing behind the host" in done.err) == (2, True)


def test_replay_goes_on_past_a_damaged_repo_and_exits_with_1(folder: Path, segment: Path, tmp_path: Path) -> None:
    offset = damage(segment, "did:plc:b")

    done = called("repos", "replay", str(folder), "--to", f"parquet:{tmp_path / 'out'}")

    assert done.code == 1
    assert done.err.startswith(f"wrong: {segment}: byte {offset}: a block with CRC ")
    assert done.out.startswith("4 records of 2 repos from 2 segments into ")
    assert "1 thing wrong; the other records were loaded.\n" in done.out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--to", "chdb:"), "would be gone at the end; expected chdb:PATH"),
        (("--to", "parquet"), "expected chdb:PATH, clickhouse://… or parquet:FOLDER"),
        (("--to", "postgresql://me:hunter2@host/x"), "expected chdb:PATH, clickhouse://… or parquet:FOLDER"),
        (("--to", "parquet:out", "--collections", "a.*.b"), "--collections 'a.*.b', expected the name of a collection"),
        ((), "--to"),
    ],
)
def test_replay_called_wrongly_says_how_and_exits_with_2(folder: Path, flags: tuple[str, ...], says: str) -> None:
    done = called("repos", "replay", str(folder), *flags)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "hunter2" not in done.err
    assert not Path("out").exists()


def test_replay_into_a_server_that_is_not_there_exits_with_1_and_shows_no_password(folder: Path) -> None:
    done = called("repos", "replay", str(folder), "--to", "clickhouse://me:hunter2@127.0.0.1:1/x")

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("sanderling: clickhouse://127.0.0.1:1/x: nobody listens there.")


def test_two_segments_of_one_name_do_not_become_one_file(folder: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "segment_0001.rca")

    done = called("repos", "replay", str(folder), str(other), "--to", f"parquet:{tmp_path / 'out'}")

    assert done.code == 2
    assert "two segments of the same name" in done.err


def test_on_a_terminal_there_is_a_bar_and_elsewhere_none(folder: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = ["repos", "replay", str(folder), "--to", f"parquet:{tmp_path / 'out'}"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with Command[bytes](command, stderr=theirs, stdout=subprocess.PIPE, env=environment) as process:
        out, _ = process.communicate(timeout=300)
        os.close(theirs)
        drawn = os.read(ours, 65536)
    os.close(ours)

    assert process.returncode == 0
    assert b"5 records of 3 repos" in out
    assert b"\x1b[" in drawn


# --- inspect ---


def test_inspect_shows_header_index_and_collections(segment: Path) -> None:
    done = called("repos", "inspect", str(segment), "--verify")

    lines = [line.split() for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{segment}: ")
    assert "begun 2025-06-15 15:06:40 UTC" in done.out
    assert "  2 repos, 4 records\n" in done.out
    assert [(*line[:2], line[-1]) for line in lines if line and line[-1] in (LIKE, POST)] == [
        ("2", "2", LIKE),
        ("1", "2", POST),
    ]
    assert [line[0] for line in lines if line and line[-1].startswith("did:")] == ["3", "1"]


def test_inspect_says_it_in_json(segment: Path) -> None:
    told = json.loads(called("repos", "inspect", str(segment), "--json").out)

    assert (told["repos"], told["records"], told["finalised"], told["wrong"]) == (2, 4, True, 0)
    assert {name: stats["records"] for name, stats in told["collections"].items()} == {LIKE: 2, POST: 2}
    assert [repo["did"] for repo in told["largest"]] == ["did:plc:a", "did:plc:b"]
    assert told["index"]["repos"] == 2


def test_inspect_of_one_repo(segment: Path) -> None:
    words = called("repos", "inspect", str(segment), "--did", "did:plc:a")
    told = json.loads(called("repos", "inspect", str(segment), "--did", "did:plc:a", "--json").out)
    nobody = called("repos", "inspect", str(segment), "--did", "did:plc:nobody")

    assert words.out.startswith("did:plc:a at https://host.example\n  rev 3krev, crawled 2025-06-15")
    assert {name: stats["records"] for name, stats in told["collections"].items()} == {LIKE: 1, POST: 2}
    assert (nobody.code, nobody.err) == (1, f"sanderling: did:plc:nobody is not in {segment}\n")


def test_inspect_with_verify_finds_what_is_damaged(segment: Path) -> None:
    offset = damage(segment, "did:plc:a")

    quick = called("repos", "inspect", str(segment))
    whole = called("repos", "inspect", str(segment), "--verify", "--json")

    assert quick.code == 0
    assert whole.code == 1
    assert [(each["file"], each["offset"]) for each in json.loads(whole.out)["problems"]] == [(str(segment), offset)]


@pytest.mark.parametrize(("name", "says"), [("gone.rca", "No such file"), ("other.rca", "is it an .rca?"), ("", "")])
def test_inspect_of_what_is_no_archive_exits_with_2(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "other.rca").write_bytes(b"something else altogether" * 10)

    done = called("repos", "inspect", str(tmp_path / name))

    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_what_strangers_have_written_does_not_reach_the_terminal_as_it_is(tmp_path: Path) -> None:
    evil = write(tmp_path / "segment_0001.rca", {"did:\x1b]0;owned\x07": {"a.\u202eb": {"k": b"{}"}}})

    done = called("repos", "inspect", str(evil))

    assert "owned" in done.out
    assert not any(each in done.out for each in "\x1b\x07\u202e")


# --- verify ---


def test_verify_of_sound_segments(folder: Path) -> None:
    done = called("verify", str(folder))

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 segments, 3 sound repos, ")
    assert done.out.endswith(": all checksums are right.\n")


def test_verify_names_file_and_byte_of_each_problem_and_exits_with_1(folder: Path, segment: Path) -> None:
    offset = damage(segment, "did:plc:b")

    words, told = called("verify", str(folder)), called("verify", str(folder), "--json")

    assert (words.code, told.code) == (1, 1)
    assert f"wrong: {segment}: byte {offset}: a block with CRC" in words.err
    assert words.out.endswith(": 1 thing wrong.\n")
    assert json.loads(told.out)["ok"] is False
    assert json.loads(told.out)["problems"][0]["offset"] == offset


def test_verify_tells_a_hundred_problems_and_counts_the_others(tmp_path: Path) -> None:
    for number in range(1, 121):
        (tmp_path / f"segment_{number:04}.rca").write_bytes(b"x")

    done = called("verify", str(tmp_path))

    assert done.err.count("wrong: ") == 100
    assert "wrong: and 20 more" in done.out
    assert "120 things wrong" in done.out


def test_verify_says_what_is_not_finished_and_finds_nothing_wrong_with_that(segment: Path) -> None:
    part = segment.with_suffix(".rca.part")
    part.write_bytes(RcaPart().data[:-2])
    segment.unlink()

    done = called("verify", str(part))

    assert done.code == 0
    assert f"{part}: not finalised; " in done.out


class RcaPart:
    """A segment that is still written."""

    def __init__(self) -> None:
        file = io.BytesIO()
        writer = RcaWriter(file, created_at=AT)
        for did, records in REPOS.items():
            writer.append(did, block(did, records))
        self.data = file.getvalue()


# --- get ---


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_get_prints_the_newest_crawl_of_a_repo_whatever_the_order_of_folders_and_numbers(tmp_path: Path) -> None:
    for name, number, text in (("old", 7, b'{"text":"old"}'), ("new", 1, b'{"text":"new"}')):
        (tmp_path / name).mkdir()
        repos = {"did:plc:a": {POST: {"3k2": text}}}
        write(tmp_path / name / f"segment_{number:04}.rca", repos, AT + (name == "new"))

    for order in (("old", "new"), ("new", "old")):
        done = called("repos", "get", "did:plc:a", *(str(tmp_path / name) for name in order))
        assert [json.loads(line)["record"] for line in done.out.splitlines()] == [{"text": "new"}], order


def test_get_prints_the_records_of_the_newest_segment_that_has_the_repo(folder: Path) -> None:
    new, old = called("repos", "get", "did:plc:a", str(folder)), called("repos", "get", "did:plc:b", str(folder))

    assert (new.code, new.err, old.code) == (0, "", 0)
    assert lines(new.out) == [
        {"repo": "did:plc:a", "rev": "3krev", "collection": POST, "rkey": "3k2", "record": {"text": "new"}}
    ]
    assert [line["record"] for line in lines(old.out)] == [{"n": 2}]


def test_get_of_some_collections(segment: Path) -> None:
    posts = called("repos", "get", "did:plc:a", str(segment), "--collections", "app.bsky.feed.p*")
    none = called("repos", "get", "did:plc:a", str(segment), "--collections", "app.bsky.graph.*")

    assert [line["record"]["text"] for line in lines(posts.out)] == ["é one", "two"]
    assert (none.code, none.out) == (1, "")
    assert f"has none of these collections, but {LIKE}, {POST}" in none.err


def test_get_of_who_is_not_there_says_so_and_exits_with_1(folder: Path) -> None:
    done = called("repos", "get", "did:plc:nobody", str(folder))

    assert (done.code, done.out, done.err) == (1, "", "sanderling: did:plc:nobody is in none of 2 segments\n")


def test_get_prints_one_line_per_record_whatever_is_in_it(tmp_path: Path) -> None:
    bad = {"l": b"no json", "deep": b"[" * 10**5 + b"]" * 10**5}
    records = {"a.b": {"k": b'{"a":\n1}', **bad, "m": b'{"b":"\xe2\x80\xa8"}'}}
    path = write(tmp_path / "segment_0001.rca", {"did:plc:a": records})

    done = called("repos", "get", "did:plc:a", str(path))

    assert [json.loads(line)["rkey"] for line in done.out.rstrip("\n").split("\n")] == ["k", "m"]
    assert done.code == 1
    assert "a record of a.b that is no JSON" in done.err


@pytest.mark.parametrize("command", [("get", "did:plc:a"), ("replay", "--to", "parquet:out")])
@pytest.mark.parametrize(("place", "says"), [("gone", "there is no "), ("empty", "holds no .rca"), (None, "no folder")])
def test_without_archives_there_is_nothing_to_do(
    tmp_path: Path, command: tuple[str, ...], place: str | None, says: str
) -> None:
    (tmp_path / "empty").mkdir()

    done = called("repos", *command, *([str(tmp_path / place)] if place else []))

    assert (done.code, done.out) == (2, "")
    # Without a folder, `get` looks for the repo itself, and that is no DID which anybody could have.
    assert ("neither a DID" if place is None and command[0] == "get" else says) in done.err


@pytest.mark.parametrize("command", ["replay", "inspect", "get"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = called("repos", command, "--help")

    assert done.code == 0
    assert f"    sanderling repos {command} " in done.out
    assert "Exit code 0" in done.out
