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

EXPECTED = "expected jsonl, csv, parquet, sqlite, duckdb, postgresql://user@host/database or s3://bucket/prefix"
SUFFIXES = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet", "sqlite": ".sqlite", "duckdb": ".duckdb"}
STREAM = "-"
TABLE = "records"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Where records shall go."""

    to: str
    out: str | None = None
    table: str = TABLE
    columns: Sequence[str] = ()  # that a record may have, as far as that is known

    @property
    def kind(self) -> str:
        """What kind of target it is: the scheme of a URL, or the word itself."""
        return self.to.partition(":")[0].lower()

    def file(self, name: str) -> Path:
        """The file, or folder, on this machine; by default it is called like the folder that is exported."""
        return Path(self.out) if self.out else Path(f"{name}{SUFFIXES[self.kind]}")


def open_target(wanted: TargetOptions, name: str) -> ExportTarget:
    """The target, not yet opened. Raises TargetError if there is no such kind, and MissingExtraError."""
    if message := missing_for(wanted.to):
        raise TargetError(message)
    if wanted.kind in ("postgresql", "postgres"):
        _check_no_out(wanted)
        tables = load("sanderling.records.postgres_table", "PostgreSQL").PostgresTables(wanted.to)
        return TableTarget(tables, wanted.table)
    if SCHEMES.get(wanted.kind, ("", ""))[0] == "obstore":
        _check_no_out(wanted)
        return _objects(wanted.to)
    if wanted.to not in SUFFIXES:
        raise TargetError(f"--to {wanted.kind[:20]!r} is unknown; {EXPECTED}")
    if wanted.out == STREAM:
        if wanted.kind not in ("jsonl", "csv"):
            raise TargetError(f"--to {wanted.kind} cannot be printed; expected --out FILE, or --to jsonl or csv")
        return StreamTarget(sys.stdout.buffer, csv=wanted.kind == "csv", known=wanted.columns)
    return _on_disk(wanted, wanted.file(name))


def _on_disk(wanted: TargetOptions, path: Path) -> ExportTarget:
    match wanted.kind:
        case "jsonl":
            return JsonLinesFile(path)
        case "csv":
            return CsvFile(path, wanted.columns)
        case "parquet":
            return PartsTarget(FolderOfParts(path), ParquetParts())
        case "sqlite":
            return TableTarget(SqliteTables(path), wanted.table)
    return TableTarget(load("sanderling.records.duckdb_table", "DuckDB").DuckdbTables(path), wanted.table)


def _check_no_out(wanted: TargetOptions) -> None:
    if wanted.out is not None:
        raise TargetError("--out is for files; the URL says where the records go, and --table which table of it")


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
