"""`sanderling demo`: a system at work against simulated hosts."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.demos.shell import run_demo
from sanderling.cli.home import configured, home_of
from sanderling.cli.options import DEFAULT, Options

Demo = Literal["house", "pages", "sequence", "repos", "polling", "events", "limiter"]
WATCHED = ("out", "json", "metrics-port")
TAKES = {
    "house": ("out", "json", "seconds", "port", "keep-open"),
    "pages": (*WATCHED, "speed"),
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
    given: dict[str, Any] = {"seconds": seconds, "speed": speed, "port": port, "keep-open": keep_open or None}
    given = {flag: value for flag, value in given.items() if value is not None}
    others = {"out": out is not None, "json": json, "metrics-port": options.metrics_port is not None}
    for flag in (*given, *(flag for flag, typed in others.items() if typed)):
        if flag not in TAKES.get(name, WATCHED):
            raise CommandError(f"--{flag} is nothing that the demo {name} takes; see: sanderling demo --help", code=2)
    # Each is imported only when it is run: it needs much that the others do not.
    module = import_module(f"sanderling.cli.demos.{name}")
    work = partial(module.run, as_json=json, **{flag.replace("-", "_"): value for flag, value in given.items()})
    usual = "sanderling-demo" if name == "house" else f"sanderling-demo-{name}"
    folder = out or home_of(configured()) / usual
    match name:
        case "limiter":
            work(options)
        case "house":
            work(folder)
        case _:
            run_demo(name, folder, partial(work, folder, options))
