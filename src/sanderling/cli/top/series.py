"""The series that `sanderling top` plots of a system, and how their values are said."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sanderling.cli.report_words import rate
from sanderling.web.house_facts import System
from sanderling.words import duration


class TopSeries(NamedTuple):
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
    TopSeries("asked", "asked", "cyan", _a_second),
    TopSeries("kept", "kept", "green", _a_second),
    TopSeries("failed", "failed", "red", _a_second),
)
OWN: Mapping[str, Sequence[TopSeries]] = {
    "sequence": (TopSeries("lag", "lag", "yellow", duration), TopSeries("workers", "workers", "magenta", _whole)),
    "polling": (TopSeries("late_p99", "late", "yellow", duration),),
    "events": (TopSeries("posts", "posts", "green", _a_second), TopSeries("errors", "errors", "yellow", _a_second)),
}


def series_of(system: System) -> tuple[TopSeries, ...]:
    """The lines that a system has."""
    return (*COMMON, *OWN.get(system.system, ()))
