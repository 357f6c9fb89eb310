"""Which race has its turn when, which is being flown, and which is the one to look at.

A race is completed when it was valid, started and ended. Races that were passed over stay behind: what comes next is
the one after the last completed, not the first that was never flown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from sanderling.apis.polled import TargetActivity, TargetName
from sanderling.stores.documents import SourceRow, Value

RACE = "race"  # the kind of the targets

# The place of a race in the order, and what decides between two of the same place.
Turn = tuple[bool, int, bool, int, str]


@dataclass(frozen=True, slots=True)
class _Race:
    name: TargetName
    valid: bool
    started: bool
    ended: bool
    turn: Turn

    @classmethod
    def of(cls, row: SourceRow, rounds: Mapping[Value, Value]) -> Self:
        """The race of a row; `rounds` are the orders of the rounds."""
        values = row.values
        return cls(
            TargetName(RACE, row.key),
            valid=values["valid"] is True,
            started=values["start_local"] is not None,
            ended=values["end_local"] is not None,
            turn=(*_place(rounds.get(values["round"])), *_place(values["race_number"]), row.key),
        )

    @property
    def active(self) -> bool:
        return self.started and not self.ended

    @property
    def completed(self) -> bool:
        return self.started and self.ended


def _place(number: Value) -> tuple[bool, int]:
    """What to sort a number by, if it is one: what has none comes last."""
    return (False, number) if isinstance(number, int) else (True, 0)


def activity_of(event: str, rows: Iterable[SourceRow]) -> TargetActivity:
    """What is live in an event, by the rows of its rounds and races; rows of others are passed over."""
    own = [row for row in rows if row.values.get("event") == event]
    rounds: dict[Value, Value] = {row.key: row.values["round_order"] for row in own if row.table == "rounds"}
    races = [_Race.of(row, rounds) for row in own if row.table == "races"]
    line = sorted((race for race in races if race.valid), key=lambda race: race.turn)
    order = {race.name: 0 for race in races} | {race.name: place for place, race in enumerate(line, 1)}
    active = next((race for race in line if race.active), None)
    current = active or _at_rest(line)
    return TargetActivity(frozenset({active.name} if active else ()), current.name if current else None, order)


def _at_rest(line: list[_Race]) -> _Race | None:
    """The race to look at while none is flown: the one after the last completed, or that one, or the first."""
    completed = [place for place, race in enumerate(line) if race.completed]
    following = completed[-1] + 1 if completed else 0
    return line[min(following, len(line) - 1)] if line else None
