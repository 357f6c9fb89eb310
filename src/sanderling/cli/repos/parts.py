"""`sanderling repos crawl` with `--processes`: a crawl in parts, which several processes share."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sanderling.cli.command_error import CommandError
from sanderling.cli.fleet.flags import ALONE, FleetFlags
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import Options
from sanderling.cli.part_runs import run_parts, share_quotas
from sanderling.cli.processes import ProcessGroup, how_many, open_board, own_parts, wait_for_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.repos.crawl import KNOWN, PUBLISHED, end_crawl, end_forgetting, open_archive, read_earlier
from sanderling.cli.repos.directory import open_to_read
from sanderling.cli.repos.flags import BODIES, MOST_BODY, ArchiveFlags, RepoNetwork
from sanderling.cli.repos.progress import HOSTS_SHOWN, ArchiveFolder, SavedProgress, open_joined
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.watching import FolderLimiterKeeper, publish_status, repeat, run_beside, save_limiter
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.parts import (
    FOLDER,
    enough_parts,
    folders_of,
    make_parts,
    number_of_parts,
    part_folder,
    share_out,
)
from sanderling.engine.host_report import this_process
from sanderling.executor import Executor, in_threads
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport, share_memory
from sanderling.limit.memory import Memory
from sanderling.observe.report import Report
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory
from sanderling.repos.forget import ForgettingDirectory
from sanderling.repos.hand_out import HandedPages, HandOut, remove_handed
from sanderling.repos.parts import JoinedProgress, is_archive, settle_moves, share_slots
from sanderling.repos.report import ReposFacts, RepoWatch, join_repos
from sanderling.repos.segments import Segments
from sanderling.repos.since import EarlierRevs
from sanderling.stores.board import Board, BoardField
from sanderling.stores.control_file import Control
from sanderling.stores.durable import Lock
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.limiter_file import FILE as LIMITER
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.ports import RepoProgress
from sanderling.stores.status_file import read_status, write_status
from sanderling.words import count

DIDS, EARLIER = "dids.db", "earlier.db"  # in the folder of parts: what one process reads, and all look up
LOOK = 0.2  # seconds between two looks at who needs slots


@dataclass(frozen=True, slots=True)
class RepoFlags:
    """What the command was given."""

    place: ArchiveFolder
    asking: RepoNetwork
    keeping: ArchiveFlags
    options: Options
    processes: str
    resume_command: str
    sharing: FleetFlags = ALONE


def crawl_in_parts(flags: RepoFlags, *, as_json: bool) -> None:
    """Crawl with several processes, or be one of them; exit with the code that says how it went."""
    if own := own_parts():
        with explain_end(flags.resume_command, KNOWN):
            _crawl_own_parts(flags, own)
        return
    place, clock, screen = flags.place, SystemClock(), fitting(json=as_json)
    with explain_end(flags.resume_command, KNOWN), ExitStack() as stack:
        cursor = _finish_first_run(flags, screen, clock)
        stack.enter_context(_hold_folder(place.out, how_many(flags.processes), screen, clock))
        end_forgetting(place, screen)
        stack.callback(_remove_lookups, place.out)
        directory = ForgettingDirectory(stack.enter_context(_open_directory(flags, screen)), Forgotten.of(place.out))
        progress = stack.enter_context(open_joined(place))
        _share_schedule(progress, directory, cursor, screen)
        ran = run(_run_group(flags, directory, progress, clock, screen))
        if ran.complete:
            progress.begin_anew()
        kept = SavedProgress(progress.view(), tuple(progress.aside(HOSTS_SHOWN)))
    end_crawl(place, ran, kept, flags.resume_command, screen)


# The process that people see: before the others begin.


def _finish_first_run(flags: RepoFlags, screen: Screen, clock: Clock) -> str:
    """Finish what one process began in the folder, unless that was done; how far that was. Raises CommandError."""
    place = flags.place
    if (flags.keeping.directory or "").startswith("chdb:"):
        raise CommandError(
            "--directory chdb: one process may open it, and --processes are several; expected sqlite:PATH or "
            "clickhouse://…",
            code=2,
        )
    if number_of_parts(place.out) or not (place.out.is_dir() and is_archive(place.out)):
        return ""
    with open_archive(place, flags.keeping, screen.note, clock) as (_, progress):
        view = progress.view()
    screen.note(f"one process began this crawl: its {count(view.total_crawled, 'repo')} stay where they are")
    return view.cursor


@contextmanager
def _hold_folder(out: Path, processes: int, screen: Screen, clock: Clock) -> Iterator[None]:
    """The folder, made if need be, as ours; once nobody holds any part of it. Raises FolderError."""
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.callback(Lock(out / "lock").release)
        if not number_of_parts(out):
            make_parts(out, enough_parts(processes))
        wait_for_parts(out, screen.note, clock)
        yield


@contextmanager
def _open_directory(flags: RepoFlags, screen: Screen) -> Iterator[Directory]:
    """The directory, where others can open it too; and what earlier archives have, for all. Raises CommandError."""
    place, keeping = flags.place, flags.keeping
    _remove_lookups(place.out)
    folder = place.out / FOLDER
    if keeping.since_archive:
        with EarlierRevs(folder / EARLIER) as earlier:
            read_earlier(earlier, place, keeping.since_archive, screen.note)
    private = flags.asking.private
    with open_to_read(keeping.directory, keeping.did_file, place.out, private=private, at=folder / DIDS) as directory:
        yield directory


def _remove_lookups(out: Path) -> None:
    for name in (DIDS, EARLIER):
        for path in (out / FOLDER).glob(f"{name}*"):
            path.unlink()
    remove_handed(out)


def _share_schedule(progress: JoinedProgress, directory: Directory, cursor: str, screen: Screen) -> None:
    """Schedule each DID in the part that asks its host. Parts that are new begin where one process was."""
    if cursor:
        for each in progress.stores[: progress.parts]:
            each.record([], [], cursor=cursor, segment=0)
    if moved := settle_moves(progress.stores, progress.parts, directory):
        screen.note(f"{count(moved, 'DID')} scheduled in the part that asks for them now")


class _Group:
    """The processes, and what hands out the directory to them."""

    def __init__(self, processes: ProcessGroup, hand_out: HandOut, clock: Clock) -> None:
        self.stop = processes.stop
        self._processes = processes
        self._hand_out = hand_out
        self._clock = clock

    async def run(self) -> bool:
        return await run_beside(self._processes.run(), self._hand_out.run(self._clock))

    def control(self, wanted: Control) -> None:
        self._hand_out.paused = wanted.paused

    @property
    def inflight(self) -> int:
        return self._processes.inflight


async def _run_group(
    flags: RepoFlags, directory: Directory, progress: JoinedProgress, clock: Clock, screen: Screen
) -> Ran[Report[ReposFacts]]:
    out, parts, started = flags.place.out, progress.parts, clock.now()
    before = sum(each.view().completed for each in progress.stores[parts:])
    with ThreadPoolExecutor(1, "folder") as thread, ThreadPoolExecutor(1, "directory") as reading:
        known = await in_threads(reading)(directory.count)

        def report(*, running: bool = True) -> Report[ReposFacts]:
            """What the parts last said, as one."""
            kind = Report[ReposFacts]
            said = (each for path in folders_of(out) if (each := read_status(path, kind)) is not None)
            process = this_process(clock.now() - started, clock.wall(), running=running, paused=hand_out.paused)
            # What an earlier run said counts no more; of this one, all began after us.
            now = [each for each in said if each.process.started > process.started - 1]
            return join_repos(now, process, known, before)

        group = ProcessGroup(out, parts, how_many(flags.processes), clock, screen.note)
        after = progress.begin_together()
        hand_out = HandOut(out, directory, after, group.board, in_threads(reading), flags.keeping.page_size)
        shell = Shell(folder=out, options=flags.options, screen=screen, executor=in_threads(thread), report=report)
        return await run_system(_Group(group, hand_out, clock), shell)


# A process that owns some parts.


class _OpenedPart(NamedTuple):
    """A part, for as long as this process owns it."""

    number: int
    path: Path
    segments: Segments
    progress: RepoProgress


@dataclass(frozen=True, slots=True)
class _RepoPartRun:
    """A run of one part, from its opening to its end."""

    part: _OpenedPart
    run: RepoCrawl
    transport: Transport[Http]
    disk: Executor
    report: Callable[..., Report[ReposFacts]]
    board: Board

    async def to_end(self) -> None:
        """Run until nothing is left anywhere, or somebody stops it; then leave the folder whole."""
        folder, limiter = self.part.path, self.transport.limiter
        recall(limiter, folder)
        async with self.transport.http:
            complete = await run_beside(
                self.run.run(),
                publish_status(partial(write_status, folder), self.report),
                save_limiter(limiter, FolderLimiterKeeper(folder, self.disk)),
            )
        await self.disk(write_status, folder, self.report(running=False))
        await self.disk(keep, folder, list(limiter.saving()))
        self.board.put(self.part.number, BoardField.COMPLETE, complete)


def _crawl_own_parts(flags: RepoFlags, own: Sequence[int]) -> None:
    """Crawl the parts of this process, until all parts have come to their end."""
    clock, out, place, keeping = SystemClock(), flags.place.out, flags.place, flags.keeping
    with ExitStack() as stack:
        board = open_board(out, number_of_parts(out))
        stack.callback(board.close)
        stack.enter_context(share_quotas(out))
        url = f"sqlite:{out / FOLDER / DIDS}" if keeping.did_file else keeping.directory
        directory = stack.enter_context(open_to_read(url, None, out, private=flags.asking.private))
        earlier = stack.enter_context(EarlierRevs(out / FOLDER / EARLIER)) if keeping.since_archive else None
        shared = _Shared(
            ForgettingDirectory(directory, Forgotten.of(out)),
            earlier,
            stack.enter_context(open_joined(place)).stores,
            board,
            clock,
        )
        parts = []
        for part in own:
            opened = open_archive(place, keeping, _quiet, clock, part)
            parts.append(_OpenedPart(part, part_folder(out, part), *stack.enter_context(opened)))
        run(_run_own(flags, parts, shared))


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the parts of a process share."""

    directory: Directory
    earlier: EarlierRevs | None
    progress: Sequence[RepoProgress]  # of all parts, and of what one process had begun
    board: Board
    clock: Clock

    def stores(self, part: _OpenedPart, disk: Executor) -> Stores[Segments]:
        """Where one of them reads and writes."""
        number, path, segments, progress = part
        return Stores(
            self.directory,
            progress,
            segments,
            self.earlier,
            HandedPages(path, number, self.board, self.clock, disk),
            # What others learn while we run is of other DIDs: each is handed to one part.
            [each for other, each in enumerate(self.progress) if other != number and _knows_some(each)],
        )


