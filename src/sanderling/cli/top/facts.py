"""What `sanderling top` shows of a system besides its flow: the series that its kind has, and what matters in it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from rich.text import Text

from sanderling.cli.report_words import rate
from sanderling.cli.top.plots import Share, bar
from sanderling.events.report import EventsFacts
from sanderling.jobs.report import JobFacts
from sanderling.pages.report import PagesFacts
from sanderling.polling.report import PollingFacts
from sanderling.repos.report import ReposFacts
from sanderling.sequence.report import SequenceFacts
from sanderling.web.house_facts import System
from sanderling.words import duration, printable

MOST = 4  # lines of what is recent, or comes next
MOODS = {"POSITIVE": ("█", "green"), "NEUTRAL": ("░", "bright_black"), "NEGATIVE": ("▓", "red")}


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


def sentiments(facts: msgspec.Struct) -> dict[str, int]:
    """How posts are meant, if the system knows of any."""
    return facts.sentiments if isinstance(facts, EventsFacts) and any(facts.sentiments.values()) else {}


def mood(counts: Mapping[str, int], width: int) -> Text:
    """How posts are meant: a bar, and the shares in words."""
    by_mood = {name: sum(n for each, n in counts.items() if each.upper() == name) for name in MOODS}
    whole = max(1, sum(by_mood.values()))
    said = ", ".join(f"{100 * by_mood[name] / whole:.0f} % {name.lower()}" for name in ("POSITIVE", "NEGATIVE"))
    text = bar([Share(by_mood[name], *drawn) for name, drawn in MOODS.items()], max(4, width - len(said) - 2))
    return text.append(f"  {said}")


def details(facts: msgspec.Struct) -> Iterator[tuple[str, str]]:
    """What matters in a system that is looked at alone: a name and a text each."""
    match facts:
        case SequenceFacts():
            yield "workers", f"{facts.workers:,}, {facts.strategy}: {facts.why}"
            for each in facts.decisions[-MOST:-1]:
                yield "before", f"{each.before:,} became {each.workers:,}: {each.why}"
            yield "answers", _counted(facts.answers)
        case PollingFacts():
            for live in facts.accelerated[:MOST]:
                yield "live", f"{live.kind} {live.id}, every {duration(live.interval)}"
            for change in facts.recent[-MOST:]:
                fields = f": {', '.join(change.fields)}" if change.fields else ""
                yield "changed", f"{change.table} {change.key}{fields}"
        case EventsFacts():
            yield "codes", _counted(facts.codes)
            yield "platforms", _counted(facts.platforms)
            for error in facts.recent[-MOST:]:
                yield "error", f"{error.platform}, {error.code}: {error.message}"
        case PagesFacts() | JobFacts():
            what = "URLs" if isinstance(facts, PagesFacts) else "requests"
            yield what, _counted({name: number for name, number in facts.counts.items() if number})
        case ReposFacts():
            yield "repos", _counted(facts.categories)


def _counted(counts: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{number:,} {printable(name).lower().replace('_', ' ')}" for name, number in counts.items()) or "-"
    )
