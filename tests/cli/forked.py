"""Processes of `sanderling` that need not load its modules, which takes more than half a second of each.

A process that has loaded them forks whenever a command is wanted. What it forks is handed over to whoever asked, as a
child of theirs: a process like any other, with streams, signals, an exit code and a working directory of its own. That
the modules load in a process that begins with nothing is for others to see: `test_main.py`, and the tests of packages.
"""

import asyncio
import atexit
import ctypes
import gc
import json
import os
import pkgutil
import re
import runpy
import signal
import socket
import subprocess
import sys
from asyncio import StreamReader
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T", str, bytes)

SUBREAPER = 36  # of prctl(2): what its descendants leave behind become children of the process
RUN = (".__main__", ".env")  # modules that do something when they are loaded
MOST = 1 << 17  # bytes of a command with all of the environment


class Forked:
    """A child of ours, as far as `asyncio.subprocess.Process` is needed."""

    def __init__(self, pid: int, stdout: StreamReader, stderr: StreamReader) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = stdout
        self.stderr = stderr
        self._ended = asyncio.Event()
        self._handle = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._handle, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        """What else it says until it has ended."""
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it as a service manager does."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class Command(subprocess.Popen[T]):
    """A forked process for those who wait for no event loop: `Popen` with the words behind `sanderling`."""

    def _execute_child(self, *given: Any) -> None:  # noqa: ANN401 - instead of fork and exec, with all that Popen knows
        words, cwd, environment = given[0], given[5], given[6]
        theirs, ours = (given[10], given[13], given[15]), (given[11], given[12], given[14])  # ends of pipes, or -1
        streams = {number: theirs[number] for number in range(3) if theirs[number] != -1}
        self.pid = _asked_for(words, streams, cwd, environment)
        self._child_created = True
        for number, stream in streams.items():
            if ours[number] != -1:
                os.close(stream)


async def fork(*words: str, stdout: int | None = None, stderr: int | None = None) -> Forked:
    """The process of a command, where we are and with our environment; perhaps with files for what it says."""
    (out, its_out), (err, its_err) = os.pipe(), os.pipe()
    try:
        given = {1: its_out if stdout is None else stdout, 2: its_err if stderr is None else stderr}
        pid = _asked_for(words, given)
    finally:
        os.close(its_out)
        os.close(its_err)
    return Forked(pid, await _reading(out), await _reading(err))


def with_settings(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """A command without its settings, and the environment that sets these.

    `@batch`, `5` sets what is no flag: for the command, or, as `@events.bucket`, for another table.
    """
    from sanderling.cli.config.settings import known, variable  # noqa: PLC0415 - who asks has it, or loads it now

    ends = [end for end in range(len(words) + 1) if tuple(words[:end]) in known().commands]
    table, rest, environment = tuple(words[: max(ends, default=0)]), list[str](), dict[str, str]()
    left = iter(words)
    for word in left:
        if not re.match(r"@[a-z.-]+(?:=|$)", word):
            rest.append(word)
            continue
        name, equals, value = word.removeprefix("@").partition("=")
        *other, key = name.split(".")
        environment[variable(tuple(other) or table, key)] = value if equals else next(left)
    return rest, environment


def _asked_for(
    words: Sequence[str], streams: dict[int, int], cwd: Path | None = None, environment: dict[str, str] | None = None
) -> int:
    """The id of the process of a command, of which these are the streams by number."""
    words, settings = with_settings(words)
    command = {
        "words": words,
        "streams": list(streams),
        "folder": str(cwd or Path.cwd()),
        "environment": (environment or dict(os.environ)) | settings,
    }
    asked = _forking()
    socket.send_fds(asked, [json.dumps(command).encode()], list(streams.values()))
    return int(asked.recv(MOST))


async def _reading(number: int) -> StreamReader:
    reader = StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, open(number, "rb", buffering=0))  # noqa: SIM115, ASYNC230
    return reader


@cache
def _forking() -> socket.socket:
    """Begin what forks; it ends with us."""
    assert ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-W", "error", __file__, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)  # noqa: S603 - ours
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# What forks.


def serve(asking: socket.socket) -> None:
    """Fork until nobody asks for more; returns in the child, too, when its command has ended."""
    import sanderling  # noqa: PLC0415 - who asks has it, or loads it when it likes

    for module in pkgutil.walk_packages(sanderling.__path__, "sanderling."):
        if not module.name.endswith(RUN):
            import_module(module.name)
    gc.collect()
    gc.freeze()  # so that pages are shared
    while True:
        said, streams, _, _ = socket.recv_fds(asking, MOST, 3)
        if not said:
            return
        if not (pid := _orphan()):
            asking.close()
            _become(json.loads(said), streams)
            return
        for stream in streams:
            os.close(stream)
        asking.send(str(pid).encode())


def _orphan() -> int:
    """Fork a process that is nobody's child, so that it becomes one of whoever has asked; 0 is in that process."""
    reading, writing = os.pipe()
    if not (between := os.fork()):
        if pid := os.fork():
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        return 0
    os.waitpid(between, 0)
    pid = int(os.read(reading, 64))
    os.close(reading)
    os.close(writing)
    return pid


def _become(command: dict[str, Any], streams: list[int]) -> None:
    """Run a command as `python -m sanderling` does."""
    for number, stream in zip(command["streams"], streams, strict=True):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = ["sanderling", *command["words"]]
    runpy.run_module("sanderling", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
