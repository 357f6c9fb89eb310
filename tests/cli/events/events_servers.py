"""Private servers that can be stopped, or killed, and started again where they were."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from services.process import Missing, Service, Unreachable, private_folder

SECONDS = 300.0  # to come up, or to go


class PrivateServer:
    """A server in a folder of its own. What it was started with is read from the process itself."""

    def __init__(self, service: Service, url: str, pid: int, folder: Path) -> None:
        self.url = url
        self._service = service
        self._pid = pid
        self._folder = folder
        home = Path(f"/proc/{pid}")
        self._command = [part.decode() for part in (home / "cmdline").read_bytes().split(b"\0")[:-1]]
        pairs = (pair.decode().partition("=") for pair in (home / "environ").read_bytes().split(b"\0") if pair)
        self._environment = {name: value for name, _, value in pairs}
        self._where, self._user = (home / "cwd").readlink(), home.stat().st_uid
        self._again: subprocess.Popen[bytes] | None = None

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Return when it is gone, and all that it has started."""
        gone = [self._pid, *_children(self._pid)]
        os.kill(self._pid, number)
        async with asyncio.timeout(SECONDS):
            while any(map(_is_there, gone)):  # noqa: ASYNC110 - of processes
                await asyncio.sleep(0.05)
        # A PostgreSQL that was killed does not start again while there is a trace of it in the list of processes.
        await asyncio.to_thread(self._reap)

    def _reap(self) -> None:
        if self._again is None:
            os.waitpid(self._pid, 0)
        else:
            self._again.wait()

    async def start(self) -> None:
        """Return when it answers again."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        with (self._folder / "again.log").open("ab") as log:
            self._again = subprocess.Popen(  # noqa: S603 - what ran before
                self._command,
                cwd=self._where,
                env=self._environment,
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid, end = self._again.pid, time.monotonic() + SECONDS
        while True:
            try:
                return self._service.hello(self.url, 5)
            except Unreachable:
                if self._again.poll() is not None or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def close(self) -> None:
        """End the one that was started again."""
        if self._again is not None:
            self._again.kill()
            self._again.wait()


@contextmanager
def private(service: Service) -> Iterator[PrivateServer]:
    """A server of our own; skips where this machine has none."""
    with private_folder() as folder:
        try:
            with service.start(Path(folder)) as started:
                server = PrivateServer(service, started.url, started.pid, Path(folder))
                try:
                    yield server
                finally:
                    server.close()
        except Missing as why:
            pytest.skip(f"{service.name}: {why}")


def _stat(pid: int) -> list[str]:
    """What the system says of a process, from its state on; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _children(pid: int) -> list[int]:
    every = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    return [each for each in every if _stat(each)[1:2] == [str(pid)]]


def _is_there(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"])
