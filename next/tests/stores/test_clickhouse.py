"""ClickHouse in this process, and a server over HTTP that is the same engine behind a few lines."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.clickhouse import HttpClickhouse

from sanderling.files import Exit, FolderError
from sanderling.options import OptionError
from sanderling.stores.clickhouse import Clickhouse, ClickhouseAway

pytestmark = pytest.mark.real
TABLE = "CREATE TABLE t (id Int64, data String, at DateTime64(6)) ENGINE = ReplacingMergeTree(at) ORDER BY id"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClickhouse]:
    with HttpClickhouse(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_rows_come_back_and_the_later_replaces(server: HttpClickhouse) -> None:
    async def act() -> None:
        async with Clickhouse(server.address) as database:
            await database.execute(TABLE)
            await database.insert("t", {"id": [1, 2], "data": [b"\xff", b"b"], "at": [5, 5]})
            await database.insert("t", {"id": [2], "data": ["later"], "at": [6]})
            query = "SELECT id, hex(data) FROM t FINAL WHERE id > {after:Int64} ORDER BY id"
            assert await database.rows(query, after=0) == [(1, "FF"), (2, b"later".hex().upper())]
            with pytest.raises(FolderError) as raised:
                await database.insert("t", {"nothing": [1]})
            assert raised.value.code is Exit.WRONG
            server.is_down = True
            with pytest.raises(ClickhouseAway):
                await database.rows("SELECT 1")
            server.is_down = False
            assert await database.rows("SELECT 1") == [(1,)]

    asyncio.run(act())


@pytest.mark.parametrize(
    ("address", "error", "code"),
    [
        ("127.0.0.1:9", FolderError, Exit.LATER),
        ("chdb:/nowhere/at/all", FolderError, Exit.WRONG),
        ("localhost:9000", OptionError, None),
        ("clickhouse://user:secret@127.0.0.1:port/", OptionError, None),
        ("http://127.0.0.1:8123", OptionError, None),
    ],
)
def test_who_is_away_or_wrong(address: str, error: type[Exception], code: Exit | None) -> None:
    async def act() -> None:
        async with Clickhouse(address):
            pass

    with pytest.raises(error) as raised:
        asyncio.run(act())
    assert getattr(raised.value, "code", None) == code
    assert "secret" not in str(raised.value)


def test_the_engine_opens_one_folder(server: HttpClickhouse, tmp_path: Path) -> None:
    async def act() -> None:
        async with Clickhouse(f"chdb:{tmp_path}/other"):
            pass

    with pytest.raises(FolderError) as raised:
        asyncio.run(act())
    assert raised.value.code is Exit.LATER
