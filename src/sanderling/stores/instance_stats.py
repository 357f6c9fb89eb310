"""What instances change in the statistics of their players, whichever order they arrive in.

A *clear* is an instance that a player finished. Clears have an order: by the time they were completed, then by id. A
*first clear* is a player's first in that order, and in it the player is a *newcomer*. Whoever finished beside newcomers
and was none has led them: `sherpas` is how many players somebody has led, over all instances of an activity.

An instance that arrives late can be earlier than what was taken for a first clear. Then a newcomer of that later
instance is none any more, and its players are settled anew: that is why `settled` asks who had finished it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sanderling.stores.instances import InstancePlayerRow, InstanceRows

Key = tuple[int, int]  # member and activity


class StatsRow(NamedTuple):
    """What a player has done in one activity."""

    membership_id: int
    activity_hash: int
    clears: int = 0
    fresh_clears: int = 0
    sherpas: int = 0
    seconds_played: int = 0  # in all instances, finished or not
    fastest_seconds: int | None = None  # of fresh clears
    fastest_instance: int | None = None
    first_clear: float | None = None  # when that was completed
    first_instance: int | None = None


class InstanceRun(NamedTuple):
    """An instance that counts: one of a known activity and time."""

    instance_id: int
    activity: int
    completed: float
    fresh: bool
    seconds: int | None
    players: Sequence[InstancePlayerRow]

    def finishers(self) -> list[Key]:
        """Who finished it."""
        return [(player.membership_id, self.activity) for player in self.players if player.finished]

    def precedes(self, stats: StatsRow) -> bool:
        """Whether it is earlier than what was the first clear, if there was any."""
        if stats.first_clear is None or stats.first_instance is None:
            return True
        return (self.completed, self.instance_id) < (stats.first_clear, stats.first_instance)

    def beats(self, stats: StatsRow) -> bool:
        """Whether it was faster than the fastest; of two alike, the one with the lower id is."""
        if self.seconds is None or stats.fastest_seconds is None or stats.fastest_instance is None:
            return self.seconds is not None
        return (self.seconds, self.instance_id) < (stats.fastest_seconds, stats.fastest_instance)


def runs_of(new: Iterable[InstanceRows]) -> list[InstanceRun]:
    """What counts of the instances that are new."""
    instances = ((rows.instance, rows.taken_part) for rows in new)
    return [
        InstanceRun(
            row.instance_id, row.activity_hash, row.date_completed, row.fresh is True, row.duration_seconds, players
        )
        for row, players in instances
        if row.activity_hash is not None and row.date_completed is not None
    ]


def keys_of(runs: Iterable[InstanceRun]) -> list[Key]:
    """Whose statistics must be known, in order."""
    return sorted({(player.membership_id, run.activity) for run in runs for player in run.players})


def unseated(runs: Iterable[InstanceRun], known: Mapping[Key, StatsRow]) -> dict[int, int]:
    """Instances that were somebody's first clear and are no longer, with their activities."""
    found: dict[int, int] = {}
    for run in runs:
        for before in (known[key] for key in run.finishers() if key in known):
            if before.first_instance is not None and run.precedes(before):
                found[before.first_instance] = run.activity
    return found


def settled(
    runs: Sequence[InstanceRun], known: Mapping[Key, StatsRow], finishers: Mapping[int, Sequence[Key]]
) -> list[StatsRow]:
    """The statistics that change, as they are now, in the order of their keys.

    `known` is what was stored of all `keys_of` the runs and of all `finishers`: who finished the instances that are
    `unseated`.
    """
    stats = dict(known)
    for run in runs:
        for player in run.players:
            key = (player.membership_id, run.activity)
            stats[key] = _with(stats.get(key) or StatsRow(*key), run, player)
    led: Counter[Key] = Counter()
    for number, keys in finishers.items():
        led.subtract(_led(number, keys, known))
        led.update(_led(number, keys, stats))
    for run in runs:
        led.update(_led(run.instance_id, run.finishers(), stats))
    for key, more in led.items():
        before = stats.get(key) or StatsRow(*key)
        stats[key] = before._replace(sherpas=before.sherpas + more)
    return [stats[key] for key in sorted(stats) if stats[key] != known.get(key)]


def _with(stats: StatsRow, run: InstanceRun, player: InstancePlayerRow) -> StatsRow:
    """These, and one instance more."""
    # Written out, since this is the hot part: `_replace` would take four times as long.
    who, activity, clears, fresh_clears, sherpas, played, best_seconds, best, first_clear, first = stats
    played += player.time_played_seconds
    if player.finished:
        clears += 1
        fresh_clears += run.fresh
        if run.precedes(stats):
            first_clear, first = run.completed, run.instance_id
        if run.fresh and run.beats(stats):
            best_seconds, best = run.seconds, run.instance_id
    return StatsRow(who, activity, clears, fresh_clears, sherpas, played, best_seconds, best, first_clear, first)


def _led(instance_id: int, finished: Sequence[Key], stats: Mapping[Key, StatsRow]) -> dict[Key, int]:
    """How many newcomers each of those who finished an instance has led in it."""
    newcomers = {key for key in finished if key in stats and stats[key].first_instance == instance_id}
    return {key: len(newcomers) for key in finished if key not in newcomers} if newcomers else {}
