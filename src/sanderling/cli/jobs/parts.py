"""`sanderling run` with `--processes`: a job in parts, which several processes share."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.jobs.run import KNOWN, JobCommand, JobEnd, open_folder
from sanderling.cli.jobs.summary import summarise
from sanderling.cli.limits import make_limiter
from sanderling.cli.part_runs import FEWEST_SLOTS, PartedCrawl, PartRun, report_part, share_transport
from sanderling.cli.processes import how_many, own_parts
from sanderling.cli.report_screen import fitting
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.parts import folders_of
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport
from sanderling.jobs.aliases import JobMail
from sanderling.jobs.files import FRONTIER
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.job import JobError
from sanderling.jobs.parts import begin_job_parts
from sanderling.jobs.report import JobFacts, join_jobs, report_run
from sanderling.jobs.run import JobRun
from sanderling.jobs.split import JobSplit
from sanderling.jobs.watchdog import LONGEST, FolderWatch, Watchdog
from sanderling.observe.report import Report
from sanderling.stores.frontier_requests import RequestFrontier


def run_in_parts(command: JobCommand) -> JobEnd | None:
    """Run a job with several processes; how it went. None from one of these processes. Raises CommandError."""
    out, job = command.out, command.job
    crawl = PartedCrawl(
        out=out, ledger=FRONTIER, split=JobSplit(), options=command.options, go_on=command.go_on, known=KNOWN
    )
    if own := own_parts():

        def open_part(path: Path) -> JobFolder:
            return open_folder(path, job, command.given, command.flags.keep)

        with Watchdog(out, LONGEST) as dog:
            crawl.follow(own, open_part, JobMail, partial(_make_runs, command, dog))
        return None
    command.asking.transport(job)  # which says what is wrong with the flags
    screen = fitting(json=command.as_json)

    def begin() -> BegunParts:
        arguments, wall = job.arguments_with(command.given), SystemClock().wall()
        try:
            return begin_job_parts(out, job, arguments, wall, command.flags.keep, retry=command.flags.retry)
        except JobError as error:
            raise CommandError(str(error), code=2) from None

    with (
        crawl.lead(how_many(command.flags.processes), begin, Report[JobFacts], partial(join_jobs, job), screen) as (
            _,
            ran,
        ),
        ExitStack() as stack,
    ):
        ledgers = [stack.enter_context(closing(RequestFrontier(path / FRONTIER, ()))) for path in folders_of(out)]
        commands = command.go_on, command.once_more
        summary = summarise(out, ledgers, ran.last, complete=ran.complete, commands=commands)
    return JobEnd(screen, summary, ran.stopped)


@asynccontextmanager
async def _make_runs(command: JobCommand, dog: Watchdog, folders: Sequence[JobFolder]) -> AsyncIterator[list[PartRun]]:
    clock = SystemClock()
    started, runs, rules = clock.now(), [], command.asking.rules(command.job)
    rules = replace(rules, slots=max(FEWEST_SLOTS, rules.slots // len(folders)))
    async with AsyncExitStack() as stack:
        for folder, transport, executor in await stack.enter_async_context(
            share_transport(folders, _transports(command))
        ):
            watch = FolderWatch(dog, folder.path)
            run = JobRun(folder, transport, executor, rules=rules, clock=clock, watch=watch)
            report = report_part(report_run, run, clock, started)
            runs.append(PartRun(run, transport, executor, report, partial(_finish, folder, clock)))
        yield runs


def _transports(command: JobCommand) -> Callable[[], Transport[Http]]:
    """What makes the transport of each part; answers that were kept are looked up once."""
    if command.asking.from_ is None:
        return lambda: command.asking.transport(command.job)
    stored = command.asking.transport(command.job)
    return lambda: replace(stored, limiter=make_limiter(stored.limiter.rules))


def _finish(folder: JobFolder, clock: Clock) -> None:
    folder.finish(clock.wall(), False)  # noqa: FBT003 - by position, as elsewhere
