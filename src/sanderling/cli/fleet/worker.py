"""A worker of a crawl that several machines share: what the commands of all systems do alike with `--fleet`."""

import secrets
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import again
from sanderling.cli.fleet.flags import (
    ALONE,
    WORDS,
    FleetClock,
    FleetFlags,
    check_name,
    check_order,
    fleet_flags,
    open_fleet,
    open_place,
    place_of,
    prefix_of,
    try_place,
    who_we_are,
)
from sanderling.cli.fleet.metrics import FleetWatch
from sanderling.cli.fleet.troubles import fleet_troubles
from sanderling.cli.limits import slices_in_force
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import Options
from sanderling.cli.part_runs import stop_when_alone
from sanderling.cli.processes import ProcessGroup, how_many, own_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Shell, run_system
from sanderling.cli.watching import run_beside
from sanderling.clock import SystemClock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_open import PartOpener, SharedCrawl
from sanderling.crawls.fleet_quotas import FleetSlices
from sanderling.crawls.fleet_worker import FleetWorker, WorkerFigures
from sanderling.crawls.parts import FOLDER
from sanderling.engine.host_report import this_process
from sanderling.executor import in_threads
from sanderling.observe.report import AnyReport, Process
from sanderling.redact import redact_url
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import CrawlView, FleetCrawl, WorkerPace
from sanderling.stores.leases import LeasesAwayError, LeasesError
from sanderling.stores.objects import ObjectError
from sanderling.stores.status_file import StatusFile
from sanderling.words import count

R = TypeVar("R", bound=AnyReport)

UNFINISHED = 3  # the exit code if something is left that the same command asks for
AWAY = 75  # the exit code if a server is away at the start; EX_TEMPFAIL: run it again
KNOWN = (FolderError, LeasesError, LeasesAwayError, ObjectError)


@dataclass(frozen=True, slots=True)
class OpenedSystem(Generic[R]):
    """What a system has opened for its parts, and how it speaks of those that a worker has."""

    opener: PartOpener
    report: Callable[[FleetWorker, Process], R]
    # Runs the worker, and what is to run beside it.
    run: Callable[[FleetWorker], Awaitable[bool]] = FleetWorker.run


class FleetSystem(Generic[R]):
    """What a system says of a crawl that it shares; made of the flags of its command."""

    name = ""
    known: tuple[type[Exception], ...] = ()  # errors that its run may end with, beside those of a fleet
    retry = False  # ask again for what failed, too

    def __init__(self, out: Path, sharing: FleetFlags, options: Options, onward: str) -> None:
        """`onward` is the command that goes on with it."""
        self.out = out
        self.sharing = sharing
        self.options = options
        self.onward = onward

    @property
    def ledger(self) -> str:
        """The format of its ledgers."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """What is to be the same for all who work on it at once, and may be another later; nothing if all is."""
        return ""

    @property
    def plan(self) -> str | None:
        """What to crawl, in JSON; None to go on with whatever there is."""
        raise NotImplementedError

    def compare(self, plan: str) -> str:
        """What is different in the plan of a crawl that there is; nothing if it is ours."""
        raise NotImplementedError

    def around(self) -> AbstractContextManager[object]:
        """What is in force while it works, and not when its end is told."""
        return nullcontext()

    def spent(self, view: CrawlView) -> tuple[str, ...]:
        """The limits that are reached: what waits then waits for larger ones."""
        del view
        return ()

    def notes(self) -> tuple[str, ...]:
        """What is to be said at the end, beside how it went."""
        return ()

    async def open(self, shared: SharedCrawl, clock: FleetClock, stack: AsyncExitStack) -> OpenedSystem[R]:
        """Open what the parts need; `stack` closes it."""
        raise NotImplementedError


def run_worker(system: FleetSystem[R], processes: str, *, as_json: bool) -> None:
    """Work on the crawl of a fleet until nothing is left of it; exit with the code that says how it went.

    Several processes are as many workers: this one, which people see, and others that it starts and watches.
    """
    out, started = system.out, bool(own_parts())
    more = 0 if started else how_many(processes) - 1
    name, screen = check_name(out), fitting(json=as_json)
    with ExitStack() as stack:
        try:
            (out / FOLDER).mkdir(parents=True, exist_ok=True)
            status = stack.enter_context(StatusFile.of(out, SystemClock.wall()))
        except (FolderError, OSError) as error:
            raise CommandError(str(error), code=2) from None
        with explain_end(system.onward, (*KNOWN, *system.known)), system.around():
            ended = run(_work(system, name, (screen, status), more, started=started))
    if not started:
        screen.end([*ended.words(), *system.notes()], ended.as_json())
        ended.exit()


class _Together:
    """A worker, and others that it has started."""

    def __init__(
        self, worker: FleetWorker, run: Callable[[FleetWorker], Awaitable[bool]], others: ProcessGroup
    ) -> None:
        self.control = worker.control
        self._worker = worker
        self._run = run
        self._others = others

    async def run(self) -> bool:
        return await run_beside(self._run(self._worker), self._others.run())

    def stop(self) -> None:
        self._worker.stop()
        self._others.stop()

    @property
    def inflight(self) -> int:
        return self._worker.inflight


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker has ended."""

    crawl: FleetCrawl
    stopped: bool  # by somebody
    over: bool
    view: CrawlView
    figures: WorkerFigures
    pull: str  # the command
    retry: str
    onward: str
    others: int | None  # who work on it still; None if it is not known
    spent: tuple[str, ...] = ()  # limits that are reached

    def words(self) -> list[str]:
        """For people."""
        words, name, waiting = WORDS[self.crawl.system], self.crawl.name, self.view.waiting
        kept = count(self.view.fetched, words.kept)
        if not self.over:
            if self.others:
                goes_on = f"The crawl {name} goes on without this worker, by {count(self.others, 'other')}"
                return [f"{goes_on}: {kept} so far.", "", f"Work on it again: {self.onward}"]
            who = "Nobody else" if self.others == 0 else "Nobody knows who"
            so_far = f"{kept} so far, {count(waiting, words.waiting)} waiting"
            return [f"{who} works on the crawl {name} now: {so_far}.", "", f"Go on with it: {self.onward}"]
        why = f"since {' and '.join(self.spent)} is reached" if self.spent else "since their hosts did not answer"
        left = f"; {count(waiting, words.waiting)} still wait, {why}" if waiting else ""
        failed = f"; {count(self.view.failed, words.waiting)} {words.failed}" if self.view.failed else ""
        lines = [f"The crawl {name} is done: {kept}{failed}{left}.", "", f"Bring it here: {self.pull}"]
        return lines if not failed else [*lines, f"Ask again for what failed: {self.retry}, and run this once more"]

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "name": self.crawl.name,
            "done": self.over,
            WORDS[self.crawl.system].key: self.view.fetched,
            **({"failed": self.view.failed} if WORDS[self.crawl.system].failed else {}),
            "waiting": self.view.waiting,
            "others": self.others,
            "parts_acquired": self.figures.acquired,
            "parts_lost": self.figures.lost,
            "asked_again_at_most": self.figures.dropped,
            "server_away": self.figures.away,
        }

    def exit(self) -> None:
        """Exit with the code that says how it went."""
        if self.stopped:
            sys.exit(130)
        if not self.over or (self.view.waiting and not self.spent):
            sys.exit(UNFINISHED)
        if self.view.failed:
            sys.exit(1)


