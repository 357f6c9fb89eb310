"""What every benchmark has in common: bars, figures, a line of JSON at the end, and an exit code that tells."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Bar:
    """A number we hold ourselves to."""

    what: str
    need: str
    got: float
    ok: bool


def at_least(what: str, need: float, got: float) -> Bar:
    """A bar that `got` must reach."""
    return Bar(what, f">= {need:g}", round(got, 4), got >= need)


def at_most(what: str, need: float, got: float) -> Bar:
    """A bar that `got` must not pass."""
    return Bar(what, f"<= {need:g}", round(got, 4), got <= need)


@dataclass(slots=True)
class Report:
    """What one benchmark found."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)

    def finish(self) -> None:
        """Print the bars for people, or everything as one JSON line with --json; exit 1 if a bar falls short."""
        for bar in self.bars:
            print(f"  {'ok   ' if bar.ok else 'SHORT'} {bar.what}: need {bar.need}, got {bar.got:g}")
        if arguments().json:
            print(json.dumps({"name": self.name, "figures": self.figures, "bars": [asdict(bar) for bar in self.bars]}))
        sys.exit(0 if all(bar.ok for bar in self.bars) else 1)


_numbers: dict[str, tuple[int, str]] = {}  # flags of the benchmark that runs


def arguments(name: str = "", default: int = 0, what: str = "") -> argparse.Namespace:
    """The command line that all benchmarks share, and a number that this one has beside it."""
    if name:
        _numbers[name] = default, what
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    for flag, (number, means) in _numbers.items():
        parser.add_argument(f"--{flag}", type=int, default=number, help=means)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON for machines")
    return parser.parse_args()
