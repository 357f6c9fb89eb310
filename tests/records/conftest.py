"""A place for a target of each kind."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from target_places import Place, drop, in_bucket, in_schema, on_disk

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
