"""`sanderling polling run`: keep live documents fresh, and tell what changed."""

import signal
import sys
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.loop import ending
from sanderling.cli.loop import run as run_loop
from sanderling.cli.options import BOUNDED, DEFAULT, Bounded, Options
from sanderling.cli.polling.flags import Pace, Telling, Upstream
from sanderling.cli.polling.place import USUAL, Place
from sanderling.cli.polling.run import Gear, Given, run_full, run_polling
from sanderling.cli.polling.screen import fitting
from sanderling.cli.polling.summary import again, fetched, summarise, words
from sanderling.cli.reach import KNOWN
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import SystemClock

UPSTREAM, PACE, TELLING = Upstream(), Pace(), Telling()


def run(  # noqa: PLR0913 - flags, in groups
    *,
    demo: Annotated[
        bool, Parameter(negative=(), help="Poll a simulated race day on this machine, and show it.")
    ] = False,
    json: SummaryAsJson = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    pace: Pace = PACE,
    serving: Serving = UNSERVED,
    telling: Telling = TELLING,
    options: Bounded = BOUNDED,
) -> None:
    """Poll until Ctrl-C."""
    if demo:
        # Here and not at the top: the simulated day is nothing that polling needs.
        from sanderling.cli.demos.polling import OUT, demo_polling  # noqa: PLC0415

        demo_polling(out=OUT if place == USUAL else place.out, json=json, options=options)
        return
    given = Given(place, upstream, pace, serving, telling)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    onward = again(given, options)
    with ending(onward, KNOWN):
        ran = run_loop(run_polling(given, gear, options, clock, screen))
    screen.end(words(given, ran, onward), summarise(given, ran))
    if signal.SIGINT in ran.signals:
        sys.exit(130)


def full(
    *,
    json: SummaryAsJson = False,
    place: Place = USUAL,
    upstream: Upstream = UPSTREAM,
    options: Options = DEFAULT,
) -> None:
    """Fetch everything once."""
    given = Given(place, upstream, pace=None)
    clock = SystemClock()
    gear = Gear.make(given, clock)
    screen = fitting(json=json, logs=options.log_format is not None)
    with ending(again(given, options, "full"), KNOWN):
        ran, done = run_loop(run_full(given, gear, options, clock, screen))
    lines, document = fetched(ran, done)
    screen.end(lines, document)
    if signal.SIGINT in ran.signals:
        sys.exit(130)
    if not all(each.ok for each in done):
        sys.exit(1)
