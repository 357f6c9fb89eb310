"""What happens when on a simulated race day: who flies in which heat, every detection and lap, who joins and leaves.

Terms. A *heat* is what the upstream calls a race: a few pilots in the air at once, each on a channel. A *round* is as
many heats as it takes for everybody to fly once. A *pass* is one detection by the timing gate; the first of a pilot is
the *holeshot*, which ends lap 0. A heat that is *aborted* does not count and is flown again at the end of its round.

The whole day is planned before it begins, so that it can be asked about any instant in any order. Times are whole
milliseconds since it began, because the upstream writes no finer ones: comparing them is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple, Self
from uuid import UUID

LONG_AGO = -86_400_000  # when what is there at the beginning was made
NEVER = 10**15
MOST_PASSES = 200_000  # of a day: what bounds its memory
# Files are written one after the other: what an event lists is there before it is listed.
ROUNDS_LAG, EVENT_LAG = 20, 50
RESULTS_LAG = 1500  # from the end of a heat to its results
# Where in the break before a heat, as parts of it that are left, a round is made and a pilot leaves.
MADE_BEFORE, LEFT_BEFORE = 0.8, 0.3


@dataclass(frozen=True, slots=True)
class DayRules:
    """What a day is like. Times in seconds; the defaults are two hours with twenty heats and two that are repeated."""

    pilots: int = 24
    late: int = 1  # of the pilots, those who join with the second round
    removed: int = 2  # pilots who leave, each in another round
    seats: int = 6  # pilots in a heat
    rounds: int = 5
    aborted: int = 2  # heats, each in another round
    first: float = 60.0  # to the first start
    heat: float = 120.0
    pause: float = 200.0  # between two heats
    lap: float = 8.0  # the mean
    invalid: float = 0.5  # chance that a pass is followed by one that does not count
    corrected: float = 0.05  # chance that a lap is struck out some seconds later


class Seat(NamedTuple):
    """A pilot on a channel, in a heat or in the event; gone from then on."""

    id: str
    pilot: int
    channel: int  # which of those in use
    gone: int = NEVER


@dataclass(frozen=True, slots=True)
class Pass:
    """A detection, and the lap that it ends if it ends one."""

    id: str
    seat: Seat
    at: int
    peak: int
    lap: int  # the lap it ends; 0 is the holeshot
    counts: bool = True  # as the gate sees it
    struck: int = NEVER  # when somebody struck it out
    lap_id: str = ""  # empty where it ends no lap
    since: int = 0  # when that lap began

    def valid(self, now: int) -> bool:
        """Whether it counts."""
        return self.counts and now < self.struck


@dataclass(frozen=True, slots=True)
class Heat:
    """One race, from the first plan of it to its results."""

    id: str
    round: int  # which of the day's
    number: int  # within its round, from 1
    made: int
    start: int
    end: int
    seats: tuple[Seat, ...]
    passes: tuple[Pass, ...] = ()
    aborted: bool = False

    @property
    def results(self) -> int:
        """When its results are known; NEVER if it does not count."""
        return NEVER if self.aborted or not self.flyers else self.end + RESULTS_LAG

    @property
    def flyers(self) -> tuple[Seat, ...]:
        """Those who did not leave before it."""
        return tuple(seat for seat in self.seats if seat.gone == NEVER)

    def changes(self) -> Iterator[int]:
        """Every instant at which its document changes."""
        yield from (self.made, self.start, self.end)
        yield from (seat.gone for seat in self.seats)
        for each in self.passes:
            yield from (each.at, each.struck)


class RaceRound(NamedTuple):
    """A round of the day, made when the one before it is over."""

    id: str
    made: int


@dataclass(slots=True)
class RacePlan:
    """A whole day. Pilots go by their numbers; `joins` and `seats` have one entry for each."""

    event: str
    practice: str  # the id of a round that does not count
    pilots: tuple[str, ...]  # their ids
    joins: list[int]
    seats: list[Seat]  # in the event: their usual channels
    rounds: list[RaceRound] = field(default_factory=list)
    heats: list[Heat] = field(default_factory=list)

    @classmethod
    def make(cls, seed: int, rules: DayRules) -> Self:
        """The day of a seed."""
        chance = Random(f"race day {seed}")
        here, there = rules.pilots - rules.late, rules.late
        day = cls(
            event=identity(chance),
            practice=identity(chance),
            pilots=tuple(identity(chance) for _ in range(rules.pilots)),
            joins=[LONG_AGO] * here + [NEVER] * there,
            seats=[Seat(identity(chance), number, number % rules.seats) for number in range(rules.pilots)],
        )
        _Planner(day, rules, chance).run()
        return day

    @property
    def over(self) -> int:
        """When the last heat has ended and its results are known."""
        return max((heat.end for heat in self.heats), default=0) + RESULTS_LAG

    def event_changes(self) -> Iterator[int]:
        """Every instant at which the event's document changes."""
        facts = (*self.joins, *(seat.gone for seat in self.seats), *(each.made for each in self.rounds))
        yield from (at + EVENT_LAG for at in (*facts, *(heat.made for heat in self.heats)))

    def round_changes(self) -> Iterator[int]:
        """Every instant at which the list of rounds changes."""
        yield from (each.made + ROUNDS_LAG for each in self.rounds)


