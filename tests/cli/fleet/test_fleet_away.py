"""What a worker of a fleet says of a disk without room, and of servers that are away while it works."""

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import Done, finish, here, run, start
from measured_reports import idle_worker
from part_processes import asked, site, until
from services.postgres import fresh_database

from sanderling.cli.fleet.troubles import SLOW, fleet_troubles
from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.observe.report import Severity

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as url:
        yield url


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own, or a skipped test where we may not have one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603 - ours
        pytest.skip("it needs the right to mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607 - ours


@pytest.mark.parametrize("size", ["100k", "1000k"])
def test_a_full_disk_ends_a_worker_with_a_message_and_others_have_its_parts(
    database: str, tmp_path: Path, size: str
) -> None:
    name = f"disk-{secrets.token_hex(4)}"

    async def main(disk: Path) -> list[Done]:
        async with site() as server:
            urls = [server.url(host.name) for host in server.world.hosts]
            flags = ["--private", "--no-parquet", "--rps", "20", "--lease", "3", "--fleet-parts", "16"]
            shared = ["--fleet", database, "--objects", f"file:{tmp_path / 'objects'}"]
            full = await here("pages", "crawl", *urls, "--out", str(disk / name), *flags, *shared)
            status = await here("fleet", "status", name, *shared[:2])
            on = await here("pages", "crawl", *urls, "--out", str(tmp_path / "two" / name), *flags, *shared, "--json")
            return [full, status, on]

    with small_disk(tmp_path / "disk", size) as disk:
        full, status, on = run(lambda: main(disk))

    assert full.code == 1, full
    assert "Traceback" not in full.out + full.err
    assert "no room" in full.err or "full" in full.err, full
    assert "nobody works on it" in status.out
    assert on.code == 1, on
    assert '"done": true' in on.out


def test_what_parts_wait_for_is_said_once_they_wait_for_long() -> None:
    fleet, worker = FleetStores([], DirectStoreCaller()), idle_worker()
    assert list(fleet_troubles(fleet, worker, lambda: 100.0)) == []

    fleet.waits = {1: (100.0, "the object store does not answer"), 2: (99.0, "the object store does not answer")}
    assert list(fleet_troubles(fleet, worker, lambda: 100.0)) == []
    (trouble,) = fleet_troubles(fleet, worker, lambda: 101.0 + SLOW)
    assert trouble.severity is Severity.WARNING
    assert trouble.text.startswith("the object store does not answer; 2 parts of ours wait")

    worker.away = "PostgreSQL is away: gone"
    (trouble,) = fleet_troubles(fleet, worker, lambda: 101.0 + SLOW)
    assert trouble.severity is Severity.ERROR
    assert trouble.text.startswith("PostgreSQL is away: gone; from half a lease on nothing")


class Relay:
    """Leads to a server, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._lead, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._open:
            each.transport.abort()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(*self._to)
        self._open |= {writer, to_writer}
        await asyncio.gather(self._pass(reader, to_writer), self._pass(to_reader, writer))

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                writer.write(said)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relayed(url: str) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to a server, and its URL by that."""
    parts = urlsplit(url)
    relay = Relay(parts.hostname or "", parts.port or 5432)
    await relay.mend()
    user = f"{parts.username}@" if parts.username else ""
    yield relay, parts._replace(netloc=f"{user}127.0.0.1:{relay.port}").geturl()
    relay.cut()


def test_a_database_that_is_away_is_a_trouble_while_it_is_and_no_line_of_a_log(database: str, tmp_path: Path) -> None:
    out = tmp_path / f"away-{secrets.token_hex(4)}"

    async def main() -> tuple[list[str], Done]:
        async with site() as server, relayed(database) as (relay, url):
            urls = [server.url(host.name) for host in server.world.hosts]
            flags = ["--private", "--no-parquet", "--rps", "2", "--lease", "4", "--fleet-parts", "8"]
            shared = ["--fleet", url, "--objects", f"file:{tmp_path / 'objects'}"]
            worker = await start("pages", "crawl", *urls, "--out", str(out), *flags, *shared)
            await until(lambda: asked(server) > 10)
            said = []
            for cut in (True, False):
                if cut:
                    relay.cut()
                else:
                    await relay.mend()
                status = await here("status", str(out.parent), "--json")
                while ("PostgreSQL is away" in status.out) is not cut:
                    await asyncio.sleep(0.2)
                    status = await here("status", str(out.parent), "--json")
                said.append(status.out)
            worker.terminate()
            return said, await finish(worker)

    said, done = run(main)

    assert "PostgreSQL is away" in said[0]
    assert "PostgreSQL is away" not in said[1]
    assert done.code == 130, done
    assert "PostgreSQL is away" in done.err
    assert '"event"' not in done.err
