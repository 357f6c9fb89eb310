"""A PostgreSQL server of the tests' own: made when it is first asked for, stopped when the process ends."""

import asyncio
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest

# Small, since each worker of the test run has its own; everything that concerns durability is as by default.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
    "autovacuum": "on",
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
        asyncio.run(self._answers())

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

        return asyncio.run(connected())

    def execute(self, sql: str) -> None:
        """Carry out a command as superuser."""
        self.run(lambda connection: connection.execute(sql))


@cache
def shared_postgres() -> PostgresServer:
    """The server that the tests of this process share; each test takes a schema of its own."""
    server = PostgresServer()
    atexit.register(server.stop)
    return server


def new_name(what: str = "crawl") -> str:
    """The name of a schema that no test of this process has."""
    return f"{what} {next(_numbers)}"
