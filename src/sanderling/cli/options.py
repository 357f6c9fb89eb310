"""The flags that every long-running command shares, and what they switch on."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from prometheus_client import CollectorRegistry

from sanderling.cli import CommandError
from sanderling.observe import logs
from sanderling.observe.metrics import (
    Exposition,
    LimiterMetrics,
    PagesMetrics,
    PortError,
    Take,
    TakePages,
    on_loop,
    serve,
)
from sanderling.observe.metrics_repos import RepoMetrics, TakeRepos
from sanderling.observe.metrics_sequence import SequenceMetrics, TakeSequence


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


@asynccontextmanager
async def observed(
    options: Options,
    take: Take,
    pages: TakePages | None = None,
    repos: TakeRepos | None = None,
    sequence: TakeSequence | None = None,
) -> AsyncIterator[str | None]:
    """Log as asked, and show what the others return as metrics if asked; gives the address of these, if any.

    Nothing is printed: whether to show the address is for the command to decide.
    """
    logs.configure(options.log_format, options.log_level)
    if options.metrics_port is None:
        yield None
        return
    exposition = _exposed(options.metrics_port, _registry(take, pages, repos, sequence))
    try:
        yield exposition.url
    finally:
        # Closing waits for the scrapes under way, and these may be waiting for the event loop.
        await asyncio.to_thread(exposition.close)


def _registry(
    take: Take, pages: TakePages | None, repos: TakeRepos | None, sequence: TakeSequence | None
) -> CollectorRegistry:
    registry, loop = CollectorRegistry(), asyncio.get_running_loop()
    LimiterMetrics(registry, on_loop(loop, take))
    if pages is not None:
        PagesMetrics(registry, on_loop(loop, pages))
    if repos is not None:
        RepoMetrics(registry, on_loop(loop, repos))
    if sequence is not None:
        SequenceMetrics(registry, on_loop(loop, sequence))
    return registry


def _exposed(port: int, registry: CollectorRegistry) -> Exposition:
    try:
        return serve(registry, port)
    except PortError as error:
        raise CommandError(f"--metrics-port: {error}") from None
