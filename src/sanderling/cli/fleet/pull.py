"""`sanderling fleet pull`: a plain folder of a fleet's crawl."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.fleet.commands import CrawlName, find_crawl
from sanderling.cli.fleet.flags import WORDS, ObjectStore, Servers, check_place, open_fleet, open_place, prefix_of
from sanderling.clock import SystemClock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_frontier import create_ledger
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.crawls.fleet_pull import PulledPart, bring_files, bring_rows
from sanderling.crawls.parts import part_folder
from sanderling.crawls.pulled_folder import begin_pull, end_pull
from sanderling.jobs import fleet as jobs_fleet
from sanderling.jobs.files import FRONTIER
from sanderling.pages import earlier as pages_ledger
from sanderling.pages import fleet as pages_fleet
from sanderling.pages.output import PAGES
from sanderling.repos import fleet as repos_fleet
from sanderling.repos import fleet_pull as repos_pull
from sanderling.repos import parts as repos_parts
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.objects import ObjectError
from sanderling.stores.ports import ProgressError

AT_ONCE = 8  # parts, of which most wait for the store or the disk


class PulledSystem(NamedTuple):
    """What is special about the parts of a system."""

    ledger: str  # the name of its file
    create: Callable[[Path, FleetCrawl], None]  # makes an empty one
    bring: Callable[[PulledPart], Coroutine[Any, Any, int]]  # what the ledger speaks of; how many bytes are new
    finish: Callable[[Path, float, bool], None]  # leaves the folder as that of a crawl which has ended, or not


async def _bring_pages(part: PulledPart) -> int:
    new = await bring_rows(part, pages_ledger.LEDGER, PAGES)
    await bring_files(part)
    return new


SYSTEMS = {
    "pages": PulledSystem(pages_ledger.LEDGER, create_ledger, _bring_pages, pages_fleet.finish_pulled),
    "repos": PulledSystem(
        repos_parts.PROGRESS, repos_fleet.create_ledger, repos_pull.bring_segments, repos_pull.finish_pulled
    ),
    "jobs": PulledSystem(FRONTIER, jobs_fleet.create_ledger, jobs_fleet.bring_records, jobs_fleet.finish_pulled),
}


def pull(
    name: CrawlName,
    *,
    fleet: Servers = (),
    objects: ObjectStore = None,
    out: Annotated[Path, Parameter(help="The folder to make, or to bring what is new to.")],
) -> None:
    """Bring a crawl here."""
    if objects is None:
        raise CommandError("fleet pull needs --objects: the rows are there", code=2)
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.callback(Lock(out / "lock").release)
            print(asyncio.run(_pull(name, fleet, objects, out)))
        except (FolderError, ProgressError, ObjectError) as error:
            raise CommandError(str(error)) from None


async def _pull(name: str, urls: tuple[str, ...], objects: str, out: Path) -> str:
    async with open_fleet(urls, name) as fleet:
        crawl = await find_crawl(fleet, name)
        check_place(crawl, objects)
        try:
            before = begin_pull(out, crawl)
        except FolderError as error:
            raise CommandError(str(error), code=2) from None
        async with open_place(objects, prefix_of(crawl)) as place:
            new = await PartPuller(fleet, crawl, place, out, anew=before is None).run()
        complete = crawl.done and not (await fleet.view()).waiting
    # As of each part on disk: what has nothing new is as the last pull has left it.
    _finish(out, crawl, [part for part in range(crawl.parts) if part in new or before is not complete], complete)
    end_pull(out, crawl, complete=complete)
    state = "the whole crawl" if complete else "the crawl as far as it is; pull again for the rest"
    rows = WORDS[crawl.system].rows
    return f"{sum(new.values()):,} bytes of {rows} brought to {out}: {state}.\nProve it: sanderling verify {out}"


@dataclass(frozen=True, slots=True)
class PartPuller:
    """Brings the parts of a crawl, some at a time: those that have something new, or `anew` all of them."""

    fleet: FleetStores
    crawl: FleetCrawl
    place: ObjectPlace
    out: Path
    anew: bool
    ended: threading.Event = field(default_factory=threading.Event)  # nobody waits for answers any more

    async def run(self) -> dict[int, int]:
        """How many bytes are new, by part. Its threads have ended when it returns, however it does."""
        found, left = dict[int, int](), iter(range(self.crawl.parts))
        with ThreadPoolExecutor(AT_ONCE, "pull") as threads:
            try:
                async with asyncio.TaskGroup() as group:
                    _ = [group.create_task(self._pull_some(left, found, threads)) for _ in range(AT_ONCE)]
            except BaseExceptionGroup as failed:
                raise failed.exceptions[0] from None
            finally:
                self.ended.set()
        return found

    async def _pull_some(self, left: Iterator[int], found: dict[int, int], threads: Executor) -> None:
        for part in left:
            if (size := await self._pull(part, threads)) is not None:
                found[part] = size

    async def _pull(self, part: int, threads: Executor) -> int | None:
        system, server, folder = SYSTEMS[self.crawl.system], self.fleet.server_of(part), part_folder(self.out, part)
        copy = LedgerCopy(
            folder / system.ledger,
            server,
            part,
            self.place,
            lambda path: system.create(path, self.crawl),
            lambda ask: self.fleet.call.wait_for(ask(), self.ended.is_set),
        )
        await asyncio.get_running_loop().run_in_executor(threads, copy.bring_up)
        if not (self.anew or copy.begun or copy.replayed):
            return None
        return await self.fleet.call(system.bring(PulledPart(folder, part, server, self.place)))


def _finish(out: Path, crawl: FleetCrawl, parts: Sequence[int], complete: bool) -> None:  # noqa: FBT001 - as of each
    """Several at a time: each waits for the disk."""
    finish, wall = SYSTEMS[crawl.system].finish, SystemClock.wall()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda part: finish(part_folder(out, part), wall, complete), parts))
