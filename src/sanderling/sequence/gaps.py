"""When nothing is found any more: is this a gap with live ids behind it, or the head? Pure.

Both look the same from where we stand: id after id is not there. Skipping ahead at the head would lose what comes next,
waiting in a gap would wait for ever. So before anything is skipped, `look_ahead` asks about ids further on. What it
finds cannot be the future: an id that exists has happened.

How far apart may the questions be? If the upstream makes `rate` ids a second and the last record we have is `silent`
seconds old, then rate x silent ids have been made since, and they lie somewhere ahead. If they are in one piece, steps
of half its width cannot miss it. In several pieces, those narrower than a step can be stepped over. Nothing is lost by
that: all that is skipped is recorded as missed, and sampled again. Beyond the evenly spaced questions there are a few
ever wider apart, up to `reach`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.readings import PeriodReadings

# In a row, not a share: with one id in fifty missing for good, fifteen in a row would be a wonder.
CONSECUTIVE = 150
SUSPECT_SHARE, SUSPECT_COUNT = 0.8, 50

BATCH = 32  # ids to be asked about at the same time
NEAR = 32  # the next ids, one by one: a head that flickers is no gap
SCAN = 256  # ids at even steps
REACH = 5_000_000  # how far ahead anything is looked for
BELIEVED = 4  # neighbours that must be missing, where one alone may be a hole in what is alive

Search = Generator[Sequence[int], Sequence[bool], "LifeAhead | NothingAhead"]


def suspects(readings: PeriodReadings) -> bool:
    """Whether a period's readings look like a gap, or like running past the head."""
    return readings.missing > SUSPECT_SHARE and readings.missing_count > SUSPECT_COUNT


@dataclass(frozen=True, slots=True)
class LifeAhead:
    """There is life ahead. `first` exists and is still to be crawled; `low` up to, but not including, it is missed."""

    first: int
    low: int


@dataclass(frozen=True, slots=True)
class NothingAhead:
    """None of the ids that were asked about exists; `reach` is the furthest of them. Wait where you are."""

    reach: int


def look_ahead(last: int, rate: float, silent: float, reach: int = REACH) -> Search:
    """Ask about ids beyond `last`; end with the first live one, as far as the answers tell, or with Nothing.

    `last` is the highest id that is known to exist, `rate` the ids a second that the upstream makes, `silent` how long
    ago the record of `last` was completed: what was made since then is what there is to find. Each batch of ids comes
    in ascending order and wants as many answers: whether they exist. Who was not told must ask again, and not guess.
    """
    rungs = _rungs(last, _step(rate, silent, reach), reach)
    for start in range(0, len(rungs), BATCH):
        batch = rungs[start : start + BATCH]
        live = _lowest(batch, (yield batch))
        if live is not None:
            missing = rungs[: start + batch.index(live)]
            return LifeAhead((yield from _edge(last, missing, live)), last + 1)
    return NothingAhead(rungs[-1] if rungs else last)


def _step(rate: float, silent: float, reach: int) -> int:
    made = rate * silent
    if not (isfinite(made) and rate >= 0):
        raise ValueError(f"rate {rate} and silent {silent}; expected ids a second and seconds, both finite")
    # Never wider than it takes to get to the reach: after a pause, less was made than the silence suggests.
    return max(1, int(min(made / 2, reach / SCAN)))


