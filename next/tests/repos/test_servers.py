"""Progress in a real Redis, a directory and rows in a real ClickHouse, a ledger in a real PostgreSQL."""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kit.clickhouse import HttpClickhouse
from kit.postgres import new_name, shared_postgres
from repos.pds import Hosts, archive, served

from sanderling.cli.context import Context
from sanderling.cli.main import main
from sanderling.files import Exit
from sanderling.repos import system

pytestmark = pytest.mark.real


class RedisServer:
    """A Redis of our own, that can be away."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.address = f"127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        self.process = subprocess.Popen([*words, "--dir", str(self.folder)], stdout=subprocess.DEVNULL)
        while "PONG" not in self.ask("PING"):
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def ask(self, *words: str) -> list[str]:
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.stop()


def typed(*words: object) -> int:
    return main(Context(tuple(map(str, words)), dict(os.environ), program="sanderling"))


async def test_redis_says_what_is_so_through_kills(redis: RedisServer, tmp_path: Path) -> None:
    hosts, out, random = Hosts(3, 30, gone=4), tmp_path / "out", Random(1)
    async with served(hosts):
        lives = [
            await archive(hosts, out, seconds=random.uniform(0.05, 0.2), redis_address=redis.address) for _ in "four"
        ]
        assert None in lives  # a fast machine may have ended before the last of them
        code = await archive(hosts, out, redis_address=redis.address)

    stats = redis.ask("HGETALL", "crawler:stats")
    found = dict(zip(stats[::2], stats[1::2], strict=True))
    size = sum(int.from_bytes(path.read_bytes()[24:32], "little") - 64 for path in out.glob("*.rca"))
    assert code is Exit.DONE
    assert found == {"total_crawled": "78", "bytes_written": str(size)}
    assert set(redis.ask("SMEMBERS", "crawler:completed")) == set(hosts.accounts)
    assert len(redis.ask("SMEMBERS", "crawler:failed:takendown")) == 12
    assert redis.ask("EXISTS", "crawler:cursor") == ["0"]
    assert redis.ask("GET", "crawler:segment_num") == [str(len(list(out.glob("*.rca"))))]
    assert (await system.verify(out)).faults == []


async def test_a_new_archive_leaves_out_what_redis_knows(redis: RedisServer, tmp_path: Path) -> None:
    hosts = Hosts(1, 10)
    redis.ask("SADD", "crawler:completed", *hosts.accounts[:7])
    async with served(hosts):
        await archive(hosts, tmp_path / "out", redis_address=redis.address)

    assert hosts.requests == 3


async def test_while_redis_is_away_nothing_is_requested(redis: RedisServer, tmp_path: Path) -> None:
    hosts, out = Hosts(1, 60), tmp_path / "out"
    async with served(hosts):
        work = asyncio.create_task(archive(hosts, out, redis_address=redis.address, default_pds_rps=20.0))
        while hosts.requests < 5:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(redis.stop)
        await asyncio.sleep(2)
        before = hosts.requests
        await asyncio.sleep(1)
        assert hosts.requests == before
        await asyncio.to_thread(redis.start)
        assert await work is Exit.DONE
    assert redis.ask("SCARD", "crawler:completed") == ["60"]


def test_status_and_reset_need_no_folder(redis: RedisServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("repos", "status", "--redis-address", redis.address) == 0
    assert capsys.readouterr().out == "No crawl progress found.\n"
    redis.ask("HSET", "crawler:stats", "total_crawled", "7", "bytes_written", "900")
    redis.ask("SADD", "crawler:failed:timeout", "did:plc:x")
    redis.ask("SET", "crawler:cursor", "did:plc:x")
    assert typed("repos", "status", "--redis-address", redis.address) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "bytes_written: 900", "completed_count: 0", "cursor: did:plc:x", "failed_timeout: 1", "total_crawled: 7",
    ]  # fmt: skip
    assert typed("repos", "reset", "--redis-address", redis.address, "--output-dir", "nosuch") == 0
    assert redis.ask("KEYS", "*") == [""]


def test_a_redis_that_is_away_or_foreign_is_said(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = tmp_path / "accounts.txt"
    accounts.write_text("did:plc:aaaa https://host.example\n")
    words = ("repos", "crawl", "--did-file", accounts, "--out", tmp_path / "out", "--redis-address")
    redis.ask("SET", "crawler:completed", "x")
    assert typed(*words, redis.address) == 2
    assert "crawler:completed in Redis" in capsys.readouterr().err
    assert typed(*words, "127.0.0.1:1") == 75
    assert typed("repos", "status", "--redis-address", "127.0.0.1:1") == 75
    assert not (tmp_path / "out").exists()


DIDS = [f"did:plc:{letter * 24}" for letter in "abcdefg"]


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[HttpClickhouse]:
    with HttpClickhouse(tmp_path / "clickhouse") as server:
        yield server


async def test_clickhouse_is_directory_and_target(
    clickhouse: HttpClickhouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts, out = Hosts(2, 12, gone=2), tmp_path / "out"
    words = ("repos", "replay", "--input-dir", out, "--clickhouse-address", clickhouse.address, "--readers", "0")
    crawl = ("repos", "crawl", "--out", out, "--clickhouse-address", clickhouse.address)
    assert await asyncio.to_thread(typed, *crawl) == 2
    assert "no table plc_did_state" in capsys.readouterr().err
    clickhouse.rows(
        "CREATE TABLE plc_did_state (did String, handle String, pds String, created_at DateTime64(6), indexed_at "
        "DateTime64(6) DEFAULT now64(6), time_us Int64) ENGINE = ReplacingMergeTree(time_us) ORDER BY did"
    )
    async with served(hosts):
        rows = [(did, hosts.url(did), 1) for did in hosts.accounts]
        rows += [(DIDS[0], "http://user@evil", 1), (DIDS[1], hosts.url(hosts.accounts[0]), 1), (DIDS[1], "", 2)]
        values = ", ".join(f"('{did}', '{url}', {at})" for did, url, at in rows)
        clickhouse.rows(f"INSERT INTO plc_did_state (did, pds, time_us) VALUES {values}")
        given: dict[str, Any] = {"clickhouse_address": clickhouse.address, "did_file": None, "page_size": 5}
        assert await archive(hosts, out, **given) is Exit.DONE
        assert hosts.requests == 24

        assert await asyncio.to_thread(typed, *words) == 0
        count = "SELECT count(), countDistinct(repo) FROM repo_records FINAL"
        assert clickhouse.rows(count) == [["60", "20"]]
        await asyncio.to_thread(typed, *words)
        assert clickhouse.rows(count) == [["60", "20"]]

        gone, changed = hosts.accounts[5], hosts.accounts[6]
        hosts.gone.add(gone)
        hosts.changed.add(changed)
        assert await archive(hosts, out, **given, refresh=True) is Exit.DONE
    await asyncio.to_thread(typed, *words)
    assert clickhouse.rows(count) == [["55", "19"]]
    assert clickhouse.rows(f"SELECT rkey FROM repo_records FINAL WHERE repo = '{changed}'") == [["changed"]]
    export = f"clickhouse://{clickhouse.address.partition('//')[2] or clickhouse.address}"
    assert await asyncio.to_thread(typed, "forget", out, changed, "--export", export) == 0
    assert clickhouse.rows(count) == [["54", "18"]]
    clickhouse.rows("DROP TABLE repo_records")
    clickhouse.rows("CREATE TABLE repo_records (repo String, other String) ENGINE = MergeTree ORDER BY repo")
    capsys.readouterr()
    assert await asyncio.to_thread(typed, *words) == 2
    assert "lacks collection, created_at" in capsys.readouterr().err


async def test_two_processes_share_a_ledger_in_postgresql(tmp_path: Path) -> None:
    hosts, name = Hosts(4, 25), new_name()
    async with served(hosts):
        given: dict[str, Any] = {"ledger": shared_postgres().url, "name": name}
        codes = await asyncio.gather(*(archive(hosts, tmp_path / each, **given) for each in ("one", "two")))
        assert await archive(hosts, tmp_path / "one", **given) is Exit.DONE
    assert set(codes) <= {Exit.DONE, Exit.WAITING}
    counts = []
    for each in ("one", "two"):
        with system.records(tmp_path / each) as rows:
            counts.append({entry.key for entry in rows.entries()})
    assert hosts.requests == 100
    assert not counts[0] & counts[1]
