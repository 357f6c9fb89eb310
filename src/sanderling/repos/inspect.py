"""What is in a segment, and whether all segments of a folder are sound.

The collections of a block are told by its table of contents, so nothing is unpacked to count them, and of a finalised
segment little more than those tables is read.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sanderling.formats.rca import Block, Footer, Header, RcaError
from sanderling.repos.archives import Archive, ArchiveProblem, BlockHead, Report
from sanderling.repos.rows import split

# Files summed up side by side: both reading and summing let other threads run.
THREADS = 4


@dataclass(slots=True)
class CollectionStats:
    """A collection over all repos of a segment."""

    repos: int = 0
    records: int = 0
    bytes: int = 0  # compressed


class LargeRepo(NamedTuple):
    """One of the largest repos of a segment."""

    bytes: int  # of its block
    did: str
    records: int


@dataclass(slots=True)
class Inspection:
    """All there is to say of a segment without its records; or of all segments of a folder, as if they were one."""

    path: Path
    size: int
    header: Header
    footer: Footer | None
    segments: int = 1
    repos: int = 0
    records: int = 0
    torn: int = 0  # bytes behind the last whole block, if it was not finalised
    collections: dict[str, CollectionStats] = field(default_factory=dict)
    largest: list[LargeRepo] = field(default_factory=list)


def inspect(path: Path, report: Report, *, verify: bool = False, largest: int = 10) -> Inspection:
    """Count a segment; with `verify` every CRC is compared and everything unpacked. Raises RcaError and OSError."""
    with Archive(path, report) as archive:
        found = Inspection(path, archive.size, archive.header, archive.footer)
        heads = _unpacked(archive, report) if verify else archive.heads(check=False)
        found.largest = nlargest(largest, _counted(heads, found))
        found.collections = dict(sorted(found.collections.items()))
        found.torn = archive.torn
    return found


def join_inspections(folder: Path, found: Sequence[Inspection], largest: int = 10) -> Inspection:
    """Make one of several, at least one; its header is that of the segment that was begun first."""
    first = min(found, key=lambda each: each.header.created_at)
    joined = Inspection(folder, sum(each.size for each in found), first.header, None, len(found))
    collections: dict[str, CollectionStats] = {}
    for each in found:
        joined.repos += each.repos
        joined.records += each.records
        joined.torn += each.torn
        for name, stats in each.collections.items():
            total = collections.setdefault(name, CollectionStats())
            total.repos += stats.repos
            total.records += stats.records
            total.bytes += stats.bytes
    joined.collections = dict(sorted(collections.items()))
    joined.largest = nlargest(largest, (repo for each in found for repo in each.largest))
    return joined


def _counted(heads: Iterable[BlockHead], found: Inspection) -> Iterator[LargeRepo]:
    for head in heads:
        found.repos += 1
        found.records += head.records
        for entry in head.toc:
            stats = found.collections.setdefault(entry.name, CollectionStats())
            stats.repos += 1
            stats.records += entry.count
            stats.bytes += entry.size
        yield LargeRepo(head.size, head.did, head.records)


def _unpacked(archive: Archive, report: Report) -> Iterator[BlockHead]:
    """All blocks that hold what they say, without their records."""
    for block in archive.blocks():
        try:
            for entry, offset, content in block.contents(lambda _: True):
                split(content, entry.count, offset)
        except RcaError as error:
            report(ArchiveProblem.of(archive.path, error))
        else:
            yield archive.head_of(block)


@dataclass(slots=True)
class Verified:
    """What was looked at."""

    segments: int = 0
    repos: int = 0
    bytes: int = 0
    problems: int = 0
    torn: dict[Path, int] = field(default_factory=dict)  # of what was not finalised, bytes behind the last whole block


def verify(paths: Sequence[Path], report: Report, watch: Callable[[int], None] = lambda _: None) -> Verified:
    """Compare every CRC of these segments, a few side by side; `watch` gets bytes as they are done, from any thread."""
    total, stopped = Verified(), threading.Event()
    with ThreadPoolExecutor(THREADS) as pool:
        pending = [pool.submit(_verify, path, report, watch, stopped) for path in paths]
        try:
            for future in as_completed(pending):
                one = future.result()
                total.segments += 1
                total.repos += one.repos
                total.bytes += one.bytes
                total.problems += one.problems
                total.torn |= one.torn
        except BaseException:
            # The pool waits for its threads, and these look at it with every block.
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total


def _verify(path: Path, report: Report, watch: Callable[[int], None], stopped: threading.Event) -> Verified:
    done = Verified()

    def say(problem: ArchiveProblem) -> None:
        done.problems += 1
        report(problem)

    try:
        with Archive(path, say) as archive:
            for head in takewhile(lambda _: not stopped.is_set(), archive.heads(check=True)):
                done.repos += 1
                done.bytes += head.size
                watch(head.size)
            if archive.torn:
                done.torn[path] = archive.torn
    except RcaError as error:
        say(ArchiveProblem.of(path, error))
    except OSError as error:
        say(ArchiveProblem(path, 0, error.strerror or str(error)))
    return done


def newest(paths: Sequence[Path], did: str, report: Report) -> tuple[Path, Block] | None:
    """The block of `did` that was crawled last, of the sound ones in `paths`; what is damaged is reported.

    The order of the paths says nothing: each archive numbers its segments from 1.
    """
    found: tuple[Path, Block] | None = None
    for path in paths:
        try:
            with Archive(path, report) as archive:
                block = archive.find(did)
        except RcaError as error:
            report(ArchiveProblem.of(path, error))
        except OSError as error:
            report(ArchiveProblem(path, 0, error.strerror or str(error)))
        else:
            if block is not None and (found is None or _when(block) >= _when(found[1])):
                found = path, block
    return found


def _when(block: Block) -> tuple[int, str]:
    return block.crawled_at, block.rev
