"""PostgreSQL servers that are restarted, killed, filled up, and replaced by a replica that lacks the last commits."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from services.postgres import _binaries, _initdb, _user, hello
from services.process import Missing, Unreachable, free_ports

SETTINGS = ("unix_socket_directories=", "fsync=off", "max_connections=200", "wal_level=replica", "max_wal_senders=4")
ROOM = "24m"  # of the disk that can be full; an empty database takes 8
SECONDS = 60.0


@dataclass(slots=True)
class Postgres:
    """A server of our own, in a folder, that keeps its port whatever happens to it."""

    folder: Path
    address: str = "127.0.0.1"
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    database: str = "postgres"
    disk: Path | None = None  # where a small disk is mounted, for this server alone
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"postgresql://postgres@{self.address}:{self.port}/{self.database}"

    @property
    def data(self) -> Path:
        """Its files."""
        return self.folder / "data"

    def make(self) -> None:
        """Make an empty one."""
        self.port = self.port or free_ports(1)[0]
        user = _user()
        if user:
            shutil.chown(self.folder, user)
        options = ("-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        _initdb(_binaries(user), user, *options)
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = (f"-c{each}" for each in (*SETTINGS, f"listen_addresses={self.address}"))
        command = [str(_binaries(_user()) / "postgres"), "-D", str(self.data), "-p", str(self.port), *settings]
        until = time.monotonic() + SECONDS
        while not self._starts(command, until):  # one that was killed may still hold what the next one needs
            time.sleep(0.1)

    def _starts(self, command: list[str], until: float) -> bool:
        with (self.folder / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - ours
                self._as_user(command),
                cwd=self.folder,
                env=os.environ | dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while self.process.poll() is None:
            try:
                hello(self.url.replace(f"/{self.database}", "/postgres"), 5)
            except (Unreachable, TimeoutError):
                time.sleep(0.05)
            else:
                return True
            if time.monotonic() > until:
                break
        assert time.monotonic() < until, (self.folder / "postgres.log").read_text()[-2000:]
        return False

    def _as_user(self, command: list[str]) -> list[str]:
        """The command as the user that PostgreSQL accepts, on its machine, with its small disk."""
        if user := _user():
            ids = pwd.getpwnam(user)
            command = ["setpriv", f"--reuid={ids.pw_uid}", f"--regid={ids.pw_gid}", "--clear-groups", *command]
        if self.disk is not None:
            mount = f'mount -t tmpfs -o size={ROOM},uid={_uid()} none {self.disk} && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, "sh", *command]
        return [*self.before, *command]

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is an orderly end, SIGQUIT one without, SIGKILL that of the machine."""
        assert self.process is not None
        children = _children(self.process.pid)
        self.process.send_signal(how)
        for child in children if how == signal.SIGKILL else ():
            os.kill(child, signal.SIGKILL)
        self.process.wait(SECONDS)
        until = time.monotonic() + SECONDS
        while any(map(_lives, children)) and time.monotonic() < until:
            time.sleep(0.02)

    def end(self) -> None:
        """Stop it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGKILL)

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        """The rows of a statement, over a connection of its own."""

        async def ask() -> list[tuple[object, ...]]:
            connection = await asyncpg.connect(self.url, timeout=10)
            try:
                return [tuple(row) for row in await connection.fetch(statement, timeout=10)]
            finally:
                await connection.close(timeout=5)

        return asyncio.run(ask())

    def fill(self) -> None:
        """Leave no byte on its small disk."""
        with self._ballast().open("wb", buffering=0) as ballast:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while ballast.write(bytes(size)):
                        pass
                except OSError:  # it is full
                    continue

    def empty(self) -> None:
        """Give the room back."""
        self._ballast().unlink()

    def _ballast(self) -> Path:
        assert self.process is not None
        assert self.disk is not None
        return Path(f"/proc/{self.process.pid}/root{self.disk}/ballast")

    @contextmanager
    def replica(self, folder: Path) -> "Iterator[Postgres]":
        """A server that follows this one, and has its port and address to be started with once it is gone."""
        twin = Postgres(folder, self.address, self.before, port=free_ports(1)[0])
        copy = [str(_binaries(_user()) / "pg_basebackup"), "-D", str(twin.data), "-d", self.url, "-R", "-X", "stream"]
        if user := _user():
            shutil.chown(folder, user)
        done = subprocess.run(self._as_user([*copy, "-c", "fast"]), cwd=folder, capture_output=True, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr.decode()
        try:
            twin.start()
            yield twin
        finally:
            twin.end()

    def starve(self) -> None:
        """What the other one commits from now on does not arrive here any more, and never will."""
        assert self.process is not None
        for child in _children(self.process.pid):
            if b"walreceiver" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGSTOP)
                return
        raise AssertionError("the replica receives nothing")

    def replace(self, other: "Postgres") -> None:
        """Take the place of another, which is gone: answer where it did, with what has arrived here."""
        self.stop(signal.SIGKILL)
        (self.data / "standby.signal").unlink()
        self.port = other.port
        self.start()


def _uid() -> int:
    """Whose files the server's are."""
    user = _user()
    return pwd.getpwnam(user).pw_uid if user else os.geteuid()


def _lives(process: int) -> bool:
    """Whether a process is there, and not only its name in the table."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


@contextmanager
def postgres_of_our_own(folder: Path, server: Postgres | None = None) -> Iterator[Postgres]:
    """A server that runs, and is gone on exit; raises Missing where there is no program for it."""
    made = server or Postgres(folder)
    made.make()
    try:
        made.start()
        yield made
    finally:
        made.end()


@contextmanager
def postgres_on_a_small_disk(folder: Path) -> Iterator[Postgres]:
    """A server with a database on a disk of its own, which `fill` fills up; its log is on another."""
    if os.geteuid() != 0:
        raise Missing("only root can mount a small disk")
    disk = folder / "disk"
    disk.mkdir()
    with postgres_of_our_own(folder, Postgres(folder, disk=disk)) as server:
        server.ask(f"CREATE TABLESPACE small LOCATION '{disk}'")  # a path of our own making
        server.ask("CREATE DATABASE crawls TABLESPACE small")
        server.database = "crawls"
        yield server