def identity(chance: Random) -> str:
    """A new GUID."""
    return str(UUID(int=chance.getrandbits(128), version=4))


class _Planner:
    """Goes through the day once, from the first heat to the last."""

    def __init__(self, day: RacePlan, rules: DayRules, chance: Random) -> None:
        self._day = day
        self._rules = rules
        self._chance = chance
        self._start = _ms(rules.first)  # of the next heat
        self._aborting = set(chance.sample(range(rules.rounds), rules.aborted))
        self._leaving = set(chance.sample(range(rules.rounds), rules.removed))

    def run(self) -> None:
        """Make all rounds."""
        for number in range(self._rules.rounds):
            self._round(number)

    def _round(self, number: int) -> None:
        day, pause = self._day, _ms(self._rules.pause)
        made = LONG_AGO if number == 0 else self._start - round(pause * MADE_BEFORE)
        if number == 1:
            day.joins[:] = (made if at == NEVER else at for at in day.joins)
        day.rounds.append(RaceRound(identity(self._chance), made))
        heats = list(self._drawn(number, made))
        aborted = self._chance.randrange(len(heats)) if number in self._aborting else -1
        leaves = self._chance.randrange(len(heats)) if number in self._leaving else -1
        for position in range(len(heats)):
            if position == leaves:
                # One who has not flown yet, so that a race that was planned changes too.
                waiting = [seat.pilot for heat in heats[position:] for seat in heat.seats]
                heats = self._without(self._chance.choice(waiting), heats)
            self._fly(heats[position], aborted=position == aborted)
        if aborted >= 0:
            self._again(len(heats) - 1 - aborted)

    def _drawn(self, number: int, made: int) -> Iterator[Heat]:
        """The heats of a round, not yet flown: everybody who is there, in an order drawn by lot."""
        seats, present = self._rules.seats, self._present(made)
        self._chance.shuffle(present)
        for first in range(0, len(present), seats):
            group = enumerate(present[first : first + seats])
            taken = tuple(Seat(identity(self._chance), pilot, channel) for channel, pilot in group)
            yield Heat(identity(self._chance), number, first // seats + 1, made, NEVER, NEVER, taken)

    def _present(self, now: int) -> list[int]:
        return [number for number, seat in enumerate(self._day.seats) if self._day.joins[number] <= now < seat.gone]

    def _without(self, pilot: int, heats: list[Heat]) -> list[Heat]:
        """The heats of a round after a pilot has left who did not fly in it yet: his seat is gone."""
        gone = self._start - round(_ms(self._rules.pause) * LEFT_BEFORE)
        self._day.seats[pilot] = self._day.seats[pilot]._replace(gone=gone)

        def left(seat: Seat) -> Seat:
            return seat._replace(gone=gone) if seat.pilot == pilot else seat

        return [replace(heat, seats=tuple(map(left, heat.seats))) for heat in heats]

    def _fly(self, heat: Heat, *, aborted: bool) -> None:
        start, length = self._start, _ms(self._rules.heat)
        if aborted:
            length = round(length * self._chance.uniform(0.2, 0.6))
        flown = replace(heat, start=start, end=start + length, aborted=aborted)
        passes = sorted(self._passes(flown), key=lambda each: each.at)
        self._day.heats.append(replace(flown, passes=tuple(passes)))
        self._start = flown.end + _ms(self._rules.pause)

    def _again(self, back: int) -> None:
        """Fly an aborted heat once more, with those of it who are still here."""
        aborted, last = self._day.heats[-1 - back], self._day.heats[-1]
        made = aborted.end + RESULTS_LAG
        gone = [seat.gone for seat in self._day.seats]
        seats = tuple(
            Seat(identity(self._chance), seat.pilot, seat.channel, gone[seat.pilot])
            for seat in aborted.seats
            if made < gone[seat.pilot]
        )
        heat = Heat(identity(self._chance), aborted.round, last.number + 1, made, NEVER, NEVER, seats)
        self._fly(heat, aborted=False)

    def _passes(self, heat: Heat) -> Iterator[Pass]:
        for seat in heat.flyers:
            yield from self._flight(heat, seat)

    def _flight(self, heat: Heat, seat: Seat) -> Iterator[Pass]:
        """All passes of one pilot: the holeshot and the laps, with some between that do not count."""
        chance, rules = self._chance, self._rules
        since, lap, at = heat.start, 0, heat.start + _ms(chance.uniform(0.5, 2.0))
        while at < heat.end:
            struck = at + _ms(chance.uniform(2.0, 5.0))
            if lap == 0 or struck >= heat.end or chance.random() >= rules.corrected:
                struck = NEVER
            yield Pass(
                identity(chance),
                seat,
                at,
                chance.randrange(900, 1600),
                lap,
                struck=struck,
                lap_id=identity(chance),
                since=since,
            )
            echo = at + _ms(chance.uniform(0.1, 0.4))
            if chance.random() < rules.invalid and echo < heat.end:
                yield Pass(identity(chance), seat, echo, chance.randrange(300, 900), lap + 1, counts=False)
            since, lap, at = at, lap + 1, at + _ms(rules.lap * chance.uniform(0.75, 1.25))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
