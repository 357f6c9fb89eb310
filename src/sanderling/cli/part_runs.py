"""What a process does that owns some parts of a crawl: it runs an engine for each of them, until all parts are done."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sanderling.cli.loop import stop_on_signals
from sanderling.cli.options import Options, disk_room
from sanderling.cli.watching import follow_control, publish_status, run_beside, save_limiter
from sanderling.crawls.run import FrontierRun
from sanderling.executor import Executor
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport
from sanderling.observe import logs
from sanderling.observe.report import AnyReport
from sanderling.stores.control_file import Control
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status


@dataclass(frozen=True, slots=True)
class PartRun:
    """A run of one part. A browser that its transport has is open: all parts of a process have the same."""

    run: FrontierRun[Any, Any]
    transport: Transport[Http]
    executor: Executor
    report: Callable[..., AnyReport]
    finish: Callable[[bool], object]  # with whether all is decided; in the executor

    async def to_end(self) -> None:
        """Run until nothing is left anywhere, or somebody stops it; then leave the folder whole."""
        folder, limiter = self.run.folder.path, self.transport.limiter
        recall(limiter, folder)
        async with self.transport.http:
            complete = await run_beside(
                self.run.run(),
                publish_status(partial(write_status, folder), self.report),
                save_limiter(limiter, folder, self.executor),
            )
        await self.executor(write_status, folder, self.report(running=False))
        await self.executor(keep, folder, list(limiter.saving()))
        await self.executor(self.finish, complete)


async def run_parts(root: Path, runs: Sequence[PartRun], options: Options) -> None:
    """Run some parts of the crawl in `root` until all parts have come to their end, or somebody stops them."""

    def stop() -> None:
        for each in runs:
            each.run.stop()

    def control(wanted: Control) -> None:
        for each in runs:
            each.run.control(wanted)

    logs.configure(options.log_format, options.log_level)
    with stop_on_signals(stop, _quiet, str):
        watched = _when_alone(stop)
        try:
            follow = follow_control(root, control, _quiet, disk_room(options, root), alone=False)
            await run_beside(_all_of(runs), follow)
        finally:
            if watched:
                asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


async def _all_of(runs: Sequence[PartRun]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in runs:
            group.create_task(each.to_end())


def _when_alone(stop: Callable[[], object]) -> bool:
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
