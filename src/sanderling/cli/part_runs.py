"""A crawl that several processes share, whichever system it is of: what the one does that people see, and the others.

The one that people see begins a run in every part, starts the others and joins what they report. Each of the others
runs an engine for each of its parts, until all parts are done.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sanderling.cli.command_error import CommandError
from sanderling.cli.limits import slices_in_force
from sanderling.cli.loop import explain_end, run, stop_on_signals
from sanderling.cli.options import Options, disk_room
from sanderling.cli.processes import ProcessGroup, open_board, open_quotas, wait_for_parts
from sanderling.cli.report_screen import Screen
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.watching import FolderLimiterKeeper, follow_control, publish_status, run_beside, save_limiter
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.exchange import exchange_files
from sanderling.crawls.folder import LedgerFolder
from sanderling.crawls.part_folders import BegunParts, finish_parts, parts_for
from sanderling.crawls.part_quotas import PartSlices
from sanderling.crawls.parts import folders_of, number_of_parts, part_folder
from sanderling.crawls.run import FrontierRun
from sanderling.crawls.split import SplitSystem
from sanderling.engine.host_report import this_process
from sanderling.executor import Executor, in_threads
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport, share_memory
from sanderling.observe import logs
from sanderling.observe.report import AnyReport, Process
from sanderling.stores.board import BoardField
from sanderling.stores.control_file import Control
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import read_status, write_status

FEWEST_SLOTS = 32  # requests in flight of one part, however many a process has

R = TypeVar("R", bound=AnyReport)
F = TypeVar("F", bound=LedgerFolder[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedCrawl:
    """A crawl in parts, as all of its processes know it."""

    out: Path
    ledger: str  # the file that is the ledger of each part
    split: SplitSystem  # how what one process began is taken apart
    options: Options
    go_on: str  # the command that goes on with it
    known: tuple[type[Exception], ...]  # what ends it and is said in words

    @contextmanager
    def lead(
        self,
        processes: int,
        begin: Callable[[], BegunParts],
        report: type[R],
        join: Callable[[Sequence[R], Process], R],
        screen: Screen,
    ) -> Iterator[tuple[BegunParts, Ran[R]]]:
        """Run it with several processes; how it went, while nobody else may have the folder. Raises CommandError."""
        with ExitStack() as stack:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
                stack.callback(Lock(self.out / "lock").release)
                parts = parts_for(self.out, processes, self.split, screen.note)
                wait_for_parts(self.out, screen.note, SystemClock())
                begun = begin()
            except FolderError as error:
                raise CommandError(str(error), code=2) from None
            with explain_end(self.go_on, self.known):
                group = ProcessGroup(self.out, parts, processes, SystemClock(), screen.note)
                group.show(begun.shown)
                ran = run(self._run_group(group, report, join, screen))
                if ran.complete:
                    finish_parts(self.out, self.ledger)
            yield begun, ran

    async def _run_group(
        self, group: ProcessGroup, kind: type[R], join: Callable[[Sequence[R], Process], R], screen: Screen
    ) -> Ran[R]:
        clock = SystemClock()
        started = clock.now()

        def report(*, running: bool = True) -> R:
            """What the parts last said, as one."""
            said = [each for path in folders_of(self.out) if (each := read_status(path, kind)) is not None]
            wall = clock.wall()
            return join(said, this_process(clock.now() - started, wall, running=running, paused=False))

        with ThreadPoolExecutor(1, "folder") as thread:
            executor = in_threads(thread)
            shell = Shell(folder=self.out, options=self.options, screen=screen, executor=executor, report=report)
            return await run_system(group, shell)

    def follow(
        self,
        own: Sequence[int],
        open_part: Callable[[Path], F],
        found: Any,  # noqa: ANN401 - the type of what parts find for each other
        make_runs: "MakeRuns[F]",
    ) -> None:
        """Be one of its processes: run the parts that are its `own`, until all parts have come to their end."""
        with ExitStack() as stack, explain_end(self.go_on, self.known):
            board = open_board(self.out, number_of_parts(self.out))
            stack.callback(board.close)
            stack.enter_context(share_quotas(self.out))
            folders = list[F]()
            for part in own:
                folder = open_part(part_folder(self.out, part))
                stack.enter_context(folder)
                folder.join(exchange_files(self.out, part, board, found, folder.ledger.meta))
                folders.append(folder)
            run(self._run_own(folders, make_runs))

    async def _run_own(self, folders: list[F], make_runs: "MakeRuns[F]") -> None:
        async with make_runs(folders) as runs:
            await run_parts(self.out, runs, self.options)


@contextmanager
def share_quotas(out: Path) -> Iterator[None]:
    """Have limiters that are made meanwhile share their quotas with those of all processes of the crawl."""
    with closing(open_quotas(out)) as table:
        before = slices_in_force.set(PartSlices(table, SystemClock()))
        try:
            yield
        finally:
            slices_in_force.reset(before)


MakeRuns = Callable[[list[F]], AbstractAsyncContextManager[Sequence["PartRun"]]]


@dataclass(frozen=True, slots=True)
class PartRun:
    """A run of one part. A browser that its transport has is open: all parts of a process have the same."""

    run: FrontierRun[Any, Any]
    transport: Transport[Http]
    executor: Executor
    report: Callable[..., AnyReport]
    finish: Callable[[], object]  # in the executor; it is not finished before all parts are

    async def to_end(self) -> None:
        """Run until nothing is left anywhere, or somebody stops it; then leave the folder whole."""
        folder, limiter = self.run.folder.path, self.transport.limiter
        recall(limiter, folder)
        async with self.transport.http:
            complete = await run_beside(
                self.run.run(),
                publish_status(partial(write_status, folder), self.report),
                save_limiter(limiter, FolderLimiterKeeper(folder, self.executor)),
            )
        await self.executor(write_status, folder, self.report(running=False))
        await self.executor(keep, folder, list(limiter.saving()))
        await self.executor(self.finish)
        if (others := self.run.folder.others) is not None:
            others.board.put(others.own, BoardField.COMPLETE, complete)


@asynccontextmanager
async def share_transport(
    folders: Sequence[F], make: Callable[[], Transport[Http]]
) -> AsyncIterator[Iterator[tuple[F, Transport[Http], Executor]]]:
    """A transport and an executor for each part: memory and a browser are those of the process, all else its own."""
    first = make()
    async with AsyncExitStack() as stack:
        if first.renderer is not None:
            await stack.enter_async_context(first.renderer)

        def each() -> Iterator[tuple[F, Transport[Http], Executor]]:
            for folder in folders:
                executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "folder")))
                yield folder, replace(share_memory(make(), first.memory), renderer=first.renderer), executor

        yield each()


def report_part(make: Callable[..., R], crawl: FrontierRun[Any, Any], clock: Clock, started: float) -> Callable[..., R]:
    """What reports a part that began then."""

    def report(*, running: bool = True) -> R:
        return make(crawl, clock.now() - started, running=running)

    return report


class StoppableRun(Protocol):
    """The run of a part, as far as people have a say in it."""

    def stop(self) -> object:
        """Ask for nothing more; what is in flight comes to its end."""

    def control(self, wanted: Control, /) -> object:
        """Pause, go on, drain or stop."""


class RunsToEnd(Protocol):
    """Runs one part, and leaves its folder whole."""

    @property
    def run(self) -> StoppableRun:
        """What it runs."""

    async def to_end(self) -> None:
        """Return when nothing is left anywhere, or somebody has stopped it."""


async def run_parts(root: Path, runs: Sequence[RunsToEnd], options: Options) -> None:
    """Run some parts of the crawl in `root` until all parts have come to their end, or somebody stops them."""

    def stop() -> None:
        for each in runs:
            each.run.stop()

    def control(wanted: Control) -> None:
        for each in runs:
            each.run.control(wanted)

    logs.configure(options.log_format, options.log_level)
    with stop_on_signals(stop, _quiet, str):
        watched = stop_when_alone(stop)
        try:
            follow = follow_control(root, control, _quiet, disk_room(options, root), alone=False)
            await run_beside(_all_of(runs), follow)
        finally:
            if watched:
                asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


async def _all_of(runs: Sequence[RunsToEnd]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in runs:
            group.create_task(each.to_end())


def stop_when_alone(stop: Callable[[], object]) -> bool:
    """Stop when the process ends that started us, which holds the other end of our standard input."""
    loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(handle, 64):
            loop.remove_reader(handle)
            stop()

    loop.add_reader(handle, read)
    return True


def _quiet(_: str) -> None:
    """The process that people see says it."""
