"""A job as a function, for code that is not ours. The command and it go on with what the other began."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.clock import SystemClock
from sanderling.engine.rules import EngineRules
from sanderling.executor import in_threads
from sanderling.fetch.http import HttpRules
from sanderling.fetch.transport import connections_for, make_transport
from sanderling.jobs.folder import RECORDS, JobFolder
from sanderling.jobs.job import Job
from sanderling.jobs.report import report_run
from sanderling.jobs.run import JobRun, JobTools, hosts_of
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


def http_rules(rps: float, contact: str | None = None) -> HttpRules:
    """How replies are read, of hosts that are asked so often."""
    per_host = connections_for(rps)
    return HttpRules(contact=contact, most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host)


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
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(most)))
    transport = make_transport(http_rules(most, contact), limiter, BODIES, private=private)
    given, hosts = job.arguments_with(arguments or {}), hosts_of(job)
    with (
        JobFolder.open(path, job, given, hosts, clock.wall()) as held,
        ThreadPoolExecutor(1, "writer") as thread,
    ):
        recall(limiter, path)
        executor, started = in_threads(thread), clock.now()
        tools = JobTools(transport.http, limiter, clock, executor, transport.memory)
        run = JobRun(job, held, hosts, tools, EngineRules(per_host=connections_for(most), patience=patience))
        async with transport.http:
            complete = await run.run()
        await executor(held.finish, clock.wall(), complete)
        await executor(write_status, path, report_run(run, clock.now() - started, running=False))
        await executor(keep, path, list(limiter.saving()))
    source = run.source
    return JobResult(complete, run.records, run.counts[End.FAILED], source.waiting, path / RECORDS, dict(source.gone))
