"""`sanderling repos replay` with `--processes`: segments are handed out to processes that load one at a time each.

The others run the same command, with `SANDERLING_REPLAY` in their environment. They take the paths of segments, and
answers, from their standard input, and end when that does; what they say goes to their standard output.
"""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from io import BufferedIOBase
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.processes import MOST_DEATHS, PATIENCE
from sanderling.clock import SystemClock
from sanderling.repos.archives import ArchiveProblem, Report
from sanderling.repos.replay import ReplaySink, ReplayTotals, RepoReplay, StoppedError, Watch
from sanderling.repos.replay_pipe import (
    LoadFailed,
    LoadPipe,
    LoadProblem,
    LoadProgress,
    SegmentLoaded,
    SinkServer,
    read_message,
)
from sanderling.stores.clickhouse import ClickhouseError
from sanderling.stores.durable import FolderError
from sanderling.words import count

OWN = "SANDERLING_REPLAY"  # of a process that was started by another one
PIPE = 2**20  # bytes that may be on their way: batches are large
EVERY = 0.1  # seconds between two words of how far it is


# The process that people see.


class ReplayGroup:
    """The processes of one replay, and the segments that are left."""

    def __init__(self, sink: ReplaySink, report: Report, watch: Watch, paths: Sequence[Path], processes: int) -> None:
        self._sink = sink
        self._report = report
        self._watch = watch
        # The largest first, so that none is begun when the others are nearly done.
        self._left = deque(sorted(paths, key=lambda path: path.stat().st_size, reverse=True))
        self._number = min(processes, len(paths))
        self._turn = threading.Lock()
        self._stopped = False
        self._running: set[subprocess.Popen[bytes]] = set()
        self._total = ReplayTotals()

    def run(self) -> ReplayTotals:
        """Load all segments; what is superseded goes at the end. Raises CommandError, and what the sink raises."""
        ended: SimpleQueue[Future[None]] = SimpleQueue()
        with ThreadPoolExecutor(self._number) as pool:
            try:
                for number in range(1, self._number + 1):
                    pool.submit(self._work, number).add_done_callback(ended.put)
                for _ in range(self._number):
                    ended.get().result()
            except BaseException:
                self._stop()
                raise
        self._total.superseded = self._sink.remove_superseded()
        return self._total

    def _stop(self) -> None:
        """Have all processes end: their standard input does, and they stop before the next repo."""
        with self._turn:
            self._stopped = True
            self._left.clear()
            running = list(self._running)
        for process in running:
            _let_go(process)

    def _next(self) -> Path | None:
        with self._turn:
            return self._left.popleft() if self._left else None

    def _work(self, number: int) -> None:
        """Have one process load segments, for as long as there are some."""
        process, deaths, path = self._start(), 0, self._next()
        try:
            while path is not None:
                if self._load(process, path):
                    deaths, path = 0, self._next()
                    continue
                deaths = self._bury(process, number, deaths)
                process = self._start()
        finally:
            self._end(process)

    def _load(self, process: subprocess.Popen[bytes], path: Path) -> bool:
        """Whether a process has loaded a segment; else it was killed."""
        file, problems = cast("BufferedIOBase", process.stdout), list[ArchiveProblem]()
        server = SinkServer(self._sink, lambda answer: _send(process, answer))
        try:
            _send(process, str(path))
            while True:
                message = read_message(file)
                if server.take(message, file):
                    continue
                match message:
                    case LoadProgress(more, records):
                        self._watch(ReplayTotals(bytes=more, records=records))
                    case LoadProblem(where, offset, found):
                        problems.append(ArchiveProblem(Path(where), offset, found))
                    case SegmentLoaded(totals):
                        self._count(ReplayTotals(**totals), problems)
                        return True
                    case LoadFailed(said):
                        raise CommandError(said)
        except (EOFError, BrokenPipeError):
            return False
        finally:
            server.give_up()

    def _count(self, done: ReplayTotals, problems: Sequence[ArchiveProblem]) -> None:
        with self._turn:
            self._total += done
        for each in problems:
            self._report(each)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._turn:
            if self._stopped:
                raise StoppedError
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "sanderling", *sys.argv[1:]],
                env={**os.environ, OWN: "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pipesize=PIPE,
                start_new_session=True,  # Ctrl-C is for us, who tell them
            )
            self._running.add(process)
        return process

    def _bury(self, process: subprocess.Popen[bytes], number: int, deaths: int) -> int:
        """How often it was killed in a row. Raises CommandError if it ended otherwise, or too often."""
        self._end(process)
        code, name = process.returncode, f"process {number} of {self._number}"
        if self._stopped:
            raise StoppedError
        if code >= 0:
            raise CommandError(f"{name} ended with code {code}; what it said is above")
        why = f"was killed ({signal.strsignal(-code)})"
        if deaths >= MOST_DEATHS:
            raise CommandError(f"{name} {why}, {count(deaths + 1, 'time')} in a row")
        print(f"{name} {why}, and is started again; nothing is lost", file=sys.stderr, flush=True)
        return deaths + 1

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Let it end by itself, and not wait for one that does not."""
        _let_go(process)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self._turn:
            self._running.discard(process)


def _send(process: subprocess.Popen[bytes], what: str | bool) -> None:  # noqa: FBT001 - it is what is said
    if process.stdin is None or process.stdin.closed:
        raise EOFError
    process.stdin.write(msgspec.json.encode(what) + b"\n")
    process.stdin.flush()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


# A process that was started by another one.


def is_started() -> bool:
    """Whether this process was."""
    return OWN in os.environ


class SegmentLoader:
    """Loads the segments whose paths come on standard input, until that ends."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.pipe = LoadPipe(cast("BufferedIOBase", sys.stdout.buffer), self._lines)
        self._clock = SystemClock()
        self._done = ReplayTotals()
        self._said = self._clock.now()

    def report(self, problem: ArchiveProblem) -> None:
        """Something is wrong with a segment."""
        self.pipe.send(LoadProblem(str(problem.path), problem.offset, problem.found))

    def run(self, replay: RepoReplay) -> None:
        """Load until nobody wants more."""
        reader = threading.Thread(target=self._read, args=(replay.stop,), daemon=True)
        reader.start()
        with suppress(StoppedError, EOFError):
            while (line := self._lines.get()) is not None:
                self._load(replay, Path(msgspec.json.decode(line, type=str)))

    def _load(self, replay: RepoReplay, path: Path) -> None:
        try:
            done = replay.load(path, self._watch)
        except (ClickhouseError, FolderError) as error:
            self.pipe.send(LoadFailed(str(error)))
        else:
            self.pipe.send(SegmentLoaded(asdict(done)))

    def _watch(self, more: ReplayTotals) -> None:
        self._done += more
        if self._clock.now() < self._said + EVERY:
            return
        self.pipe.send(LoadProgress(self._done.bytes, self._done.records))
        self._done, self._said = ReplayTotals(), self._clock.now()

    def _read(self, stop: Callable[[], object]) -> None:
        for line in sys.stdin.buffer:
            self._lines.put(line)
        stop()
        self._lines.put(None)
