"""`sanderling run` with `--fleet`: a worker of a job that several machines share."""

from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import replace
from typing import cast

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.fleet.flags import FleetClock
from sanderling.cli.fleet.worker import FleetSystem, OpenedSystem, run_worker
from sanderling.cli.jobs.load import digest_job
from sanderling.cli.jobs.run import KNOWN, JobCommand, printing_aside
from sanderling.crawls.fleet_frontier import ledger_format
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.crawls.parts import COPIES
from sanderling.fetch.transport import share_memory
from sanderling.jobs.fleet import JobPartOpener, SharedJobPlan
from sanderling.jobs.job import JobError
from sanderling.jobs.report import JobFacts, join_jobs, report_run, spent_limits
from sanderling.jobs.run import JobRun
from sanderling.jobs.watchdog import LONGEST, Watchdog
from sanderling.observe.report import Process, Report
from sanderling.stores.fleet import CrawlView

# Of a lease, which one call may hold the event loop: it is not renewed meanwhile, and the rest of it is needed to say
# which call that was.
HELD = 1 / 3


def run_worker_of(command: JobCommand) -> None:
    """Work on the job of a fleet until nothing is left of it; exit with the code that says how it went."""
    if command.asking.from_ is not None:
        raise CommandError("--from reads what this machine has, and asks nobody; expected it without --fleet", code=2)
    run_worker(JobsFleet(command), command.flags.processes, as_json=command.as_json)


class JobsFleet(FleetSystem[Report[JobFacts]]):
    """A job, as its command was given."""

    name = "jobs"
    known = KNOWN

    def __init__(self, command: JobCommand) -> None:
        super().__init__(command.out, command.sharing, command.options, command.go_on)
        self.retry = command.flags.retry
        self._command = command
        job = command.job
        try:
            job.first_reader  # noqa: B018 - raises if there is none
            self._plan = SharedJobPlan.of(job, job.arguments_with(command.given), command.flags.keep)
        except JobError as error:
            raise CommandError(str(error), code=2) from None

    @property
    def digest(self) -> str:
        """That of the file: what another makes of a page may be another record."""
        return f"job {digest_job(self._command.file)}"

    @property
    def ledger(self) -> str:
        """The format of its ledgers."""
        return ledger_format()

    @property
    def plan(self) -> str:
        """What to collect."""
        return msgspec.json.encode(self._plan).decode()

    def compare(self, plan: str) -> str:
        """What is different in a plan."""
        return msgspec.json.decode(plan, type=SharedJobPlan).differs(self._plan)

    def around(self) -> AbstractContextManager[object]:
        """What functions of the job print is not part of the summary for machines."""
        return printing_aside(as_json=self._command.as_json)

    def spent(self, view: CrawlView) -> tuple[str, ...]:
        """The limits of the job that are reached."""
        return spent_limits(self._command.job, view.asked, view.fetched)

    async def open(
        self, shared: SharedCrawl, clock: FleetClock, stack: AsyncExitStack
    ) -> OpenedSystem[Report[JobFacts]]:
        """Each part has connections and a limiter of its own; memory and a browser are those of the process."""
        asking, job = self._command.asking, self._command.job
        first = asking.transport(job)
        if first.renderer is not None:
            await stack.enter_async_context(first.renderer)
        opener = JobPartOpener(
            self.out / COPIES,
            shared,
            clock,
            lambda: replace(share_memory(asking.transport(job), first.memory), renderer=first.renderer),
            job,
            asking.rules(job),
        )
        longest = min(LONGEST, shared.crawl.seconds * HELD)
        opener.dog = stack.enter_context(Watchdog(self.out, longest, clock, opener.tell_stuck))

        def report(worker: FleetWorker, process: Process) -> Report[JobFacts]:
            seconds, running = process.seconds, process.running
            said = [report_run(cast("JobRun", part.run), seconds, running=running) for part in worker.parts]
            return join_jobs(job, said, process)

        return OpenedSystem(opener, report)
