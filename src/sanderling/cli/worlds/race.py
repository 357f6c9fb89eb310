"""`sanderling world race`: serve a simulated race day on this machine."""

import asyncio
import json as jsonlib
import sys
from collections.abc import Iterator
from math import inf
from typing import Literal

from rich.console import Console
from rich.text import Text

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.clock import ScaledClock
from sanderling.worlds.race import PRESETS, RaceDay, RaceServer, RaceTally
from sanderling.worlds.race_documents import CHANNELS
from sanderling.worlds.server import WorldPortError

Preset = Literal["demo", "day", "hostile"]
MOST_PATHS = 12  # that are listed when it ends


def race(*, seed: int, json: bool, preset: Preset = "demo", speed: float = 1.0, port: int = 0) -> None:
    """Serve a simulated race day, until Ctrl-C: races start and end, laps arrive, rounds are added, pilots leave.

    It listens on 127.0.0.1, and nothing leaves this machine. Prints where, and when the races are. When it ends it says
    what it was asked.

    Example: sanderling world race --preset day --speed 10
    """
    clock = ScaledClock(speed)
    server = RaceServer(RaceDay(seed, PRESETS[preset](), began=clock.wall()), clock, port=port)
    try:
        run(_serve(server, speed, as_json=json))
    except KeyboardInterrupt:
        if not json:
            sys.stderr.writelines(f"{line}\n" for line in _asked(server.tally))
        raise


async def _serve(server: RaceServer, speed: float, *, as_json: bool) -> None:
    try:
        async with server:
            _show(server, speed, as_json=as_json)
            sys.stdout.flush()
            await asyncio.Event().wait()
    except WorldPortError as error:
        raise CommandError(f"--port: {error}; choose another") from None


def _show(server: RaceServer, speed: float, *, as_json: bool) -> None:
    day, base = server.day, server.url()
    if as_json:
        print(jsonlib.dumps(_described(day, base)))
        return
    console = Console(highlight=False)
    console.print(Text(f"A simulated race day at {base}\n", "bold"), soft_wrap=True)
    for line in _in_store(day, speed):
        console.print(line, soft_wrap=True)
    console.print("\nTry in another terminal:\n")
    for path in ("/", day.path("Event"), day.race_path(day.heats[0].id), CHANNELS):
        console.print(f"    curl '{base}{path}'", soft_wrap=True)
    console.print(f"    sanderling polling run --trackside {base} --private", soft_wrap=True)
    console.print("\nCtrl-C ends it, and shows what it was asked.")


def _described(day: RaceDay, base: str) -> dict[str, object]:
    """Times of the races are seconds since it began, on its own clock."""
    races = [
        {"id": heat.id, "start": heat.start / 1000, "end": heat.end / 1000, "valid": not heat.aborted}
        for heat in day.heats
    ]
    return {
        "address": base,
        "event": day.event,
        "began": day.began,
        "over": day.over,
        "utc_offset": day.rules.utc_offset,
        "races": races,
    }


def _in_store(day: RaceDay, speed: float) -> Iterator[str]:
    """What is going to happen, a line each."""
    heats, weather = day.heats, day.rules.weather
    first, last = heats[0], heats[-1]
    yield f"  {day.rules.day.pilots} pilots, {day.rules.day.rounds} rounds, {len(heats)} races"
    yield f"  the first race starts at {_when(first.start, speed)} and ends at {_when(first.end, speed)}"
    yield f"  the last race starts at {_when(last.start, speed)} and ends at {_when(last.end, speed)}"
    if aborted := sum(heat.aborted for heat in heats):
        yield f"  {aborted} races are aborted and flown again"
    if weather.half_written:
        yield f"  documents are half-written for {weather.half_written * 1000 / speed:g} ms after a change"
    if weather.quota < inf:
        yield f"  {weather.quota * speed:,g} requests a second are allowed"
    for kind, share in weather.faults.items():
        yield f"  {share:.1%} of the requests: {kind}"


def _when(milliseconds: int, speed: float) -> str:
    """Time since it began, as minutes and seconds of a real clock."""
    minutes, rest = divmod(round(milliseconds / 1000 / speed), 60)
    return f"{minutes}:{rest:02} min"


def _asked(tally: RaceTally) -> Iterator[str]:
    """What it was asked, as lines."""
    yield f"\n{tally.asked:,} requests."
    for kind, count in tally.kinds.most_common():
        yield f"  {count:>10,}  {kind}"
    if tally.paths:
        yield "Most often:"
    for path, count in tally.paths.most_common(MOST_PATHS):
        yield f"  {count:>10,}  {path}"
