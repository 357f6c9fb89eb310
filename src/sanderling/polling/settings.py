"""The settings of polling: texts by key, which people may change at any time, and what they mean. Pure.

A text that cannot be read never stops the polling: what was in force before stays in force, and the problem is put
into words. `GENERAL` has the settings of every source, `Keys` adds those of a source's kinds.

Numbers are kept here as they are written, so durations in milliseconds; `PollingSettings` has seconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

from sanderling.apis.polled import LONGEST_INTERVAL, PolledKind

PREFIX = "scheduler."
DAY = 86_400_000.0  # in milliseconds, as all below
SHORTEST, LONGEST = 50.0, LONGEST_INTERVAL * 1000
LONGEST_TEXT = 40  # characters; what is longer is no number
LONGEST_SHOWN = 60
MOST_UNKNOWN = 20  # keys that are named, each with a suggestion; of the others it is said how many there are

SWITCHES = {"true": 1.0, "on": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "off": 0.0, "no": 0.0, "0": 0.0}
UNITS = {"": 1.0, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0, "d": DAY}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)", re.ASCII)


class SettingError(ValueError):
    """There is no such setting, or it cannot be set to that. The message says what was found and what was expected."""


class Sort(StrEnum):
    """What a setting is."""

    SWITCH = "switch"
    COUNT = "count"
    RATE = "rate"  # a second
    DURATION = "duration"


EXPECTED: Mapping[Sort, str] = {
    Sort.SWITCH: "true or false (also on, off, yes, no, 1, 0)",
    Sort.COUNT: "a whole number from {least} to {most}",
    Sort.RATE: "a number from {least} to {most}",
    Sort.DURATION: "milliseconds from {least} to {most} (also written like 200ms, 2s, 1.5 s or 1m)",
}


class PollingSetting(NamedTuple):
    """A setting as people see it."""

    key: str
    text: str  # canonical, as it is now
    default: str  # canonical
    meaning: str
    set: bool  # whether somebody set it


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """A setting that there is. Durations are in milliseconds; a switch is 1 or 0."""

    key: str
    sort: Sort
    default: float
    meaning: str  # one sentence
    least: float = 0.0
    most: float = 1.0
    zero: bool = False  # whether 0 is allowed too, though it is below the least
    alias: str = ""  # another key that means the same
    follows: str = ""  # the key of another setting of the same default, whose value this one has unless it is set

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys under which it may be stored; if there are two, the first one counts."""
        return (self.key, self.alias) if self.alias else (self.key,)

    @property
    def expected(self) -> str:
        """What it may be set to, in words."""
        bounds = EXPECTED[self.sort].format(least=_plain(self.least), most=_plain(self.most))
        return f"0, or {bounds}" if self.zero else bounds

    def read(self, text: str, key: str) -> float:
        """The number that the text under a key is. Raises SettingError."""
        number = None if len(text) > LONGEST_TEXT else self._number(text.strip().lower())
        if number is None or not (self.least <= number <= self.most or (self.zero and number == 0)):
            raise SettingError(f"{key} is {_shown(text)}, expected {self.expected}")
        return round(number, 3)

    def written(self, number: float) -> str:
        """The canonical text of a number."""
        if self.sort is Sort.SWITCH:
            return "true" if number else "false"
        return _plain(number)

    def _number(self, text: str) -> float | None:
        if self.sort is Sort.SWITCH:
            return SWITCHES.get(text)
        found = _NUMBER.fullmatch(text)
        if found is None:
            return None
        unit = UNITS.get(found[2]) if self.sort is Sort.DURATION or not found[2] else None
        if unit is None:
            return None
        number = float(found[1]) * unit
        return None if self.sort is Sort.COUNT and number % 1 else number


@dataclass(frozen=True, slots=True)
class PollingSettings:
    """What is in force. Times are in seconds."""

    enabled: bool = True
    concurrency: int = 2  # requests in flight
    burst: int = 10
    jitter: float = 0.15
    full: float = 10.0  # between two discoveries
    lease: float = 30.0  # of an acceleration
    budget: float = 0.0  # requests a second, of all adaptive targets together; 0 if none is adaptive
    fastest: float = 1.0  # of an adaptive target
    slowest: float = 3600.0
    usual: Mapping[str, float] = field(default_factory=dict)  # by kind; 0 if it is switched off
    active: Mapping[str, float] = field(default_factory=dict)  # by kind, of those that can be; 0 for no acceleration


OFF = PollingSettings(enabled=False)  # of those who have not been told any

ENABLED, CONCURRENCY, BURST = f"{PREFIX}enabled", f"{PREFIX}concurrency", f"{PREFIX}burst"
JITTER, FULL, LEASE = f"{PREFIX}jitterMs", f"{PREFIX}fullIntervalMs", f"{PREFIX}leaseMs"
BUDGET, FASTEST, SLOWEST = f"{PREFIX}adaptiveBudget", f"{PREFIX}adaptiveMinMs", f"{PREFIX}adaptiveMaxMs"


