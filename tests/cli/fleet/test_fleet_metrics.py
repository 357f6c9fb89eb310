"""The metrics of a worker of a fleet: what they say, and that a real worker serves them."""

import asyncio
import secrets
import signal
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import QUICK, finish, run, running, site
from measured_reports import idle_worker
from prometheus_client.parser import text_string_to_metric_families
from scripted_server import ScriptedServer
from services.postgres import fresh_database

from sanderling.cli.fleet.metrics import PREFIX, FleetWatch, fleet_metrics
from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.stores.fleet import CrawlView
from sanderling.testing import LoopClock, run_virtual


def test_what_is_not_known_of_the_crawl_is_absent() -> None:
    seen, unseen = (
        {each.name.removeprefix(PREFIX): [sample.value for sample in each.samples] for each in of}
        for of in (fleet_metrics(idle_worker(), view) for view in (CrawlView(3, 0, 10, 500, 700), None))
    )

    assert (seen["crawl_busy_parts"], seen["crawl_waiting"], seen["crawl_kept"]) == ([3], [500], [700])
    assert (seen["crawl_parts"], seen["parts"], seen["workers"]) == ([64], [0], [1])
    assert (unseen["crawl_busy_parts"], unseen["crawl_waiting"], unseen["crawl_parts"]) == ([], [], [64])


@pytest.mark.parametrize(("workers", "looks"), [(1, 101), (100, 101), (500, 21)])
def test_all_workers_together_look_at_the_crawl_so_often_however_many_there_are(workers: int, looks: int) -> None:
    class Looked(FleetStores):
        looks = 0

        async def view(self) -> CrawlView:
            self.looks += 1
            return CrawlView(1, 0, 0, 0, 0)

    async def main() -> int:
        fleet, worker = Looked([], DirectStoreCaller()), idle_worker()
        worker.figures.workers = workers
        with suppress(TimeoutError):
            async with asyncio.timeout(1_001):
                await FleetWatch(fleet, worker, LoopClock()).run()
        return fleet.looks

    assert run_virtual(main()) == looks


def test_a_worker_serves_them(postgres: str, tmp_path: Path) -> None:
    name = f"metrics-{secrets.token_hex(4)}"

    async def main(url: str) -> dict[str, float]:
        async with ScriptedServer(site(300)) as server:  # at two a second it is at work for as long as we look
            place = ("--out", str(tmp_path / name), "--fleet", url, "--objects", f"file:{tmp_path / 'objects'}")
            given = (*place, "--fleet-parts", "4", "--lease", "3", *QUICK, "--metrics-port", "0")
            async with running("pages", "crawl", server.url("/"), *given) as process:
                assert process.stderr is not None
                line = ""
                while "metrics: " not in line:
                    line = (await process.stderr.readline()).decode()
                    assert line, "it ended by itself"
                found: dict[str, float] = {}
                async with asyncio.timeout(120):
                    while not (found.get(f"{PREFIX}parts") == 4 and found.get(f"{PREFIX}crawl_busy_parts", 0) >= 1):
                        text = await asyncio.to_thread(_read, line.partition("metrics: ")[2].strip())
                        families = text_string_to_metric_families(text)
                        samples = [each for family in families for each in family.samples]
                        found = {
                            each.name: each.value
                            for each in samples
                            if each.labels == {"system": "pages", "crawl": name}
                        }
                        await asyncio.sleep(0.2)
                process.send_signal(signal.SIGTERM)
                await finish(process)
        return found

    with fresh_database(postgres) as url:
        found = run(lambda: main(url))

    assert found[f"{PREFIX}workers"] == 1
    assert found[f"{PREFIX}parts_acquired_total"] == 4
    assert found[f"{PREFIX}crawl_parts"] == 4


def _read(url: str) -> str:
    with urlopen(url, timeout=60) as answer:  # noqa: S310 - ours
        return str(answer.read().decode())
