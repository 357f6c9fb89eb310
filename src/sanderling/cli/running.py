"""The run shell of every system: its screen, log, metrics, dashboard and signals, and the files that a run keeps.

A command opens what its system works in, makes the system, and calls `run_system`. While the system runs, people see it
on the screen, other processes read status.json, the next run finds limiter.json, and control.json is followed.
"""

import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sanderling.cli.loop import describe_inflight, stop_on_signals
from sanderling.cli.options import Options, disk_room, expose, expose_limiter, observe, serve_dashboard
from sanderling.cli.screen import ScreenOf
from sanderling.cli.watching import (
    Beside,
    FolderLimiterKeeper,
    LimiterKeeper,
    draw,
    follow_control,
    publish_status,
    run_beside,
    save_limiter,
)
from sanderling.executor import Executor
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport, contexts_of
from sanderling.observe.metric import Metric
from sanderling.observe.metrics import report_metrics
from sanderling.observe.report import AnyReport
from sanderling.stores.control_file import Control
from sanderling.stores.limiter_file import recall
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.queue import WholeQueue
from sanderling.stores.status_file import StatusFile, write_status

R = TypeVar("R", bound=AnyReport)
S = TypeVar("S")


class RunnableSystem(Protocol):
    """What is run."""

    def run(self) -> Awaitable[bool | None]:
        """Work until all is done or somebody stops it; False if something is left."""

    def stop(self) -> object:
        """Begin nothing more; what is in flight comes to its end."""

    def control(self, wanted: Control, /) -> object:
        """Pause, go on, drain or stop."""

    @property
    def inflight(self) -> int:
        """What it finishes once it is told to stop."""


@dataclass(frozen=True, slots=True)
class Ran(Generic[S]):
    """How a run went."""

    last: S  # how the system stood at its end
    complete: bool = True
    signals: tuple[int, ...] = ()  # that came
    notes: tuple[str, ...] = ()  # lines for the end of the summary

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it."""
        return bool(self.signals)

    @property
    def interrupted(self) -> bool:
        """Whether somebody pressed Ctrl-C: that is no end that a system which never ends by itself expects."""
        return signal.SIGINT in self.signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell(Generic[R]):
    """What surrounds a system while it runs. `report` takes `running`, which is False at the end."""

    folder: Path
    options: Options
    screen: ScreenOf[AnyReport, Any]
    executor: Executor  # writes the files of the folder
    report: Callable[..., R]
    brief: Callable[..., R] | None = None  # the same with fewer hosts, where it is wanted more often
    metrics: Callable[[], Iterable[Metric]] | None = None  # for Prometheus, beside those of the report
    transport: Transport[Http] | None = None  # which hosts are asked with
    limiter_keeper: LimiterKeeper | None = None  # where what it learned is kept, if not in the folder
    claim: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)  # entered before all that is served
    contexts: Sequence[AbstractAsyncContextManager[object]] = ()  # what else is open while it runs: its API
    stopping: Callable[[int], str] = describe_inflight  # what is said when it is told to stop
    status_file: StatusFile | None = None  # where several processes share the folder
    metrics_port: int | None = None  # for metrics if no flag says another, and it is free
    polling: PollingStore | None = None  # what the dashboard may use, too
    queue: WholeQueue | None = None
    progress: object = None


async def run_system(
    system: RunnableSystem, shell: Shell[R], run: Callable[[], Awaitable[bool | None]] | None = None
) -> Ran[R]:
    """Run a system, or `run` in its place, until it ends or somebody stops it. Raises CommandError."""
    folder, screen, executor, transport = shell.folder, shell.screen, shell.executor, shell.transport
    file, note, room = shell.status_file, shell.screen.note, disk_room(shell.options, folder)
    write = partial(write_status, folder) if file is None else file.write
    brief, savers = shell.brief or shell.report, list[Beside]()
    keeper = shell.limiter_keeper or FolderLimiterKeeper(folder, executor)
    shows = [expose(lambda: report_metrics(brief()))]
    if shell.metrics is not None:
        shows.append(expose(shell.metrics))
    if transport is not None:
        recall(transport.limiter, folder)
        shows.insert(0, expose_limiter(transport.limiter))
    async with AsyncExitStack() as stack:
        # The log is set up behind the screen, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        await stack.enter_async_context(observe(shell.options, *shows, say=note, usual_port=shell.metrics_port))
        await stack.enter_async_context(shell.claim)
        dashboard = serve_dashboard(
            shell.options, folder, note, polling=shell.polling, queue=shell.queue, progress=shell.progress
        )
        await stack.enter_async_context(dashboard)
        signals = stack.enter_context(stop_on_signals(system.stop, note, lambda: shell.stopping(system.inflight)))
        for each in shell.contexts if transport is None else (*contexts_of(transport), *shell.contexts):
            await stack.enter_async_context(each)
        if transport is not None:
            savers.append(save_limiter(transport.limiter, keeper))
        complete = await run_beside(
            (run or system.run)(),
            draw(screen, brief),
            publish_status(write, shell.report),
            follow_control(folder, system.control, note, room, alone=file is None or file.alone),
            *savers,
        )
        last = shell.report(running=False)
        screen.show(last)
        await executor(write, last)
        if transport is not None:
            await keeper.keep(list(transport.limiter.saving()))
    return Ran(last, complete is not False, tuple(signals))
