"""A job as a function, for code that is not ours. The command and it go on with what the other began."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.clock import SystemClock
from sanderling.engine.rules import EngineRules
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.desk import desk_in
from sanderling.flow.memory import Memory
from sanderling.jobs.folder import RECORDS, JobFolder
from sanderling.jobs.job import Job
from sanderling.jobs.run import JobRun, JobTools, hosts_of
from sanderling.jobs.status import status
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.stores.frontier_rows import End
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status

MOST_RAW, MOST_DECODED = 32 * 2**20, 64 * 2**20  # bytes of a reply
BODIES = 4 * MOST_DECODED  # that replies may hold at once until they are read
RPS = 8.0  # requests a second to each host at most, where a job says nothing


class JobResult(NamedTuple):
    """What came of a job. `records` is a file with a line of JSON for each record."""

    complete: bool  # whether every request that was found has its end
    kept: int  # records, in all runs
    failed: int  # requests
    waiting: int  # requests without an end: for hosts that do not answer, for readers that are gone, beyond the budget
    records: Path
    gone: dict[str, int]  # how many of them wait for a reader that the job has not any more


async def run_job(  # noqa: PLR0913 - the flags of the command
    job: Job,
    folder: str | Path,
    *,
    arguments: Mapping[str, Any] | None = None,
    rps: float | None = None,
    patience: float = 600.0,
    contact: str | None = None,
    private: bool = False,
) -> JobResult:
    """Run a job into a folder, or go on with it there, until all that it found has its end.

    Whoever is cancelled or killed loses nothing: called again, it goes on where it was. Raises JobError for a job that
    is not as it should be, FolderError if the folder is not to be had.
    """
    clock, path = SystemClock(), Path(folder)
    most = rps or job.rps or RPS
    per_host = min(64, max(8, ceil(most)))
    rules = HttpRules(contact=contact, most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host)
    memory = Memory(BODIES)
    http = Http(rules, GuardRules(private=private, raw_addresses=private), memory=memory)
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(most)))
    given, hosts = job.arguments_with(arguments or {}), hosts_of(job)
    with (
        JobFolder.open(path, job, given, hosts, clock.wall()) as held,
        ThreadPoolExecutor(1, "writer") as thread,
    ):
        recall(limiter, path)
        desk, started = desk_in(thread), clock.now()
        tools = JobTools(http, limiter, clock, desk, memory)
        run = JobRun(job, held, hosts, tools, EngineRules(per_host=per_host, patience=patience))
        async with http:
            complete = await run.run()
        await desk(held.finish, clock.wall(), complete)
        await desk(write_status, path, status(run, clock.now() - started, running=False))
        await desk(keep, path, list(limiter.saving()))
    source = run.source
    return JobResult(complete, run.records, run.counts[End.FAILED], source.waiting, path / RECORDS, dict(source.gone))
