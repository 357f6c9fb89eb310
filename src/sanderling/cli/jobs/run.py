"""`sanderling run`: run a job from a file, or go on with it."""

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.apis.auth import FormLogin, Login, OAuth2
from sanderling.cli import loop as event_loop
from sanderling.cli.client import make_transport
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.config.file import hosts_in_force
from sanderling.cli.flags import Patient
from sanderling.cli.fleet.flags import ALONE, FleetFlags
from sanderling.cli.jobs.load import load_job, read_arguments
from sanderling.cli.jobs.summary import JobSummary, summarise, words
from sanderling.cli.limits import make_limiter
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.processes import ProcessCount, how_many, is_in_parts, own_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.clock import SystemClock
from sanderling.crawls.kept import Keep
from sanderling.crawls.run import http_rules
from sanderling.crawls.session import LoginError
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.executor import in_threads
from sanderling.fetch.cache import Cache
from sanderling.fetch.http import Http
from sanderling.fetch.render import RenderError, RenderRules, make_renderer
from sanderling.fetch.transport import Transport, connections_for
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.job import Job, JobError
from sanderling.jobs.report import JobFacts, report_run
from sanderling.jobs.rules import JobRules
from sanderling.jobs.run import JobRun, hosts_of
from sanderling.jobs.running import BODIES, MOST_DECODED, MOST_RAW, RENDERS, RPS
from sanderling.jobs.watchdog import LONGEST, Watchdog
from sanderling.limit import LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.observe.report import Report
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.words import printable

KNOWN = (FolderError, JobError, LoginError, RenderError)  # what ends a run and is said in words
UNFINISHED = 3  # the exit code if requests still wait: for hosts that do not answer, or for readers that are gone
UNPACED = 100_000.0  # pages a second of a host, where nothing is sent
SHOWN = 100  # hosts that a screen chooses from, four times a second


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class JobNetwork(Patient):
    """How hosts are asked. A command takes one as `*, asking: Asking = USUAL`."""

    cache: Path | None = None
    """A folder for good answers: what is in it is not asked for again. For work on a job, one folder per account."""

    from_: Annotated[Path | None, Parameter(name="--from")] = None
    """Read pages that were kept, and send nothing: a WARC file, a folder of them, or that of a crawl with --keep."""

    screenshots: Annotated[bool, Parameter(negative=())] = False
    """Keep what rendered pages looked like, as screenshots/ID.png."""

    browser: str = ""
    """The browser's program for rendered pages, if it is not a Chromium or Chrome on the PATH."""

    def most_of(self, job: Job) -> float:
        """Requests a second to each host of a job at most; by default what it says."""
        return self.most(job.rps or RPS)

    def rules(self, job: Job) -> JobRules:
        """The rules that go with the job and the flags."""
        per_host = connections_for(self.most_of(job))
        return JobRules(per_host=per_host, patience=self.patience, hosts=hosts_in_force.get() or {})

    def transport(self, job: Job) -> Transport[Http]:
        """The client and the limiter that go with the job and the flags. Raises CommandError."""
        made = self._asking(job) if self.from_ is None else self._stored(self.from_)
        if not job.renders:
            if self.screenshots or self.browser:
                said = f"--screenshots and --browser are for rendered pages, and {job.name} renders none"
                raise CommandError(f"{said}; expected {RENDERS}", code=2)
            return made
        rules = RenderRules(screenshots=self.screenshots, browser=self.browser)
        try:
            return replace(made, renderer=make_renderer(rules, SystemClock(), RENDERS))
        except RenderError as error:
            raise CommandError(str(error), code=2) from None

    def _asking(self, job: Job) -> Transport[Http]:
        most = self.most_of(job)
        logins = (job.auth.host,) if isinstance(job.auth, OAuth2 | Login | FormLogin) else ()
        limiter = make_limiter(LimiterRules(pace=PaceRules.up_to(most), strategy=self.pace), logins=logins)
        rules = http_rules(most, None, MOST_RAW, MOST_DECODED)
        try:
            cache = None if self.cache is None else Cache(self.cache)
        except FolderError as error:
            raise CommandError(f"--cache: {error}", code=2) from None
        made = make_transport(rules, limiter, BODIES, self.contact, private=self.private)
        return replace(made, cache=cache)

    def _stored(self, path: Path) -> Transport[Http]:
        """What answers from what was kept; it needs no pace. Raises CommandError."""
        if self.cache is not None:
            raise CommandError("--from sends nothing, so there is nothing for --cache to keep; expected one of them", 2)
        try:
            stored = StoredReplies(path)
        except FolderError as error:
            raise CommandError(f"--from: {error}", code=2) from None
        for problem in stored.problems:
            print(printable(f"--from: {problem}. What stands before it is read."), file=sys.stderr)
        unpaced = LimiterRules(pace=PaceRules.contract(UNPACED), strategy="contract")
        return Transport(stored, make_limiter(unpaced), Memory(BODIES))


USUAL = JobNetwork()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags:
    """What a run does, beside asking."""

    retry: Annotated[bool, Parameter(negative=())] = False
    """Ask again for what failed, too."""

    keep: Keep | None = None
    """Keep answers as they came, too: html in files of bodies/, warc in archives of warc/."""

    processes: ProcessCount = "1"


