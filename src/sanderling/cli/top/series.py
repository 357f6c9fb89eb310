"""The series that `sanderling top` plots of a system, and how their values are said."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sanderling.cli.report_words import rate
from sanderling.web.house_facts import System
from sanderling.words import duration


class Series(NamedTuple):
    """A line of a plot."""

    name: str  # of its points
    label: str
    style: str
    said: Callable[[float], str]


def _a_second(number: float) -> str:
    return f"{rate(number)}/s"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


COMMON = (
    Series("asked", "asked", "cyan", _a_second),
    Series("kept", "kept", "green", _a_second),
    Series("failed", "failed", "red", _a_second),
)
OWN: Mapping[str, Sequence[Series]] = {
    "sequence": (Series("lag", "lag", "yellow", duration), Series("workers", "workers", "magenta", _whole)),
    "polling": (Series("late_p99", "late", "yellow", duration),),
    "events": (Series("posts", "posts", "green", _a_second), Series("errors", "errors", "yellow", _a_second)),
}


def series_of(system: System) -> tuple[Series, ...]:
    """The lines that a system has."""
    return (*COMMON, *OWN.get(system.system, ()))
