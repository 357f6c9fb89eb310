"""Archives into a table: every record of every segment, into ClickHouse or into Parquet files.

Segments are read side by side, one thread each, and a batch of one of them is written at a time. What was loaded as a
whole is remembered by the sink, by the segment's name, size and index, and is not loaded again. What was loaded in part
is loaded again from its beginning, which does no harm: rows replace their equals, and files are renamed at the end.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, Self

from sanderling.formats.rca import RcaError
from sanderling.repos.archives import Archive, ArchiveProblem, Report
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.parts import segment_name
from sanderling.repos.rows import RecordColumns, RecordRun, chooser

NOTHING = RepoLeaveOut()


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """How much is done at once."""

    # A batch makes a part in every partition that it has records of, which costs more than its rows do: few large ones.
    # Records have some 200 bytes, so that the bytes decide; the rows are a limit for tiny records.
    rows: int = 1_000_000
    bytes: int = 64 * 2**20  # unpacked; some four times as much is in memory, for every thread
    threads: int = 2  # segments read side by side: one unpacks while the batch of another is inserted

    def __post_init__(self) -> None:
        if min(self.rows, self.bytes, self.threads) < 1:
            raise ValueError(f"{self}, expected numbers from 1 up")


class ReplaySegment(NamedTuple):
    """Which segment it is, and what of it is loaded."""

    name: str
    size: int
    index_crc: int
    collections: str  # the patterns; "" for all


class ReplayBatch(NamedTuple):
    """Some records of a segment."""

    rows: Any  # a pyarrow.Table, which has no types
    versions: list[tuple[str, int]]  # repos that are whole in it: DID, and when each was crawled


class SegmentLoading(Protocol):
    """A segment on its way into a sink."""

    complete: bool  # set when all of it was written: it need not be loaded again

    def write(self, batch: ReplayBatch) -> None:
        """Take some rows."""


class ReplaySink(Protocol):
    """Where records go. Raises ClickhouseError or FolderError."""

    def has(self, segment: ReplaySegment) -> bool:
        """Whether all of it was loaded before."""

    def loading(self, segment: ReplaySegment) -> AbstractContextManager[SegmentLoading]:
        """Begin to load it."""

    def remove_superseded(self) -> int:
        """After all segments: remove what a newer crawl of a repo replaces, if it is in one place; how many rows."""


@dataclass(slots=True)
class ReplayTotals:
    """What came of a replay, or of a piece of it."""

    segments: int = 0  # read in this run
    before: int = 0  # segments that were loaded earlier, and left alone
    repos: int = 0
    left_out: int = 0  # repos, since they are listed
    records: int = 0
    bytes: int = 0  # of segments
    torn: int = 0  # bytes behind the last whole block of what was not finalised
    problems: int = 0
    superseded: int = 0  # rows of earlier crawls that were removed

    def __iadd__(self, other: "ReplayTotals") -> Self:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


Watch = Callable[[ReplayTotals], None]


class RepoReplay:
    """One run over some segments."""

    def __init__(
        self,
        sink: ReplaySink,
        report: Report,
        *,
        collections: Sequence[str] = (),
        again: bool = False,
        leave_out: RepoLeaveOut = NOTHING,
        rules: ReplayRules | None = None,
    ) -> None:
        """`report` is told of every problem, from any thread. With `again`, nothing counts as loaded before."""
        self._sink = sink
        self._report = report
        self._wanted = chooser(collections)
        self._patterns = ",".join(sorted(set(collections)))
        self._again = again
        self._leave_out = leave_out
        self._rules = rules or ReplayRules()
        self._stopped = threading.Event()

    def run(self, paths: Sequence[Path], watch: Watch = lambda _: None) -> ReplayTotals:
        """Load all of `paths`; `watch` gets what was done since it was last called, from any thread.

        What the sink raises ends it; a segment that cannot be read does not.
        """
        total = ReplayTotals()
        # Not `as_completed`: that locks all futures at once, and Ctrl-C in the midst of it leaves some locked for ever.
        ended: SimpleQueue[Future[ReplayTotals]] = SimpleQueue()
        with ThreadPoolExecutor(self._rules.threads) as pool:
            try:
                for path in paths:
                    pool.submit(self.load, path, watch).add_done_callback(ended.put)
                for _ in paths:
                    total += ended.get().result()
            except BaseException:
                # The pool waits for its threads, and these look at it with every block.
                self.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        total.superseded = self._sink.remove_superseded()
        return total

    def stop(self) -> None:
        """Let whatever is loading end before its next block, by a StoppedError."""
        self._stopped.set()

    def load(self, path: Path, watch: Watch = lambda _: None) -> ReplayTotals:
        """Load one segment, in this thread; `run` does all that and what comes after the last."""
        share = _Share(path, self._report, watch)
        try:
            with Archive(path, share.report) as archive:
                self._load(archive, share)
        except RcaError as error:
            share.say(error)
        except OSError as error:
            share.report(ArchiveProblem(path, 0, error.strerror or str(error)))
        return share.done

    def _load(self, archive: Archive, share: "_Share") -> None:
        footer = archive.footer
        segment = ReplaySegment(segment_name(archive.path), archive.size, footer.crc if footer else 0, self._patterns)
        if footer and not self._again and self._sink.has(segment):
            share.add(ReplayTotals(before=1))
            return
        with self._sink.loading(segment) as loading:
            for batch in self._batches(archive, share):
                loading.write(batch)
                share.add(ReplayTotals(records=batch.rows.num_rows))
            loading.complete = footer is not None and not share.done.problems
        share.add(ReplayTotals(segments=1, torn=archive.torn))

    def _batches(self, archive: Archive, share: "_Share") -> Iterator[ReplayBatch]:
        """All records. Of what a batch was made of nothing is kept while it is written."""
        rows, versions = RecordColumns(), list[tuple[str, int]]()
        for block in archive.blocks():
            if self._stopped.is_set():
                raise StoppedError
            if self._leave_out.has(block.did, block.pds):
                share.add(ReplayTotals(left_out=1, bytes=len(block.data)))
                continue
            try:
                for entry, offset, content in block.contents(self._wanted):
                    rows.add(RecordRun(block.did, entry.name, block.crawled_at, offset), content, entry.count)
            except RcaError as error:
                share.say(error)
            else:
                versions.append((block.did, block.crawled_at))
            share.add(ReplayTotals(repos=1, bytes=len(block.data)))
            if len(rows) >= self._rules.rows or rows.bytes >= self._rules.bytes:
                batch, rows, versions = ReplayBatch(share.table_of(rows), versions), RecordColumns(), []
                yield batch
        if len(rows) or versions:
            yield ReplayBatch(share.table_of(rows), versions)


class StoppedError(Exception):
    """The run was ended, by Ctrl-C or since another segment could not be written."""


class _Share:
    """What one segment adds to the whole."""

    def __init__(self, path: Path, report: Report, watch: Watch) -> None:
        self._path = path
        self._report = report
        self._watch = watch
        self.done = ReplayTotals()

    def add(self, more: ReplayTotals) -> None:
        self.done += more
        self._watch(more)

    def report(self, problem: ArchiveProblem) -> None:
        self.add(ReplayTotals(problems=1))
        self._report(problem)

    def say(self, error: RcaError) -> None:
        self.report(ArchiveProblem.of(self._path, error))

    def table_of(self, rows: RecordColumns) -> Any:  # noqa: ANN401 - a pyarrow.Table
        table, left_out = rows.table()
        for error in left_out:
            self.say(error)
        return table
