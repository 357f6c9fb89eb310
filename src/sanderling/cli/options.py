"""The flags that every long-running command shares, and what they switch on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number
from prometheus_client import CollectorRegistry

from sanderling.cli import CommandError
from sanderling.observe import logs
from sanderling.observe.metrics import Exposition, PortError, on_loop, serve

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to watch a command while it runs. A command takes one as `*, options: Options = DEFAULT`."""

    metrics_port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """Serve Prometheus metrics on this port, to this machine only; 0 takes any free one."""

    log_format: logs.Style | None = None
    """How log lines look; by default text on a terminal and json elsewhere."""

    log_level: logs.Level = "info"
    """The least important lines to log."""

    @property
    def logs_snapshots(self) -> bool:
        """Whether to log the limiter's snapshot now and then: not into a terminal that shows it already."""
        return self.log_format is not None or not sys.stderr.isatty()


DEFAULT = Options()


Show = Callable[[CollectorRegistry, asyncio.AbstractEventLoop], object]


def showing(metrics: Callable[[CollectorRegistry, Callable[[], T]], object], take: Callable[[], T]) -> Show:
    """That these metrics are shown, of what `take` returns; it is called in the event loop."""
    return lambda registry, loop: metrics(registry, on_loop(loop, take))


@asynccontextmanager
async def observed(options: Options, *shows: Show) -> AsyncIterator[str | None]:
    """Log as asked, and show metrics if asked; gives the address of these, if any.

    Nothing is printed: whether to show the address is for the command to decide.
    """
    logs.configure(options.log_format, options.log_level)
    if options.metrics_port is None:
        yield None
        return
    registry = CollectorRegistry()
    for show in shows:
        show(registry, asyncio.get_running_loop())
    exposition = _exposed(options.metrics_port, registry)
    try:
        yield exposition.url
    finally:
        # Closing waits for the scrapes under way, and these may be waiting for the event loop.
        await asyncio.to_thread(exposition.close)


def _exposed(port: int, registry: CollectorRegistry) -> Exposition:
    try:
        return serve(registry, port)
    except PortError as error:
        raise CommandError(f"--metrics-port: {error}") from None
