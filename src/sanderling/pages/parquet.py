"""pages.jsonl as Parquet: the same rows in columns, for whoever asks questions of millions of them.

Derived, and the same for the same rows; written beside the old files and then renamed. pyarrow is an extra, loaded by
whoever writes: `write_in_child` leaves it to a process of its own, which grows to some 200 MB and gives them back.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from sanderling.crawls.folder import FAILED
from sanderling.extras import have, load, missing
from sanderling.ids import HostError, host_of
from sanderling.pages.output import PAGES
from sanderling.stores.durable import FolderError, plainly, sync_folder

# A batch is what is in memory at once, and a row group: as many rows, or as many bytes of JSON, whichever comes first.
BATCH, BATCH_BYTES = 5_000, 32 * 2**20
TEMPORARY = ".parquet.tmp"
NULL = msgspec.Raw(b"null")


class ParquetRow(msgspec.Struct):
    """The columns, in their order; what a row does not have is null."""

    id: int
    url: str
    host: str | None = None  # from the URL, where the row does not say
    outcome: str | None = None
    status: int | None = None
    detail: str | None = None
    depth: int | None = None
    fetched_at: datetime | None = None
    seconds: float | None = None
    bytes: int | None = None
    content_type: str | None = None
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    moved_to: str | None = None
    title: str | None = None
    description: str | None = None
    language: str | None = None
    text: str | None = None
    links: list[str] | None = None
    metadata: dict[str, str] | None = None
    json: msgspec.Raw = NULL  # the document itself in a row, its text in Parquet
    body_path: str | None = None
    sha256: str | None = None
    warc_file: str | None = None
    warc_offset: int | None = None
    warc_length: int | None = None
    warc_type: str | None = None
    warc_digest: str | None = None
    rendered: dict[str, int] | None = None
    screenshot: str | None = None
    requests: int | None = None  # of what was not fetched: how many were sent for it
    fault: str | None = None  # the same: whose it is


_decode = msgspec.json.Decoder(ParquetRow).decode


def have_parquet() -> bool:
    """Whether pyarrow is installed."""
    return have("pyarrow")


def schema() -> Any:  # noqa: ANN401 - pyarrow has no types
    """The columns of every file."""
    pa = load("pyarrow", "Parquet")  # here: an extra, and slow to load

    special = {
        "fetched_at": pa.timestamp("us", tz="UTC"),
        "links": pa.list_(pa.string()),
        "metadata": pa.map_(pa.string(), pa.string()),
        "rendered": pa.map_(pa.string(), pa.int64()),
    }
    whole = ("id", "status", "depth", "bytes", "requests", "warc_offset", "warc_length")
    kinds = special | dict.fromkeys(whole, pa.int64()) | {"seconds": pa.float64()}
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in ParquetRow.__struct_fields__])


def write_parquet(folder: Path, rows_per_file: int = 100_000) -> list[Path]:
    """Write pages-00001.parquet and on from pages.jsonl, and failed.parquet from failed.jsonl, in bounded memory."""
    with plainly(folder):
        for leftover in folder.glob(f"*{TEMPORARY}"):
            leftover.unlink()
        written = _write_all(folder / PAGES, "pages-{:05}", rows_per_file)
        if (folder / FAILED).exists():
            written += _write_all(folder / FAILED, "failed", sys.maxsize)
        for path in written:
            path.with_suffix(TEMPORARY).replace(path)
        for path in set(files(folder)) - set(written):
            path.unlink()
        sync_folder(folder)
    return written


def write_in_child(folder: Path) -> None:
    """Write the files from a process of its own."""
    if not have_parquet():
        raise FolderError(missing("pyarrow", "Parquet"))
    child = [sys.executable, "-P", "-m", __spec__.name, str(folder)]
    done = subprocess.run(child, check=False, capture_output=True, text=True)  # noqa: S603 - ourselves
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise FolderError(f"Parquet could not be written to {folder}: {said[-1]}")


def files(folder: Path) -> list[Path]:
    """The Parquet files of a crawl, in order."""
    return sorted([*folder.glob("pages-[0-9]*.parquet"), *folder.glob("failed.parquet")])


def remove(folder: Path) -> None:
    """Take away what no longer says what the rows say."""
    for path in files(folder):
        path.unlink()


def _write_all(source: Path, name: str, rows_per_file: int) -> list[Path]:
    """Write temporary files; the names they are meant to have. No rows make one file without any."""
    lines = enumerate(_lines(source), 1)
    written: list[Path] = []
    while (first := next(lines, None)) is not None or not written:
        path = source.with_name(f"{name.format(len(written) + 1)}.parquet")
        rest = islice(lines, rows_per_file - 1)
        _write(path.with_suffix(TEMPORARY), _batches(source, chain([first] if first else [], rest)))
        written.append(path)
    return written


def _lines(source: Path) -> Iterator[bytes]:
    """The whole lines; behind them may stand what a crawl is just writing."""
    with source.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def _batches(source: Path, lines: Iterable[tuple[int, bytes]]) -> Iterator[list[ParquetRow]]:
    batch: list[ParquetRow] = []
    size = 0
    for number, line in lines:
        try:
            batch.append(_decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FolderError(f"{source} line {number}: {error}") from None
        size += len(line)
        if len(batch) == BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write(path: Path, batches: Iterable[list[ParquetRow]]) -> None:
    pa, pq = load("pyarrow", "Parquet"), load("pyarrow.parquet", "Parquet")
    columns = schema()
    with path.open("wb") as file:
        with pq.ParquetWriter(file, columns, compression="zstd") as writer:
            for batch in batches:
                values = [pa.array(_column(batch, each.name), each.type) for each in columns]
                writer.write_table(pa.Table.from_arrays(values, schema=columns))
        file.flush()
        os.fsync(file.fileno())


def _column(batch: list[ParquetRow], name: str) -> list[Any]:
    match name:
        case "host":
            return [row.host or _host(row.url) for row in batch]
        case "metadata" | "rendered":
            maps = (getattr(row, name) for row in batch)
            return [None if each is None else list(each.items()) for each in maps]
        case "json":
            return [None if row.json == NULL else bytes(row.json).decode() for row in batch]
    return [getattr(row, name) for row in batch]


def _host(url: str) -> str | None:
    try:
        return host_of(url)
    except HostError:
        return None


if __name__ == "__main__":
    try:
        write_parquet(Path(sys.argv[1]))
    except FolderError as told:
        sys.exit(str(told))
