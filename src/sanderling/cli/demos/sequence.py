"""`sanderling demo sequence`: the real crawl, over real HTTP, of a simulated game on this machine, then proof of it."""

import asyncio
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from sanderling.apis.numbered import Status
from sanderling.cli.demos.shell import DemoEnd, next_steps
from sanderling.cli.options import Options
from sanderling.cli.report_screen import fitting
from sanderling.cli.sequence.crawl import open_state, run_crawl
from sanderling.cli.sequence.flags import SequenceFlags, SequencePace, SequenceUpstream
from sanderling.cli.sequence.place import ROWS, SequenceFolder
from sanderling.clock import ScaledClock
from sanderling.observe.report import Report
from sanderling.sequence.guard import ScalingGuardRules
from sanderling.sequence.report import SequenceFacts
from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.state import SequenceState
from sanderling.sequence.system import SequenceRules
from sanderling.words import count, duration
from sanderling.worlds.game import Game, GameRules, GameServer, GameTally
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_presets import born_at
from sanderling.worlds.game_schedule import Hole, Piece, ScheduleRules, TimeSpan
from sanderling.worlds.game_weather import Contest, WeatherRules

SEED = 1  # the same game each time, so that what one person sees another can look for
SPEED = 6.0  # times as fast as by the clock on the wall, game and crawl alike

# The game, in seconds since it began.
RATE = 8.0  # ids a second
HISTORY = 300.0
LOST, LOST_AT = 9996, -130.0  # ids that the counter jumped, as it really did once; and when
PAUSE = TimeSpan(85.0, 32.0)  # nothing is played
MAINTENANCE = TimeSpan(148.0, 6.0)
CONTEST = Contest(-60.0, 60.0, 115.0)  # raids of that minute are hidden until it is decided
END = 215.0
QUOTA = 60.0  # requests a second
LATENCY = 0.4

# The workers of a small game; and decisions within seconds, where a real crawl takes minutes.
RULES = SequenceRules(
    scale=ScaleRules(min_workers=3, workers=10, max_workers=60, period=200, min_period=100, max_period=200),
    guard=replace(ScalingGuardRules(), quick=10.0, fewest=30, drain=60.0),
)


@dataclass(frozen=True, slots=True)
class SequenceProof:
    """What was stored, beside what the game has up to the cursor."""

    live: int  # ids that exist
    raids: int  # of them
    stored: int  # of these
    later: int  # of these, to be asked again
    strangers: int  # stored, and no raids of the game
    twice: int  # stored more than once
    holes: int  # ids that never exist
    filed: int  # of these, filed as missed

    @property
    def ok(self) -> bool:
        """Whether nothing is lost and nothing is there that should not be."""
        return self.stored + self.later == self.raids and self.filed == self.holes and not self.strangers + self.twice


def small_game() -> GameRules:
    """The game of the demo."""
    pieces = (Piece(-HISTORY, HISTORY + PAUSE.start, RATE), Piece(PAUSE.end, inf, RATE))
    plain = ScheduleRules(pieces=pieces, delay=2.0, spread=3.0)
    holes = (Hole(born_at(LOST_AT, plain), LOST),)
    weather = WeatherRules(
        latency=LATENCY, quota=QUOTA, retry_after=2.0, maintenance=(MAINTENANCE,), contests=(CONTEST,)
    )
    return GameRules(replace(plain, holes=holes), weather, raids=0.1, late=0.01, late_seconds=15.0)


async def run(out: Path, options: Options, *, as_json: bool) -> DemoEnd:
    """Follow a simulated game: catch up, skip a gap, wait at the head, sit out a maintenance, and lose nothing."""
    clock = ScaledClock(SPEED)
    game = Game(small_game(), SEED, began=clock.wall())
    screen = fitting(json=as_json, logs=options.log_format is not None)
    async with GameServer(game, clock) as server:
        pace = SequencePace(target=game.first, buffer=0, until=game.head(game.began + END), max_workers=60)
        flags = SequenceFlags(SequenceFolder(out=out), SequenceUpstream(base=server.url(), private=True), pace)
        screen.note(f"A simulated game on this machine; nothing leaves it. Time passes {SPEED:g}x.")
        ran = await run_crawl(flags, options, clock, screen, RULES)
        with open_state(flags.place) as state:
            proof = await asyncio.to_thread(_prove, game, state, out / ROWS)
    lines = _describe(ran.last, proof, server.tally, out, complete=ran.complete)
    document = _document(ran.last, proof, server.tally, complete=ran.complete) | {"out": str(out)}
    return DemoEnd(screen, lines, document, proof.ok, ran.stopped)


