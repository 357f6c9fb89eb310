"""`repos replay`: the records of an archive into ClickHouse's table `repo_records`, Parquet, or JSON Lines.

Of each account the newest repo is written, and none that is gone: rows of those, and rows older than the repo, are
removed from the table. Done again, it changes nothing.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import msgspec

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError, disk_errors, make_folder, sync_folder
from sanderling.options import OptionError
from sanderling.readers.automatic import reader_count
from sanderling.readers.pool import ReaderError, Readers
from sanderling.readers.reader import ReaderLimits
from sanderling.repos.archive import Archive
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.notes import LEDGER, NOTES, TextOutput, ledger_of, own_files, read_notes
from sanderling.repos.options import RepoReplayOptions
from sanderling.repos.rows import MadeRows, RowFormat, RowsWanted, RowsWork

PIECE = 4 << 20  # bytes of a segment that are read at once
CHUNK = 500  # accounts in one statement
LIMITS = ReaderLimits(cpu=300.0, wall=900.0, memory=8 << 30, answer=1 << 31, host_cpu=1e12)
REPO_RECORDS = """
CREATE TABLE IF NOT EXISTS repo_records (
    repo String,
    collection String,
    rkey String,
    operation Enum8('create' = 1, 'update' = 2, 'delete' = 3),
    record_json String,
    created_at DateTime64(6),
    indexed_at DateTime64(6) DEFAULT now64(6),
    time_us Int64,
    INDEX idx_repo repo TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_collection collection TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_created_at created_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(time_us)
PARTITION BY toYYYYMM(created_at)
ORDER BY (collection, repo, rkey, operation)
"""
COLUMNS = ("repo", "collection", "rkey", "operation", "record_json", "created_at", "time_us")
_EXISTING = "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'repo_records'"
_PARQUET = "part-*.parquet"


def replay(options: RepoReplayOptions, context: TextOutput) -> Exit:
    """Write the records; FAILED if a segment is damaged, whose other repos are written."""
    return asyncio.run(_replay(options, context))


async def _replay(options: RepoReplayOptions, context: TextOutput) -> Exit:
    folder, clock = options.input_dir, SystemClock()
    faults: list[str] = []
    archive = await open_any(folder, RepoLeaveOut.read(options.leave_out), faults)
    target = target_of(options.to, options.clickhouse, options.wanted)
    work = msgspec.msgpack.encode(RowsWork(target.format, options.wanted))
    number = reader_count(options.readers)
    records = repos = 0
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(target)
        pool = Readers("sanderling.repos.rows:open_work", work, count=number, clock=clock, limits=LIMITS)
        readers = await stack.enter_async_context(pool)
        async for made in _made(readers, _pieces(archive), 2 * max(1, number)):
            faults += made.faults
            if made.records:
                await target.write(made)
            records, repos = records + made.records, repos + len(made.repos)
        removed = await target.remove([stone.did for stone, _ in archive.gone()])
    for fault in faults:
        context.warn(f"sanderling: damaged: {fault}")
    context.print(f"{records:,} records of {repos:,} repos in {target.place}")
    if removed:
        context.print(f"rows of {removed:,} accounts that are gone, or have changed, were removed there")
    return Exit.FAILED if faults else Exit.DONE


async def open_any(folder: Path, left_out: RepoLeaveOut | None = None, faults: list[str] | None = None) -> Archive:
    """An archive with its ledger, or any folder of segments. Raises FolderError."""
    if (folder / NOTES).exists() and ((folder / LEDGER).exists() or read_notes(folder).ledger):
        async with ledger_of(folder, read_notes(folder), SystemClock(), read_only=True) as ledger:
            return Archive(folder, await own_files(folder, ledger), left_out, faults=faults)
    archive = Archive(folder, (), left_out, faults=faults)
    if not archive.segments:
        raise FolderError(f"{folder} has no segments", "give the folder that repos crawl wrote")
    return archive


def _pieces(archive: Archive) -> Iterator[RowsWanted]:
    """The repos that count, some megabytes of a segment at a time."""
    for number, path in enumerate(archive.segments):
        offsets: list[int] = []
        gone: dict[int, int] = {}
        size = 0
        for did, offset, length in archive.places(path):
            if not archive.is_newest(number, did, offset) or did in archive.left_out.dids:
                continue
            offsets.append(offset)
            size += length
            if did in archive.tombstones:
                gone[offset] = archive.tombstones[did].at
            if size >= PIECE:
                yield RowsWanted(str(path), tuple(offsets), gone, archive.left_out.hosts)
                offsets, gone, size = [], {}, 0
        if offsets:
            yield RowsWanted(str(path), tuple(offsets), gone, archive.left_out.hosts)


async def _made(readers: Readers, pieces: Iterator[RowsWanted], ahead: int) -> AsyncIterator[MadeRows]:
    """The rows of all pieces, in order; some are made while others are written."""

    async def make(piece: RowsWanted) -> MadeRows:
        try:
            answer = await readers.run(piece.path, msgspec.msgpack.encode(piece), b"")
        except ReaderError as error:
            return MadeRows(faults=(f"{piece.path} at byte {piece.offsets[0]:,}: {error}",))
        return msgspec.msgpack.decode(answer, type=MadeRows)

    async with asyncio.TaskGroup() as group:
        waiting: list[asyncio.Task[MadeRows]] = []
        for piece in pieces:
            waiting.append(group.create_task(make(piece)))
            if len(waiting) >= ahead:
                yield await waiting.pop(0)
        for task in waiting:
            yield await task


def target_of(
    to: str, clickhouse: tuple[str, str, str], wanted: frozenset[str] = frozenset()
) -> "ParquetRows | LineRows | ClickhouseRows":
    """Where rows go. Raises OptionError."""
    kind, _, place = to.partition(":")
    if kind == "parquet" and place:
        return ParquetRows(Path(place))
    if kind == "jsonl" and place:
        return LineRows(Path(place))
    address, user, password = clickhouse
    address = to if kind in ("chdb", "clickhouse", "clickhouses") else address
    if to and address != to:
        raise OptionError(f"--to: found {to[:60]!r}, expected parquet:FOLDER, jsonl:FILE or chdb:PATH")
    if not address:
        raise OptionError("--clickhouse-address is missing; expected HOST:8123, or --to parquet:FOLDER")
    return ClickhouseRows(address, user, password, wanted)


class ParquetRows:
    """Files of a folder, `part-00001.parquet` and so on, which take the place of those of an earlier replay."""

    format: RowFormat = "parquet"

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._draft = folder / ".draft"
        self._numbers = count(1)

    async def __aenter__(self) -> Self:
        make_folder(self._folder)
        with disk_errors(self._folder):
            found = [each.name for each in self._folder.iterdir() if not each.match(_PARQUET) and each != self._draft]
            if found:
                raise FolderError(f"{self._folder} holds {found[0]}, which no replay wrote", "choose another folder")
            shutil.rmtree(self._draft, ignore_errors=True)
            self._draft.mkdir()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with disk_errors(self._folder):
            if kind is None:
                new = sorted(self._draft.iterdir())
                for path in new:
                    path.replace(self._folder / path.name)
                for path in set(self._folder.glob(_PARQUET)) - {self._folder / each.name for each in new}:
                    path.unlink()
                sync_folder(self._folder)
            shutil.rmtree(self._draft, ignore_errors=True)

    async def write(self, made: MadeRows) -> None:
        """A file of these."""
        path = self._draft / f"part-{next(self._numbers):05}.parquet"
        with disk_errors(path):
            path.write_bytes(made.content)

    async def remove(self, gone: Sequence[str]) -> int:  # noqa: ARG002 - nothing of them was written
        """Nothing is there that is not wanted."""
        return 0


class LineRows:
    """One file of lines, which takes the place of an earlier one."""

    format: RowFormat = "jsonl"

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path
        self._draft = path.with_name(f".{path.name}.draft")

    async def __aenter__(self) -> Self:
        with disk_errors(self._path):
            self._file = self._draft.open("wb")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with disk_errors(self._path):
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            if kind is None:
                self._draft.replace(self._path)
                sync_folder(self._path.parent)
            else:
                self._draft.unlink(missing_ok=True)

    async def write(self, made: MadeRows) -> None:
        """More lines."""
        with disk_errors(self._path):
            self._file.write(made.content)

    async def remove(self, gone: Sequence[str]) -> int:  # noqa: ARG002 - nothing of them was written
        """Nothing is there that is not wanted."""
        return 0


class ClickhouseRows:
    """The table `repo_records` of a ClickHouse."""

    format: RowFormat = "arrow"

    def __init__(self, address: str, user: str, password: str, wanted: frozenset[str] = frozenset()) -> None:
        from sanderling.stores.clickhouse import Clickhouse  # noqa: PLC0415 - an extra

        self._database = Clickhouse(address, user, password)
        self.place = f"repo_records in {self._database.place}"
        self._wanted = wanted
        self._stack = AsyncExitStack()
        self._times: dict[str, int] | None = {}  # when repos were archived that were written; None: nothing was there

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._database)
        try:
            async with _waiting_helps():
                await self._prepare()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _prepare(self) -> None:
        await self._database.execute(REPO_RECORDS)
        missing = set(COLUMNS) - {name for (name,) in await self._database.rows(_EXISTING)}
        if missing:
            found = f"the table repo_records of {self._database.place} lacks {', '.join(sorted(missing))}"
            raise FolderError(found, "name another database: clickhouse://HOST:8123/DATABASE")
        ((is_empty,),) = await self._database.rows("SELECT count() = 0 FROM (SELECT 1 FROM repo_records LIMIT 1)")
        self._times = None if is_empty else {}

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def write(self, made: MadeRows) -> None:
        """Insert rows; a row that is there already is replaced."""
        async with _waiting_helps():
            await self._database.insert_arrow("repo_records", COLUMNS, made.content)
        if self._times is not None:
            self._times |= dict(made.repos)

    async def remove(self, gone: Sequence[str]) -> int:
        """Remove rows of accounts that are gone, and rows that are older than what was written."""
        if self._times is None:
            return 0
        removed = 0
        only = " AND has({wanted:Array(String)}, collection)" if self._wanted else ""
        more: dict[str, Any] = {"wanted": sorted(self._wanted)} if self._wanted else {}
        older = (
            f"has({{dids:Array(String)}}, repo) AND time_us < transform(repo, {{dids:Array(String)}}, "
            f"{{times:Array(Int64)}}, toInt64(0)){only}"
        )
        async with _waiting_helps():
            for start in range(0, len(gone), CHUNK):
                removed += await self._remove("has({dids:Array(String)}, repo)", dids=gone[start : start + CHUNK])
            times = list(self._times.items())
            for start in range(0, len(times), CHUNK):
                dids, ats = zip(*times[start : start + CHUNK], strict=True)
                removed += await self._remove(older, dids=list(dids), times=list(ats), **more)
        return removed

    async def _remove(self, condition: str, **values: Any) -> int:  # noqa: ANN401
        """Remove the rows for which a condition holds; of how many accounts they were."""
        query = f"SELECT count(DISTINCT repo) FROM repo_records WHERE {condition}"
        ((found,),) = await self._database.rows(query, **values)
        if found:
            await self._database.execute(f"DELETE FROM repo_records WHERE {condition}", **values)
        return int(found)


@asynccontextmanager
async def _waiting_helps() -> AsyncIterator[None]:
    from sanderling.stores.clickhouse import ClickhouseAway  # noqa: PLC0415 - an extra

    try:
        yield
    except ClickhouseAway as away:
        raise FolderError(str(away), "run the same command again; nothing is written twice", Exit.LATER) from None
