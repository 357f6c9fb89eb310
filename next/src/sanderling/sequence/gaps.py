"""When nothing comes any more: is this a gap with records behind it, or the head? Pure.

Both look the same from where we stand. Skipping ahead at the head would lose what comes next, waiting in a gap would
wait for ever. So ids further on are asked whether they exist: an id that exists has happened, so what lies before it is
a gap. Gaps that were met before come first; then steps almost as wide as the records of the last run of ids, which a
run as long cannot slip through; then ever wider ones. All that is passed over is missed, and asked again.
"""

from collections.abc import Generator, Sequence

BATCH = 32  # ids asked at the same time
SCAN = 700  # even steps
WIDENING = 1.25
REACH = 5_000_000
SHARE = 0.8  # of the last run of ids: the width of a step
BELIEVED = 4  # neighbours that must be missing, where one alone may be a hole among records
FIRST_LOOK, LATER_LOOK = 36, 160  # ids asked in one look
LOOK_PAUSE = 5.0  # seconds to the second look; later ones wait for longer by so much each
RARE_PAUSE = 1800.0  # seconds between looks, once everything was asked

Search = Generator[Sequence[int], Sequence[bool], int | None]


def distances(run: int, learned: Sequence[int]) -> list[int]:
    """How far ahead to ask, in the order of asking; `learned` are widths of gaps that were met before."""
    found: dict[int, None] = {}
    for width in learned:
        found.update(dict.fromkeys(range(width + 1, width + 1 + BELIEVED)))
    wide = 1
    while wide <= REACH:
        found.update(dict.fromkeys((wide, wide + wide // 2)))
        wide *= 2
    step = max(1, int(SHARE * run))
    at = step
    while at <= REACH and len(found) < SCAN:
        found[at] = None
        at += step
    while at <= REACH:
        found[at] = None
        step = int(step * WIDENING) + 1
        at += step
    return list(found)


class GapSearch:
    """One stay at what may be the head or a gap: what to ask, in several looks, and when."""

    def __init__(self, newest: int, run: int, learned: Sequence[int], now: float, stride: int) -> None:
        self.newest = newest
        self.looks = 0
        self.due = now
        self._stride = stride
        self._step = max(1, int(SHARE * run)) * stride
        self._rest = distances(run, learned)
        self._cheap = self._rest[: 48 + BELIEVED * len(learned)]
        self._most = FIRST_LOOK

    def look(self, ceiling: int | None, largest: int) -> Search:
        """Ask, and return the first id behind the gap if there is one. The ids asked come in ascending order."""
        here, self._rest = self._rest[: self._most], self._rest[self._most :]
        self._most = LATER_LOOK
        top = largest if ceiling is None else min(largest, ceiling)
        ahead = sorted({self.newest + self._stride * each for each in here})
        if ceiling is not None:
            ahead = sorted({*(each for each in ahead if each < ceiling), ceiling})
        ahead = [each for each in ahead if self.newest < each <= top]
        for start in range(0, len(ahead), BATCH):
            batch = ahead[start : start + BATCH]
            live = _lowest(batch, (yield batch))
            if live is not None:
                live = yield from self._nearer(live)
                return (yield from self._edge(live))
        return None

    def _nearer(self, live: int) -> Generator[Sequence[int], Sequence[bool], int]:
        """The first records that even steps meet before `live`: runs may lie between, which far steps have missed."""
        between = range(self.newest + self._step, live, self._step)
        if len(between) > SCAN:
            return live
        for start in range(0, len(between), BATCH):
            batch = between[start : start + BATCH]
            if (nearer := _lowest(batch, (yield batch))) is not None:
                return nearer
        return live

    def looked(self, now: float) -> None:
        """Nothing was found: when to look again."""
        self.looks += 1
        if self._rest:
            self.due = now + LOOK_PAUSE * self.looks
        else:
            self._rest, self.due = list(self._cheap), now + RARE_PAUSE

    def _edge(self, live: int) -> Search:
        """The lowest id of the run that `live` is in, as far as four missing neighbours are its end."""
        low = max(self.newest, live - self._step)
        while (high := live) - low > BELIEVED * self._stride:
            middle = low + (high - low) // 2 // self._stride * self._stride
            batch = [middle + self._stride * each for each in range(BELIEVED) if middle + self._stride * each < high]
            alive = _lowest(batch, (yield batch))
            low, live = (batch[-1], live) if alive is None else (low, alive)
        rest = list(range(low + self._stride, live, self._stride))
        alive = _lowest(rest, (yield rest)) if rest else None
        return live if alive is None else alive


def _lowest(batch: Sequence[int], answers: Sequence[bool]) -> int | None:
    return next((number for number, exists in zip(batch, answers, strict=True) if exists), None)
