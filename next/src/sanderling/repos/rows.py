"""What a reader process does in a replay: it reads some repos of a segment, and makes rows of their records."""

import struct
from collections.abc import Callable, Sequence
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
    """Rows in the format that was wanted, and of which repos they are."""

    content: bytes = b""
    records: int = 0
    repos: tuple[tuple[str, int], ...] = ()  # DID, and when it was archived
    fault: str = ""


def open_work(argument: bytes) -> Work:
    """What a reader is told to open."""
    work = msgspec.msgpack.decode(argument, type=RowsWork)
    is_wanted = work.collections.__contains__ if work.collections else None
    make = _lines if work.format == "jsonl" else _table(work.format)

    def read(head: bytes, _body: bytes) -> bytes:
        wanted = msgspec.msgpack.decode(head, type=RowsWanted)
        try:
            with RcaReader(Path(wanted.path)) as reader:
                blocks = [reader.block_at(offset) for offset in wanted.offsets]
            blocks = [
                each
                for each in blocks
                if each.crawled_at > wanted.gone.get(each.offset, -1)
                and each.pds.rpartition("//")[2].rstrip("/") not in wanted.hosts
            ]
            content, records = make(blocks, is_wanted)
        except RcaError as error:
            return msgspec.msgpack.encode(MadeRows(fault=str(error)))
        repos = tuple((each.did, each.crawled_at) for each in blocks)
        return msgspec.msgpack.encode(MadeRows(content, records, repos))

    return read


Make = Callable[[Sequence[Block], Callable[[str], bool] | None], tuple[bytes, int]]


def _lines(blocks: Sequence[Block], is_wanted: Callable[[str], bool] | None) -> tuple[bytes, int]:
    lines = [line for block in blocks for line in lines_of(block, is_wanted)]
    return b"".join([line + b"\n" for line in lines]), len(lines)


def _table(kind: RowFormat) -> Make:
    """Rows as the columns of repo_records, as an Arrow stream or a Parquet file."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    def make(blocks: Sequence[Block], is_wanted: Callable[[str], bool] | None) -> tuple[bytes, int]:
        keys: list[bytes] = []
        jsons: list[bytes] = []
        runs: list[tuple[str, str, int, int]] = []  # repo, collection, time, records
        for block in blocks:
            for collection in block.contents(is_wanted):
                _split(block, collection, keys, jsons)
                runs.append((block.did, collection.name, block.crawled_at, collection.records))
        numbers = pa.array([number for number, run in enumerate(runs) for _ in range(run[3])], pa.int32())

        def repeated(place: int, type_: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
            return pa.array([run[place] for run in runs], type_).take(numbers)

        times = repeated(2, pa.int64())
        table = pa.table(
            {
                "repo": repeated(0, pa.string()),
                "collection": repeated(1, pa.string()),
                "rkey": pa.array(keys, pa.binary()).cast(pa.string()),
                "operation": pa.repeat(pa.scalar("create"), len(keys)),
                "record_json": pa.array(jsons, pa.large_binary()).cast(pa.large_string()),
                "created_at": times.cast(pa.timestamp("us", "UTC")),
                "time_us": times,
            }
        )
        sink = pa.BufferOutputStream()
        if kind == "parquet":
            pq.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=["repo", "collection"])
        else:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
        return sink.getvalue().to_pybytes(), len(keys)

    return make


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
