"""A PostgreSQL server of the tests' own: made when it is first asked for, stopped when the process ends."""

import asyncio
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Self

import asyncpg
import pytest

# Small, since each worker of the test run has its own; everything that concerns durability is as by default.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
}
_numbers = count(1)


class PostgresServer:
    """A server on a free port of the loopback interface. Where a test may not share it, make another one."""

    def __init__(self, **settings: str) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        found = str(programs[-1]) if programs else shutil.which("initdb")
        if found is None:
            pytest.skip("PostgreSQL is not installed here")
        self._programs = Path(found).parent
        # PostgreSQL refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="sanderling-postgres-"))
        if self._user:
            shutil.chown(self.folder, self._user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self._settings = SETTINGS | {"port": str(self.port), "unix_socket_directories": str(self.folder)} | settings
        options = "--pgdata=data --username=postgres --auth=trust --no-sync --encoding=UTF8 --locale=C".split()
        self._run("initdb", *options)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        values = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *values]
            self._process = subprocess.Popen(command, user=self._user, stdout=log, stderr=log)
        apart(self._answers())

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def _answers(self) -> None:
        for _ in range(600):
            try:
                connection = await asyncpg.connect(self.url, timeout=10)
            except (OSError, asyncpg.CannotConnectNowError):
                assert self._process is not None
                assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, cwd=self.folder, user=self._user, check=True, capture_output=True)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self._stop("immediate")

    def stop(self) -> None:
        """End it and remove what it stored."""
        self._stop("fast")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop(self, mode: str) -> None:
        if self._process is not None:
            self._run("pg_ctl", "stop", "-w", "-D", "data", "-m", mode)
            self._process.wait()
            self._process = None

    def run(self, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]) -> Any:
        """What `work` returns with a connection of a superuser."""

        async def connected() -> Any:
            connection = await asyncpg.connect(self.url)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return apart(connected())

    def execute(self, sql: str) -> None:
        """Carry out a command as superuser."""
        self.run(lambda connection: connection.execute(sql))


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it on a loop of its own, also below a running one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@cache
def shared_postgres() -> PostgresServer:
    """The server that the tests of this process share; each test takes a schema of its own."""
    server = PostgresServer()
    atexit.register(server.stop)
    return server


def new_name(what: str = "crawl") -> str:
    """The name of a schema that no test of this process has."""
    return f"{what} {next(_numbers)}"


class FaultyWay:
    """A way to a server that breaks: connections are cut now and then, or just before the answer of a COMMIT.

    The server hears of every other cut only.
    """

    def __init__(self, port: int, random: Random, cuts: float = 0.0, lost: float = 0.0) -> None:
        self._to, self._random, self._cuts, self._lost = port, random, cuts, lost
        self.lost = 0  # answers of COMMIT that nobody got
        self.loses_next = False
        self.is_down = False
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"postgres://postgres@127.0.0.1:{port}/postgres"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Cut what is connected."""
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if not self.is_down:
            behind, ahead = await asyncio.open_connection("127.0.0.1", self._to)
            self._writers.add(ahead)
            state = {"commits": False, "is cut": False}
            async with asyncio.TaskGroup() as tasks:
                back = tasks.create_task(self._back(behind, writer, state))
                with suppress(ConnectionError):
                    while data := await reader.read(1 << 16):
                        if self._random.random() < self._cuts:
                            state["is cut"] = True
                            break
                        state["commits"] = b"COMMIT;" in data
                        ahead.write(data)
                if not state["is cut"] or self._random.random() < 0.5:
                    ahead.close()  # else the server does not hear of it
                back.cancel()
        writer.close()

    async def _back(self, behind: asyncio.StreamReader, writer: asyncio.StreamWriter, state: dict[str, bool]) -> None:
        with suppress(ConnectionError):
            while data := await behind.read(1 << 16):
                if state["commits"] and (self.loses_next or self._random.random() < self._lost):
                    state["is cut"] = True
                    self.loses_next = False
                    self.lost += 1
                    break
                writer.write(data)
        writer.close()
