"""`sanderling polling run`: keep live documents fresh, and tell what changed."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.loop import run as run_loop
from sanderling.cli.options import DEFAULT, Options
from sanderling.cli.polling_flags import Pace, Telling, Upstream
from sanderling.cli.polling_place import USUAL, Place
from sanderling.cli.polling_run import Gear, Given, run_full, run_polling
from sanderling.cli.polling_screen import fitting
from sanderling.cli.polling_summary import again, fetched, summarise, words
from sanderling.clock import SystemClock
from sanderling.stores.durable import FolderError
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.queue import QueueError

UPSTREAM, PACE, TELLING = Upstream(), Pace(), Telling()
KNOWN = (FolderError, QueueError, PollingStoreError)


def run(  # noqa: PLR0913 - flags, in groups
    *,
    demo: Annotated[
        bool, Parameter(negative=(), help="Poll a simulated race day on this machine, and show it.")
    ] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")] = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    pace: Pace = PACE,
    telling: Telling = TELLING,
    options: Options = DEFAULT,
) -> None:
    """Poll until Ctrl-C."""
    if demo:
        # Here and not at the top: the simulated day is nothing that polling needs.
        from sanderling.cli.demo_polling import OUT, demo_polling  # noqa: PLC0415

        demo_polling(out=OUT if place == USUAL else place.out, json=json, options=options)
        return
    given = Given(place, upstream, pace, telling)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    with explained(again(given)):
        ran = run_loop(run_polling(given, gear, options, clock, screen))
    screen.end(words(given, ran), summarise(given, ran))
    if signal.SIGINT in ran.signals:
        sys.exit(130)


def full(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")] = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    options: Options = DEFAULT,
) -> None:
    """Fetch everything once."""
    given = Given(place, upstream, pace=None)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    with explained(again(given, "full")):
        ran, done = run_loop(run_full(given, gear, options, clock, screen))
    lines, document = fetched(ran, done)
    screen.end(lines, document)
    if signal.SIGINT in ran.signals:
        sys.exit(130)
    if not all(each.ok for each in done):
        sys.exit(1)


@contextmanager
def explained(onward: str) -> Iterator[None]:
    """Say what ends a run from outside: a disk that is full, a database that is another's, or a second Ctrl-C.

    `onward` is the command that goes on with it.
    """
    try:
        yield
    except KNOWN as error:
        raise CommandError(str(error)) from None
    except ExceptionGroup as group:
        wanted, rest = group.split((*KNOWN, CommandError))
        if wanted is None or rest is not None:
            raise
        first = _first(wanted)
        raise CommandError(str(first), first.code if isinstance(first, CommandError) else 1) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise CommandError(f"stopped at once; what was kept is safe. Go on with:\n\n    {onward}\n", 130) from None


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
