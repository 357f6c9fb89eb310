"""Games to try things on: what each has in store happens half an hour after it began, after some history.

`rate` is in ids per second, everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf, pi, sin
from random import Random

from sanderling.worlds.game import GameRules
from sanderling.worlds.game_schedule import GameSchedule, Hole, Piece, ScheduleRules, TimeSpan
from sanderling.worlds.game_weather import Contest, GameRefusal, IdTrouble, Slowness, WeatherRules

RATE = 60.0
HOUR = 3600.0
SOON = 1800.0  # seconds after it began
ENOUGH = 2.5  # times the rate: a quota with which a crawl can catch up, at one and a half times the head's speed
COUNTED = 10.0  # seconds within which a quota is counted, as the real API is said to
# Blocks that were lost in the real sequence, by their sizes.
LOST = (1140, 9996, 15_680)


def steady(rate: float = RATE) -> GameRules:
    """An hour of history, and then nothing in particular: a day and a night."""
    return GameRules(ScheduleRules(pieces=day(rate), hole_every=1000))


def backlog(seconds: float = HOUR, rate: float = RATE) -> GameRules:
    """So much history to catch up with, under a quota."""
    rules = steady(rate)
    pieces = (Piece(-seconds, seconds, rate), *(piece for piece in day(rate) if piece.start >= 0))
    return replace(rules, schedule=replace(rules.schedule, pieces=pieces), weather=_limited(rate))


def gap(size: int = 300_000, rate: float = RATE) -> GameRules:
    """The counter jumps by so many ids, from one report to the next."""
    rules = steady(rate)
    return replace(rules, schedule=replace(rules.schedule, holes=(Hole(born_at(SOON, rules.schedule), size),)))


def pause(seconds: float = 1200.0, rate: float = RATE) -> GameRules:
    """Nothing is born for so long, and then as much as ever."""
    before = Piece(-HOUR, HOUR + SOON, rate)
    return GameRules(ScheduleRules(pieces=(before, Piece(SOON + seconds, inf, rate)), hole_every=1000))


def slow(factor: float = 4.0, rate: float = RATE) -> GameRules:
    """Answers take so many times as long for half an hour, under a quota."""
    return replace(steady(rate), weather=replace(_limited(rate), slow=(Slowness(SOON, 1800.0, factor),)))


def _limited(rate: float) -> WeatherRules:
    return WeatherRules(quota=ENOUGH * rate, window=COUNTED)


def bursts(rate: float = RATE, hours: int = 6) -> GameRules:
    """Reports become visible all at once, every 5 to 40 minutes."""
    rules, chance = steady(rate), Random("bursts")
    ends = [0.0]
    while ends[-1] < hours * HOUR:
        ends.append(ends[-1] + chance.uniform(300.0, 2400.0))
    holds = tuple(TimeSpan(start, end - start) for start, end in pairwise(ends))
    return replace(rules, schedule=replace(rules.schedule, holds=holds))


def lost(rate: float = RATE) -> GameRules:
    """Blocks whose activities took place and whose reports never came; between them, reports as ever."""
    rules = steady(rate)
    first = born_at(SOON, rules.schedule)
    holes = tuple(Hole(first + 40_000 * at, size, jumped=False) for at, size in enumerate(LOST))
    return replace(rules, schedule=replace(rules.schedule, holes=holes))


def fast(rate: float = 3000.0) -> GameRules:
    """For benchmarks: an hour of history, answers at once, no quota."""
    return GameRules(ScheduleRules(pieces=(Piece(-HOUR, inf, rate),)), WeatherRules(latency=0.0))


def demo(rate: float = RATE) -> GameRules:
    """A little of everything within two minutes, after five minutes of history."""
    # Before the pause; and what is jumped during it.
    pieces = (Piece(-300.0, 340.0, rate), Piece(60.0, inf, rate))
    schedule = ScheduleRules(pieces=pieces, hole_every=500, delay=2.0, spread=3.0)
    holes = (Hole(born_at(-120.0, schedule), 9996), Hole(born_at(40.0, schedule) + 9996, 1140))
    weather = WeatherRules(
        latency=0.05,
        quota=4 * rate,
        refusals=(GameRefusal.THROTTLED, GameRefusal.UNAVAILABLE),
        retry_after=2.0,
        maintenance=(TimeSpan(85.0, 8.0),),
        troubles=(IdTrouble(93.0, 10.0, 0.02),),
        contests=(Contest(-60.0, 75.0, 110.0),),
        bad_gateway=0.001,
    )
    return GameRules(replace(schedule, holes=holes), weather, late=0.02, late_seconds=15.0)


PRESETS: Mapping[str, Callable[..., GameRules]] = {
    each.__name__: each for each in (demo, steady, backlog, gap, pause, slow, bursts, lost, fast)
}


def day(rate: float, depth: float = 0.2) -> tuple[Piece, ...]:
    """An hour before and a day after, with so much more by day and so much less by night; then always the same."""
    step = 600
    pieces = [
        Piece(float(start), float(step), rate * (1 + depth * sin(2 * pi * start / (24 * HOUR))))
        for start in range(-3600, 86_400, step)
    ]
    return (*pieces, Piece(24 * HOUR, inf, rate))


def born_at(since: float, rules: ScheduleRules) -> int:
    """The first id that is born after so many seconds."""
    return GameSchedule(rules, 0, 0.0).head(since) + 1
