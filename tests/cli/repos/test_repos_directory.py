"""The directory, from a file and over the network, as a person fills it."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import called, here, run
from fleet_commands import served

from sanderling.repos.directory import SqliteDirectory

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def line(did: str, host: str, seq: int) -> str:
    operation = {"type": "plc_operation", "services": {"atproto_pds": {"endpoint": host}}}
    made = {
        "did": did,
        "cid": f"bafy{seq}",
        "createdAt": "2024-01-01T00:00:00.000Z",
        "seq": seq,
        "operation": operation,
    }
    return json.dumps(made)


EXPORT = "\n".join(
    [
        line("did:plc:a", "https://a.example", 1),
        "{}",
        line("did:plc:b", "http://b.example", 2),
        line("did:plc:a", "https://c.example/", 3),
    ]
).encode()


def dids(path: Path) -> dict[str, str]:
    directory = SqliteDirectory(path)
    try:
        return dict(directory.page("", 100))
    finally:
        directory.close()


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
def test_an_export_is_folded_in_however_it_is_packed(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    (tmp_path / "export").write_bytes(packed(EXPORT))

    done = called("repos", "directory", str(tmp_path / "export"), "--out", str(tmp_path))

    assert (done.code, done.err) == (0, "")
    assert dids(tmp_path / "directory.db") == {"did:plc:a": "https://c.example"}
    assert "3 operations read." in done.out
    assert "Left out: 1 lines that are no operation (1 not an operation)." in done.out
    assert "Left out: 1 endpoints that are no host (1 without TLS)." in done.out
    assert "    line 2: not an operation" in done.out
    assert f"The directory has 1 DID with a host: {tmp_path / 'directory.db'}" in done.out


def test_ones_own_hosts_are_taken_if_asked_for_and_as_json(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(EXPORT)
    where = f"sqlite:{tmp_path / 'other.db'}"

    done = called("repos", "directory", str(tmp_path / "export"), "--directory", where, "--private", "--json")

    found = json.loads(done.out)
    assert found == {
        "operations": 3,
        "bad": {"not an operation": 1},
        "refused": {},
        "cursor": "3",
        "dids": 2,
        "directory": where,
    }


@pytest.mark.parametrize("packed", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_of_a_file_that_is_cut_off_what_came_before_is_kept(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    lines = "\n".join(line(f"did:plc:{number}", "https://a.example", number) for number in range(30_000)).encode()
    (tmp_path / "export").write_bytes(packed(lines)[:-20])

    done = called("repos", "directory", str(tmp_path / "export"), "--out", str(tmp_path))

    assert done.code == 1
    assert "is cut off or damaged" in done.err
    assert "What came before is kept" in done.err
    assert len(dids(tmp_path / "directory.db")) == 100


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["NONE"], "cannot use NONE: No such file or directory"),
        (["NONE", "--directory", "chdb:here"], "--directory: chdb:here, expected sqlite:PATH"),
        ([], "expected one of these: a FILE, --plc URL or --relay URL"),
        (["--plc", "https://a.example", "--relay", "https://b.example"], "expected one of these"),
        (["--plc", "http://a.example"], "--plc: without TLS"),
        (["--relay", "relay.example"], "--relay: not a URL"),
        (["--relay", "https://relay.example", "--contact", "me"], "--contact: contact is 'me'"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    missing = str(tmp_path / "none")

    done = called(
        *("repos", "directory"),
        *(missing if word == "NONE" else word for word in arguments),
        "--out",
        str(tmp_path),
    )

    assert (done.code, done.out) == (2, "")
    assert says.replace("NONE", missing) in done.err


def test_the_log_and_a_relay_are_followed_over_the_network_and_the_crawl_finds_what_they_gave(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(hosts=3, repos=5) as server:
            fleet = server.fleet
            update = ("repos", "directory", "--private", "--out", str(tmp_path / "out"))
            log = await here(*update, "--plc", fleet.plc.origin, "--json")
            again = await here(*update, "--plc", fleet.plc.origin, "--json")
            relay = await here(*update, "--relay", fleet.relay.origin)
            done = await here("repos", "crawl", "--private", "--out", str(tmp_path / "out"), "--json")

            assert (log.code, again.code, relay.code, done.code) == (0, 0, 0, 0), (log, again, relay, done)
            assert json.loads(log.out)["dids"] == 5
            assert json.loads(again.out)["operations"] == 0
            assert "3 of 3 hosts listed 5 repos, 0 new." in relay.out
            assert dids(tmp_path / "out" / "directory.db") == dict(fleet.directory())
            assert json.loads(done.out)["archived"] == 5

    run(main)


def test_a_log_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(hosts=1, repos=1) as server:
            host = server.fleet.pds[0].origin
            done = await here(*("repos", "directory", "--private", "--out", str(tmp_path), "--plc", host))

        assert done.code == 1
        assert "CONTENT_NOT_FOUND 404" in done.err
        assert "What came before is kept, 0 DIDs in all; run the same again to go on." in done.err

    run(main)