def _prove(game: Game, state: SequenceState, rows: Path) -> SequenceProof:
    """Compare what is stored with the game, id by id."""
    saved = state.load()
    low = saved.position.low if saved else game.first
    missed = {number for each in state.missed(limit=-1) for number in range(each.low, each.high + 1)}
    with closing(sqlite3.connect(rows)) as db:
        found = [number for (number,) in db.execute("SELECT instance_id FROM instance")]
    stored = set(found)
    live = set(game.ids(game.first, low))
    raids = {number for number in live if game.raid(number)}
    holes = set(range(game.first, low)) - live
    return SequenceProof(
        live=len(live),
        raids=len(raids),
        stored=len(raids & stored),
        later=len((raids - stored) & missed),
        strangers=sum(1 for number in stored if not (game.exists(number) and game.raid(number))),
        twice=len(found) - len(stored),
        holes=len(holes),
        filed=len(holes & missed),
    )


def _document(last: Report[SequenceFacts], proof: SequenceProof, tally: GameTally, *, complete: bool) -> dict[str, Any]:
    return {
        "ok": proof.ok,
        "complete": complete,
        "seconds": round(last.process.seconds / SPEED, 3),
        "game_seconds": round(last.process.seconds, 3),
        "requests": tally.asked,
        "answers": last.facts.answers,
        "gaps": last.facts.gaps,
        "skipped_ids": last.facts.skipped,
        "missed": last.facts.missed,
        "lag": None if last.facts.lag is None else round(last.facts.lag, 3),
        "workers": [each.workers for each in last.facts.decisions],
        "proof": asdict(proof),
    }


def _describe(
    last: Report[SequenceFacts], proof: SequenceProof, tally: GameTally, out: Path, *, complete: bool
) -> Iterator[str]:
    yield ""
    how = "Followed the game to its head" if complete else "Ended early"
    asked = f"{count(tally.asked, 'request')} in {duration(last.process.seconds)} of the game's time"
    yield f"{how}: {asked}, {duration(last.process.seconds / SPEED)} of yours."
    if complete:
        workers = [RULES.scale.workers, *(each.workers for each in last.facts.decisions)]
        yield (
            f"It began {duration(HISTORY)} behind and ended {duration(last.facts.lag)} behind, with {workers[0]} "
            f"workers at first, {max(workers)} at most and {workers[-1]} in the end. The game allows {QUOTA:g} "
            f"requests a second; it had to refuse {tally.kinds[GameKind.REFUSED]:,}."
        )
        yield (
            f"{count(last.facts.skipped, 'id')} that never existed were skipped as {count(last.facts.gaps, 'gap')}; "
            f"{count(last.facts.answers.get(Status.HIDDEN.value, 0), 'raid')} hidden at first were asked for again "
            f"when the first of them was shown; while the API was switched off it was sent "
            f"{count(tally.kinds[GameKind.DISABLED], 'request')}."
        )
    yield (
        f"Up to the cursor the game has {count(proof.live, 'id')}, {proof.raids:,} of them raids: {proof.stored:,} are "
        f"stored, each once, {proof.later:,} are to be asked again, "
        f"{proof.raids - proof.stored - proof.later or 'none'} are lost. "
        f"{proof.filed:,} of {proof.holes:,} ids that never existed are filed as missed."
    )
    where = shlex.quote(str(out))
    commands = {f"sanderling status {where}": "how it stood"}
    commands[f"sanderling sequence missed list --out {where}"] = "what is missed"
    yield from next_steps("To try next:", {**commands, "sanderling world game": "serve a larger game"})
