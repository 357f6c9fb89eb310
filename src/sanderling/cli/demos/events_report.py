"""The report of the demo of events: what was said hour by hour, what failed, and how each project fares.

One kind of plot draws all of it: a line with a name, a bar of coloured parts, and numbers. *Plain* is for what is no
terminal or has no colours: letters that everything can take, and no styles.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from itertools import accumulate
from math import floor
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from sanderling.events.taxonomy import ACTIONS, ErrorAction
from sanderling.outcome import Category
from sanderling.stores.analytics import ErrorFilter, PostFilter, PostRow
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.words import count, printable

HOUR = 3600.0
PAGE = 200  # rows that are read at a time: with texts of 100,000 characters, some 20 MB
LABELS = ("positive", "neutral", "negative")
RISKY = frozenset({"HIGH", "CRITICAL"})
NARROWEST, WIDEST = 60, 100  # columns
NAME = 14  # columns
# From the left: what is bad begins at the straight line, and so can be compared.
STACK = ("negative", "neutral", "positive")
COLOURS = {"positive": "green", "neutral": "bright_black", "negative": "red", "errors": "yellow"}
LETTERS = {"positive": "+", "neutral": ".", "negative": "#", "errors": "x"}
FULL = "█"
# What the actions of the taxonomy come to, in few enough words for a narrow window.
DONE = {
    ErrorAction.RETRY: "fetch again, more slowly",
    ErrorAction.RETRY_THEN_ALERT: "fetch again, else alert",
    ErrorAction.SKIP: "it is gone: leave it out",
    ErrorAction.METADATA_ONLY: "text is there, media not",
    ErrorAction.ALERT: "repair a crawler, or us",
    ErrorAction.INVESTIGATE: "somebody should look",
}
FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


class HourMood(NamedTuple):
    """An hour: posts by how they were meant, and items that are no posts."""

    at: float  # Unix seconds at which it begins
    positive: int = 0
    neutral: int = 0
    negative: int = 0
    errors: int = 0


class ProjectMood(NamedTuple):
    """How one project fares."""

    name: str
    posts: int
    positive: int
    neutral: int
    negative: int
    score: float  # from -1 to 1: the mean of those that were judged
    risky: int  # posts whose risk is high or critical


def judged(of: HourMood | ProjectMood) -> int:
    """Posts of which it is known how they were meant."""
    return of.positive + of.neutral + of.negative


def negative_share(of: HourMood | ProjectMood) -> float:
    """Of these the negative ones, from 0 to 1."""
    return of.negative / judged(of) if judged(of) else 0.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """All that a report tells. An hour follows the other, also where nothing came."""

    hours: tuple[HourMood, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict)  # of errors
    projects: tuple[ProjectMood, ...] = ()
    unread: int = 0  # posts that nobody judged: advertisements, and texts that are too short

    @property
    def posts(self) -> int:
        """All posts, judged or not."""
        return sum(each.posts for each in self.projects)

    @property
    def errors(self) -> int:
        """All errors."""
        return sum(self.categories.values())


async def gather(store: AnalyticsStore, projects: Mapping[str, str], first: float, hours: int) -> Numbers:
    """The numbers of so many hours, read page by page; `projects` are names by id, and "" is what belongs to nobody.

    What was crawled before the first hour or after the last counts as of that. Raises AnalyticsError.
    """
    tallies = [Counter[str]() for _ in range(max(1, hours))]
    found, categories, unread = list[ProjectMood](), Counter[str](), 0

    def hour(at: float) -> Counter[str]:
        return tallies[max(0, min(floor((at - first) / HOUR), len(tallies) - 1))]

    for identity, name in projects.items():
        labels, posts, risky, score = Counter[str](), 0, 0, 0.0
        async for row in _posts(store, identity):
            posts += 1
            risky += row.risk_level in RISKY
            if row.skipped:
                unread += 1
                continue
            said = row.overall_sentiment.lower()
            label = said if said in LABELS else "neutral"
            labels[label] += 1
            hour(row.analyzed_at if row.crawled_at is None else row.crawled_at)[label] += 1
            score += row.overall_sentiment_score
        mean = score / labels.total() if labels else 0.0
        positive, neutral, negative = (labels[label] for label in LABELS)
        found.append(ProjectMood(name, posts, positive, neutral, negative, mean, risky))
    offset = 0
    while page := (await store.errors(ErrorFilter(), offset=offset, most=PAGE))[0]:
        offset += len(page)
        for each in page:
            hour(each.row.created_at)["errors"] += 1
            categories[each.row.error_category] += 1
    made = tuple(HourMood(first + place * HOUR, **counts) for place, counts in enumerate(tallies))
    return Numbers(made, dict(categories.most_common()), tuple(found), unread)


async def _posts(store: AnalyticsStore, project: str) -> AsyncIterator[PostRow]:
    chosen, offset = PostFilter(project_id=project), 0
    while page := (await store.posts(chosen, sort="analyzed_at", descending=False, offset=offset, most=PAGE)).posts:
        offset += len(page)
        for each in page:
            yield each.row


@dataclass(frozen=True, slots=True)
class EventsReport:
    """Draws itself into so many columns."""

    numbers: Numbers

    def drawn(self, width: int, *, plain: bool = False) -> Iterator[Text]:
        """The lines of it."""
        width = max(NARROWEST, min(width, WIDEST))
        for heading, rows in (
            ("How people felt, hour by hour (UTC): posts, negative, errors", self._hours()),
            ("What was unavailable, and what is done about it", self._failed()),
            ("What was said about whom: posts, negative, at risk", self._projects()),
        ):
            yield Text.assemble((heading, "" if plain else "bold"))
            most = max((sum(parts.values()) for _, parts, _ in rows), default=0)
            room = width - NAME - 2 - max((len(said) for _, _, said in rows), default=0)
            for name, parts, said in rows:
                yield Text.assemble(cell(name, plain=plain), " ", bar(parts, most, room, plain=plain), " ", said)
            yield Text()
        key = _key(self.numbers, plain=plain)
        key.truncate(width)
        yield key

    def _hours(self) -> list[tuple[str, dict[str, int], str]]:
        return [
            (
                _clock(each.at),
                {name: getattr(each, name) for name in (*STACK, "errors")},
                f"{short(judged(each)):>6}{negative_share(each):>5.0%}{short(each.errors):>7}",
            )
            for each in self.numbers.hours
        ]

    def _failed(self) -> list[tuple[str, dict[str, int], str]]:
        ordered = sorted(self.numbers.categories.items(), key=lambda each: (-each[1], each[0]))
        total = self.numbers.errors
        return [
            (name, {"errors": number}, f"{short(number):>6} {number / total:>4.0%}  {action_of(name)}")
            for name, number in ordered
        ]

    def _projects(self) -> list[tuple[str, dict[str, int], str]]:
        return [
            (
                each.name,
                {name: getattr(each, name) for name in STACK},
                f"{short(each.posts):>6}{negative_share(each):>5.0%}{short(each.risky):>7}",
            )
            for each in self.numbers.projects
        ]


def action_of(category: str) -> str:
    """What is done about errors of a category."""
    known = category in {each.value for each in Category}
    return DONE[ACTIONS[Category(category) if known else Category.GENERIC]]


def short(number: float) -> str:
    """A number in at most six letters, however large."""
    if number < 10_000:
        return f"{number:,.0f}"
    for unit, factor in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if number < 999.5 * factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.0e}"


def bar(parts: Mapping[str, int], most: int, width: int, *, plain: bool) -> Text:
    """Parts one after the other, all `width` wide if they are `most` together. Something is never nothing."""
    ends = [round(total * width / most) if most else 0 for total in accumulate(parts.values())]
    if any(parts.values()) and not ends[-1]:
        largest = max(range(len(ends)), key=list(parts.values()).__getitem__)
        ends[largest:] = [1] * (len(ends) - largest)
    text = Text()
    for name, start, end in zip(parts, [0, *ends], ends, strict=False):
        text.append((LETTERS[name] if plain else FULL) * (end - start), None if plain else COLOURS[name])
    return text.append(" " * (width - len(text)))


def cell(text: str, *, plain: bool) -> str:
    """A stranger's text in exactly so many columns; where nothing else can be shown, without marks on its letters."""
    text = printable(text)
    if plain:
        bare = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
        text = bare.replace("đ", "d").replace("Đ", "D").encode("ascii", "replace").decode()
    if cell_len(text) > NAME:
        return set_cell_size(text, NAME - 1) + ("~" if plain else "…")
    return " " * (NAME - cell_len(text)) + text


