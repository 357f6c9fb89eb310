"""Streams: what is sent when, and what ends them. On virtual time, with a wire that is not there."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest
from aiohttp import web
from looping import virtual
from structlog.testing import capture_logs

from sanderling.testing.virtual import LoopClock
from sanderling.web.stream import AT_ONCE, SendTurns, Socket, Streams, TooSlow, alive, event


class Line:
    """A wire that remembers what was sent, and when; `stuck` ones take nothing more after so many pieces."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.busy = False
        self.sent: list[tuple[float, bytes]] = []
        self.error: Exception | None = None
        self._room = room

    async def send(self, data: bytes) -> None:
        assert not self.busy, "two send at once"
        self.busy = True
        try:
            await self._send(data)
        finally:
            self.busy = False

    async def _send(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((asyncio.get_running_loop().time(), data))
        if len(self.sent) >= self._room:
            await asyncio.sleep(30)
            raise TooSlow

    def at(self, what: bytes) -> list[float]:
        return [time for time, data in self.sent if data == what]


async def says(*pieces: bytes | float) -> AsyncGenerator[bytes, None]:
    """Say these; a number is a pause. Then go silent for ever."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            await asyncio.sleep(piece)
    await asyncio.sleep(1e9)


def silent() -> bytes:
    return b"silent"


def streams() -> Streams:
    return Streams(LoopClock())


async def run_for(seconds: float, opened: Streams, line: Line, told: AsyncGenerator[bytes, None]) -> None:
    """Serve, and close after so long."""
    async with asyncio.TaskGroup() as group:
        group.create_task(opened.run(line, told, silent))
        await asyncio.sleep(seconds)
        opened.close()


def test_an_event_is_spelled_as_browsers_read_it() -> None:
    assert event("change", b'{"a":1}', 7) == b'id: 7\nevent: change\ndata: {"a":1}\n\n'


def test_a_keep_alive_is_no_event_and_moves_the_position() -> None:
    lines = alive(7).split(b"\n")

    assert lines == [b": alive", b"id: 7", b"", b""]


@virtual
async def test_what_is_told_is_sent_at_once_and_in_order() -> None:
    line = Line()

    await run_for(9, streams(), line, says(b"a", b"b", 3.0, b"c"))

    assert line.sent == [(0, b"a"), (0, b"b"), (3, b"c")]


@virtual
async def test_a_silent_stream_is_kept_alive_every_ten_seconds() -> None:
    line = Line()

    await run_for(35, streams(), line, says(b"a"))

    assert line.at(b"silent") == [10, 20, 30]


@virtual
async def test_a_stream_is_not_kept_alive_while_it_is_sending() -> None:
    line = Line(room=1)

    await run_for(29, streams(), line, says(b"a"))

    assert line.sent == [(0, b"a")]


@virtual
async def test_a_client_that_does_not_read_is_dropped_and_that_is_logged() -> None:
    line = Line(room=2)

    with capture_logs() as lines:
        await streams().run(line, says(b"a", b"b", b"c"), silent)

    assert asyncio.get_running_loop().time() == 30
    assert [data for _, data in line.sent] == [b"a", b"b"]
    assert [entry["event"] for entry in lines] == ["stream_dropped"]


@virtual
async def test_a_client_that_stops_to_read_in_silence_is_dropped_as_well() -> None:
    line = Line(room=2)

    with capture_logs() as lines:
        await streams().run(line, says(b"a"), silent)

    assert asyncio.get_running_loop().time() == 40
    assert [entry["event"] for entry in lines] == ["stream_dropped"]


@pytest.mark.parametrize("pause", [0.0, 100.0])
@virtual
async def test_a_client_that_has_gone_ends_the_stream_and_is_not_worth_a_line(pause: float) -> None:
    line = Line()
    line.error = ConnectionResetError()

    with capture_logs() as lines:
        await streams().run(line, says(pause, b"a"), silent)

    assert asyncio.get_running_loop().time() == min(pause, 10)
    assert lines == []


@virtual
async def test_a_stream_with_nothing_more_to_tell_ends() -> None:
    async def told() -> AsyncGenerator[bytes, None]:
        yield b"a"

    line = Line()

    await streams().run(line, told(), silent)

    assert line.sent == [(0, b"a")]


@virtual
async def test_to_close_ends_all_streams_at_once_also_one_that_is_stuck() -> None:
    opened, lines = streams(), [Line(), Line(), Line(room=1)]

    async with asyncio.TaskGroup() as group:
        for line in lines:
            group.create_task(opened.run(line, says(b"a"), silent))
        await asyncio.sleep(5)
        opened.close()

    assert asyncio.get_running_loop().time() == 5


@virtual
async def test_a_stream_that_begins_when_all_are_closed_ends_at_once() -> None:
    opened = streams()
    opened.close()

    await opened.run(Line(), says(), silent)

    assert asyncio.get_running_loop().time() == 0


@virtual
async def test_what_tells_is_let_go_however_the_stream_ends() -> None:
    ended: list[str] = []

    async def told(name: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"a"
            await asyncio.sleep(1e9)
        finally:
            ended.append(name)

    broken = Line()
    broken.error = ConnectionResetError()
    await streams().run(broken, told("gone"), silent)
    await streams().run(Line(room=1), told("slow"), silent)
    await run_for(1, streams(), Line(), told("closed"))

    assert ended == ["gone", "slow", "closed"]


class Full:
    """A request whose line is full: what is written goes into a buffer, and no room is made."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False
        self.writer = self.transport = self

    async def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        await asyncio.sleep(1e9)

    def abort(self) -> None:
        self.aborted = True


@virtual
async def test_a_line_that_stays_full_is_cut_whatever_little_was_written() -> None:
    full = Full()
    wire = Socket(cast("web.Request", full), cast("web.StreamResponse", full), patience=30.0)

    with pytest.raises(TooSlow):
        await wire.send(b":\n\n")

    assert asyncio.get_running_loop().time() == 30
    assert (full.written, full.aborted, wire.busy) == ([b":\n\n"], True, False)


# A thousand clients hear of the same change.


@virtual
async def test_only_a_few_streams_send_in_one_round_of_the_loop_and_each_in_its_turn() -> None:
    opened, news, number = streams(), asyncio.Event(), 3 * AT_ONCE + 1
    rounds: list[list[int]] = []

    class Counted(Line):
        def __init__(self, name: int) -> None:
            super().__init__()
            self.name = name

        async def _send(self, data: bytes) -> None:
            await super()._send(data)
            rounds[-1].append(self.name)

    async def told() -> AsyncGenerator[bytes, None]:
        await news.wait()
        yield b"a"

    lines = [Counted(name) for name in range(number)]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(opened.run(line, told(), silent)) for line in lines]
        await asyncio.sleep(1)
        news.set()
        while not all(task.done() for task in running):
            rounds.append([])
            await asyncio.sleep(0)

    assert [len(each) for each in rounds if each] == [AT_ONCE, AT_ONCE, AT_ONCE, 1]
    assert [name for each in rounds for name in each] == list(range(number))


@virtual
async def test_a_client_that_goes_while_it_waits_for_its_turn_holds_up_nobody() -> None:
    turns = SendTurns()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(turns.take()) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0)
        for task in tasks[AT_ONCE : 2 * AT_ONCE]:
            task.cancel()

    assert [task.cancelled() for task in tasks] == [False] * AT_ONCE + [True] * AT_ONCE + [False] * AT_ONCE


@virtual
async def test_a_client_that_does_not_read_holds_up_nobody() -> None:
    opened, stuck, lines = streams(), Line(room=1), [Line() for _ in range(2 * AT_ONCE)]

    async with asyncio.TaskGroup() as group:
        for line in (stuck, *lines):
            group.create_task(opened.run(line, says(b"a", 1.0, b"b", 1.0, b"c"), silent))
        await asyncio.sleep(5)
        opened.close()

    assert all(line.sent == [(0, b"a"), (1, b"b"), (2, b"c")] for line in lines)
    assert stuck.sent == [(0, b"a")]


@virtual
async def test_a_bug_in_what_tells_is_not_swallowed() -> None:
    async def told() -> AsyncGenerator[bytes, None]:
        yield b"a"
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await streams().run(Line(), told(), silent)

    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]
