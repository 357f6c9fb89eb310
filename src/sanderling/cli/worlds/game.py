"""`sanderling world game`: serve a simulated game with ever-growing ids on this machine."""

import asyncio
import json as jsonlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Literal

from rich.console import Console
from rich.text import Text

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.clock import Clock, SystemClock
from sanderling.worlds.game import REPORT, SETTINGS, Game, GameRules, GameServer, GameTally
from sanderling.worlds.game_presets import PRESETS
from sanderling.worlds.server import WorldPortError

Preset = Literal["demo", "steady", "backlog", "gap", "pause", "slow", "bursts", "lost", "fast"]


def game(  # noqa: PLR0913 - a flag each
    *,
    seed: int,
    json: bool,
    preset: Preset = "demo",
    rate: float | None = None,
    quota: float | None = None,
    speed: float = 1.0,
    port: int = 0,
) -> None:
    """Serve a simulated game, until Ctrl-C: reports under ids that grow all the time, with holes, pauses and quotas.

    It listens on 127.0.0.1, and nothing leaves this machine. Prints where, and the newest id. When it ends it says what
    it was asked.

    Example: sanderling world game --preset gap --speed 10
    """
    rules = _rules(preset, rate, quota, speed)
    clock = SystemClock()
    server = GameServer(Game(rules, seed, began=clock.wall()), clock, port=port)
    try:
        run(_serve(server, clock, as_json=json))
    except KeyboardInterrupt:
        if not json:
            sys.stderr.writelines(f"{line}\n" for line in _asked(server.tally))
        raise


def _rules(preset: Preset, rate: float | None, quota: float | None, speed: float) -> GameRules:
    try:
        rules = PRESETS[preset]() if rate is None else PRESETS[preset](rate=rate)
        if quota is not None:
            rules = replace(rules, weather=replace(rules.weather, quota=quota or inf))
        return rules.faster(speed)
    except ValueError as error:
        raise CommandError(f"--rate, --quota and --speed make no game together: {error}", code=2) from None


async def _serve(server: GameServer, clock: Clock, *, as_json: bool) -> None:
    try:
        async with server:
            _show(server, clock.wall(), as_json=as_json)
            sys.stdout.flush()
            await asyncio.Event().wait()
    except WorldPortError as error:
        raise CommandError(f"--port: {error}; choose another") from None


def _show(server: GameServer, now: float, *, as_json: bool) -> None:
    game, base = server.game, server.url()
    newest = game.newest(now)
    if as_json:
        print(jsonlib.dumps({"address": base, "first": game.first, "newest": newest, "began": game.began}))
        return
    console = Console(highlight=False)
    console.print(Text(f"A simulated game at {base}\n", "bold"), soft_wrap=True)
    for line in _in_store(game.rules):
        console.print(line, soft_wrap=True)
    console.print(f"\nIts reports begin with {game.first}, the newest is {newest}.", soft_wrap=True)
    console.print("Try in another terminal:\n")
    console.print(f"    curl '{base}{SETTINGS}'", soft_wrap=True)
    console.print(f"    curl '{base}{REPORT}{newest}/'", soft_wrap=True)
    console.print(f"    sanderling sequence crawl --base {base} --begin {newest} --private", soft_wrap=True)
    console.print("\nCtrl-C ends it, and shows what it was asked.")


def _in_store(rules: GameRules) -> Iterator[str]:
    """What is going to happen, a line each."""
    schedule, weather = rules.schedule, rules.weather
    yield f"  {_rate(schedule.pieces[-1].rate)} ids a second, {rules.raids:.0%} of them raids"
    if weather.quota < inf:
        yield f"  {_rate(weather.quota)} requests a second are allowed"
    for hole in schedule.holes:
        yield f"  {hole.size:,} ids from {hole.first} on never exist"
    for earlier, later in pairwise(schedule.pieces):
        if later.start > earlier.start + earlier.seconds:
            yield f"  nothing new from {_when(earlier.start + earlier.seconds)} to {_when(later.start)}"
    if schedule.holds:
        yield f"  nothing becomes visible but at {len(schedule.holds)} instants, all at once"
    for span in weather.maintenance:
        yield f"  switched off from {_when(span.start)} to {_when(span.end)}"
    for slowness in weather.slow:
        yield f"  {slowness.factor:g} times as slow from {_when(slowness.start)} on, for {_when(slowness.seconds)}"
    for contest in weather.contests:
        yield f"  raids of some minutes are hidden until {_when(contest.opens)}"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.3g}"


def _when(seconds: float) -> str:
    """Seconds since it began, as minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min"


def _asked(tally: GameTally) -> Iterator[str]:
    """What it was asked, as lines."""
    yield f"\n{tally.asked:,} requests."
    for kind, count in tally.kinds.most_common():
        yield f"  {count:>10,}  {kind}"
