"""A simulated game at a real address, and `sanderling sequence crawl` against it."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from math import inf
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.sequence.state import SequenceState
from sanderling.worlds.game import Game, GameRules, GameServer
from sanderling.worlds.game_schedule import Piece, ScheduleRules
from sanderling.worlds.game_weather import WeatherRules

# A crawl begins with five requests a second, so few ids are asked; half of them are raids. Nothing is missing, for what
# is not found is asked for half a minute. An hour of history is more than any test gets through.
RULES = GameRules(
    ScheduleRules(pieces=(Piece(-3600.0, inf, 5.0),), delay=0.0, spread=0.0), WeatherRules(latency=0.01), raids=0.5
)


@asynccontextmanager
async def served(rules: GameRules = RULES, *, latency: float | None = None) -> AsyncIterator[GameServer]:
    """A game that counts how often each id is asked for."""
    clock = SystemClock()
    if latency is not None:
        rules = replace(rules, weather=replace(rules.weather, latency=latency))
    game = Game(rules, 1, began=clock.wall())
    game.tally.ids = Counter()
    async with GameServer(game, clock) as server:
        yield server


def flags(folder: Path, server: GameServer) -> list[str]:
    """What to follow it with."""
    return ["--out", str(folder / "out"), "--base", server.url(), "--private"]


def begin(server: GameServer) -> list[str]:
    """What to begin with its first id with."""
    return ["--begin", str(server.game.first)]


async def asked(server: GameServer, number: int) -> None:
    """Return when the game was asked so many times."""
    async with asyncio.timeout(300):
        while server.tally.asked < number:  # noqa: ASYNC110 - a number
            await asyncio.sleep(0.02)


def stored(folder: Path) -> list[int]:
    """The ids of the rows, ascending."""
    with closing(sqlite3.connect(folder / "out" / "rows.db")) as db:
        return [
            number
            for (number,) in db.execute("SELECT instance_id FROM instance UNION SELECT id FROM record ORDER BY 1")
        ]


def raids(game: Game, until: int) -> list[int]:
    """The ids up to there that should be stored."""
    return [number for number in game.ids(game.first, until + 1) if game.raid(number)]


def missed(folder: Path) -> dict[int, str]:
    """What is missed, and why."""
    with closing(SequenceState(folder / "out" / "sequence.db")) as state:
        ranges = state.missed(limit=-1)
    return {number: each.reason.value for each in ranges for number in range(each.low, each.high + 1)}
