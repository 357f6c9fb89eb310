"""What a worker of a fleet says of a disk without room, and of servers that are away while it works."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Done, here, run
from part_processes import site
from services.postgres import fresh_database

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
