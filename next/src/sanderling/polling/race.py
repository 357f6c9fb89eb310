"""Which race runs, and which comes next: seed 004's rule, over what is stored. Pure."""

from collections.abc import Iterable
from typing import NamedTuple


class RaceRow(NamedTuple):
    """What the rule needs of a race."""

    source_id: str
    valid: bool
    start: str | None
    end: str | None
    round_order: float
    number: float

    @property
    def runs(self) -> bool:
        """Started and not ended."""
        return self.valid and is_set(self.start) and not is_set(self.end)


class RaceStanding(NamedTuple):
    """The race that runs, if any, and the one that comes next."""

    active: str | None
    following: str | None


def is_set(date: str | None) -> bool:
    """Whether a date of upstream is one: the year 0001 stands for none."""
    return bool(date) and not str(date).startswith("0")


def standing(races: Iterable[RaceRow], selected: str | None = None) -> RaceStanding:
    """What runs, and what is next; `selected` is what the operator has chosen, where upstream says so.

    Of several that run, all but the latest were never ended: a timing computer that crashed leaves such.
    """
    ordered = sorted((race for race in races if race.valid), key=lambda race: (race.round_order, race.number))
    running = [race for race in ordered if race.runs]
    active = max(running, key=lambda race: _sortable(race.start)).source_id if running else None
    chosen = next((race for race in ordered if race.source_id == selected), None)
    if chosen is not None:
        return RaceStanding(chosen.source_id if chosen.runs else active, chosen.source_id)
    completed = [number for number, race in enumerate(ordered) if is_set(race.end)]
    after = ordered[completed[-1] + 1 :] if completed else ordered
    following = next((race for race in after if not is_set(race.start)), None)
    following = following or next((race for race in ordered if not is_set(race.start) and not is_set(race.end)), None)
    return RaceStanding(active, following.source_id if following else None)


def _sortable(date: str | None) -> tuple[int, ...]:
    """Dates of upstream do not pad their hours: 2025/09/01 2:43:20.787."""
    text = "".join(letter if letter.isascii() and letter.isdecimal() else " " for letter in date or "")
    numbers = [int(part[:9]) for part in text.split()[:6]]
    return tuple(numbers)
