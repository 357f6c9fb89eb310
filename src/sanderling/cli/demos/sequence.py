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
from sanderling.cli.command_error import CommandError
from sanderling.cli.demos.folder import make_room, mark
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import Options
from sanderling.cli.reach import KNOWN
from sanderling.cli.report_screen import fitting
from sanderling.cli.running import Ran
from sanderling.cli.sequence.crawl import open_state, run_crawl
from sanderling.cli.sequence.flags import CrawlFlags, Pace, Upstream
from sanderling.cli.sequence.place import ROWS, Place
from sanderling.clock import Clock, ScaledClock
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

OUT = Path("sanderling-demo-sequence")
COMMAND = "sanderling demo sequence"
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
class Proof:
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


def demo_sequence(out: Path, options: Options, *, as_json: bool) -> None:
    """Follow a simulated game: catch up, skip a gap, wait at the head, sit out a maintenance, and lose nothing."""
    make_room(out, COMMAND, "--out")
    mark(out, COMMAND)
    with explain_end(COMMAND, KNOWN):
        stopped = run(_run(out, options, ScaledClock(SPEED), as_json=as_json))
    if stopped:
        raise KeyboardInterrupt


def small_game() -> GameRules:
    """The game of the demo."""
    pieces = (Piece(-HISTORY, HISTORY + PAUSE.start, RATE), Piece(PAUSE.end, inf, RATE))
    plain = ScheduleRules(pieces=pieces, delay=2.0, spread=3.0)
    holes = (Hole(born_at(LOST_AT, plain), LOST),)
    weather = WeatherRules(
        latency=LATENCY, quota=QUOTA, retry_after=2.0, maintenance=(MAINTENANCE,), contests=(CONTEST,)
    )
    return GameRules(replace(plain, holes=holes), weather, raids=0.1, late=0.01, late_seconds=15.0)


async def _run(out: Path, options: Options, clock: Clock, *, as_json: bool) -> bool:
    """Serve, follow, prove, tell; whether somebody stopped it."""
    game = Game(small_game(), SEED, began=clock.wall())
    screen = fitting(json=as_json, logs=options.log_format is not None)
    async with GameServer(game, clock) as server:
        pace = Pace(target=game.first, buffer=0, until=game.head(game.began + END), max_workers=60)
        flags = CrawlFlags(Place(out=out), Upstream(base=server.url(), private=True), pace)
        screen.note(f"A simulated game on this machine; nothing leaves it. Time passes {SPEED:g}x.")
        ran = await run_crawl(flags, options, clock, screen, RULES)
        with open_state(flags.place) as state:
            proof = await asyncio.to_thread(_prove, game, state, out / ROWS)
    story = Story(ran, proof, server.tally, game)
    screen.end(story.words(out), story.document(out))
    if not proof.ok:
        raise CommandError("what is stored is not what it should be; please tell us")
    return ran.stopped


def _prove(game: Game, state: SequenceState, rows: Path) -> Proof:
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
    return Proof(
        live=len(live),
        raids=len(raids),
        stored=len(raids & stored),
        later=len((raids - stored) & missed),
        strangers=sum(1 for number in stored if not (game.exists(number) and game.raid(number))),
        twice=len(found) - len(stored),
        holes=len(holes),
        filed=len(holes & missed),
    )


@dataclass(frozen=True, slots=True)
class Story:
    """What happened."""

    ran: Ran[Report[SequenceFacts]]
    proof: Proof
    tally: GameTally
    game: Game

    def document(self, out: Path) -> dict[str, Any]:
        """What `--json` prints."""
        last, seconds = self.ran.last.facts, self.ran.last.process.seconds
        return {
            "ok": self.proof.ok,
            "complete": self.ran.complete,
            "seconds": round(seconds / SPEED, 3),
            "game_seconds": round(seconds, 3),
            "requests": self.tally.asked,
            "answers": last.answers,
            "gaps": last.gaps,
            "skipped_ids": last.skipped,
            "missed": last.missed,
            "lag": None if last.lag is None else round(last.lag, 3),
            "workers": [each.workers for each in last.decisions],
            "proof": asdict(self.proof),
            "out": str(out),
        }

    def words(self, out: Path) -> Iterator[str]:
        """The same as lines; those that are indented must not be broken."""
        seconds = self.ran.last.process.seconds
        yield ""
        asked = f"{count(self.tally.asked, 'request')} in {duration(seconds)} of the game's time"
        how = "Followed the game to its head" if self.ran.complete else "Ended early"
        yield f"{how}: {asked}, {duration(seconds / SPEED)} of yours."
        if self.ran.complete:
            yield ""
            yield from self._chapters()
        yield ""
        yield from self._proven()
        yield ""
        yield "To see how it stood, and what is missed; and to serve a larger game, to follow by hand:"
        yield ""
        yield f"    sanderling status {shlex.quote(str(out))}"
        yield f"    sanderling sequence missed list --out {shlex.quote(str(out))}"
        yield "    sanderling world game"
        yield ""

    def _chapters(self) -> Iterator[str]:
        last, refused = self.ran.last.facts, self.tally.kinds[GameKind.REFUSED]
        workers = [RULES.scale.workers, *(each.workers for each in last.decisions)]
        yield (
            f"It began {duration(HISTORY)} behind and ended {duration(last.lag)} behind, with {workers[0]} workers "
            f"at first, {max(workers)} at most and {workers[-1]} in the end. The game allows {QUOTA:g} requests "
            f"a second; it had to refuse {refused:,}."
        )
        yield (
            f"{count(last.skipped, 'id')} that never existed were skipped as {count(last.gaps, 'gap')}. "
            f"{count(last.probes, 'probe')} told gaps, the pause and the head from each other."
        )
        hidden, off = last.answers.get(Status.HIDDEN.value, 0), self.tally.kinds[GameKind.DISABLED]
        yield f"{count(hidden, 'raid')} hidden at first: all were asked for again when the first of them was shown."
        yield f"While the API was switched off it was sent {count(off, 'request')}."

    def _proven(self) -> Iterator[str]:
        proof = self.proof
        lost = proof.raids - proof.stored - proof.later
        yield (
            f"Up to the cursor the game has {count(proof.live, 'id')}, {proof.raids:,} of them raids: {proof.stored:,} "
            f"are stored, each once, {proof.later:,} are to be asked again, {lost or 'none'} are lost."
        )
        yield f"{proof.filed:,} of {proof.holes:,} ids that never existed are filed as missed."
