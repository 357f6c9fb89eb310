"""Which target `--to` means."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sanderling.extras import SCHEMES, load, missing_for
from sanderling.records.files import CsvFile, JsonLinesFile, StreamTarget
from sanderling.records.parts import (
    FolderOfParts,
    JsonLinesParts,
    ObjectsOfParts,
    ParquetParts,
    PartFormat,
    PartsTarget,
)
from sanderling.records.sqlite_table import SqliteTables
from sanderling.records.tables import TableTarget
from sanderling.records.target import ExportTarget, TargetError
from sanderling.stores.objects import open_objects

SUFFIXES = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet", "sqlite": ".sqlite", "duckdb": ".duckdb"}
EXPECTED = (
    f"expected {', '.join(SUFFIXES)}, a file that ends so, KIND:PATH, postgresql://user@host/database or "
    "s3://bucket/prefix"
)
STREAM = "-"
TABLE = "records"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Where records shall go."""

    to: str
    table: str = TABLE
    columns: Sequence[str] = ()  # that a record may have, as far as that is known


def file_of(to: str, name: str) -> tuple[str, str]:
    """The kind of a file and its path, which is "-" for standard output; of what is no file, its scheme and nothing.

    A kind alone is a file that is called like the folder that is exported.
    """
    kind, _, path = to.partition(":")
    if to == STREAM:
        return "jsonl", STREAM
    if kind in SUFFIXES:
        return kind, path or f"{name}{SUFFIXES[kind]}"
    found = Path(to).suffix.lower().removeprefix(".")
    return (found, to) if found in SUFFIXES and "://" not in to else (kind.lower(), "")


def open_target(wanted: TargetOptions, name: str) -> ExportTarget:
    """The target, not yet opened. Raises TargetError if there is no such kind, and MissingExtraError."""
    kind, path = file_of(wanted.to, name)
    if message := missing_for(kind if path else wanted.to):
        raise TargetError(message)
    if kind in ("postgresql", "postgres"):
        tables = load("sanderling.records.postgres_table", "PostgreSQL").PostgresTables(wanted.to)
        return TableTarget(tables, wanted.table)
    if SCHEMES.get(kind, ("", ""))[0] == "obstore":
        return _objects(wanted.to)
    if not path:
        raise TargetError(f"--to {kind[:20]!r} is unknown; {EXPECTED}")
    if path == STREAM:
        if kind not in ("jsonl", "csv"):
            raise TargetError(f"{kind} cannot be printed; expected --to FILE, or --to jsonl:- or csv:-")
        return StreamTarget(sys.stdout.buffer, csv=kind == "csv", known=wanted.columns)
    return _on_disk(kind, Path(path), wanted)


def _on_disk(kind: str, path: Path, wanted: TargetOptions) -> ExportTarget:
    match kind:
        case "jsonl":
            return JsonLinesFile(path)
        case "csv":
            return CsvFile(path, wanted.columns)
        case "parquet":
            return PartsTarget(FolderOfParts(path), ParquetParts())
        case "sqlite":
            return TableTarget(SqliteTables(path), wanted.table)
    return TableTarget(load("sanderling.records.duckdb_table", "DuckDB").DuckdbTables(path), wanted.table)


def _objects(url: str) -> ExportTarget:
    """The parts at s3://bucket/prefix, or s3+http://key:secret@host:9000/bucket/prefix; ?format=jsonl or parquet."""
    parts = urlsplit(url)
    path = [step for step in parts.path.split("/") if step]
    if parts.scheme == "s3":
        bucket, server = parts.netloc, "s3:"
    else:
        bucket, server = path.pop(0) if path else "", f"{parts.scheme}://{parts.netloc}"
    if not bucket or "@" in bucket:
        raise TargetError(
            "the URL names no bucket; expected s3://bucket/prefix or s3+http://key:secret@host/bucket/prefix"
        )
    formats: Mapping[str, type[PartFormat]] = {"parquet": ParquetParts, "jsonl": JsonLinesParts}
    wanted = parse_qs(parts.query).get("format", ["parquet"])[-1]
    if wanted not in formats:
        raise TargetError(f"format={wanted[:20]!r} is unknown; expected {' or '.join(formats)}")
    prefix = "/".join(path)
    place = f"s3://{'/'.join((bucket, *path))}"
    return PartsTarget(ObjectsOfParts(partial(open_objects, server), bucket, prefix, place), formats[wanted]())
