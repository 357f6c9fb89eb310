"""`sanderling repos crawl`: archive every repo of every host, with nothing lost."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError, not_opened
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.fleet.flags import ALONE, FleetFlags
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.processes import ProcessCount, how_many, is_in_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.repos.directory import open_to_read
from sanderling.cli.repos.flags import ArchiveFlags, RepoNetwork
from sanderling.cli.repos.progress import (
    HOSTS_SHOWN,
    USUAL,
    ArchiveFolder,
    SavedProgress,
    known_progress,
    open_joined,
    open_progress,
)
from sanderling.cli.repos.summary import summarise, words
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.parts import part_folder
from sanderling.executor import in_threads
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport
from sanderling.observe.report import Report
from sanderling.repos.archives import ArchiveProblem
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory, DirectoryError
from sanderling.repos.forget import ForgettingDirectory, finish
from sanderling.repos.parts import all_segments
from sanderling.repos.report import ReposFacts, RepoWatch
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.repos.since import EarlierRevs
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.ports import ProgressError, ProgressView, RepoProgress
from sanderling.words import count, parse_size

UNFINISHED = 3  # the exit code if something is left that the same command asks for
PUBLISHED, SHOWN = 1_000, 100  # hosts that status.json has, and those that a screen chooses from
AT_ONCE = 5000  # repos that the progress is told of: a large segment has half a million, and others use a Redis too

KNOWN = (FolderError, ProgressError, DirectoryError)
ASKING, KEEPING = RepoNetwork(), ArchiveFlags()
Note = Callable[[str], object]


def crawl(  # noqa: PLR0913 - a flag each
    *,
    resume: Annotated[bool, Parameter(negative=(), help="Insist that there is a crawl to go on with.")] = False,
    processes: ProcessCount = "1",
    sharing: FleetFlags = ALONE,
    json: SummaryAsJson = False,
    place: ArchiveFolder = USUAL,
    asking: RepoNetwork = ASKING,
    keeping: ArchiveFlags = KEEPING,
    options: Bounded = BOUNDED,
) -> None:
    """Archive what the directory lists, or go on with that."""
    sharing.check()
    if sharing.fleet:
        # Not at the top: it needs this file.
        from sanderling.cli.repos.fleet import run_worker_of  # noqa: PLC0415
        from sanderling.cli.repos.parts import RepoFlags  # noqa: PLC0415

        onward = again("repos crawl", place, asking, keeping, options, sharing)
        flags = RepoFlags(place, asking, keeping, options, processes, onward, sharing)
        run_worker_of(flags, resume=resume, as_json=json)
        return
    if resume:
        _check_begun(place)
    onward = again("repos crawl", place, asking, keeping, options)
    if how_many(processes) > 1 or is_in_parts(place.out):
        # Not at the top: it needs this file.
        from sanderling.cli.repos.parts import RepoFlags, crawl_in_parts  # noqa: PLC0415

        onward = again("repos crawl", place, asking, keeping, options, "--processes", processes)
        crawl_in_parts(RepoFlags(place, asking, keeping, options, processes, onward), as_json=json)
        return
    screen, clock = fitting(json=json), SystemClock()
    transport, rules = asking.transport(clock), keeping.rules(asking)
    with explain_end(onward, KNOWN), open_stores(place, asking, keeping, screen, clock) as stores:
        ran = run(run_crawl(stores, transport, rules, options, clock, screen))
        stores.segments.close()
        kept = SavedProgress(stores.progress.view(), tuple(stores.progress.aside(HOSTS_SHOWN)))
    end_crawl(place, ran, kept, onward, screen)


def end_crawl(
    place: ArchiveFolder, ran: Ran[Report[ReposFacts]], kept: SavedProgress, onward: str, screen: Screen
) -> None:
    """Say what came of a run, and exit with the code that says how it went; `onward` is the command to go on with."""
    summary = summarise(place, ran.last, kept, complete=ran.complete, again=onward)
    screen.end(words(summary, place, SystemClock().wall()), summary.as_json())
    if ran.stopped:
        sys.exit(130)
    if not summary.complete:
        sys.exit(UNFINISHED)


async def run_crawl(
    stores: Stores[Segments],
    transport: Transport[Http],
    rules: RepoRules,
    options: Options,
    clock: Clock,
    screen: Screen,
) -> Ran[Report[ReposFacts]]:
    """Crawl until every DID was seen to or somebody stops it."""
    segments, before = stores.segments, stores.progress.view()
    # The threads end before the segments are closed: what they are at comes to its end, in one piece.
    with ThreadPoolExecutor(1, "disk") as disk, ThreadPoolExecutor(os.cpu_count(), "cores") as cores:
        executor = in_threads(disk)
        crawl = RepoCrawl(stores, transport, executor, in_threads(cores), rules=rules, clock=clock)
        watch = RepoWatch(crawl, segments, await executor(stores.directory.count), before)
        started = clock.now()

        def report(top: int = PUBLISHED, *, running: bool = True) -> Report[ReposFacts]:
            return watch.report(clock.now() - started, top, running=running)

        shell = Shell(
            folder=segments.folder,
            options=options,
            screen=screen,
            executor=executor,
            report=report,
            brief=partial(report, SHOWN),
            transport=transport,
            progress=stores.progress,
        )
        ran = await run_system(crawl, shell)
        if ran.complete:
            # So that the next run begins at the first DID, and comes by all that is not complete.
            await executor(lambda: stores.progress.record([], [], cursor="", segment=segments.number))
    return ran


def _check_begun(place: ArchiveFolder) -> None:
    view, folder = known_progress(place), place.out
    if not (view.completed or view.failed or view.cursor) and not (folder.is_dir() and all_segments(folder)):
        raise CommandError(f"nothing to resume in {folder}; begin without --resume", code=2)


@contextmanager
def open_stores(
    place: ArchiveFolder, asking: RepoNetwork, keeping: ArchiveFlags, screen: Screen, clock: Clock
) -> Iterator[Stores[Segments]]:
    """All that a crawl works in, for as long as it does. Raises CommandError if it is not to be had."""
    end_forgetting(place, screen)
    with ExitStack() as stack:
        directory: Directory = stack.enter_context(
            open_to_read(keeping.directory, keeping.did_file, place.out, private=asking.private)
        )
        earlier = stack.enter_context(EarlierRevs()) if keeping.since_archive else None
        segments, progress = stack.enter_context(open_archive(place, keeping, screen.note, clock))
        if earlier is not None:
            read_earlier(earlier, place, keeping.since_archive, screen.note)
        yield Stores(ForgettingDirectory(directory, Forgotten.of(place.out)), progress, segments, earlier)


@contextmanager
def open_archive(
    place: ArchiveFolder, keeping: ArchiveFlags, note: Note, clock: Clock, part: int | None = None
) -> Iterator[tuple[Segments, RepoProgress]]:
    """The segments and the progress of one process, or of a part, which agree with each other. Raises CommandError."""
    folder = place.out if part is None else part_folder(place.out, part)
    with _open_segments(folder, keeping, clock) as segments, open_progress(place, part) as progress:
        if segments.cut:
            note(f"cut off {count(segments.cut, 'byte')} that a crash had left unfinished; they are asked again")
        _check_whole(progress.view(), segments)
        # First of all: these are durable, and the crash came before anybody could say so.
        for start in range(0, len(segments.found), AT_ONCE):
            progress.record(segments.found[start : start + AT_ONCE], [], cursor=None, segment=segments.number)
        yield segments, progress


def end_forgetting(place: ArchiveFolder, screen: Screen) -> None:
    """Remove what is still to be removed: no crawl goes on with it, nor asks for it."""
    if Forgotten.of(place.out).says.removing:
        with open_joined(place) as progress:
            removed = finish(place.out, progress)
        screen.note(f"ended what sanderling forget had begun: {count(removed.repos, 'repo')} removed")


def _open_segments(folder: Path, keeping: ArchiveFlags, clock: Clock) -> Segments:
    try:
        return Segments(folder, size=size_of_segments(keeping), created_at=lambda: int(clock.wall() * 1e6))
    except FolderError as error:
        raise not_opened(error) from None


def size_of_segments(keeping: ArchiveFlags) -> int:
    """How large a segment grows, in bytes. Raises CommandError."""
    try:
        size = parse_size(keeping.segment_size)
    except ValueError as error:
        raise CommandError(f"segment-size: {error}", code=2) from None
    if size < 1:
        raise CommandError(f"segment-size: {keeping.segment_size}, expected at least one byte", code=2)
    return size


def _check_whole(view: ProgressView, segments: Segments) -> None:
    """Numbers that were given once would be given again, and what is complete could be nowhere."""
    if view.total_crawled and view.segment > segments.number:
        raise CommandError(
            f"the progress speaks of segment {view.segment}, but {segments.folder} has none after {segments.number}. "
            "Put the last one back, or forget the crawl with: sanderling repos reset",
            code=2,
        )


def read_earlier(earlier: EarlierRevs, place: ArchiveFolder, folders: tuple[Path, ...], note: Note) -> None:
    """Read what earlier archives have. Raises CommandError."""
    problems: list[ArchiveProblem] = []
    for folder in folders:
        if folder.resolve() == place.out.resolve():
            raise CommandError(f"--since-archive: {folder} is where this crawl writes, expected an earlier one", code=2)
        try:
            earlier.read(folder, problems.append)
        except FolderError as error:
            raise CommandError(f"--since-archive: {error}", code=2) from None
    note(f"the earlier archive has {count(earlier.repos, 'repo')}")
    if problems:
        note(f"{count(len(problems), 'thing')} wrong with it, archived again: {problems[0]}")