def _knows_some(progress: RepoProgress) -> bool:
    view = progress.view()
    return bool(view.completed or view.scheduled)


async def _run_own(flags: RepoFlags, parts: Sequence[_OpenedPart], shared: _Shared) -> None:
    processes = len(share_out(shared.board.parts, how_many(flags.processes)))  # never more than parts
    memory = Memory(max(2 * MOST_BODY, BODIES // processes))
    workers = max(1, flags.asking.workers // processes)
    rules = flags.keeping.rules(flags.asking)
    rules = replace(rules, workers=workers, page_size=max(1, rules.page_size // shared.board.parts))
    with ExitStack() as stack:
        cores = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // processes), "cores")
        packing, runs, crawls = in_threads(stack.enter_context(cores)), list[_RepoPartRun](), list[RepoCrawl]()
        for part in parts:
            disk = in_threads(stack.enter_context(ThreadPoolExecutor(1, "disk")))
            # Each has connections and a limiter of its own; memory is that of the process.
            transport = share_memory(flags.asking.transport(shared.clock), memory)
            if not (part.path / LIMITER).exists():
                recall(transport.limiter, flags.place.out)  # of the one process that began the crawl
            crawl = RepoCrawl(shared.stores(part, disk), transport, disk, packing, rules=rules, clock=shared.clock)
            crawls.append(crawl)
            runs.append(_part_run(part, crawl, transport, disk, shared.board))
        await run_beside(
            run_parts(flags.place.out, runs, flags.options), repeat(LOOK, partial(set_slots, crawls, workers))
        )


async def set_slots(crawls: Sequence[RepoCrawl], workers: int) -> None:
    """Let so many requests be in flight for all crawls of a process, where they are needed."""
    if not crawls:
        return
    inflight = [each.inflight for each in crawls]
    for crawl, most in zip(crawls, share_slots(inflight, workers), strict=True):
        if most != crawl.engine.slots:
            crawl.engine.slots = most
            crawl.engine.pump()


def _part_run(
    part: _OpenedPart, crawl: RepoCrawl, transport: Transport[Http], disk: Executor, board: Board
) -> _RepoPartRun:
    watch = RepoWatch(crawl, part.segments, 0, part.progress.view())
    started = crawl.clock.now()

    def report(*, running: bool = True) -> Report[ReposFacts]:
        board.put(part.number, BoardField.INFLIGHT, crawl.inflight)
        return watch.report(crawl.clock.now() - started, PUBLISHED, running=running)

    return _RepoPartRun(part, crawl, transport, disk, report, board)


def _quiet(_: str) -> None:
    """The process that people see says it."""
