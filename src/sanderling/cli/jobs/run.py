"""`sanderling run`: run a job from a file, or go on with it."""

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli import CommandError
from sanderling.cli import loop as event_loop
from sanderling.cli.client import client
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.jobs.load import load_job, read_arguments
from sanderling.cli.jobs.summary import JobSummary, summarise, words
from sanderling.cli.limits import Law, make_limiter
from sanderling.cli.options import BOUNDED, Bounded, Options, beside, disk_room, observed, pace_of, showing
from sanderling.cli.pages.screen import Screen, Words, fitting
from sanderling.cli.watching import drawn, kept, obey, told, watched
from sanderling.clock import SystemClock
from sanderling.engine.rules import EngineRules
from sanderling.fetch.cache import Cache
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.desk import Desk, desk_in
from sanderling.flow.memory import Memory
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.job import Job, JobError
from sanderling.jobs.run import JobRun, JobTools, hosts_of
from sanderling.jobs.running import BODIES, MOST_DECODED, MOST_RAW, RPS
from sanderling.jobs.status import JobStatus, status
from sanderling.jobs.watchdog import LONGEST, Watchdog
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.observe.metrics_jobs import JobMetrics
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status

UNFINISHED = 3  # the exit code if requests still wait: for hosts that do not answer, or for readers that are gone
SHOWN = 100  # hosts that a screen chooses from, four times a second
RECORDS = Words("records", "requests")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How hosts are asked. A command takes one as `*, asking: Asking = USUAL`."""

    rps: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1e6))] = None
    """Requests a second to each host at most; by default what the job says, or 8."""

    pace: Law = "governor"
    """How the pace of a host is found: governor learns what it allows; aimd is the plain law, to compare with."""

    patience: Annotated[float, Parameter(validator=Number(gt=0))] = 600.0
    """Seconds to wait for a host that answers no more."""

    cache: Path | None = None
    """A folder for good answers: what is in it is not asked for again. For work on a job, one folder per account."""

    contact: str | None = None
    """Where a host's owner can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, which are refused otherwise."""


USUAL = Asking()


class Network(NamedTuple):
    """What hosts are asked with, and by which rules."""

    http: Http
    memory: Memory
    limiter: Limiter
    rules: EngineRules
    cache: Cache | None


class Ran(NamedTuple):
    """How a run went: how it stood at its end, whether all is decided, whether somebody stopped it."""

    last: JobStatus
    complete: bool
    stopped: bool


