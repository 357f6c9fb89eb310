"""How commands end: with what happened in words, and at once when they are told so twice."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from command_line import Arrival, finish
from events_commands import Place
from scripted_server import ScriptedServer

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import explain_end, stop_on_signals
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import QueueError
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

KNOWN = (FolderError, QueueError)
HOUR = 3600.0
# Its own patience with the server is taken from it, so that it would be there for an hour.
PATIENT = f"""
from sanderling.cli import loop, main
from sanderling.stores import objects_s3
loop.TOGETHER = 0.0
objects_s3.SILENCE = objects_s3.EXCHANGE = {HOUR}
main()
"""
STUCK = """
import asyncio
from sanderling.cli import loop
loop.GRACE, loop.TOGETHER = 0.1, 0.0

async def main():
    with loop.stop_on_signals(lambda: None, print, lambda: "finishing"):
        try:
            print("begun", flush=True)
            await asyncio.sleep(3600)
        finally:
            print("letting go", flush=True)
            {stuck}

loop.run(main())
"""


def ended_by(error: BaseException) -> CommandError:
    with pytest.raises(CommandError) as caught, explain_end("sanderling go on", KNOWN):
        raise error
    return caught.value


def group(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("tasks", errors)


@pytest.mark.parametrize(
    "error",
    [
        FolderError("the disk is full"),
        group(FolderError("the disk is full")),
        group(group(FolderError("the disk is full"), QueueError("gone"))),
    ],
)
def test_what_is_known_to_happen_is_said_in_words(error: Exception) -> None:
    said = ended_by(error)

    assert (str(said), said.code) == ("the disk is full", 1)


@pytest.mark.parametrize("error", [CommandError("no such port", 2), group(group(CommandError("no such port", 2)))])
def test_what_a_part_says_comes_out_of_its_group_with_its_code(error: Exception) -> None:
    said = ended_by(error)

    assert (str(said), said.code) == ("no such port", 2)


def test_a_message_cannot_move_the_cursor_of_a_terminal() -> None:
    assert "\x1b" not in str(ended_by(QueueError("\x1b[2J")))


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt()])
def test_who_is_stopped_at_once_is_told_how_to_go_on(error: BaseException) -> None:
    said = ended_by(error)

    assert said.code == 130
    assert "stopped at once; what was kept is safe. Go on with:\n\n    sanderling go on\n" in str(said)


@pytest.mark.parametrize("errors", [(KeyError("ours"),), (FolderError("full"), KeyError("ours"))])
def test_a_mistake_of_ours_stays_loud(errors: tuple[Exception, ...]) -> None:
    with pytest.raises(ExceptionGroup) as caught, explain_end("sanderling go on", KNOWN):
        raise group(*errors)

    assert caught.value.subgroup(KeyError) is not None


# With real processes.


@asynccontextmanager
async def begun(program: str, *arguments: str) -> AsyncIterator[Process]:
    command = (sys.executable, "-W", "error", "-c", program, *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def heard(process: Process, what: str) -> None:
    """Return when it has said that."""
    said = process.stdout if what in ("begun", "letting go") else process.stderr
    assert said is not None
    async with asyncio.timeout(300):
        while what not in (line := (await said.readline()).decode()):
            assert line, "it has ended"


def test_the_second_signal_does_not_wait_for_a_store_that_never_answers(tmp_path: Path) -> None:
    async def main() -> tuple[int, str]:
        arrival, social = Arrival(), Social(1, demo())
        number = next(number for number in range(100) if social.batch(number).body is not None)
        path = quote("/" + social.batch(number).path.removeprefix("minio://"))
        async with ScriptedServer({path: [[arrival, HOUR]]}) as server:
            place = Place(tmp_path / "out", objects=f"s3+http://key:secret@127.0.0.1:{server.port}")
            await place.publish([social.envelope(number)])
            async with begun(PATIENT, "events", "consume", *place.flags()) as process:
                await arrival.came()
                process.send_signal(signal.SIGINT)
                await heard(process, "once more stops at once")
                process.send_signal(signal.SIGINT)
                done = await finish(process)
        assert (await place.depth()).dead == 0
        return done.code, done.err

    code, said = asyncio.run(main())

    assert code == 130
    assert "stopped at once; what was kept is safe. Go on with:\n\n    sanderling events consume " in said
    assert "Traceback" not in said


@pytest.mark.parametrize("stuck", ["await asyncio.sleep(3600)", "import time; time.sleep(3600)"])
def test_nor_for_a_part_that_does_not_let_go(stuck: str) -> None:
    async def main() -> tuple[int, str]:
        async with begun(STUCK.format(stuck=stuck)) as process:
            await heard(process, "begun")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            await heard(process, "letting go")
            done = await finish(process)
        return done.code, done.err

    assert asyncio.run(main()) == (130, "sanderling: stopped at once; what was kept is safe\n")


def test_signals_that_come_together_are_one() -> None:
    """Whoever signals a process and its group means it once."""
    notes, at_once = list[str](), list[bool]()

    async def main() -> list[int]:
        with stop_on_signals(lambda: None, notes.append, lambda: "finishing") as came:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                at_once.append(True)
        return came

    assert asyncio.run(main()) == [signal.SIGTERM, signal.SIGINT]
    assert notes == ["finishing; once more stops at once"]
    assert not at_once
