"""A disk that is full under a real crawl of ids: it says so, loses nothing, and goes on when there is room."""

import asyncio
import resource
import signal
import sys
from pathlib import Path

from command_line import run, sanderling
from known_reports import published
from sequence_commands import begin, flags, raids, served, stored

SMALL = 400_000  # bytes that a file may have: a few letters of the queue
COMMAND = (sys.executable, "-W", "error", "-m", "sanderling", "sequence", "crawl")


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # to a full disk, there is an error and no signal


def test_a_crawl_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            last = server.game.first + 40
            given = (*flags(tmp_path, server), "--until", str(last), "--json")
            process = await asyncio.create_subprocess_exec(
                *COMMAND, *given, *begin(server), preexec_fn=_small_files, stderr=asyncio.subprocess.PIPE
            )
            trouble = ""
            async with asyncio.timeout(300):
                while not trouble and process.returncode is None:
                    await asyncio.sleep(0.1)
                    status = published(tmp_path / "out")
                    trouble = "" if status is None else status.facts.queue_trouble or status.facts.store_trouble
            if process.returncode is None:
                process.kill()
            _, told = await process.communicate()
            said = trouble or told.decode()
            assert "the disk is full" in said or "Make sure that the disk is well and not full" in said
            assert "Traceback" not in told.decode()

            done = await sanderling("sequence", "crawl", *given)

            assert done.code == 0, done.err
            assert [number for number in stored(tmp_path) if number <= last] == raids(server.game, last)

    run(main)
