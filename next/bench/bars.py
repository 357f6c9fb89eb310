"""What every benchmark prints: its figures beside what they have to be, and with --json one line for programs."""

import json
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure, and what it has to be. `need` None: a figure without a bar."""

    what: str
    got: float
    need: float | None = None
    least: bool = False  # `need` is the least that is good, not the most

    @property
    def ok(self) -> bool:
        """Whether the bar is reached."""
        return self.need is None or (self.got >= self.need if self.least else self.got <= self.need)


def report(bars: list[Bar]) -> int:
    """Print all bars, for programs where --json was typed; the exit code."""
    if "--json" in sys.argv:
        rows = [asdict(bar) | {"ok": bar.ok} for bar in bars]
        print(json.dumps({"bars": rows}))
        return 0
    for bar in bars:
        need = "" if bar.need is None else f"  ({'at least' if bar.least else 'at most'} {bar.need:g})"
        print(f"{'ok  ' if bar.ok else 'MISS'} {bar.got:10.4g}  {bar.what}{need}")
    return 0 if all(bar.ok for bar in bars) else 1
