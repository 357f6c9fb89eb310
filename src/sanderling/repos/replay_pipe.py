"""Between the processes of a replay: one hands out segments, others load them and say how far they are.

The one that loads has a sink of its own where many may write at once. A database that only one process may open is that
of the one that hands out: then what is loaded goes there too, as Arrow, a batch behind the message that announces it.
"""

import errno
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from queue import SimpleQueue
from typing import Any

import msgspec

from sanderling.extras import load
from sanderling.repos.replay import ReplayBatch, ReplaySegment, ReplaySink, SegmentLoading

LENGTH = struct.Struct("<I")


class LoadProgress(msgspec.Struct, tag="progress"):
    """So much more was done."""

    bytes: int
    records: int


class LoadProblem(msgspec.Struct, tag="problem"):
    """Something is wrong with a file."""

    path: str
    offset: int
    found: str


class AskLoaded(msgspec.Struct, tag="has"):
    """Was all of this segment loaded before? The answer is true or false."""

    segment: ReplaySegment


class BeginSegment(msgspec.Struct, tag="begin"):
    """Batches of this segment follow."""

    segment: ReplaySegment


class SendBatch(msgspec.Struct, tag="batch"):
    """Some records, which follow in so many bytes. The answer is true, once they are kept."""

    size: int
    versions: list[tuple[str, int]]


class EndSegment(msgspec.Struct, tag="end"):
    """No more batches follow. The answer is true, once that is known."""

    complete: bool


class SegmentLoaded(msgspec.Struct, tag="loaded"):
    """The segment that was handed out is done; the numbers of `ReplayTotals`."""

    totals: dict[str, int]


class LoadFailed(msgspec.Struct, tag="failed"):
    """It cannot go on."""

    message: str


LoadMessage = (
    LoadProgress | LoadProblem | AskLoaded | BeginSegment | SendBatch | EndSegment | SegmentLoaded | LoadFailed
)
_decoder: msgspec.json.Decoder[LoadMessage] = msgspec.json.Decoder(LoadMessage)


class LoadPipe:
    """The end of the process that loads: `answers` are the lines that it was sent, None when there are no more.

    Its methods raise EOFError if there is nobody any more at the other end.
    """

    def __init__(self, file: BufferedIOBase, answers: SimpleQueue[bytes | None]) -> None:
        self._file = file
        self._answers = answers

    def send(self, message: LoadMessage) -> None:
        """Send a message."""
        data = msgspec.json.encode(message)
        with self._heard():
            self._file.write(LENGTH.pack(len(data)) + data)
            self._file.flush()

    def send_batch(self, batch: ReplayBatch) -> None:
        """Send a batch behind its message. Its bytes are written as they lie: 64 MB are not copied first."""
        pa = load("pyarrow", "Parquet")
        counted = pa.MockOutputStream()
        _write_table(pa, counted, batch)
        self.send(SendBatch(counted.size(), batch.versions))
        with self._heard():
            _write_table(pa, pa.PythonFile(self._file, "w"), batch)
            self._file.flush()

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # pyarrow has one class for all of them
            if error.errno != errno.EPIPE:
                raise
            raise EOFError from None

    def answer(self) -> bool:
        """What the other says."""
        line = self._answers.get()
        if line is None:
            raise EOFError
        return msgspec.json.decode(line, type=bool)


def _write_table(pa: Any, file: Any, batch: ReplayBatch) -> None:  # noqa: ANN401 - pyarrow has no types
    with pa.ipc.new_stream(file, batch.rows.schema) as writer:
        writer.write_table(batch.rows)


def read_message(file: BufferedIOBase) -> LoadMessage:
    """The next message. Raises EOFError if there is none, or not all of it."""
    (length,) = LENGTH.unpack(read_exactly(file, LENGTH.size))
    return _decoder.decode(read_exactly(file, length))


def read_exactly(file: BufferedIOBase, size: int) -> bytes:
    """So many bytes. Raises EOFError if there are fewer."""
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


class PipeSink:
    """The sink of another process, at the other end of a pipe."""

    def __init__(self, pipe: LoadPipe) -> None:
        self._pipe = pipe

    def has(self, segment: ReplaySegment) -> bool:
        """Whether all of it was loaded before."""
        self._pipe.send(AskLoaded(segment))
        return self._pipe.answer()

    @contextmanager
    def loading(self, segment: ReplaySegment) -> Iterator["_SentSegment"]:
        """Send its rows."""
        self._pipe.send(BeginSegment(segment))
        loading = _SentSegment(self._pipe)
        yield loading
        loading.settle()
        self._pipe.send(EndSegment(loading.complete))
        self._pipe.answer()

    def remove_superseded(self) -> int:
        """Nothing: whoever hands out does it."""
        return 0


class _SentSegment:
    def __init__(self, pipe: LoadPipe) -> None:
        self.complete = False
        self._pipe = pipe
        self._unanswered = False

    def write(self, batch: ReplayBatch) -> None:
        """Send a batch, once the one before is kept: so one is made while another is written, and never more."""
        self.settle()
        self._pipe.send_batch(batch)
        self._unanswered = True

    def settle(self) -> None:
        """Return when all that was sent is kept."""
        if self._unanswered:
            self._pipe.answer()
            self._unanswered = False


class SinkServer:
    """Does what a `PipeSink` at the other end wants of the `sink` that is here; `answer` says so."""

    def __init__(self, sink: ReplaySink, answer: Callable[[bool], object]) -> None:
        self._sink = sink
        self._answer = answer
        self._open = ExitStack()
        self._loading: SegmentLoading | None = None

    def take(self, message: LoadMessage, file: BufferedIOBase) -> bool:
        """Whether the message was for the sink; what follows it is read from the file."""
        match message:
            case AskLoaded(segment):
                self._answer(self._sink.has(segment))
            case BeginSegment(segment):
                self._loading = self._open.enter_context(self._sink.loading(segment))
            case SendBatch(size, versions) if self._loading is not None:
                pa = load("pyarrow", "Parquet")
                rows = pa.ipc.open_stream(read_exactly(file, size)).read_all()
                self._loading.write(ReplayBatch(rows, versions))
                self._answer(True)  # noqa: FBT003 - what is said
            case EndSegment(complete) if self._loading is not None:
                self._loading.complete = complete
                self._loading = None
                self._open.close()
                self._answer(True)  # noqa: FBT003 - what is said
            case _:
                return False
        return True

    def give_up(self) -> None:
        """Nobody sends any more: what was begun is not loaded as a whole."""
        if self._loading is not None:
            self._loading.complete = False
            self._loading = None
        self._open.close()
