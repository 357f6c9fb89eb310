"""The eight keys of `server_settings`: how they are read, and what holds where one cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

from sanderling.options import OptionError, nearest
from sanderling.polling.options import PollingOptions

PREFIX = "scheduler."
_OFF = frozenset({"false", "0", "off"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds now; times in milliseconds. Names and defaults are those of seed 004."""

    enabled: bool = True
    concurrency: int = 1
    burst: int = 2
    fullIntervalMs: int = 10_000  # noqa: N815 - the seed's name
    raceActiveMs: int = 200  # noqa: N815
    raceIdleMs: int = 5_000  # noqa: N815
    resultsMs: int = 2_000  # noqa: N815
    jitterMs: int = 150  # noqa: N815

    def rows(self) -> dict[str, str]:
        """As they stand in the table."""
        return {PREFIX + each.name: _text(getattr(self, each.name)) for each in fields(self)}


class Bounds(NamedTuple):
    """What a number may be."""

    low: int
    high: int


BOUNDS = {
    "concurrency": Bounds(1, 64),
    "burst": Bounds(1, 1000),
    "fullIntervalMs": Bounds(100, 86_400_000),
    "raceActiveMs": Bounds(50, 86_400_000),
    "raceIdleMs": Bounds(100, 86_400_000),
    "resultsMs": Bounds(0, 86_400_000),
    "jitterMs": Bounds(0, 60_000),
}
# The flag of each key that has one.
FLAGS = {
    "enabled": "enabled",
    "concurrency": "concurrency",
    "burst": "burst",
    "fullIntervalMs": "full_interval",
    "raceActiveMs": "race_active",
    "raceIdleMs": "race_idle",
    "resultsMs": "results_interval",
}


def read_settings(rows: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """What the rows say, and a sentence for each that cannot be read; the default holds there."""
    values: dict[str, int | bool] = {}
    faults = []
    for key in FLAGS | BOUNDS:
        raw = rows.get(PREFIX + key)
        if raw is None:
            continue
        try:
            values[key] = _read(key, raw)
        except ValueError as error:
            faults.append(f"{PREFIX}{key} is {raw[:40]!r}, expected {error}; its default holds")
    return Settings(**values), faults  # type: ignore[arg-type] # by their names


def typed_rows(options: PollingOptions) -> dict[str, str]:
    """The rows of those flags that were set."""
    rows = {}
    for key, name in FLAGS.items():
        if name in options.given:
            value = getattr(options, name)
            rows[PREFIX + key] = _text(round(value * 1000) if key.endswith("Ms") else value)
    return rows


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """Rows from `raceIdleMs=3000` and `scheduler.raceIdleMs=3000`. Raises OptionError."""
    rows = {}
    for pair in pairs:
        name, equals, raw = pair.partition("=")
        key = name.removeprefix(PREFIX)
        if not equals or key not in FLAGS | BOUNDS:
            raise OptionError(f"found {pair[:60]!r}, expected KEY=VALUE{nearest(key, FLAGS | BOUNDS)}")
        try:
            rows[PREFIX + key] = _text(_read(key, raw))
        except ValueError as error:
            raise OptionError(f"{key}: found {raw[:40]!r}, expected {error}") from None
    return rows


def _read(key: str, raw: str) -> int | bool:
    if key == "enabled":  # as the first implementation read it
        return raw.strip().lower() not in _OFF
    low, high = BOUNDS[key]
    text = raw.strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
        raise ValueError(f"a whole number from {low} to {high:,}")
    return int(text)


def _text(value: int | bool) -> str:  # noqa: FBT001 - either
    return str(value).lower()
