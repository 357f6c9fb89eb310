"""A crawl of a simulated game under virtual time, with everything of ours but the sockets: for `sequence_sim`."""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from pathlib import Path
from random import Random
from typing import TypeVar

from world_networks import GameNetwork

from sanderling.apis.bungie import Bungie
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules as Addresses
from sanderling.limit import Limiter, PaceRules
from sanderling.limit.memory import Memory
from sanderling.sequence.cursor import Position
from sanderling.sequence.inquiries import limits
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState
from sanderling.sequence.system import SequenceRules, SequenceServices, SequenceSystem
from sanderling.stores.queue import Delivery, Depth, Letter
from sanderling.testing.virtual import LoopClock, run_virtual
from sanderling.worlds.game import ORIGIN, Game, GameRules

T = TypeVar("T")
MOST_RPS = 250.0
EVERY = 10.0  # seconds between two looks at how it stands
GRACE = 900.0  # seconds: what is younger when the crawl ends may not have been asked for yet


class Counting:
    """A queue that only counts: how often each record was published."""

    def __init__(self) -> None:
        self.published: Counter[str] = Counter()

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Count them."""
        self.published.update(letter.key for letter in letters)

    async def take(self, most: int, wait: float) -> list[Delivery]:
        """Nobody takes."""
        raise NotImplementedError

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        """Nobody takes."""
        raise NotImplementedError

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        """Nobody takes."""
        raise NotImplementedError

    async def publish_dead(self, letter: Letter, why: str) -> None:
        """None are dead."""
        raise NotImplementedError

    async def bury(self, delivery: Delivery, why: str) -> None:
        """Nobody takes."""
        raise NotImplementedError

    async def depth(self) -> Depth:
        """None wait."""
        return Depth(0, 0, 0, 0)

    async def close(self) -> None:
        """Nothing is open."""


class Remembering(SequenceState):
    """A state that remembers which ids have a record, and what was ever missed for which reason."""

    def __init__(self, path: Path, first: int) -> None:
        super().__init__(path)
        self._db.execute("PRAGMA synchronous = OFF")  # nobody pulls a plug here
        self.first = first
        self.ended = bytearray()
        self.given_up: Counter[Reason] = Counter()

    def record(self, saved: SavedCrawl, fates: Fates) -> None:
        """Keep it, and remember."""
        for low, high in fates.gone:
            self.mark(low, high)
        for each in fates.missed:
            if each.tries == 0:
                self.given_up[each.reason] += len(each)
        super().record(saved, fates)

    def mark(self, low: int, high: int) -> None:
        """These have a record."""
        start, end = low - self.first, high - self.first + 1
        if end > len(self.ended):
            self.ended.extend(bytes(max(end, 2 * len(self.ended)) - len(self.ended)))
        self.ended[start:end] = b"\x01" * (end - start)

    def has(self, number: int) -> bool:
        """Whether it has a record."""
        place = number - self.first
        return 0 <= place < len(self.ended) and bool(self.ended[place])


@dataclass(slots=True)
class Course:
    """How a crawl went."""

    hours: float
    workers: list[int] = field(default_factory=list)  # after each decision
    behind: list[tuple[float, float]] = field(default_factory=list)  # seconds since it began, seconds behind
    missing: int = 0  # answers that said not found, of all lanes and probes
    diverted: int = 0  # ids that went to the retry queue because we were refused
    skipped: int = 0  # ids of gaps
    lost: int = 0  # ids that exist and are old enough, and have no record here
    twice: int = 0  # records that were queued more than once
    live: int = 0
    probes: int = 0
    refused: int = 0
    optimum: float = 0.0  # seconds in which the quota would have allowed to catch up, had every request been served

    @property
    def changes(self) -> float:
        """Share of decisions that changed the number of workers."""
        moves = [after != before for before, after in pairwise(self.workers)]
        return sum(moves) / max(1, len(moves))

    @property
    def reversals(self) -> float:
        """Times an hour that a rise followed a fall, or a fall a rise."""
        steps = [after - before for before, after in pairwise(self.workers) if after != before]
        return sum((one > 0) != (other > 0) for one, other in pairwise(steps)) / self.hours

    @property
    def travel(self) -> float:
        """Workers added and taken away in an hour."""
        return sum(abs(after - before) for before, after in pairwise(self.workers)) / self.hours

    def caught_up(self, within: float = 60.0) -> float:
        """Seconds until it was so little behind for the first time; infinity if it never was."""
        return next((at for at, behind in self.behind if behind <= within), float("inf"))


def drive(rules: GameRules, crawl: SequenceRules, seconds: float, start: Callable[[Game, float], int]) -> Course:
    """Crawl a game for so many seconds of its time, from the id that `start` names."""
    with tempfile.TemporaryDirectory() as folder:
        return run_virtual(_drive(rules, crawl, seconds, start, Path(folder)))


async def _inline(work: Callable[..., T], *args: object) -> T:
    return work(*args)


async def _drive(
    rules: GameRules, crawl: SequenceRules, seconds: float, start: Callable[[Game, float], int], folder: Path
) -> Course:
    clock = LoopClock()
    game = Game(rules, seed=1, began=clock.wall())
    first = start(game, clock.wall())
    state = Remembering(folder / "sequence.db", first)
    pace = PaceRules.up_to(MOST_RPS)
    limiter = Limiter(limits(pace), clock=clock, rng=Random(2))
    network = GameNetwork(game, clock, guard=Addresses(private=True))
    fetcher = Fetcher(network, limiter, clock=clock)
    queue = Counting()
    tools = SequenceServices(Bungie(ORIGIN, ""), fetcher, limiter, Memory(2**28), state, queue, _inline)
    system = SequenceSystem(tools, Position(first), crawl, say=lambda _: None, clock=clock, rng=Random(3))
    course = Course(seconds / 3600)

    async def watch() -> None:
        course.workers.append(system.workers)
        seen = 0
        while clock.now() < seconds:
            await clock.sleep(EVERY)
            newest = system.lookout.head.newest or first
            course.behind.append((clock.now(), max(0.0, clock.wall() - game.born(newest + 1))))
            decided = system.measures.decisions.total()
            if decided > seen:
                course.workers += [made.decision.plan.workers for made in list(system.scaler.made)[seen - decided :]]
                seen = decided
        system.stop()

    await system.run(watch())
    course.missing = network.tally.codes[1653]
    course.diverted = state.given_up[Reason.RATE_LIMITED]
    course.skipped = system.measures.skipped
    course.refused = network.tally.codes[1672]
    course.probes = system.measures.probes.total()
    course.twice = sum(count > 1 for count in queue.published.values())
    course.optimum = _least(game, first, clock.wall() - clock.now())
    old = clock.wall() - GRACE
    live = game.newest(old)
    if live is not None:
        for number in game.ids(first, live, old):
            course.live += 1
            course.lost += not state.has(number)
    state.close()
    return course


def _least(game: Game, first: int, began: float) -> float:
    """Seconds until whoever asks for an id with each request of the quota has caught up with the head."""
    seconds, quota = 0.0, game.rules.weather.quota
    while isfinite(quota) and first + quota * seconds < game.head(began + seconds):
        seconds += 1.0
    return seconds