async def _work(
    system: FleetSystem[R], name: str, shown: tuple[Screen, StatusFile], more: int, *, started: bool
) -> WorkerEnd:
    """Work, with so many more processes; or be one that was `started` by another."""
    sharing, clock, (screen, status) = system.sharing, FleetClock(), shown
    async with AsyncExitStack() as stack:
        identity = who_we_are(system.digest)
        fleet = await stack.enter_async_context(open_fleet(sharing.fleet, name, identity, away=AWAY))
        place = await stack.enter_async_context(open_place(sharing.objects or "", away=AWAY))
        await try_place(place, AWAY)  # before a crawl is begun, which would have the name
        crawl = await _begin(system, fleet, name, clock)
        place = replace(place, prefix=place.prefix + prefix_of(crawl))
        await _check_workers(fleet, crawl, system)
        _say_what_is_ignored(crawl, sharing, screen.note)
        if system.retry and not started:
            await fleet.beat([], [], "", WorkerPace())  # whoever comes a moment later sees that we work
            alone = await retry_failed(fleet, name, identity.name)
            screen.note("what failed waits again" if alone else "--retry: others work on it, so we join them")
        stack.callback(slices_in_force.reset, slices_in_force.set(FleetSlices(fleet, clock, crawl.seconds)))
        opened = await system.open(SharedCrawl(fleet, crawl, place), clock, stack)
        worker = FleetWorker(fleet, crawl, clock, clock.boot, opened.opener.open)
        worker.report, worker.heard = partial(_brief, worker), clock.heard
        opened.opener.worker = worker
        began = clock.now()

        def report(*, running: bool = True) -> R:
            seconds = clock.now() - began
            said = opened.report(worker, this_process(seconds, clock.wall(), running=running, paused=False))
            return msgspec.structs.replace(said, troubles=(*fleet_troubles(fleet, worker, clock.boot), *said.troubles))

        executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "status")))
        options = system.options.quieter("error")
        if started:
            options = Options(log_format=options.log_format, log_level=options.log_level)
            stop_when_alone(worker.stop)
        watch = FleetWatch(fleet, worker, clock)

        async def work(worker: FleetWorker) -> bool:
            return await run_beside(opened.run(worker), watch.run())

        shell = Shell(
            folder=system.out,
            options=options,
            screen=screen,
            executor=executor,
            report=report,
            metrics=watch.metrics,
            status_file=status,
        )
        if more:
            others = ProcessGroup(system.out, more, more, clock, screen.note)
            ran = await run_system(_Together(worker, work, others), shell)
        else:
            ran = await run_system(worker, shell, partial(work, worker))
        left = await _count_others(fleet, crawl, identity.name)
    where = (*fleet_flags(sharing.fleet), "--objects", redact_url(sharing.objects or ""))
    pull = again("fleet pull", name, *where, "--out", f"{name}-pulled")
    commands = pull, again("fleet retry", name, *fleet_flags(sharing.fleet)), system.onward
    spent = system.spent(worker.view)
    return WorkerEnd(crawl, ran.stopped, worker.board.over, worker.view, worker.figures, *commands, left, spent)


