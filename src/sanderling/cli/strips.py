"""How often each kind of target was asked for lately: a strip for each, with a column for every second.

Time moves through it to the left. Who is live stands out by itself: its strip is full, and those of the others are not.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor

from rich.text import Text

from sanderling.polling.status import PollingStatus

LONGEST = 120  # seconds that are remembered
BLOCKS = " ▁▂▃▄▅▆▇█"
NOTHING = "·"
WELL, LIVE, FAILED = "cyan", "bold green", "bold red"


@dataclass(slots=True)
class Cell:
    """One second of a kind."""

    second: int
    runs: int = 0
    failed: bool = False  # whether any of them was
    live: bool = False  # whether any of its targets was

    @property
    def style(self) -> str:
        """Its colour."""
        return FAILED if self.failed else LIVE if self.live else WELL


class Strip:
    """The last seconds of one kind."""

    def __init__(self) -> None:
        self._cells: deque[Cell] = deque(maxlen=LONGEST)  # those seconds in which there was something to see

    def add(self, second: int, runs: int, *, failed: bool, live: bool) -> None:
        """Count runs of that second, or of a later one than those before."""
        if not self._cells or self._cells[-1].second < second:
            self._cells.append(Cell(second))
        cell = self._cells[-1]
        cell.runs += runs
        cell.failed |= failed
        cell.live |= live

    def drawn(self, width: int, seconds: float) -> Text:
        """The seconds up to now, the current one at the right; the more runs, the higher."""
        last, cells = floor(seconds), {cell.second: cell for cell in self._cells}
        shown = [cells.get(second) for second in range(last - width + 1, last + 1)]
        most = max((cell.runs for cell in shown if cell), default=0)
        scale = 1.0 if most < len(BLOCKS) else (len(BLOCKS) - 1) / most
        text = Text()
        for cell in shown:
            if cell is None or not cell.runs:
                text.append(NOTHING, "dim")
            else:
                text.append(BLOCKS[ceil(cell.runs * scale)], cell.style)
        return text


class Strips:
    """Those of all kinds, by what a status says in passing."""

    def __init__(self) -> None:
        self._strips: dict[str, Strip] = {}
        self._runs: Mapping[str, int] = {}
        self._failed: Mapping[str, int] = {}
        self._seconds = 0.0

    def add(self, status: PollingStatus) -> None:
        """Take in what happened since the status before."""
        runs, failed = _by_kind(status.runs), _by_kind(status.errors)
        live = {each.kind for each in status.accelerated}
        since = max(self._seconds, status.seconds - LONGEST)
        for kind, number in runs.items():
            wrong = failed.get(kind, 0) - self._failed.get(kind, 0)
            for second, new in spread(number - self._runs.get(kind, 0), since, status.seconds):
                self.of(kind).add(second, new, failed=wrong > 0, live=kind in live)
        self._runs, self._failed, self._seconds = runs, failed, status.seconds

    def of(self, kind: str) -> Strip:
        """The strip of a kind."""
        return self._strips.setdefault(kind, Strip())


def spread(number: int, since: float, until: float) -> Iterator[tuple[int, int]]:
    """So many runs between two times, shared out to the seconds between them, as if they came evenly.

    Where time passes faster than frames come, that is several seconds.
    """
    given, span = 0, until - since
    for second in range(floor(since), floor(until) + 1):
        upto = round(number * (min(second + 1.0, until) - since) / span) if span > 0 else number
        if upto > given:
            yield second, upto - given
        given = upto


def _by_kind(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    return {kind: sum(several.values()) for kind, several in counts.items()}
