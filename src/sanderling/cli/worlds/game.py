"""`sanderling world game`: a simulated game with ever-growing ids."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf

from sanderling.cli.command_error import CommandError
from sanderling.cli.worlds.world import ServedWorld, minutes, tallied
from sanderling.clock import SystemClock
from sanderling.worlds.game import REPORT, SETTINGS, Game, GameRules, GameServer
from sanderling.worlds.game_presets import PRESETS


def game(
    *,
    seed: int,
    preset: str = "demo",
    rate: float | None = None,
    quota: float | None = None,
    speed: float = 1.0,
    port: int = 0,
) -> ServedWorld:
    """Reports under ids that grow all the time, with holes, pauses and quotas."""
    clock = SystemClock()
    server = GameServer(Game(_rules(preset, rate, quota, speed), seed, began=clock.wall()), clock, port=port)
    played = server.game

    def describe() -> Iterator[dict[str, object]]:
        newest = played.newest(clock.wall())
        yield {"address": server.url(), "first": played.first, "newest": newest, "began": played.began}

    def lines() -> Iterator[str]:
        base, newest = server.url(), played.newest(clock.wall())
        yield from (f"A simulated game at {base}", "", *_in_store(played.rules), "")
        yield f"Its reports begin with {played.first}, the newest is {newest}."
        yield from ("Try in another terminal:", "")
        yield f"    curl '{base}{SETTINGS}'"
        yield f"    curl '{base}{REPORT}{newest}/'"
        yield f"    sanderling sequence crawl --base {base} --begin {newest} --private"

    return ServedWorld(server, describe, lines, lambda: tallied(server.tally.asked, server.tally.kinds))


def _rules(preset: str, rate: float | None, quota: float | None, speed: float) -> GameRules:
    try:
        rules = PRESETS[preset]() if rate is None else PRESETS[preset](rate=rate)
        if quota is not None:
            rules = replace(rules, weather=replace(rules.weather, quota=quota or inf))
        return rules.faster(speed)
    except ValueError as error:
        raise CommandError(f"--rate, --quota and --speed make no game together: {error}", code=2) from None


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
            yield f"  nothing new from {minutes(earlier.start + earlier.seconds)} to {minutes(later.start)}"
    if schedule.holds:
        yield f"  nothing becomes visible but at {len(schedule.holds)} instants, all at once"
    for span in weather.maintenance:
        yield f"  switched off from {minutes(span.start)} to {minutes(span.end)}"
    for slowness in weather.slow:
        since, lasts = minutes(slowness.start), minutes(slowness.seconds)
        yield f"  {slowness.factor:g} times as slow from {since} on, for {lasts}"
    for contest in weather.contests:
        yield f"  raids of some minutes are hidden until {minutes(contest.opens)}"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.3g}"
