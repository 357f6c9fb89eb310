"""What holds when processes die, stand still, and lose their connections."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from kit.postgres import FaultyWay, new_name, shared_postgres

from sanderling.clock import SystemClock
from sanderling.records.rows import RowReader
from sanderling.stores import open_ledger

LEASE = 1.2
KILLS, STOPS = 20, 10
CRAWLER = Path(__file__).with_name("crawler.py")


class Crawlers:
    """Two processes that crawl the same; whichever ends without having finished is started again."""

    def __init__(self, url: str, name: str, folder: Path) -> None:
        self._arguments = [sys.executable, str(CRAWLER), url, name, str(folder), str(LEASE)]
        self._folder = folder
        self.running: list[asyncio.subprocess.Process] = []
        self.ends = Counter[int]()

    async def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        log = (self._folder / "log").open("ab")
        with log:
            process = await asyncio.create_subprocess_exec(*self._arguments, env=environment, stderr=log)
        self.running.append(process)

    async def keep(self) -> None:
        """Two of them, until both say that the crawl is finished."""
        while self.running:
            for process in [each for each in self.running if each.returncode is not None]:
                self.running.remove(process)
                self.ends[process.returncode or 0] += 1
                assert process.returncode in (0, 75, -signal.SIGKILL), (self._folder / "log").read_text()[-3000:]
                if process.returncode:
                    await self.start()
            await asyncio.sleep(0.05)


async def torment(crawlers: Crawlers, number: int, random: Random) -> None:
    """Stop one of them for longer than its lease, and kill the other meanwhile."""
    await asyncio.sleep(random.uniform(0.3, 0.8))
    stopped = crawlers.running[number % 2]
    if stopped.returncode is not None:
        return
    with suppress(ProcessLookupError):
        stopped.send_signal(signal.SIGSTOP)
    for _ in range(KILLS // STOPS):
        await asyncio.sleep(random.uniform(0.5, 0.8) * LEASE)
        other = next((each for each in crawlers.running if each is not stopped), stopped)
        if other.returncode is None and other is not stopped:
            with suppress(ProcessLookupError):
                other.kill()
    await asyncio.sleep(0.3 * LEASE)
    with suppress(ProcessLookupError):
        stopped.send_signal(signal.SIGCONT)


@pytest.mark.real
async def test_each_row_is_there_once_whatever_happens_to_two_processes(tmp_path: Path) -> None:
    server, name, random = shared_postgres(), new_name("chaos"), Random(7)
    async with FaultyWay(server.port, random, cuts=0.002, lost=0.05) as way:
        crawlers = Crawlers(way.url, name, tmp_path)
        try:
            async with asyncio.timeout(150), asyncio.TaskGroup() as tasks:
                await crawlers.start()
                await crawlers.start()
                tasks.create_task(crawlers.keep())
                for number in range(STOPS):
                    await torment(crawlers, number, random)
                (tmp_path / "enough").touch()
        finally:
            for process in crawlers.running:
                with suppress(ProcessLookupError):
                    process.kill()

    async with open_ledger(server.url, plan={}, clock=SystemClock(), name=name, read_only=True) as ledger:
        counts = await ledger.counts()
        with RowReader(tmp_path, "pages", await ledger.row_files()) as rows:
            contents = [json.loads(line) for entry in rows.entries() for line in entry.lines]
            faults = await ledger.verify(rows.keys(ledger.run))
        failed = {each.url async for each in ledger.tasks("failed")}
    stored = Counter(row["url"] for row in contents)
    assert faults == []
    assert max(stored.values()) == 1
    assert not failed & stored.keys()
    assert {link for row in contents for link in row["links"]} <= failed | stored.keys()
    assert len(stored) + len(failed) == counts.known
    assert counts.waiting == 0
    assert crawlers.ends[-signal.SIGKILL] > KILLS // 2
    assert way.lost > 0