def _rungs(last: int, step: int, reach: int) -> list[int]:
    """The ids to ask about, ascending."""
    far = min(reach, LARGEST_ID - last)
    ahead = {*range(1, NEAR + 1), *range(NEAR + step, NEAR + step * SCAN + 1, step)}
    wide = NEAR
    while wide <= far:  # two in each doubling, so that a short gap before a long live stretch is met early on
        ahead |= {wide, wide + wide // 2}
        wide *= 2
    return [last + distance for distance in sorted(ahead) if distance <= far]


def _edge(last: int, missing: list[int], live: int) -> Generator[Sequence[int], Sequence[bool], int]:
    """The lowest live id above the highest of `missing` that is not a mere hole in what is alive."""
    low = last
    while missing:
        low = missing.pop()
        beside = range(max(low - BELIEVED + 1, missing[-1] + 1 if missing else low), low)
        alive = _lowest(beside, (yield beside)) if beside and live - low > 1 else None
        if alive is None:
            break
        live, low = alive, last
    return (yield from _bisect(low, live))


def _bisect(low: int, high: int) -> Generator[Sequence[int], Sequence[bool], int]:
    """The lowest live id between `low`, which is missing or known, and `high`, which is live."""
    while high - low > BATCH:
        middle = (low + high) // 2
        batch = range(middle, middle + BELIEVED)
        alive = _lowest(batch, (yield batch))
        low, high = (batch[-1], high) if alive is None else (low, alive)
    rest = range(low + 1, high)
    alive = _lowest(rest, (yield rest)) if rest else None
    return high if alive is None else alive


def _lowest(batch: Sequence[int], answers: Sequence[bool]) -> int | None:
    return next((number for number, exists in zip(batch, answers, strict=True) if exists), None)


@dataclass(frozen=True, slots=True)
class WaitRules:
    """How often to look while there is nothing ahead. Seconds."""

    near: float = 2.0  # until the first look at the next few ids; later ones come ever more rarely
    rarest_near: float = 15.0
    far: float = 30.0  # until `look_ahead` is tried again, which costs a few hundred questions
    rarest_far: float = 120.0
    runaway: float = 45 * 60.0  # someone should be told; upstreams have been seen to publish only every 40 minutes

    def __post_init__(self) -> None:
        for first, most in (("near", "rarest_near"), ("far", "rarest_far")):
            if not 0 < getattr(self, first) <= getattr(self, most):
                found = f"{first} {getattr(self, first)}, {most} {getattr(self, most)}"
                raise ValueError(f"{found}: expected seconds above 0 that do not decrease")
        if self.runaway <= 0:
            raise ValueError(f"runaway is {self.runaway}; expected seconds above 0")


class LookKind(Enum):
    """Where to look."""

    NEAR = "near"  # at the next few ids
    FAR = "far"  # ahead, for the end of a gap


class HeadWait:
    """One wait at the head, which begins when a look ahead has found nothing, and ends when anything is found."""

    def __init__(self, now: float, rules: WaitRules | None = None) -> None:
        self._rules = rules or WaitRules()
        self._began = now
        self._told = False
        self._pauses = {LookKind.NEAR: self._rules.near, LookKind.FAR: self._rules.far}
        self._due = {look: now + pause for look, pause in self._pauses.items()}

    def __repr__(self) -> str:
        near, far = self._due[LookKind.NEAR], self._due[LookKind.FAR]
        return f"<Waiting since {self._began:.0f}, next looks at {near:.0f} and {far:.0f}>"

    def next_look(self) -> tuple[float, LookKind]:
        """When to look again, and where. A look far ahead begins with the next ids, so it does for both."""
        look = min((LookKind.FAR, LookKind.NEAR), key=self._due.__getitem__)
        return self._due[look], look

    def looked(self, look: LookKind, now: float) -> None:
        """Nothing was there."""
        most = {LookKind.NEAR: self._rules.rarest_near, LookKind.FAR: self._rules.rarest_far}
        self._pauses[look] = min(most[look], self._pauses[look] * (2.0 if look is LookKind.FAR else 1.5))
        self._due[look] = now + self._pauses[look]
        if look is LookKind.FAR:
            self._due[LookKind.NEAR] = now + self._pauses[LookKind.NEAR]

    def runaway(self, now: float) -> bool:
        """Whether it has lasted too long. True once, so that someone is told once."""
        if self._told or now - self._began < self._rules.runaway:
            return False
        self._told = True
        return True
