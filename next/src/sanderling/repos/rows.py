"""What a reader process does in a replay: it reads some repos of a segment, and makes rows of their records."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from sanderling.formats.rca import Block, RcaError, RcaReader
from sanderling.formats.repo import RepoCollection
from sanderling.readers.reader import Work
from sanderling.repos.archive import lines_of

RowFormat = Literal["arrow", "parquet", "jsonl"]
_U32 = struct.Struct("<I")


class RowsWork(msgspec.Struct, frozen=True):
    """Which rows are made."""

    format: RowFormat
    collections: frozenset[str] = frozenset()  # none: all


class RowsWanted(msgspec.Struct, frozen=True, array_like=True):
    """Repos of a segment."""

    path: str
    offsets: tuple[int, ...]
    gone: dict[int, int] = {}  # by offset: repos of an earlier time than this are not wanted
    hosts: frozenset[str] = frozenset()  # nor those of these hosts


class MadeRows(msgspec.Struct, frozen=True, array_like=True):
    """Rows in the format that was wanted, of which repos they are, and which repos could not be read."""

    content: bytes = b""
    records: int = 0
    repos: tuple[tuple[str, int], ...] = ()  # DID, and when it was archived
    faults: tuple[str, ...] = ()


class RowLines:
    """Rows as lines of JSON."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, block: Block, is_wanted: Callable[[str], bool] | None) -> None:
        """Take the records of a repo. Raises RcaError, and has none of them then."""
        self._lines += list(lines_of(block, is_wanted))

    def made(self) -> tuple[bytes, int]:
        """The rows, and how many there are."""
        return b"".join([line + b"\n" for line in self._lines]), len(self._lines)


class RowColumns:
    """Rows as the columns of repo_records, in an Arrow stream or a Parquet file."""

    def __init__(self, kind: RowFormat) -> None:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415

        self._arrow, self._parquet, self._kind = pa, pq, kind
        self._keys: list[bytes] = []
        self._jsons: list[bytes] = []
        self._runs: list[tuple[str, str, int, int]] = []  # repo, collection, time, records

    def add(self, block: Block, is_wanted: Callable[[str], bool] | None) -> None:
        """Take the records of a repo. Raises RcaError, and has none of them then."""
        records, runs = len(self._keys), len(self._runs)
        try:
            for each in block.contents(is_wanted):
                _split(block, each, self._keys, self._jsons)
                self._runs.append((block.did, each.name, block.crawled_at, each.records))
        except RcaError:
            del self._keys[records:], self._jsons[records:], self._runs[runs:]
            raise

    def made(self) -> tuple[bytes, int]:
        """The rows, and how many there are."""
        pa = self._arrow
        numbers = pa.array([number for number, run in enumerate(self._runs) for _ in range(run[3])], pa.int32())

        def repeated(place: int, type_: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
            return pa.array([run[place] for run in self._runs], type_).take(numbers)

        times = repeated(2, pa.int64())
        table = pa.table(
            {
                "repo": repeated(0, pa.string()),
                "collection": repeated(1, pa.string()),
                "rkey": pa.array(self._keys, pa.binary()).cast(pa.string()),
                "operation": pa.repeat(pa.scalar("create"), len(self._keys)),
                "record_json": pa.array(self._jsons, pa.large_binary()).cast(pa.large_string()),
                "created_at": times.cast(pa.timestamp("us", "UTC")),
                "time_us": times,
            }
        )
        sink = pa.BufferOutputStream()
        if self._kind == "parquet":
            names = ["repo", "collection"]
            self._parquet.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=names)
        else:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
        return sink.getvalue().to_pybytes(), len(self._keys)


def open_work(argument: bytes) -> Work:
    """What a reader is told to open."""
    work = msgspec.msgpack.decode(argument, type=RowsWork)
    is_wanted = work.collections.__contains__ if work.collections else None

    def read(head: bytes, _body: bytes) -> bytes:
        wanted = msgspec.msgpack.decode(head, type=RowsWanted)
        rows = RowLines() if work.format == "jsonl" else RowColumns(work.format)
        repos: list[tuple[str, int]] = []
        faults: list[str] = []
        with RcaReader(Path(wanted.path)) as reader:
            for offset in wanted.offsets:
                try:
                    block = reader.block_at(offset)
                    is_left_out = block.pds.rpartition("//")[2].rstrip("/") in wanted.hosts
                    if block.crawled_at > wanted.gone.get(offset, -1) and not is_left_out:
                        rows.add(block, is_wanted)
                        repos.append((block.did, block.crawled_at))
                except RcaError as error:
                    faults.append(str(error))
        return msgspec.msgpack.encode(MadeRows(*rows.made(), tuple(repos), tuple(faults)))

    return read


def _split(block: Block, collection: RepoCollection, keys: list[bytes], jsons: list[bytes]) -> None:
    """The keys and records of a collection. Raises RcaError."""
    data, at, end, size_at = collection.data, 0, len(collection.data), _U32.unpack_from
    before = len(keys)
    try:
        while at < end:
            start = at + 2
            middle = start + (data[at] | data[at + 1] << 8)
            (size,) = size_at(data, middle)
            at = middle + 4 + size
            keys.append(data[start:middle])
            jsons.append(data[middle + 4 : at])
    except (struct.error, IndexError):
        at = -1
    if at != end or len(keys) - before != collection.records:
        raise RcaError(block.path, block.offset, f"{collection.name[:80]!r} holds not its {collection.records} records")