ONCE = JobFlags()


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
            name="--try",
            validator=Number(gte=1, lte=10_000),
            help="Show so many records, or those of so many pages, and keep nothing; no --out.",
        ),
    ] = None,
    sharing: FleetFlags = ALONE,
    json: SummaryAsJson = False,
    flags: JobFlags = ONCE,
    asking: JobNetwork = USUAL,
    options: Bounded = BOUNDED,
) -> None:
    """Run the job of a file into a folder, or go on with it there."""
    job = load_job(file)
    given = read_arguments(job, set)
    sharing.check()
    if try_ is not None:
        _check_sample(flags, sharing)
        from sanderling.cli.jobs.sample import show_sample  # noqa: PLC0415 - most runs do not need it

        show_sample(job, given, try_, asking, options, as_json=json, out=out)
        return
    if out is None:
        raise CommandError(f"no folder is given; expected --out DIR, as in: {again('run', file, '--out', job.name)}", 2)
    if flags.keep is not None and asking.from_ is not None:
        raise CommandError("--from reads what is kept already, so there is nothing to --keep; expected one of them", 2)
    command = JobCommand(
        file=file,
        out=out,
        job=job,
        given=given,
        flags=flags,
        as_json=json,
        asking=asking,
        options=options,
        sharing=sharing,
    )
    if sharing.fleet:
        from sanderling.cli.jobs.fleet import run_worker_of  # noqa: PLC0415 - most jobs need none

        run_worker_of(command)
    else:
        _run_here(command)


def _check_sample(flags: JobFlags, sharing: FleetFlags) -> None:
    if how_many(flags.processes) > 1:
        raise CommandError("--try asks for a few pages, by one process; expected it without --processes", 2)
    if sharing.fleet:
        raise CommandError("--try asks for a few pages, and shares nothing; expected it without --fleet", 2)


def _run_here(command: "JobCommand") -> None:
    with printing_aside(as_json=command.as_json):
        if how_many(command.flags.processes) > 1 or is_in_parts(command.out):
            from sanderling.cli.jobs.parts import run_in_parts  # noqa: PLC0415 - most jobs need none

            ended = run_in_parts(command)
        else:
            ended = _run_alone(command)
    if ended is not None:
        ended.screen.end(words(ended.summary), ended.summary.as_json())
        exit_with(ended.summary, stopped=ended.stopped)


def printing_aside(*, as_json: bool) -> AbstractContextManager[object]:
    """While it is open, what functions of the job print is not part of the summary for machines."""
    return redirect_stdout(sys.stderr) if as_json or own_parts() else nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommand:
    """A run of a job, as the command line says it."""

    file: str
    out: Path
    job: Job
    given: Mapping[str, str]
    flags: JobFlags
    as_json: bool
    asking: JobNetwork
    options: Options
    sharing: FleetFlags

    @property
    def go_on(self) -> str:
        """The command to go on with."""
        return self._again(replace(self.flags, retry=False))

    @property
    def once_more(self) -> str:
        """The command that asks for what failed, too."""
        return self._again(replace(self.flags, retry=True))

    def _again(self, flags: JobFlags) -> str:
        arguments = [each for name, value in self.given.items() for each in ("--set", f"{name}={value}")]
        return again("run", self.file, "--out", self.out, *arguments, flags, self.asking, self.options, self.sharing)


class JobEnd(NamedTuple):
    """How it went, and where that is shown."""

    screen: Screen
    summary: JobSummary
    stopped: bool


def _run_alone(command: JobCommand) -> JobEnd:
    transport, screen = command.asking.transport(command.job), fitting(json=command.as_json)
    with open_folder(command.out, command.job, command.given, command.flags.keep) as folder:
        if command.flags.retry:
            folder.ledger.reopen(End.FAILED)
        with event_loop.explain_end(command.go_on, KNOWN):
            ran = event_loop.run(run_folder(folder, transport, command.asking, command.options, screen))
        given = command.go_on, command.once_more
        summary = summarise(folder.path, [folder.ledger], ran.last, complete=ran.complete, commands=given)
    return JobEnd(screen, summary, ran.stopped)


def exit_with(summary: JobSummary, *, stopped: bool) -> None:
    """Exit with the code that says how a run went, if not all went well."""
    if stopped:
        sys.exit(130)
    if summary.is_unfinished:
        sys.exit(UNFINISHED)
    if summary.failed or summary.left_out:
        sys.exit(1)


def open_folder(out: Path, job: Job, given: Mapping[str, str], keep: Keep | None = None) -> JobFolder:
    """The folder, to be worked in within a `with` block; a CommandError if it is not one to work in."""
    try:
        hosts = hosts_of(job)
        job.first_reader  # noqa: B018 - raises if there is none
        return JobFolder.open(out, job, job.arguments_with(given), hosts, SystemClock().wall(), keep)
    except (FolderError, JobError) as error:
        raise CommandError(str(error), code=2) from None


async def run_folder(
    folder: JobFolder, transport: Transport[Http], asking: JobNetwork, options: Options, screen: Screen
) -> Ran[Report[JobFacts]]:
    """Run until all is decided or somebody stops it, and leave the folder as whole as it then can be."""
    clock = SystemClock()
    with ThreadPoolExecutor(1, "folder") as thread, Watchdog(folder.path, LONGEST) as dog:
        executor = in_threads(thread)
        rules = asking.rules(folder.job)
        job_run = JobRun(folder, transport, executor, rules=rules, clock=clock, watch=dog)
        started = clock.now()

        def report(top: int = 1000, *, running: bool = True) -> Report[JobFacts]:
            return report_run(job_run, clock.now() - started, top, running=running)

        shell = Shell(
            folder=folder.path,
            options=options,
            screen=screen,
            executor=executor,
            report=report,
            brief=partial(report, SHOWN),
            transport=transport,
        )
        ran = await run_system(job_run, shell)
        await executor(folder.finish, clock.wall(), ran.complete)
    return ran