def _in_general(settings: PollingSettings) -> dict[str, float]:
    return {
        ENABLED: float(settings.enabled),
        CONCURRENCY: settings.concurrency,
        BURST: settings.burst,
        JITTER: _milliseconds(settings.jitter),
        FULL: _milliseconds(settings.full),
        LEASE: _milliseconds(settings.lease),
        BUDGET: settings.budget,
        FASTEST: _milliseconds(settings.fastest),
        SLOWEST: _milliseconds(settings.slowest),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


_DEFAULT = _in_general(PollingSettings())


def _general(key: str, sort: Sort, bounds: tuple[float, float], meaning: str, *, zero: bool = False) -> KnownSetting:
    return KnownSetting(key, sort, _DEFAULT[key], meaning, *bounds, zero=zero)


GENERAL: tuple[KnownSetting, ...] = (
    _general(ENABLED, Sort.SWITCH, (0, 1), "Whether anything is polled at all."),
    _general(CONCURRENCY, Sort.COUNT, (1, 1000), "How many requests may be under way at once, beside what is live."),
    _general(BURST, Sort.COUNT, (1, 100_000), "How many requests may begin within 200 ms, beside what is live."),
    _general(JITTER, Sort.DURATION, (0, 60_000), "By how much, at most, a run is moved at random."),
    _general(FULL, Sort.DURATION, (SHORTEST, LONGEST), "How often to look for what there is to poll."),
    _general(LEASE, Sort.DURATION, (1000, DAY), "How long a target stays accelerated unless that is renewed."),
    _general(
        BUDGET, Sort.RATE, (0.001, 1e6), "How many requests a second all adaptive targets share; 0 for none.", zero=True
    ),
    _general(FASTEST, Sort.DURATION, (SHORTEST, LONGEST), "The shortest interval of an adaptive target."),
    _general(SLOWEST, Sort.DURATION, (SHORTEST, LONGEST), "The longest interval of an adaptive target."),
)


def _usual(kind: PolledKind) -> KnownSetting:
    """The setting of a kind's interval."""
    while_ = "" if kind.active_seconds is None else " while it is not active"
    return KnownSetting(
        key=f"{PREFIX}{kind.name}{'Ms' if kind.active_seconds is None else 'IdleMs'}",
        sort=Sort.DURATION,
        default=_DEFAULT[FULL] if kind.whole else max(SHORTEST, _milliseconds(kind.seconds)),
        meaning=f"How often {kind.name} is asked for{while_}; 0 switches it off.",
        least=SHORTEST,
        most=LONGEST,
        zero=True,
        alias=f"{PREFIX}{kind.name}IntervalMs",
        follows=FULL if kind.whole else "",
    )


def _active(kind: PolledKind, seconds: float) -> KnownSetting:
    """The setting of a kind's interval while it is active."""
    return KnownSetting(
        key=f"{PREFIX}{kind.name}ActiveMs",
        sort=Sort.DURATION,
        default=max(SHORTEST, _milliseconds(seconds)),
        meaning=f"How often {kind.name} is asked for while it is active; 0 for no more often than usual.",
        least=SHORTEST,
        most=LONGEST,
        zero=True,
    )


class Keys:
    """The settings that there are for a source with these kinds. Raises ValueError for kinds whose keys are taken."""

    def __init__(self, kinds: Sequence[PolledKind]) -> None:
        self._usual = {kind.name: _usual(kind) for kind in kinds}
        self._active = {
            kind.name: _active(kind, kind.active_seconds) for kind in kinds if kind.active_seconds is not None
        }
        of_kinds = (each[kind.name] for kind in kinds for each in (self._usual, self._active) if kind.name in each)
        self.entries: tuple[KnownSetting, ...] = (*GENERAL, *of_kinds)
        self._by_key: dict[str, KnownSetting] = {}
        for entry in self.entries:
            self._add(entry)

    def __repr__(self) -> str:
        return f"<Keys: {len(self.entries)} settings, {len(self._usual)} kinds>"

    def spellings(self, key: str) -> tuple[str, ...]:
        """All keys under which the same setting may be stored, the canonical one first. Raises SettingError."""
        return self._entry(key).keys

    def checked(self, key: str, text: str) -> tuple[str, str]:
        """The canonical key and text. Raises SettingError."""
        entry = self._entry(key)
        return entry.key, entry.written(entry.read(text, key))

    def read(
        self, texts: Mapping[str, str], before: PollingSettings | None = None
    ) -> tuple[PollingSettings, tuple[str, ...]]:
        """The settings that texts by key say, and what is wrong with these, in words. Never raises.

        Where a text cannot be used, the value is that of `before`, or the default. Keys of others are left alone.
        """
        kept = {} if before is None else self._numbers(before)
        found, problems = self._found(texts)
        found |= {key: kept[key] for key in problems if key in kept}
        numbers = {each.key: found.get(each.key, found.get(each.follows, each.default)) for each in self.entries}
        disorder = _put_in_order(numbers, _DEFAULT | kept)
        said = (f"{each}; in force is {self._by_key[key].written(numbers[key])}" for key, each in problems.items())
        return self._settings(numbers), (*said, *disorder, *self._unused(texts))

    def listed(self, texts: Mapping[str, str], before: PollingSettings | None = None) -> tuple[PollingSetting, ...]:
        """All settings as they are if texts by key say so, and `before` was in force."""
        numbers = self._numbers(self.read(texts, before)[0])
        return tuple(
            PollingSetting(
                key=entry.key,
                text=entry.written(numbers[entry.key]),
                default=entry.written(numbers.get(entry.follows, entry.default)),
                meaning=entry.meaning,
                set=any(key in texts for key in entry.keys),
            )
            for entry in self.entries
        )

    def _add(self, entry: KnownSetting) -> None:
        for key in entry.keys:
            if key in self._by_key:
                by = self._by_key[key].key
                raise ValueError(f"kinds: the key {_shown(key)} of one is taken by {_shown(by)}, expected other names")
            self._by_key[key] = entry

    def _entry(self, key: str) -> KnownSetting:
        if key not in self._by_key:
            keys = ", ".join(entry.key for entry in self.entries)
            raise SettingError(f"{_shown(key)} is no setting, {self._suggestion(key) or f'expected one of {keys}'}")
        return self._by_key[key]

    def _suggestion(self, key: str) -> str:
        """Which key may have been meant: also one in other case, or without the part that all have."""
        names = {each.removeprefix(PREFIX).lower(): entry.key for each, entry in self._by_key.items()}
        name = key[: 2 * LONGEST_SHOWN].strip().lower().removeprefix(PREFIX)
        near = get_close_matches(name, names, n=1, cutoff=0.7)
        return f"did you mean {names[near[0]]}?" if near else ""

    def _found(self, texts: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
        """By key: the numbers that texts say, and what is wrong with those that say none."""
        numbers: dict[str, float] = {}
        problems: dict[str, str] = {}
        for entry in self.entries:
            key = next((key for key in entry.keys if key in texts), None)
            if key is None:
                continue
            try:
                numbers[entry.key] = entry.read(texts[key], key)
            except SettingError as error:
                problems[entry.key] = str(error)
        return numbers, problems

    def _unused(self, texts: Mapping[str, str]) -> Iterator[str]:
        """What is wrong with keys that say nothing."""
        for entry in self.entries:
            if entry.alias and entry.key in texts and entry.alias in texts:
                yield f"{entry.alias} is set beside {entry.key}, which means the same; in force is the latter"
        unknown = [key for key in texts if key[: len(PREFIX)].lower() == PREFIX and key not in self._by_key]
        for key in unknown[:MOST_UNKNOWN]:
            suggestion = self._suggestion(key)
            yield f"{_shown(key)} is no setting and says nothing{suggestion and f'; {suggestion}'}"
        if len(unknown) > MOST_UNKNOWN:
            yield f"{len(unknown) - MOST_UNKNOWN} more keys that begin with {PREFIX} are no settings"

    def _numbers(self, settings: PollingSettings) -> dict[str, float]:
        """By key, as far as the settings have them."""
        numbers = _in_general(settings)
        for entries, seconds in ((self._usual, settings.usual), (self._active, settings.active)):
            numbers |= {entries[kind].key: _milliseconds(seconds[kind]) for kind in entries if kind in seconds}
        return numbers

    def _settings(self, numbers: Mapping[str, float]) -> PollingSettings:
        return PollingSettings(
            enabled=numbers[ENABLED] > 0,
            concurrency=int(numbers[CONCURRENCY]),
            burst=int(numbers[BURST]),
            jitter=numbers[JITTER] / 1000,
            full=numbers[FULL] / 1000,
            lease=numbers[LEASE] / 1000,
            budget=numbers[BUDGET],
            fastest=numbers[FASTEST] / 1000,
            slowest=numbers[SLOWEST] / 1000,
            usual={kind: numbers[entry.key] / 1000 for kind, entry in self._usual.items()},
            active={kind: numbers[entry.key] / 1000 for kind, entry in self._active.items()},
        )


def _put_in_order(numbers: dict[str, float], kept: Mapping[str, float]) -> list[str]:
    """See that the shortest interval is not longer than the longest; if it is, both are as they were."""
    fastest, slowest = numbers[FASTEST], numbers[SLOWEST]
    if fastest <= slowest:
        return []
    numbers |= {key: kept[key] for key in (FASTEST, SLOWEST)}
    found = f"{FASTEST} is {_plain(fastest)} and {SLOWEST} is {_plain(slowest)}"
    in_force = f"in force are {_plain(kept[FASTEST])} and {_plain(kept[SLOWEST])}"
    return [f"{found}, expected the first not to be longer than the second; {in_force}"]


def _plain(number: float) -> str:
    """A number with as many decimals as it needs, at most three."""
    return f"{number:.3f}".rstrip("0").rstrip(".")


def _shown(text: str) -> str:
    """A text as it can be shown: short, and nothing in it that a screen would obey."""
    return repr(text) if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]!r}… ({len(text)} characters)"
