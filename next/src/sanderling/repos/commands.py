"""The smaller commands of `repos`: inspect, status, reset, and filling a directory."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sanderling.clock import SystemClock
from sanderling.fetch.client import Client
from sanderling.files import Exit, FolderError, FolderLock, disk_errors, make_folder
from sanderling.formats.rca import RcaError, RcaReader
from sanderling.formats.segments import segments_in
from sanderling.repos.directory import SqliteDirectory
from sanderling.repos.notes import LEDGER, NOTES, TextOutput, ledger_of, read_notes
from sanderling.repos.options import DirectoryOptions, InspectOptions, ProgressOptions, ResetOptions
from sanderling.repos.plc import ReadLines, fill_from_file, fill_from_log, lines_of
from sanderling.repos.redis_progress import open_redis
from sanderling.repos.sink import ARCHIVED, TOMBSTONES, iso


class SegmentSummary(msgspec.Struct):
    """What a segment holds."""

    file: str
    version: int = 1
    created: str = ""
    finished: bool = False
    repos: int = 0
    index_offset: int = 0
    scanned: int = 0  # repos that were read
    fault: str = ""


class CollectionCount(msgspec.Struct):
    """How often a collection was met."""

    repos: int = 0
    records: int = 0


class InspectSummary(msgspec.Struct):
    """What one or several segments hold."""

    segments: list[SegmentSummary]
    repos: int
    records: int
    collections: dict[str, CollectionCount]


def inspect(options: InspectOptions, context: TextOutput) -> Exit:
    """Print header, index and collections of a segment, or of all in a folder, and check every checksum."""
    place = options.place
    with disk_errors(place):
        paths = segments_in(place) if place.is_dir() else [place]
    if not paths:
        raise FolderError(f"{place} has no segments", "give a file segment_0001.rca, or the folder of some")
    collections: dict[str, CollectionCount] = {}
    found = [_inspect(path, collections) for path in paths]
    collections = dict(sorted(collections.items()))
    records = sum(each.records for each in collections.values())
    summary = InspectSummary(found, sum(each.scanned for each in found), records, collections)
    code = Exit.FAILED if any(each.fault for each in found) else Exit.DONE
    if options.json:
        context.print(msgspec.json.encode(summary).decode())
        return code
    for each in found:
        context.print(each.file)
        context.print(f"  Version:       {each.version}")
        context.print(f"  Created:       {each.created}")
        context.print(f"  Repo Count:    {each.repos:,}{'' if each.finished else ' (not finished)'}")
        context.print(f"  Index Offset:  {each.index_offset:,}")
        context.print(f"  Index Entries: {each.repos:,}" if each.finished else "  Index Entries: none yet")
        context.print(f"  Repos scanned: {each.scanned:,}")
        if each.fault:
            context.print(f"  WRONG:         {each.fault}")
    for name, number in collections.items():
        context.print(f"{name:<50} {number.repos:>6} repos {number.records:>8} records")
    return code


def _inspect(path: Path, collections: dict[str, CollectionCount]) -> SegmentSummary:
    summary = SegmentSummary(str(path))
    try:
        with disk_errors(path), RcaReader(path) as reader:
            header = reader.header
            summary.created, summary.finished = iso(header.created_at), reader.finished
            summary.repos, summary.index_offset = header.repos, header.index_offset
            for block in reader:
                for _ in block.records():
                    pass
                summary.scanned += 1
                for each in block.collections:
                    known = collections.setdefault(each.name, CollectionCount())
                    known.repos += 1
                    known.records += each.records
    except (RcaError, OverflowError) as error:  # a time that is none
        summary.fault = str(error)
    return summary


def status(options: ProgressOptions, context: TextOutput) -> Exit:
    """Print the progress that Redis has, or the folder."""
    found = asyncio.run(_status(options))
    if options.json:
        context.print(msgspec.json.encode(found).decode())
    elif not found:
        context.print("No crawl progress found.")
    else:
        for name, value in sorted(found.items()):
            context.print(f"{name}: {value}")
    return Exit.DONE


async def _status(options: ProgressOptions) -> dict[str, int | str]:
    if options.redis_address is not None:
        async with open_redis(options.redis_address) as redis:
            return await redis.status()
    if not (options.out / NOTES).exists():
        return {}
    async with ledger_of(options.out, read_notes(options.out), SystemClock(), read_only=True) as ledger:
        counts = await ledger.counts()
        files = await ledger.row_files()
    failed = Counter[str]()
    total = 0
    for (end, code), number in counts.ends.items():
        if end == ARCHIVED:
            total += number
        else:
            failed[f"failed_{code}"] += number
    written = sum(path.stat().st_size for path in segments_in(options.out))
    found: dict[str, int | str] = {"total_crawled": total, "bytes_written": written, "waiting": counts.waiting}
    found |= {"completed_count": counts.known - counts.waiting, **failed}
    return found | {"segment_num": sum(each.file.endswith(".rca") for each in files)}


def reset(options: ResetOptions, context: TextOutput) -> Exit:
    """Remove the progress, in Redis too if it is named, and the segments."""
    keys = asyncio.run(_reset_redis(options.redis_address)) if options.redis_address is not None else 0
    removed = 0
    if options.out.is_dir():
        with FolderLock(options.out), disk_errors(options.out):
            if (options.out / NOTES).exists() and read_notes(options.out).ledger:
                raise FolderError(f"the progress of {options.out} is in PostgreSQL", "drop its schema there")
            paths = segments_in(options.out)
            # The ledger first: without it, what is left is no archive that another crawl would go on with.
            for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", NOTES, "status.json"):
                (options.out / name).unlink(missing_ok=True)
            for path in (*paths, *options.out.glob(f"{TOMBSTONES}*.jsonl"), *options.out.glob(f"{TOMBSTONES}*.keys")):
                path.unlink()
            removed = len(paths)
    said = f"{keys} keys in Redis and " if options.redis_address is not None else ""
    context.print(f"removed {said}{removed} segments of {options.out}")
    return Exit.DONE


async def _reset_redis(address: str) -> int:
    async with open_redis(address) as redis:
        return await redis.reset()


def directory(options: DirectoryOptions, context: TextOutput) -> Exit:
    """Fill a directory, or bring it up to date."""
    import uvloop  # noqa: PLC0415 - 20 ms

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found, counts = runner.run(_fill(options))
    accounts, hosts = counts
    context.print(f"{found.lines:,} operations read; {options.file} has {accounts:,} accounts at {hosts:,} hosts")
    for what, number in (("lines are no operations", found.bad), ("endpoints are no host", found.refused)):
        if number:
            context.print(f"{number:,} {what}")
    for each in found.shown:
        context.warn(f"sanderling: {each}")
    return Exit.DONE


async def _fill(options: DirectoryOptions) -> tuple[ReadLines, tuple[int, int]]:
    clock = SystemClock()
    make_folder(options.file.absolute().parent)
    async with SqliteDirectory(options.file, read_only=False) as filled:
        if options.import_ is not None:
            lines: Iterable[bytes] = sys.stdin.buffer if str(options.import_) == "-" else lines_of(options.import_)
            found = await fill_from_file(filled, lines, options.lines)
        else:
            async with Client(options, clock=clock) as client:
                found = await fill_from_log(filled, client, options.plc, options.lines, clock)
        return found, await filled.counts()
