"""`sanderling sequence crawl`: follow ever-growing ids, and lose none."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.loop import run
from sanderling.cli.options import DEFAULT, Options
from sanderling.cli.pages_summary import printable
from sanderling.cli.sequence_flags import Pace, Telling, Upstream
from sanderling.cli.sequence_place import EMBEDDED, USUAL, Keeping, Place, alone
from sanderling.cli.sequence_run import Gear, Given, run_crawl
from sanderling.cli.sequence_screen import fitting
from sanderling.cli.sequence_summary import again, summarise, words
from sanderling.clock import SystemClock
from sanderling.sequence.state import SequenceState
from sanderling.stores.durable import FolderError
from sanderling.stores.instances import InstancesError
from sanderling.stores.queue import QueueError

UPSTREAM, PACE, TELLING = Upstream(), Pace(), Telling()
KNOWN = (FolderError, QueueError, InstancesError)


def crawl(  # noqa: PLR0913 - flags, in groups
    *,
    demo: Annotated[bool, Parameter(negative=(), help="Follow a simulated game on this machine, and show it.")] = False,
    no_store: Annotated[bool, Parameter(negative=(), help="Only queue: somebody else stores.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")] = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    pace: Pace = PACE,
    keeping: Keeping = EMBEDDED,
    telling: Telling = TELLING,
    options: Options = DEFAULT,
) -> None:
    """Follow the ids of an API from where the crawl was, or from --target."""
    if demo:
        # Here and not at the top: the simulated game is nothing that a crawl needs.
        from sanderling.cli.demo_sequence import OUT, demo_sequence  # noqa: PLC0415

        demo_sequence(out=OUT if place == USUAL else place.out, json=json, options=options)
        return
    given = Given(place, upstream, pace, keeping, telling, store=not no_store)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    with explained(given), opened(place) as state:
        ran = run(run_crawl(given, gear, state, options, clock, screen))
    screen.end(words(given, ran), summarise(given, ran).as_json())
    if signal.SIGINT in ran.signals:
        sys.exit(130)


@contextmanager
def opened(place: Place) -> Iterator[SequenceState]:
    """The state of the crawl in a folder, for us alone. Raises CommandError if it is not to be had."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(place))
            state = stack.enter_context(closing(SequenceState(place.state)))
        except FolderError as error:
            raise CommandError(str(error), code=2) from None
        yield state


@contextmanager
def explained(given: Given) -> Iterator[None]:
    """Say what ends a run from outside: a disk that is full, a broker that is gone, or a second Ctrl-C."""
    try:
        yield
    except KNOWN as error:
        raise CommandError(str(error)) from None
    except ExceptionGroup as group:
        known, rest = group.split(KNOWN)
        if known is None or rest is not None:
            raise
        raise CommandError(str(_first(known))) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        where = printable(str(given.place.out))
        raise CommandError(
            f"stopped at once; what was kept in {where} is safe. Go on with:\n\n    {again(given)}\n", code=130
        ) from None


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
