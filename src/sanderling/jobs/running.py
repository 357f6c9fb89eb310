"""A job as a function, for code that is not ours. The command and it go on with what the other began."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.clock import SystemClock
from sanderling.crawls.kept import Keep
from sanderling.crawls.run import http_rules, run_to_end
from sanderling.crawls.session import HostPatterns, caps_of, host_table
from sanderling.executor import Executor
from sanderling.fetch.render import RenderRules, make_renderer
from sanderling.fetch.transport import connections_for, make_transport
from sanderling.jobs.files import RECORDS
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.job import Job
from sanderling.jobs.report import report_run
from sanderling.jobs.rules import JobRules
from sanderling.jobs.run import JobRun, hosts_of
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.stores.frontier_rows import End

MOST_RAW, MOST_DECODED = 32 * 2**20, 64 * 2**20  # bytes of a reply
BODIES = 4 * MOST_DECODED  # that replies may hold at once until they are read
RENDERS = "@job.page(…, render=…)"  # what needs a browser
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
    hosts: HostPatterns | None = None,
    keep: Keep | None = None,
    screenshots: bool = False,
    browser: str = "",
) -> JobResult:
    """Run a job into a folder, or go on with it there, until all that it found has its end.

    Whoever is cancelled or killed loses nothing: called again, it goes on where it was. `hosts` is what is set for
    some, by pattern: `{"*.example.org": HostSettings(...)}`. With `keep`, answers are kept as they came, too: in files
    or in a WARC. Pages that are rendered have `screenshots` taken, in the first `browser` that is found or in this one.
    Raises JobError for a job that is not as it should be, FolderError if the folder is not to be had, LoginError if a
    host does not let us in, RenderError if there is no browser.
    """
    clock, path = SystemClock(), Path(folder)
    most = rps or job.rps or RPS
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(most), caps=caps_of(hosts or {})))
    asking = http_rules(most, contact, MOST_RAW, MOST_DECODED, host_table(hosts or {}))
    transport = make_transport(asking, limiter, BODIES, private=private)
    if job.renders:
        rendering = RenderRules(screenshots=screenshots, browser=browser)
        transport = replace(transport, renderer=make_renderer(rendering, clock, RENDERS))
    rules = JobRules(per_host=connections_for(most), patience=patience, hosts=hosts or {})
    held = JobFolder.open(path, job, job.arguments_with(arguments or {}), hosts_of(job), clock.wall(), keep)

    def make(executor: Executor) -> JobRun:
        return JobRun(held, transport, executor, rules=rules, clock=clock)

    run, complete = await run_to_end(held, transport, clock, make, report_run)
    source = run.source
    return JobResult(complete, run.records, run.counts[End.FAILED], source.waiting, path / RECORDS, dict(source.gone))