def _key(numbers: Numbers, *, plain: bool) -> Text:
    """What the colours mean, with the sums."""
    line = Text(" " * NAME)
    for name in (*LABELS, "errors"):
        mark = LETTERS[name] if plain else FULL
        total = sum(getattr(each, name) for each in numbers.hours)
        line.append(" ").append(mark, None if plain else COLOURS[name]).append(f" {name} {short(total)}")
    return line.append(f", {short(numbers.unread)} not judged" if numbers.unread else "")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def describe_extremes(numbers: Numbers) -> Iterator[str]:
    """When people were least pleased and when most failed, if they ever were, or anything did."""
    worst = max((each for each in numbers.hours if each.negative), key=negative_share, default=None)
    if worst is not None:
        share = f"{negative_share(worst):.0%} of {count(judged(worst), 'post')}"
        yield f"Most negative from {_clock(worst.at)} to {_clock(worst.at + HOUR)}: {share}."
    worst = max((each for each in numbers.hours if each.errors), key=lambda each: each.errors, default=None)
    if worst is not None:
        items = judged(worst) + worst.errors
        share = f"{worst.errors / items:.0%} of {count(items, 'item')}"
        yield f"Most errors from {_clock(worst.at)} to {_clock(worst.at + HOUR)}: {share}."


def picture(report: EventsReport, title: str, said: Sequence[str]) -> str:
    """The report as the text of an SVG file that needs nothing else."""
    console = Console(record=True, width=WIDEST, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in (*map(Text, said), Text(), *report.drawn(WIDEST)):
        console.print(line, soft_wrap=True, highlight=False)
    # Whoever looks at it has some font of fixed width, and need not fetch one.
    return FONT.sub("", console.export_svg(title=title))
