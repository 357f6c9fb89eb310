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
from sanderling.cli.repos.crawl import KNOWN, SHOWN, size_of_segments, take_up
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
    SharedPages,
    describe_directory,
)
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
            take_up(earlier, place, keeping.since_archive, fitting(json=as_json).note)
        run_worker(ReposFleet(flags, directory, earlier, resume=resume), flags.processes, as_json=as_json)


class ReposFleet(FleetSystem[Report[ReposFacts]]):
    """A crawl of repos, as its command was given."""

    name = "repos"
    known = KNOWN

    def __init__(self, flags: RepoFlags, directory: Directory, earlier: EarlierRevs | None, *, resume: bool) -> None:
        super().__init__(flags.place.out, flags.sharing, flags.options, flags.onward)
        self._flags = flags
        self._directory = directory
        self._earlier = earlier
        self._resume = resume
        self._segment_size = size_of_segments(flags.keeping)
        known = earlier.repos if earlier else 0
        self._plan = RepoPlan(directory=_identity(flags, directory), cids=flags.keeping.cids, earlier=known)

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
        theirs, ours = msgspec.json.decode(plan, type=RepoPlan), self._plan
        if theirs.directory != ours.directory:
            return f"its directory is {theirs.directory}, not {ours.directory}"
        if theirs.cids != ours.cids:
            return f"its cids are {theirs.cids}, not {ours.cids}"
        return "" if theirs == ours else f"it leaves out {theirs.earlier:,} earlier repos, not {ours.earlier:,}"

    async def open(
        self, shared: SharedCrawl, clock: FleetClock, stack: AsyncExitStack
    ) -> OpenedSystem[Report[ReposFacts]]:
        """Each part has connections and a limiter of its own; memory, slots and pages are those of the process."""
        asking, keeping, parts = self._flags.asking, self._flags.keeping, shared.crawl.parts
        processes = how_many(self._flags.processes)
        workers = max(1, asking.workers // processes)
        reading = in_threads(stack.enter_context(ThreadPoolExecutor(1, "directory")))
        cores = in_threads(stack.enter_context(ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // processes), "cores")))
        known, memory = await reading(self._directory.count), Memory(max(2 * MOST_BODY, BODIES // processes))
        pages = SharedPages(self._directory, parts, keeping.page_size, reading)
        rules = keeping.rules(asking)
        opener = RepoPartOpener(
            self.out / COPIES,
            shared,
            clock,
            lambda: share_memory(asking.transport(clock), memory),
            replace(rules, page_size=max(1, rules.page_size // parts)),
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


def _identity(flags: RepoFlags, directory: Directory) -> str:
    """What tells a directory from others: a server by its address, since it may grow; a file by what it has."""
    url = flags.keeping.directory or ""
    if url.startswith("clickhouse"):
        kind, _, rest = redact_url(url).partition("://")
        return f"{kind}://{rest.rpartition('@')[2]}"
    return describe_directory(directory)
