"""`sanderling polling status`: how polling stands, beside it or after it."""

import json as jsonlib
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.pages_summary import clock_face, duration, printable
from sanderling.cli.polling_place import USUAL, Place
from sanderling.cli.polling_words import host, now, punctual, runs, targets, told, troubles
from sanderling.clock import SystemClock
from sanderling.polling.status import PollingStatus, published

SILENT = 10.0  # seconds after which one that should say something every second has ended, or hangs
NAME = 10  # columns of what a line is about


def status(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON, and nothing else.")] = False,
    place: Place = USUAL,
) -> None:
    """Say how the polling of a folder stands."""
    found = published(place.out)
    if found is None:
        raise CommandError(f"nothing was polled in {place.out}; choose another folder with --out", code=2)
    wall = SystemClock().wall()
    if json:
        told_ = {"running": is_running(found, wall), "age": round(_age(found, wall), 1)}
        print(jsonlib.dumps({**told_, "status": msgspec.to_builtins(found)}))
        return
    for line in words(found, wall, str(place.out)):
        print(printable(line))


def is_running(found: PollingStatus, wall: float) -> bool:
    """Whether somebody polls there, as far as can be told."""
    return found.running and _age(found, wall) < SILENT


def _age(found: PollingStatus, wall: float) -> float:
    """Seconds since it was said; what was said by a clock that is ahead of ours was said just now."""
    return max(0.0, wall - found.wall)


def words(found: PollingStatus, wall: float, where: str) -> Iterator[str]:
    """The same as lines."""
    age = _age(found, wall)
    ago = "now" if age < 2 else f"{duration(age)} ago"
    if is_running(found, wall):
        state = f"running for {clock_face(found.seconds)} as process {found.pid}, as of {ago}"
    else:
        state = f"which ended {ago}" if not found.running else f"which has said nothing since {ago} and is not running"
    yield f"Polling in {where}, {state}:"
    yield ""
    yield _line("source", f"{found.source} at {found.host}")
    yield _line("targets", targets(found))
    yield _line("now" if found.running else "at the end", now(found))
    yield _line("runs", runs(found))
    yield _line("late", punctual(found))
    yield _line("changes", f"{told(found)}; the newest is number {found.newest:,}")
    yield _line("host", host(found))
    for trouble in troubles(found):
        yield _line("trouble", trouble)


def _line(name: str, text: str) -> str:
    return f"{name:>{NAME}}  {text}"
