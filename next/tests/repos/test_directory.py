"""The log of PLC folded into a directory, names of hosts and DIDs, and the smaller commands."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from repos.world import Net, Pds, did_of, play

from sanderling.cli.context import Context
from sanderling.cli.main import main
from sanderling.files import FolderError
from sanderling.options import OptionError
from sanderling.repos.atproto import EndpointError, RepoCategory, handle_of, host_at, is_did, named_error
from sanderling.repos.directory import SqliteDirectory
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.options import ReposOptions
from sanderling.repos.plc import ReadLines, fill_from_file

DID = did_of("someone")


def typed(*words: object) -> int:
    return main(Context(tuple(map(str, words)), dict(os.environ), program="sanderling"))


def line(host: str | None, at: int, did: str = DID, **more: Any) -> bytes:
    """An operation; without a host it ends the account."""
    operation: dict[str, Any] = {"type": "plc_tombstone"}
    if host is not None:
        operation = {"type": "plc_operation", "services": {"atproto_pds": {"endpoint": host}}}
    stamp = f"2026-01-01T00:00:{at:02}.000Z"
    return json.dumps({"did": did, "operation": operation, "createdAt": stamp, **more}).encode() + b"\n"


def filled(path: Path, *lines: bytes) -> tuple[dict[str, str], ReadLines]:
    async def fill() -> tuple[dict[str, str], ReadLines]:
        async with SqliteDirectory(path, read_only=False) as directory:
            read = await fill_from_file(directory, lines, None)
            return await directory.find([DID]), read

    return asyncio.run(fill())


A, B = "https://a.example", "https://b.example"
OLD = {"type": "create", "service": "https://A.example/"}


@pytest.mark.parametrize(
    ("lines", "host"),
    [
        ([line(A, 1)], A),
        ([line(A, 1), line(B, 2)], B),
        ([line(B, 2), line(A, 1)], B),
        ([line(A, 1), line(None, 2)], ""),
        ([line(A, 1), line(None, 2), line(B, 3)], B),
        ([line(A, 1), line(B, 2, nullified=True)], A),
        ([line(A, 1), line("http://10.0.0.1/x", 2)], A),
        ([line(A, 1), line("https://u:p@b.example", 2)], A),
        ([line(A, 1), line("not a url", 2), b"\n", b"{", b"[]", b'{"did":1}', line(B, 3, did="did:x")], A),
        ([json.dumps({"did": DID, "operation": OLD, "createdAt": "2026-01-01T00:00:01Z"}).encode()], A),
        ([line("", 1)], ""),
    ],
)
def test_the_last_operation_that_holds_says_where(lines: list[bytes], host: str, tmp_path: Path) -> None:
    found, _ = filled(tmp_path / "d.db", *lines)
    assert found == {DID: host}


@given(st.lists(st.tuples(st.sampled_from([A, B, None]), st.integers(1, 59)), unique_by=lambda each: each[1]))
def test_the_order_of_lines_does_not_matter(operations: list[tuple[str | None, int]]) -> None:
    reads = [ReadLines(), ReadLines()]
    for read, ordered in zip(reads, (operations, sorted(operations, key=lambda each: each[1])), strict=True):
        for host, at in ordered:
            read.read(line(host, at))

    def last(read: ReadLines) -> Any:
        return max(read.changes, key=lambda each: each[2], default=None)

    assert last(reads[0]) == last(reads[1])


def test_what_is_wrong_in_a_log_is_counted_and_shown(tmp_path: Path) -> None:
    bad = [b"x" * 70_000, b"\xff\xfe", b"[" * 1000, line(A, 1, did="nobody"), line("ftp://x", 2), line(A, 3)]
    _, read = filled(tmp_path / "d.db", *bad)

    assert (read.lines, read.bad, read.refused, len(read.changes)) == (6, 4, 1, 1)
    assert [each.split(":")[0] for each in read.shown] == [f"line {number}" for number in (1, 2, 3, 4, 5)]


def test_pages_go_on_behind_a_did(tmp_path: Path) -> None:
    dids = [did_of(f"p{letter}") for letter in "abcdefghij"]

    async def read() -> list[list[str]]:
        async with SqliteDirectory(tmp_path / "d.db", read_only=False) as directory:
            hosts = [A, "", "http://plain.example", B] * 3
            await directory.add([(did, host, 1) for did, host in zip(dids, hosts, strict=False)], "7", 10, 0)
            pages, after = list[list[str]](), ""
            while page := await directory.page(after, 2):
                pages.append([each.did for each in page])
                after = page[-1].did
        async with SqliteDirectory(tmp_path / "d.db") as again:
            assert (again.cursor, again.operations) == ("7", 10)
        return pages

    assert asyncio.run(read()) == [[dids[0], dids[3]], [dids[4], dids[7]], [dids[8]]]


@pytest.mark.real
async def test_a_directory_is_filled_and_brought_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = [line(A, 1 + number % 50, did_of(f"n{chr(97 + number // 26)}{chr(97 + number % 26)}"), seq=number + 1)
           for number in range(30)]  # fmt: skip
    asked: list[str] = []

    async def export(request: web.BaseRequest) -> web.Response:
        asked.append(request.query["after"])
        if len(asked) == 2:
            return web.Response(status=503)
        after = int(request.query["after"])
        return web.Response(body=b"".join(log[after : after + 1000]))

    runner = web.ServerRunner(web.Server(export))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        words = ("repos", "directory", tmp_path / "d.db", "--plc", f"http://127.0.0.1:{runner.addresses[0][1]}/")
        assert await asyncio.to_thread(typed, *words, "--private", "--policy", "none") == 0
        assert "30 operations read" in capsys.readouterr().out
        log.append(line(None, 59, did_of("naa"), seq=31))
        assert await asyncio.to_thread(typed, *words, "--private", "--policy", "none") == 0
    finally:
        await runner.cleanup()
    assert "1 operations read" in capsys.readouterr().out
    assert asked == ["0", "30", "30"]
    async with SqliteDirectory(tmp_path / "d.db") as directory:
        assert await directory.find([did_of("naa"), did_of("nab")]) == {did_of("naa"): "", did_of("nab"): A}


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("https://PDS.example./", "https://pds.example"),
        ("https://pds.example:443", "https://pds.example"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        *(
            (bad, None)
            for bad in ("", "pds.example", "https://", "https://a/b", "https://u@a", "https://a?x", "ws://a")
        ),
        ("https://" + "a" * 700, None),
    ],
)
def test_endpoints(endpoint: str, host: str | None) -> None:
    if host is not None:
        assert host_at(endpoint, private=True) == host
        return
    with pytest.raises(EndpointError):
        host_at(endpoint, private=True)


def test_dids_handles_and_lists(tmp_path: Path) -> None:
    good = ("did:plc:z72i7hdynmk6r22z27h6tvur", "did:web:localhost%3A3000", "did:web:a.example")
    assert all(map(is_did, good))
    assert not any(map(is_did, ("", "did:", "did:plc:", "did:PLC:a", "did:plc:a:", "did:plc:a/b", "x" * 3000)))
    assert handle_of("@Alice.Example.org.") == "alice.example.org"
    for bad in ("alice", "a:80", "[::1]", "a b.example", ""):
        with pytest.raises(ValueError, match="expected a DID"):
            handle_of(bad)
    path = tmp_path / "list.txt"
    path.write_text(f"{DID} # gone\n\nhttps://a.example/\nB.example\n")
    listed = RepoLeaveOut.read(path, ("c.example",))
    assert listed.names(DID, "x")
    assert [listed.names("did:x", host) for host in (A, "b.example", "https://c.example", "d.example", "??")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    path.write_text("fine.example\nnot a host\n")
    with pytest.raises(OptionError, match=r"list\.txt line 2"):
        RepoLeaveOut.read(path)


@given(st.binary(max_size=200))
def test_no_body_makes_an_error_of_its_own(body: bytes) -> None:
    assert named_error(body) is None or isinstance(named_error(body), RepoCategory)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("crawl", "--redis-address", "nonsense:x"), "--redis-address: found 'nonsense:x', expected HOST:PORT"),
        (("crawl", "--zstd-level", "20"), "from 1 to 19"),
        (("crawl", "--segment-size", "2XB"), "unit XB"),
        (("crawl", "--max-repo-size", "1"), "from 1KB to 4GB"),
        (("crawl", "--clickhouse-address", "localhost:9000"), "localhost:8123"),
        (("replay", "--clickhouse-address", "localhost:9440"), "localhost:8443"),
        (("crawl", "--did-file", "a", "--directory", "b"), "give one of them"),
        (("crawl", "--directory", "nosuch.db"), "sanderling repos directory nosuch.db"),
        (("crawl", "--ledger", "mysql://x", "--did-file", "accounts.txt"), "expected postgresql://HOST/DATABASE"),
        (("replay", "--to", "ftp:x"), "expected parquet:FOLDER, jsonl:FILE or chdb:PATH"),
        (("replay",), "--clickhouse-address is missing"),
        (("replay", "--input-dir", "nosuch"), "nosuch"),
        (("inspect",), "SEGMENT is missing"),
        (("inspect", "nosuch.rca"), "nosuch.rca"),
        (("get", "nobody"), "expected a DID"),
        (("get", "did:key:x"), "found a did:key"),
        (("get", DID, "--out", "nosuch"), "nosuch"),
        (("crawl", "--skip-pds", "a b", "--did-file", "accounts.txt"), "--skip-pds: "),
    ],
)
def test_wrong_usage_is_said_in_a_sentence(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accounts.txt").write_text(f"{DID} {A}\n")
    if words == ("replay",) or words[:2] == ("replay", "--to") or "localhost:9440" in words:
        play(Net(Pds("host.example").add(1)), tmp_path / "data" / "rca")
    capsys.readouterr()
    code = typed("repos", *words)
    err = capsys.readouterr().err

    assert said in err
    assert err.count("\n") == 1
    assert code in (1, 2)


def test_a_segment_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"", b"REPOARCH", b"NOTANRCA" + bytes(100), b"REPOARCH\x02\0" + bytes(100), bytes(200)):
        path = tmp_path / "segment_0001.rca"
        path.write_bytes(content)
        assert typed("repos", "inspect", path) == 1
        assert "WRONG:" in capsys.readouterr().out
        assert typed("repos", "replay", "--input-dir", tmp_path, "--to", f"jsonl:{tmp_path / 'x'}") == 1
        assert "damaged:" in capsys.readouterr().err
        path.unlink()


def test_the_small_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    play(Net(Pds("host.example").add(5)), out)
    assert typed("repos", "inspect", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["repos"], found["records"], found["collections"]["app.bsky.feed.post"]) == (
        5, 6, {"repos": 3, "records": 6},
    )  # fmt: skip
    assert typed("repos", "status", "--output-dir", out) == 0
    assert "total_crawled: 5" in capsys.readouterr().out
    assert typed("repos", "reset", "--output-dir", out) == 0
    assert "1 segments" in capsys.readouterr().out
    assert not list(out.glob("segment*"))
    with pytest.raises(FolderError, match="no archive to resume"):
        play(Net(), out, resume=True, did_file=None)
    assert ReposOptions(out=out, did_file=tmp_path).workers == 50
