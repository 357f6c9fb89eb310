"""`sanderling sequence crawl`: follow ever-growing ids, and lose none."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.alerting import NOBODY, Alerting
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.events.onward import NOWHERE, Onward
from sanderling.cli.loop import ending, run
from sanderling.cli.options import BOUNDED, Bounded
from sanderling.cli.reach import KNOWN
from sanderling.cli.sequence.flags import Pace, Readings, Upstream
from sanderling.cli.sequence.place import EMBEDDED, USUAL, Keeping, Place, alone
from sanderling.cli.sequence.run import Gear, Given, run_crawl
from sanderling.cli.sequence.screen import fitting
from sanderling.cli.sequence.summary import again, summarise, words
from sanderling.clock import SystemClock
from sanderling.sequence.state import SequenceState
from sanderling.stores.durable import FolderError

UPSTREAM, PACE, OWN_READINGS = Upstream(), Pace(), Readings()


def crawl(  # noqa: PLR0913 - flags, in groups
    *,
    demo: Annotated[bool, Parameter(negative=(), help="Follow a simulated game on this machine, and show it.")] = False,
    no_store: Annotated[bool, Parameter(negative=(), help="Only queue: somebody else stores.")] = False,
    json: SummaryAsJson = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    pace: Pace = PACE,
    keeping: Keeping = EMBEDDED,
    readings: Readings = OWN_READINGS,
    alerting: Alerting = NOBODY,
    onward: Onward = NOWHERE,
    options: Bounded = BOUNDED,
) -> None:
    """Follow the ids of an API from where the crawl was, or from --begin."""
    _check(onward, "--demo" if demo else "--no-store" if no_store else "")
    if demo:
        # Here and not at the top: the simulated game is nothing that a crawl needs.
        from sanderling.cli.demos.sequence import OUT, demo_sequence  # noqa: PLC0415

        demo_sequence(out=OUT if place == USUAL else place.out, json=json, options=options)
        return
    given = Given(place, upstream, pace, keeping, readings, alerting, not no_store, onward)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    with ending(again(given, options), KNOWN), opened(place) as state:
        ran = run(run_crawl(given, gear, state, options, clock, screen))
    screen.end([*words(given, ran, options), *ran.onward], summarise(given, ran).as_json())
    if signal.SIGINT in ran.signals:
        sys.exit(130)


def _check(onward: Onward, without: str) -> None:
    onward.check()
    if onward.events_job is not None and without:
        where = "; give it to `sanderling sequence store`" if without == "--no-store" else ""
        raise CommandError(f"--events-job does not go with {without}: what is stored is handed on{where}", code=2)


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
