"""The report: all that is shown of a system, as plain data.

A system makes one every second. Screen, `status`, `--json`, `status.json`, metrics and dashboard show the same report;
none of them computes anything or knows a system's name. What a system alone has are its facts:

    Report(system="pages", doing="crawling 3 hosts", facts=(count("stored", 51, "Pages stored."), …))
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from sanderling.files import FolderError, lock_holder, read_small
from sanderling.redact import redact

STATUS = "status.json"  # the file in a folder that holds the last report
LONGEST_TEXT = 500  # characters: reports are read every second, by many
LARGEST_STATUS = 1 << 20  # bytes

Value = int | float | str | Mapping[str, int | float] | None


class Kind(StrEnum):
    """What a fact's value is."""

    COUNT = "count"  # only grows while the process runs
    GAUGE = "gauge"
    SECONDS = "seconds"
    BYTES = "bytes"
    TEXT = "text"
    HISTOGRAM = "histogram"  # by upper bound how many were at most as large, and their `sum`


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure: a line of the screen, a field of --json, a metric and a row of the manual."""

    kind: Kind
    name: str  # in words joined by _
    value: Value  # None: unknown; a table: one value for each `by`
    help: str
    by: str = ""  # what the names in a table of values are: host, code; of two joined by a comma: platform,status
    metric: str = ""  # its whole name in Prometheus, where a seed gives one
    more: bool = False  # left out on screens
    rate: float | None = None  # of a count: its growth in a second lately, added by the shell


# How systems write facts: count("stored", 51, "Pages stored.").
count = partial(Fact, Kind.COUNT)
gauge = partial(Fact, Kind.GAUGE)
seconds = partial(Fact, Kind.SECONDS)
size = partial(Fact, Kind.BYTES)
text = partial(Fact, Kind.TEXT)
histogram = partial(Fact, Kind.HISTOGRAM, more=True)


_DURATIONS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seed 002's


class Histogram:
    """Durations, as Prometheus counts them: the value of a fact."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_DURATIONS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[sum(seconds > bound for bound in _DURATIONS)] += 1
        self._sum += seconds

    def value(self) -> dict[str, float]:
        """How many took at most so long, and how long all took."""
        names = [*(f"{bound:g}" for bound in _DURATIONS), "+Inf"]
        sums = {name: float(sum(self._counts[: place + 1])) for place, name in enumerate(names)}
        return {**sums, "sum": self._sum}


class HostReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One host. Rates are requests a second."""

    host: str
    rate: float = 0.0  # sent lately
    allowed: float | None = None  # by the limiter
    waiting: int = 0  # items
    in_flight: int = 0
    requests: int = 0
    refused: int = 0  # of those, by 429 or Retry-After
    failed: int = 0
    latency: float | None = None  # seconds, of most responses
    state: str = "ok"  # or slowed, down, set aside, blocked, done
    why: str = ""  # it gets this rate, in one sentence


class Hint(msgspec.Struct, frozen=True):
    """A command to type next, without the program's name, and what it does."""

    why: str
    words: tuple[str, ...]


class RunState(StrEnum):
    """What a run is at."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    ENDED = "ended"
    KILLED = "killed"  # found by who reads the status: no process holds the folder


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a system does and has done. The shell fills in what follows `hints`."""

    system: str
    doing: str  # in some words: "crawling 3 hosts"
    facts: tuple[Fact, ...] = ()
    progress: tuple[int, int] | None = None  # done, and the whole as far as it is known
    hosts: tuple[HostReport, ...] = ()  # those that matter most, at most 20
    troubles: tuple[str, ...] = ()  # what is wrong, a sentence each
    hints: tuple[Hint, ...] = ()

    folder: str = ""
    state: RunState = RunState.RUNNING
    exit: int | None = None  # the exit code, at the end
    pid: int = 0
    started: float = 0.0  # seconds since 1970
    wall: float = 0.0  # when this was so

    def to_json(self) -> bytes:
        """The report as JSON, in one line."""
        return msgspec.json.encode(self) + b"\n"


def clean_report(report: Report) -> Report:
    """The report without secrets, control characters and overlong texts, whoever wrote them."""
    return msgspec.convert(_clean(msgspec.to_builtins(report)), Report)


def _clean(value: Any) -> Any:  # noqa: ANN401 - what JSON can hold
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {_clean(name): _clean(each) for name, each in value.items()}
        case list() | tuple():
            return [_clean(each) for each in value]
    return value


def clean_text(value: str) -> str:
    """A text for screens: no secret in it, nothing that moves a cursor, and not too long."""
    short = redact(value[: 4 * LONGEST_TEXT])
    if not short.isprintable():
        short = "".join(letter if letter.isprintable() else " " for letter in short)
    return short if len(short) <= LONGEST_TEXT else short[: LONGEST_TEXT - 1] + "…"


def read_status(folder: Path) -> Report | None:
    """The last report of a folder; None if it has none yet."""
    path = folder / STATUS
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(read_small(path, LARGEST_STATUS), type=Report)
    except msgspec.DecodeError as error:
        raise FolderError(f"{path} is damaged: {error}", "remove it; the next run writes it anew") from None


def current_report(folder: Path) -> Report | None:
    """The last report of a folder; a process that does not hold the folder any more, and did not say so, was killed."""
    report = read_status(folder)
    if report is None or report.state is RunState.ENDED or lock_holder(folder) is not None:
        return report
    return msgspec.structs.replace(report, state=RunState.KILLED, doing="nothing is lost; run the same command again")
