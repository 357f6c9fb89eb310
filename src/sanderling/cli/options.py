"""The flags that every long-running command shares, and what they switch on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

from cyclopts import Parameter
from cyclopts.validators import Number
from prometheus_client import CollectorRegistry

from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import SETTING
from sanderling.engine.limiter_metrics import TOP_HOSTS, limiter_metrics
from sanderling.limit import Limiter
from sanderling.observe import logs
from sanderling.observe.metric import Metric
from sanderling.observe.metrics import (
    LOOPBACK,
    BindError,
    Exposition,
    Metrics,
    PortError,
    on_loop,
    serve,
)
from sanderling.stores.disk_room import DiskRoom
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.queue import WholeQueue
from sanderling.words import parse_size


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to watch a command while it runs. A command takes one as `*, options: Options = DEFAULT`."""

    metrics_port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """Serve Prometheus metrics on this port; 0 takes any free one."""

    metrics_bind: Annotated[str, SETTING] = LOOPBACK
    """The address for metrics, 0.0.0.0 in a container; anyone who reaches it can read them: host names, no secrets."""

    log_format: Annotated[logs.Style | None, SETTING] = None
    """How log lines look; by default text on a terminal and json elsewhere."""

    log_level: Annotated[logs.Level, SETTING] = "info"
    """The least important lines to log."""

    @property
    def logs_snapshots(self) -> bool:
        """Whether to log the limiter's snapshot now and then: not into a terminal that shows it already."""
        return self.log_format is not None or not sys.stderr.isatty()

    def quieter(self, level: logs.Level) -> Self:
        """The same, without the lines that a screen has in words: those are for who asked for a log."""
        asked = self.log_format is not None or self.log_level != "info"
        return self if asked else replace(self, log_level=level)


DEFAULT = Options()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(Options):
    """The same for a command that runs a system, with a page that shows it. `*, options: Watched = WATCHED`."""

    dashboard: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """Serve the dashboard on this port, to this machine only: this system, and all beside its folder."""


WATCHED = Watched()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Watched):
    """The same for a command that collects into a folder. `*, options: Bounded = BOUNDED`."""

    max_disk: str | None = None
    """How large the folder may grow, as 50GB; then nothing is asked for until there is room again."""

    def __post_init__(self) -> None:
        try:
            parse_size("1" if self.max_disk is None else self.max_disk)
        except ValueError as error:
            raise CommandError(f"--max-disk: {error}", code=2) from None


BOUNDED = Bounded()


def disk_room(options: Options, folder: Path) -> DiskRoom:
    """The room on disk that a crawl in this folder has."""
    most = options.max_disk if isinstance(options, Bounded) else None
    return DiskRoom(folder, parse_size(most) if most else None)


def serve_dashboard(
    options: Options,
    out: Path,
    say: Callable[[str], object],
    *,
    polling: PollingStore | None = None,
    queue: WholeQueue | None = None,
    progress: object = None,
) -> AbstractAsyncContextManager[object]:
    """Serve the dashboard, if it was asked for, beside a system that keeps what it has in `out`. Raises CommandError.

    A database, a queue, or progress at a server that the system holds open can be used from there too.
    """
    if not isinstance(options, Watched) or options.dashboard is None:
        return nullcontext()
    # Here and not at the top: it loads all five systems, and most runs serve none.
    from sanderling.cli.dashboard import dashboard_beside  # noqa: PLC0415
    from sanderling.web.house_reach import ItemSource, Reach  # noqa: PLC0415

    reach = Reach(
        {} if polling is None else {out: polling},
        {} if queue is None else {out: queue},
        {out: progress} if isinstance(progress, ItemSource) else {},
    )
    return dashboard_beside(options.dashboard, out.absolute().parent, reach, say=say)


Show = Callable[[CollectorRegistry, asyncio.AbstractEventLoop], object]


def expose(take: Callable[[], Iterable[Metric]]) -> Show:
    """Show the metrics that `take` returns; it is called in the event loop, and so are they made there."""
    return lambda registry, loop: Metrics(registry, on_loop(loop, lambda: list(take())))


def expose_limiter(limiter: Limiter) -> Show:
    """Make the metrics of a limiter, its busiest hosts with them."""
    return expose(lambda: limiter_metrics(limiter.snapshot(TOP_HOSTS)))


@asynccontextmanager
async def observe(
    options: Options, *shows: Show, say: Callable[[str], object] | None = None, usual_port: int | None = None
) -> AsyncIterator[str | None]:
    """Log as asked, and serve metrics if asked, or on the usual port if that is free. Raises CommandError.

    Gives the address of the metrics, if any; `say` is told.
    """
    logs.configure(options.log_format, options.log_level)
    if options.metrics_port is None and usual_port is None:
        yield None
        return
    registry, say = CollectorRegistry(), say or (lambda _: None)
    for show in shows:
        show(registry, asyncio.get_running_loop())
    exposition = _serve_metrics(options, usual_port, registry)
    if exposition is None:
        say(f"no metrics: port {usual_port} is taken; --metrics-port chooses another")
        yield None
        return
    try:
        say(f"metrics: {exposition.url}")
        yield exposition.url
    finally:
        # Closing waits for the scrapes under way, and these may be waiting for the event loop.
        await asyncio.to_thread(exposition.close)


def _serve_metrics(options: Options, usual_port: int | None, registry: CollectorRegistry) -> Exposition | None:
    """The metrics, served; None if nobody asked for a port and the usual one is taken."""
    port = options.metrics_port if options.metrics_port is not None else usual_port or 0
    try:
        return serve(registry, port, options.metrics_bind)
    except PortError as error:
        if options.metrics_port is None:
            return None
        raise CommandError(f"--metrics-port: {error}") from None
    except BindError as error:
        raise CommandError(f"metrics-bind: {error}", code=2) from None
