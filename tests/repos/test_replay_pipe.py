"""A sink at the other end of a pipe does what it would do here, and knows what was cut short."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest
from small_archives import THREE, Heard, write

from sanderling.repos.replay import ReplayBatch, ReplayRules, ReplaySegment, RepoReplay
from sanderling.repos.replay_pipe import LoadPipe, PipeSink, SinkServer, read_message


class ListSink:
    """Keeps rows in a list for each segment."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.versions: list[tuple[str, int]] = []
        self.complete: dict[str, bool] = {}

    def has(self, segment: ReplaySegment) -> bool:
        return self.complete.get(segment.name, False)

    @contextmanager
    def loading(self, segment: ReplaySegment) -> Iterator["ListLoading"]:
        loading = ListLoading(self, segment.name)
        yield loading
        self.complete[segment.name] = loading.complete

    def remove_superseded(self) -> int:
        return 0


class ListLoading:
    def __init__(self, sink: ListSink, name: str) -> None:
        self.complete = False
        self._sink, self._name = sink, name

    def write(self, batch: ReplayBatch) -> None:
        self._sink.rows.setdefault(self._name, []).extend(batch.rows.to_pylist())
        self._sink.versions += batch.versions


class Piped:
    """A sink that is reached over a pipe; `cut_after` so many messages, whoever sends is gone."""

    def __init__(self, sink: ListSink, cut_after: int | None = None) -> None:
        reading, writing = os.pipe()
        self._file, self._sending = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._cut_after = cut_after
        self._server = SinkServer(sink, lambda answer: self._answers.put(msgspec.json.encode(answer)))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.sink = PipeSink(LoadPipe(self._sending, self._answers))

    def _serve(self) -> None:
        taken = 0
        try:
            while taken != self._cut_after:
                assert self._server.take(read_message(self._file), self._file)
                taken += 1
        except EOFError:
            pass
        self._answers.put(None)
        self._file.close()
        self._server.give_up()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._sending.close()
        self._thread.join()


@pytest.fixture
def segments(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / f"segment_{number:04}.rca", [repo]) for number, repo in enumerate(THREE, 1)]


def replayed(sink: Any, paths: list[Path]) -> None:  # noqa: ANN401 - either kind of sink
    replay = RepoReplay(sink, Heard(), rules=ReplayRules(rows=2))
    for path in paths:
        replay.load(path)


def test_what_is_sent_is_what_would_have_been_written_here(segments: list[Path]) -> None:
    here, there = ListSink(), ListSink()
    piped = Piped(there)

    replayed(here, segments)
    replayed(piped.sink, segments)
    replayed(piped.sink, segments)  # which was all loaded before
    piped.close()

    assert there.rows == here.rows
    assert there.versions == here.versions
    assert there.complete == here.complete == dict.fromkeys(here.rows, True)


@pytest.mark.parametrize("messages", range(1, 4))
def test_a_segment_that_is_cut_short_is_not_loaded(segments: list[Path], messages: int) -> None:
    """Of has, begin, batch and end, so many came."""
    sink = ListSink()
    piped = Piped(sink, messages)

    with pytest.raises(EOFError):
        replayed(piped.sink, segments[:1])
    piped.close()

    assert not any(sink.complete.values())
