"""`sanderling repos crawl` with `--fleet`: a worker of a crawl that several machines share."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from typing import cast

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.fleet.flags import FleetClock
from sanderling.cli.fleet.worker import FleetSystem, OpenedSystem, run_worker
from sanderling.cli.processes import how_many
from sanderling.cli.report_screen import fitting
from sanderling.cli.repos.crawl import KNOWN, SHOWN, read_earlier, size_of_segments
from sanderling.cli.repos.directory import open_to_read
from sanderling.cli.repos.flags import BODIES, MOST_BODY
from sanderling.cli.repos.parts import LOOK, RepoFlags, set_slots
from sanderling.cli.watching import repeat, run_beside
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.crawls.parts import COPIES
from sanderling.executor import in_threads
from sanderling.fetch.transport import share_memory
from sanderling.limit.memory import Memory
from sanderling.observe.report import Process, Report
from sanderling.redact import redact_url
from sanderling.repos.crawl import RepoCrawl
from sanderling.repos.directory import Directory
from sanderling.repos.fleet import (
    LEDGER_FORMAT,
    RepoPartOpener,
    RepoPlan,
    RepoReading,
)
from sanderling.repos.fleet_directory import SharedPages
from sanderling.repos.report import ReposFacts, join_repos
from sanderling.repos.since import EarlierRevs


def run_worker_of(flags: RepoFlags, *, resume: bool, as_json: bool) -> None:
    """Work on the crawl of a fleet until nothing is left of it; exit with the code that says how it went."""
    place, keeping = flags.place, flags.keeping
    if place.redis_address is not None:
        where = redact_url(place.redis_address)
        raise CommandError(f"redis-address is {where}: a fleet keeps its progress in PostgreSQL; leave it out", code=2)
    with ExitStack() as stack:
        private = flags.asking.private
        directory = stack.enter_context(open_to_read(keeping.directory, keeping.did_file, place.out, private=private))
        earlier = stack.enter_context(EarlierRevs()) if keeping.since_archive else None
        if earlier is not None:
            read_earlier(earlier, place, keeping.since_archive, fitting(json=as_json).note)
        run_worker(ReposFleet(flags, directory, earlier, resume=resume), flags.processes, as_json=as_json)


class ReposFleet(FleetSystem[Report[ReposFacts]]):
    """A crawl of repos, as its command was given."""

    name = "repos"
    known = KNOWN

    def __init__(self, flags: RepoFlags, directory: Directory, earlier: EarlierRevs | None, *, resume: bool) -> None:
        super().__init__(flags.place.out, flags.sharing, flags.options, flags.resume_command)
        self._flags = flags
        self._directory = directory
        self._earlier = earlier
        self._resume = resume
        self._segment_size = size_of_segments(flags.keeping)
        known, server = earlier.repos if earlier else 0, _address(flags.keeping.directory or "")
        plan = RepoPlan(cids=flags.keeping.cids, server=server, earlier=known)
        self._plan = plan if server else plan.of_file(directory)

    @property
    def ledger(self) -> str:
        """The format of its ledgers."""
        return LEDGER_FORMAT

    @property
    def plan(self) -> str | None:
        """What to crawl; None if there must be a crawl to go on with."""
        return None if self._resume else msgspec.json.encode(self._plan).decode()

    def compare(self, plan: str) -> str:
        """What is different in a plan."""
        return msgspec.json.decode(plan, type=RepoPlan).compare(self._plan, self._directory)

    async def open(
        self, shared: SharedCrawl, clock: FleetClock, stack: AsyncExitStack
    ) -> OpenedSystem[Report[ReposFacts]]:
        """Each part has connections and a limiter of its own; memory, slots and pages are those of the process."""
        asking, keeping = self._flags.asking, self._flags.keeping
        processes = how_many(self._flags.processes)
        workers = max(1, asking.workers // processes)
        reading = in_threads(stack.enter_context(ThreadPoolExecutor(1, "directory")))
        cores = in_threads(stack.enter_context(ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // processes), "cores")))
        known, memory = await reading(self._directory.count), Memory(max(2 * MOST_BODY, BODIES // processes))
        pages = SharedPages(self._directory, shared, keeping.page_size, reading)
        opener = RepoPartOpener(
            self.out / COPIES,
            shared,
            clock,
            lambda: share_memory(asking.transport(clock), memory),
            replace(keeping.rules(asking), page_size=max(1, keeping.page_size // processes)),
            RepoReading(pages, cores, self._segment_size, self._earlier),
        )

        def report(worker: FleetWorker, process: Process) -> Report[ReposFacts]:
            """What our parts say, and how many repos others have archived."""
            watches = [opener.watches[part.number] for part in worker.parts]
            said = [each.report(process.seconds, SHOWN, running=process.running) for each in watches]
            return join_repos(said, process, known, worker.board.elsewhere)

        async def run(worker: FleetWorker) -> bool:
            async def share() -> None:
                await set_slots([cast("RepoCrawl", part.run) for part in worker.parts], workers)

            return await run_beside(worker.run(), repeat(LOOK, share))

        return OpenedSystem(opener, report, run)


def _address(url: str) -> str:
    """The address of a directory that is a server, without who asks it; "" for a file."""
    kind, _, rest = redact_url(url).partition("://")
    return f"{kind}://{rest.rpartition('@')[2]}" if kind.startswith("clickhouse") else ""
