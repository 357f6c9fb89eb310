"""Targets of every kind, and how each is read back; tests import the fixtures."""

import asyncio
import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import duckdb
import obstore
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # the same
import pytest
from kept_records import from_cells, from_jsonl, read_csv
from services.s3 import S3

from sanderling.records.columns import StoredColumn, ValueKind
from sanderling.records.open_target import TargetOptions, open_target
from sanderling.records.target import ExportTarget


@dataclass
class Place:
    """Where a target is; `read` gives what it holds."""

    kind: str
    to: str
    read: Callable[[], list[Any]]

    def target(self) -> ExportTarget:
        return open_target(TargetOptions(self.to), "x")

    def columns(self) -> tuple[StoredColumn, ...]:
        with closing(self.target()) as target:
            mark = target.open()
        return mark.columns if mark else ()


def on_disk(kind: str, path: Path) -> Place:
    def tables(connect: Callable[[], Any]) -> list[Any]:
        columns = made.columns()
        if not columns:
            return []
        with closing(connect()) as db:
            found = db.execute("SELECT * FROM records ORDER BY rowid")
            names = [each[0] for each in found.description]
            return [from_cells(dict(zip(names, row, strict=True)), columns) for row in found.fetchall()]

    reads: dict[str, Callable[[], list[Any]]] = {
        "jsonl": lambda: from_jsonl(path.read_bytes()),
        "csv": lambda: read_csv(path.read_bytes().decode()),
        "parquet": lambda: _rows_of_parquet([each.read_bytes() for each in sorted(path.glob("part-*.parquet"))]),
        "sqlite": lambda: tables(lambda: sqlite3.connect(path)),
        "duckdb": lambda: tables(lambda: duckdb.connect(str(path))),
    }
    made = Place(kind, f"{kind}:{path}", reads[kind])
    return made


def _rows_of_parquet(parts: list[bytes]) -> list[Any]:
    rows: list[Any] = []
    for part in parts:
        table = pq.read_table(io.BytesIO(part))
        columns = [_column(each) for each in table.schema]
        rows += [from_cells(row, columns) for row in table.to_pylist()]
    return rows


def _column(field: Any) -> StoredColumn:  # noqa: ANN401 - of pyarrow
    return StoredColumn(field.metadata[b"field"].decode(), field.name, ValueKind(field.metadata[b"kind"].decode()))


def in_schema(url: str, schema: str) -> Place:
    async def rows() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            found = await connection.fetch(f"SELECT * FROM {schema}.records ORDER BY ctid")  # noqa: S608 - ours
        finally:
            await connection.close()
        return [dict(row) for row in found]

    def read() -> list[Any]:
        columns = made.columns()
        return [from_cells(row, columns) for row in asyncio.run(rows())] if columns else []

    made = Place("postgres", f"{url}?schema={schema}", read)
    return made


async def drop(url: str, schemas: list[str]) -> None:
    connection = await asyncpg.connect(url)
    try:
        for schema in schemas:
            await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    finally:
        await connection.close()


def in_bucket(s3: S3, prefix: str, kind: str) -> Place:
    made_as = "jsonl" if kind == "s3-jsonl" else "parquet"
    server = s3.endpoint.replace("http://", f"s3+http://{s3.access_key_id}:{s3.secret_access_key}@")

    def read() -> list[Any]:
        store = s3.store(prefix)
        names = sorted(str(each["path"]) for page in obstore.list(store) for each in page if "part-" in each["path"])
        bodies = [bytes(obstore.get(store, name).bytes()) for name in names]
        return [row for body in bodies for row in from_jsonl(body)] if made_as == "jsonl" else _rows_of_parquet(bodies)

    return Place(kind, f"{server}/{s3.bucket}/{prefix}?format={made_as}", read)


KINDS = ("jsonl", "csv", "parquet", "sqlite", "duckdb", "postgres", "s3", "s3-jsonl")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def make_place(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], Place]]:
    """Makes a new place each time it is called."""
    schemas: list[str] = []

    def make() -> Place:
        name = f"t{uuid4().hex}"
        if kind == "postgres":
            schemas.append(name)
            return in_schema(request.getfixturevalue("postgres"), name)
        if kind.startswith("s3"):
            return in_bucket(request.getfixturevalue("s3"), name, kind)
        return on_disk(kind, tmp_path / name)

    yield make
    if schemas:
        asyncio.run(drop(request.getfixturevalue("postgres"), schemas))


@pytest.fixture
def place(make_place: Callable[[], Place]) -> Place:
    return make_place()