async def _begin(system: FleetSystem[R], fleet: FleetStores, name: str, clock: FleetClock) -> FleetCrawl:
    """The crawl of this name, begun if there is none. Raises CommandError if it is another one's."""
    sharing, plan = system.sharing, system.plan
    objects = place_of(sharing.objects or "")
    found = await fleet.call(fleet.servers[0].find(name))
    if found is None:
        if plan is None:
            wrong = f"there is nothing to resume: the fleet has no crawl {name}. Begin without --resume."
            raise CommandError(wrong, code=2)
        asked = FleetCrawl(
            name=name,
            id=secrets.token_hex(4),
            system=system.name,
            plan=plan,
            parts=sharing.fleet_parts,
            seconds=sharing.lease,
            ledger=system.ledger,
            objects=objects,
            started=clock.wall(),
            servers=len(sharing.fleet),
        )
        found = await fleet.begin(asked)
    _check_same(system, found, objects)
    for server in fleet.servers[1:]:
        other = await fleet.call(server.find(name))
        if other is None or other.id != found.id:
            raise CommandError(f"--fleet: the servers do not have the same crawl {name}; give all of them, in order", 2)
    await check_order(fleet, name)
    if found.done and (await fleet.view()).waiting:
        await fleet.end(done=False)
    return found


async def _check_workers(fleet: FleetStores, crawl: FleetCrawl, system: FleetSystem[R]) -> None:
    """Raise CommandError if others who work on the crawl do so by another file than ours."""
    for each in await fleet.call(fleet.servers[0].workers()):
        theirs = each.release.partition(" ")[2]
        if theirs != system.digest and each.seen < crawl.seconds:
            wrong = f"{each.name} works on {crawl.name} by another file: {theirs or 'none'}, not {system.digest}"
            drain = again("fleet drain", crawl.name, *fleet_flags(system.sharing.fleet))
            raise CommandError(f"{wrong}. Take its file, or have all others end before: {drain}", code=2)


async def _count_others(fleet: FleetStores, crawl: FleetCrawl, worker: str) -> int | None:
    """How many others work on a crawl; None if no server says."""
    try:
        workers = await fleet.call(fleet.servers[0].workers())
    except (LeasesError, LeasesAwayError):
        return None
    return sum(each.name != worker and each.seen < crawl.seconds and not each.draining for each in workers)


async def retry_failed(fleet: FleetStores, name: str, worker: str) -> bool:
    """Have what failed asked for again, unless others than this worker work on it; whether it is.

    Those who come with the same command at the same time want it once.
    """
    first = fleet.servers[0]
    crawl, workers = await fleet.call(first.find(name)), await fleet.call(first.workers())
    if crawl is None or (not crawl.done and any(each.name != worker and each.seen < crawl.seconds for each in workers)):
        return False
    await fleet.retry(crawl.retries + 1)
    return True


def _check_same(system: FleetSystem[R], found: FleetCrawl, objects: str) -> None:
    servers, wrong = len(system.sharing.fleet), ""
    if found.system != system.name:
        wrong = f"it is one of {found.system}"
    elif different := system.compare(found.plan):
        wrong = different
    elif found.objects != objects:
        wrong = f"its rows are in {found.objects}, not {objects}"
    elif found.ledger != system.ledger:
        wrong = f"its ledgers are of format {found.ledger}, those of this release of {system.ledger}"
    elif found.servers != servers:
        wrong = f"it has {count(found.servers, 'server')}, not {servers}"
    if wrong:
        where = (*fleet_flags(system.sharing.fleet), "--objects", found.objects)
        forget = again("fleet forget", found.name, *where, "--yes")
        what = f"the fleet has a crawl {found.name} already, and {wrong}"
        raise CommandError(f"{what}. Choose another --out, or delete that crawl: {forget}", code=2)


def _say_what_is_ignored(crawl: FleetCrawl, sharing: FleetFlags, note: Callable[[str], object]) -> None:
    """What a crawl was begun with is the same for all who work on it."""
    if sharing.lease not in (crawl.seconds, ALONE.lease):
        note(f"--lease {sharing.lease:g} is not heeded: the crawl was begun with {crawl.seconds:g}")
    if sharing.fleet_parts not in (crawl.parts, ALONE.fleet_parts):
        note(f"--fleet-parts {sharing.fleet_parts} is not heeded: the crawl was begun with {crawl.parts}")


def _brief(worker: FleetWorker) -> str:
    """What others see of this worker."""
    figures = [part.figures() for part in worker.parts]
    said = {
        "fetched": sum(each.fetched for each in figures),
        "waiting": sum(each.waiting for each in figures),
        "inflight": worker.inflight,
        "open": len(figures),
    }
    return msgspec.json.encode(said).decode()
