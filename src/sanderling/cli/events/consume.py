"""`sanderling events consume`: crawled batches into rows, errors and alarms."""

import signal
import sys
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.alerting import NOBODY, Alerting
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.events.flags import Reading, Work
from sanderling.cli.events.place import KNOWN, OWN_BODIES, OWN_LETTERS, OWN_ROWS, USUAL, Bodies, Folder, Letters, Rows
from sanderling.cli.events.run import Given, empty, run_events
from sanderling.cli.events.screen import fitting
from sanderling.cli.events.summary import summarise, words
from sanderling.cli.loop import ending, run
from sanderling.cli.options import BOUNDED, Bounded
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import SystemClock

WORK, READING = Work(), Reading()


def consume(  # noqa: PLR0913 - flags, in groups
    *,
    demo: Annotated[
        bool, Parameter(negative=(), help="Make a day of simulated batches, consume them, and show what came of it.")
    ] = False,
    drain: Annotated[
        bool, Parameter(negative=(), help="End when no message is left, instead of waiting for more.")
    ] = False,
    json: SummaryAsJson = False,
    folder: Folder = USUAL,
    rows: Rows = OWN_ROWS,
    bodies: Bodies = OWN_BODIES,
    letters: Letters = OWN_LETTERS,
    work: Work = WORK,
    reading: Reading = READING,
    serving: Serving = UNSERVED,
    alerting: Alerting = NOBODY,
    options: Bounded = BOUNDED,
) -> None:
    """Consume until Ctrl-C."""
    if demo:
        # Here and not at the top: the simulated crawler is nothing that consuming needs.
        from sanderling.cli.demos.events import OUT, demo_events  # noqa: PLC0415

        demo_events(out=OUT if folder == USUAL else folder.out, json=json, options=options)
        return
    given = Given(folder, rows, bodies, letters, work, serving, alerting)
    analyser = reading.analyser()
    screen = fitting(json=json, logs=options.log_format is not None)
    places, ways = (folder, rows, bodies, letters), (work, reading, serving, alerting, options)
    onward = again("events consume", *(["--drain"] if drain else []), *places, *ways)
    with ending(onward, KNOWN):
        ran = run(run_events(given, analyser, options, SystemClock(), screen, until=empty if drain else None))
    screen.end(words(given, ran, onward), summarise(given, ran))
    if signal.SIGINT in ran.signals:
        sys.exit(130)