def run(  # noqa: PLR0913 - a flag each
    file: Annotated[str, Parameter(help="The file of the job, as in posts.py; posts.py:NAME if it has several.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="The folder that everything is kept in; made if it is not there.")
    ] = None,
    set: Annotated[  # noqa: A002 - the flag
        tuple[str, ...],
        Parameter(
            help="An argument of the job, as in since=2026-01-01; may be repeated.", negative=(), show_default=False
        ),
    ] = (),
    try_: Annotated[
        int | None,
        Parameter(
            name="--try", validator=Number(gte=1, lte=10_000), help="Show so many records, and keep nothing; no --out."
        ),
    ] = None,
    retry: Annotated[bool, Parameter(negative=(), help="Ask again for what failed, too.")] = False,
    json: SummaryAsJson = False,
    asking: Asking = USUAL,
    options: Bounded = BOUNDED,
) -> None:
    """Run the job of a file into a folder, or go on with it there."""
    job = load_job(file)
    given = read_arguments(job, set)
    if try_ is not None:
        from sanderling.cli.jobs.sample import show_sample  # noqa: PLC0415 - most runs do not need it

        show_sample(job, given, try_, asking, options, as_json=json, out=out)
        return
    if out is None:
        raise CommandError(f"no folder is given; expected --out DIR, as in: {again('run', file, '--out', job.name)}", 2)
    flags = [each for pair in set for each in ("--set", pair)]
    network = make_network(job, asking)
    with open_folder(out, job, given) as folder:
        if retry:
            folder.frontier.reopen(End.FAILED)
        go_on = again("run", file, "--out", out, *flags, asking, options)
        screen = fitting(json=json, words=RECORDS)
        with event_loop.ending(go_on, (FolderError, JobError)):
            ran = event_loop.run(run_folder(job, folder, network, options, screen))
        once_more = again("run", file, "--out", out, *flags, "--retry", asking, options)
        summary = summarise(folder, ran.last, complete=ran.complete, again=go_on, retry=once_more)
    screen.end(words(summary), summary.as_json())
    exit_with(summary, stopped=ran.stopped)


def exit_with(summary: JobSummary, *, stopped: bool) -> None:
    """Exit with the code that says how a run went, if not all went well."""
    if stopped:
        sys.exit(130)
    if summary.is_unfinished:
        sys.exit(UNFINISHED)
    if summary.failed or summary.left_out:
        sys.exit(1)


@contextmanager
def open_folder(out: Path, job: Job, given: Mapping[str, str]) -> Iterator[JobFolder]:
    """The folder, for as long as it is worked in; a CommandError if it is not one to work in."""
    try:
        hosts = hosts_of(job)
        job.first_reader  # noqa: B018 - raises if there is none
        folder = JobFolder.open(out, job, job.arguments_with(given), hosts, SystemClock().wall())
    except (FolderError, JobError) as error:
        raise CommandError(str(error), code=2) from None
    with folder:
        yield folder


def make_network(job: Job, asking: Asking) -> Network:
    """The client, the limiter and the rules that go with the job and the flags. Raises CommandError."""
    most = asking.rps or job.rps or RPS
    per_host = min(64, max(8, ceil(most)))
    rules = HttpRules(most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host)
    memory = Memory(BODIES)
    try:
        cache = None if asking.cache is None else Cache(asking.cache)
    except FolderError as error:
        raise CommandError(f"--cache: {error}", code=2) from None
    return Network(
        http=client(rules, asking.contact, private=asking.private, memory=memory),
        memory=memory,
        limiter=make_limiter(LimiterRules(pace=PaceRules.up_to(most), strategy=asking.pace)),
        rules=EngineRules(per_host=per_host, patience=asking.patience),
        cache=cache,
    )


async def run_folder(job: Job, folder: JobFolder, network: Network, options: Options, screen: Screen) -> Ran:
    """Run until all is decided or somebody stops it, and leave the folder as whole as it then can be."""
    clock = SystemClock()
    recall(network.limiter, folder.path)
    with ThreadPoolExecutor(1, "folder") as thread, Watchdog(folder.path, LONGEST) as dog:
        desk = desk_in(thread)
        tools = JobTools(network.http, network.limiter, clock, desk, network.memory, dog, network.cache)
        job_run = JobRun(job, folder, hosts_of(job), tools, network.rules)
        ran = await _run(job_run, network, options, screen, desk)
        await desk(folder.finish, clock.wall(), ran.complete)
        await desk(write_status, folder.path, ran.last)
        await desk(keep, folder.path, list(network.limiter.saving()))
    return ran


async def _run(job_run: JobRun, network: Network, options: Options, screen: Screen, desk: Desk) -> Ran:
    """Run the job, and show how it goes, until it ends or somebody stops it."""
    clock, path = job_run.clock, job_run.folder.path
    started = clock.now()

    def now(top: int = 1000) -> JobStatus:
        return status(job_run, clock.now() - started, top)

    async with (
        observed(options, pace_of(network.limiter), showing(JobMetrics, partial(now, 0)), say=screen.note),
        beside(options, path, screen.note),
        network.http,
    ):
        finishing = partial(_finishing, job_run)
        with event_loop.stoppable(job_run.stop, screen.note, finishing) as stops, screen:
            complete = await watched(
                job_run.run(),
                drawn(screen, partial(now, SHOWN)),
                told(path, now, desk),
                kept(network.limiter, path, desk),
                obey(path, job_run.control, screen.note, disk_room(options, path)),
            )
            last = status(job_run, clock.now() - started, running=False)
            screen.show(last)
    return Ran(last, complete, bool(stops))


def _finishing(job_run: JobRun) -> str:
    return event_loop.finishing(job_run.engine.inflight)
