"""`sanderling demo`: a system at work against simulated hosts."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.home import configured, home_of
from sanderling.cli.options import DEFAULT, Options

Demo = Literal["house", "pages", "sequence", "repos", "polling", "events", "limiter"]
WATCHED = ("out", "json", "metrics-port")
TAKES = {
    "house": ("out", "json", "seconds", "port", "keep-open"),
    "pages": ("out", "speed", "metrics-port"),
    "limiter": ("json", "seconds", "speed", "metrics-port"),
}


def demo(  # noqa: PLR0913 - a flag each
    name: Annotated[Demo, Parameter(help="Which; house is all systems together.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="The folder for what is kept; one that an earlier demo made is removed first.")
    ] = None,
    seconds: Annotated[
        float | None, Parameter(validator=Number(gte=1, lte=3600), help="How long to run: house and limiter.")
    ] = None,
    speed: Annotated[
        float | None,
        Parameter(validator=Number(gte=1, lte=100), help="How many times as fast the time passes: pages and limiter."),
    ] = None,
    port: Annotated[
        int | None, Parameter(validator=Number(gte=0, lte=65535), help="The port of the dashboard of house.")
    ] = None,
    keep_open: Annotated[
        bool, Parameter(negative=(), help="Serve the dashboard of house until Ctrl-C, after all has ended.")
    ] = False,
    json: SummaryAsJson = False,
    options: Options = DEFAULT,
) -> None:
    """Run one of the demos."""
    given = {"out": out, "seconds": seconds, "speed": speed, "port": port, "keep-open": keep_open or None}
    given |= {"json": json or None, "metrics-port": options.metrics_port}
    for flag, value in given.items():
        if value is not None and flag not in TAKES.get(name, WATCHED):
            raise CommandError(f"--{flag} is nothing that the demo {name} takes; see: sanderling demo --help", code=2)
    home = home_of(configured())
    # Each is imported only when it is run: it needs much that the others do not.
    match name:
        case "house":
            from sanderling.cli.demos import house  # noqa: PLC0415

            house.demo_house(out or home / house.OUT, seconds or house.SECONDS, port, keep_open=keep_open, as_json=json)
        case "pages":
            from sanderling.cli.demos import pages  # noqa: PLC0415

            pages.demo_pages(out or home / pages.OUT, options, speed or 1.0)
        case "limiter":
            from sanderling.cli.demos.limiter import SECONDS, SPEED, demo_limiter  # noqa: PLC0415

            demo_limiter(seconds or SECONDS, speed or SPEED, options, as_json=json)
        case _:
            _run(name, out, home, options, as_json=json)


def _run(
    name: Literal["sequence", "repos", "polling", "events"],
    out: Path | None,
    home: Path,
    options: Options,
    *,
    as_json: bool,
) -> None:
    """Run the demo of a system, which is shown and proved."""
    match name:
        case "sequence":
            from sanderling.cli.demos import sequence  # noqa: PLC0415

            sequence.demo_sequence(out or home / sequence.OUT, options, as_json=as_json)
        case "repos":
            from sanderling.cli.demos import repos  # noqa: PLC0415

            repos.demo_repos(out or home / repos.OUT, options, as_json=as_json)
        case "polling":
            from sanderling.cli.demos import polling  # noqa: PLC0415

            polling.demo_polling(out or home / polling.OUT, options, as_json=as_json)
        case "events":
            from sanderling.cli.demos import events  # noqa: PLC0415

            events.demo_events(out or home / events.OUT, options, as_json=as_json)
