"""A job that machines share, under virtual time: each record once, whatever happens to whom."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fleet_faults import Faults, three
from fleet_world import FleetWorld, TakesTurns
from frontier_urls import fresh
from plays import seeds
from small_api import run as run_alone
from small_web import lines
from test_job_parts import (
    EVERY,
    FROM,
    HOSTS,
    ITEMS,
    NEW,
    SAME,
    job_of_leads,
    job_of_lists,
    job_of_moves,
    leads,
    lists,
    moved,
    starts,
)
from warc_files import captured

from sanderling import Job
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.kept import FILE as KEPT
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.jobs.files import FRONTIER, RECORDS
from sanderling.jobs.fleet import LENGTH, JobPartOpener, SharedJobPlan, bring_records, create_ledger, finish_pulled
from sanderling.jobs.rules import JobRules
from sanderling.jobs.verify import verify_job
from sanderling.stores.frontier_requests import RequestFrontier
from sanderling.testing import run_virtual

Scene = Callable[["JobWorld"], Awaitable[None]]


class TurnOpener(TakesTurns, JobPartOpener):
    """Opens parts whose threads take turns."""


class JobWorld(FleetWorld):
    """All machines of a job."""

    system = "jobs"

    def __init__(self, folder: Path, chance: Random, job: Job, servers: int = 1, web: Sends | None = None) -> None:
        self.job, self._web = job, web
        super().__init__(folder, chance, servers)

    def make_web(self) -> Sends:
        return self._web or lists()

    def make_plan(self) -> SharedJobPlan:
        return SharedJobPlan.of(self.job, {}, None)

    def make_opener(self, folder: Path, shared: SharedCrawl, transport: Callable[[], Transport[Any]]) -> TakesTurns:
        return TurnOpener(folder, shared, self.clock, transport, self.job, JobRules())

    def unpack(self, body: bytes) -> bytes:
        (length,) = LENGTH.unpack_from(body)
        assert length == len(body) - LENGTH.size  # no answers are kept
        return body[LENGTH.size :]


def play(
    scene: Scene, job: Job, seed: int = 0, servers: int = 1, web: Sends | None = None
) -> tuple[JobWorld, list[dict[str, Any]]]:
    """Play it to its end; the records, and no host was ever asked by two, or by one whose part it is not."""

    async def main(folder: Path) -> tuple[JobWorld, list[dict[str, Any]]]:
        async with JobWorld(folder, Random(seed), job, servers, web).running() as world:
            await scene(world)
            await world.until_done(3600)
            assert world.two_senders() == []
            assert world.trespasses() == []
            return world, await world.rows()

    with fresh() as folder:
        return run_virtual(main(folder))


def in_order(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=str)


@pytest.mark.parametrize("servers", [1, 2])
def test_machines_bring_all_records_once_and_start_once(servers: int) -> None:
    before = starts["lists"]
    world, records = play(three, job_of_lists(), servers=servers)

    assert in_order(records) == EVERY
    assert starts["lists"] == before + 1
    assert len(world.asked) == HOSTS * (ITEMS + 1)
    assert len({each.machine for each in world.asked}) == 3
    assert all(each.task.result() for each in world.machines)


@pytest.mark.parametrize("seed", seeds(10))
def test_whatever_happens_no_record_is_missing_and_none_twice(seed: int) -> None:
    """Also while the job starts: the first machine is killed as soon as it has asked for anything, or earlier."""

    async def scene(world: JobWorld) -> None:
        first = await world.join()
        await asyncio.sleep(world.chance.uniform(0.0, 1.0))
        first.kill()
        await Faults(world).play(8)

    _, records = play(scene, job_of_lists(), seed, servers=1 + seed % 2)

    assert in_order(records) == EVERY


class KeepingWorld(JobWorld):
    """Machines that keep all answers as they came."""

    def make_plan(self) -> SharedJobPlan:
        return SharedJobPlan.of(self.job, {}, "warc")


@pytest.mark.parametrize("seed", seeds(4))
def test_whatever_happens_each_answer_of_which_a_line_speaks_is_in_the_warc_once(seed: int) -> None:
    """It is brought here meanwhile, and at the end."""

    async def main(folder: Path) -> None:
        async with KeepingWorld(folder / "machines", Random(seed), job_of_lists(), 1 + seed % 2).running() as world:
            async with asyncio.TaskGroup() as group:
                group.create_task(Faults(world).play(8))
                await asyncio.sleep(10)
                world.objects_down = False
                for part in await world.brought(folder / "pulled", FRONTIER, create_ledger):
                    await bring_records(part)
            await world.until_done(3600)
            parts = await world.brought(folder / "pulled", FRONTIER, create_ledger)
            for part in parts:
                await bring_records(part)
                finish_pulled(part.folder, world.clock.wall(), complete=True)
        assert in_order([row for part in parts for row in lines(part.folder / RECORDS)]) == EVERY
        for part in parts:
            proof = verify_job(part.folder)
            assert proof.ok, proof.problems
            assert captured(part.folder) == [row["url"] for row in lines(part.folder / KEPT)]

    with fresh() as folder:
        run_virtual(main(folder))


@pytest.mark.parametrize("seed", seeds(6))
def test_a_page_that_redirects_of_several_machines_lead_to_is_kept_once(seed: int) -> None:
    urls = [f"http://{each}/item/1" for each in (*FROM, SAME, NEW)][: 3 + seed % 3]

    async def scene(world: JobWorld) -> None:
        await three(world)
        for _ in range(seed % 3):
            await asyncio.sleep(world.chance.uniform(0.0, 4.0))
            world.chance.choice(world.running_machines).kill()

    _, records = play(scene, job_of_moves(*urls), seed, web=moved(*FROM, SAME))

    assert records == [{"number": "1", "at": f"http://{NEW}/item/1"}]


@pytest.mark.parametrize("seed", seeds(6))
def test_where_redirects_lead_who_has_the_host_asks_and_records_are_those_of_one_process(
    tmp_path: Path, seed: int
) -> None:
    alone = run_alone(job_of_leads(), tmp_path, leads())

    async def scene(world: JobWorld) -> None:
        await (Faults(world).play(6) if seed else three(world))

    world, records = play(scene, job_of_leads(), seed, servers=1 + seed % 2, web=leads())

    assert in_order(records) == in_order(alone.records)
    times = sorted(each.begun for each in world.asked if each.host == NEW)
    assert seed or min(later - earlier for earlier, later in pairwise(times)) > 0.99 / world.rps


@pytest.mark.parametrize(("limit", "number"), [("max_requests", 60), ("max_records", 50)])
def test_a_budget_is_that_of_all_machines(limit: str, number: int) -> None:
    """It is passed by what others ask for between two beats, and never left unspent: also when parts change hands."""

    async def scene(world: JobWorld) -> None:
        await world.join()
        await asyncio.sleep(4)
        await world.join()
        await asyncio.sleep(2)
        world.machines[0].leave()

    world, records = play(scene, job_of_lists(**{limit: number}))

    spent = len(world.asked) if limit == "max_requests" else len(records)
    assert number <= spent < number + 30
    assert len(records) < len(EVERY)


def test_every_copy_of_a_ledger_begins_with_the_same_readers(tmp_path: Path) -> None:
    """Whoever has the readers of a job in another order reads the numbers that are there."""

    async def numbers() -> list[dict[str, int]]:
        world = JobWorld(tmp_path, Random(1), job_of_lists())
        found = []
        for name, readers in {"a": ("entry", "listing"), "b": ()}.items():
            create_ledger(tmp_path / name, world.crawl)
            ledger = RequestFrontier(tmp_path / name, readers)
            found.append(dict(ledger._readers))
            ledger.close()
        assert zlib.crc32((tmp_path / "a").read_bytes()) == zlib.crc32((tmp_path / "b").read_bytes())
        return found

    assert run_virtual(numbers()) == [{"listing": 1, "entry": 2}] * 2
