"""A report of `events` for a terminal: plots made of numbers alone, as wide as they may be.

*Plain* is for what is no terminal or has no colours: letters that everything can take, and no styles.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from sanderling.cli.events.numbers import HOUR, LABELS, Hour, Numbers, Project
from sanderling.events.taxonomy import ACTIONS, ErrorAction
from sanderling.outcome import Category
from sanderling.words import count, printable

NARROWEST, WIDEST = 60, 120  # columns
HEIGHT, ERROR_HEIGHT = 8, 2  # rows of the plots
AXIS = 8  # columns before the plots
MOST_COLUMNS = 48
BLOCKS = " ▁▂▃▄▅▆▇█"
FULL, EIGHTHS = "█", 8
# From the bottom up: what is bad has the straight baseline, and so can be compared.
STACK = ("negative", "neutral", "positive")
COLOURS = {"positive": "green", "neutral": "bright_black", "negative": "red", "errors": "yellow"}
LETTERS = {"positive": "+", "neutral": ".", "negative": "#", "errors": "x"}
NICE = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
# What the actions of the taxonomy come to, in few enough words for a narrow window.
DONE = {
    ErrorAction.RETRY: "fetch again, more slowly",
    ErrorAction.RETRY_THEN_ALERT: "fetch again, else alert",
    ErrorAction.SKIP: "it is gone: leave it out",
    ErrorAction.METADATA_ONLY: "text is there, media not",
    ErrorAction.ALERT: "repair a crawler, or us",
    ErrorAction.INVESTIGATE: "somebody should look",
}
NAME, COUNT, SHARE, ACTION = 14, 8, 6, 25  # columns of the tables


def action_of(category: str) -> str:
    """What is done about errors of a category."""
    known = category in {each.value for each in Category}
    return DONE[ACTIONS[Category(category) if known else Category.GENERIC]]


# Numbers.


def short(number: float) -> str:
    """A number in at most six letters, however large."""
    if number < 10_000:
        return f"{number:,.0f}"
    for unit, factor in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if number < 999.5 * factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.0e}"


def nice(most: int) -> int:
    """Where an axis ends on which there must be room for so many: at a number that people like."""
    if most < 10:
        return max(1, most)
    # In whole numbers, since the largest do not fit into others.
    power = int("1" + "0" * (len(str(most)) - 2))
    return next(end for end in (each * power for each in NICE) if end >= most)


def together(hours: Sequence[Hour], most: int) -> tuple[int, list[Hour]]:
    """So many hours a column, and the columns, of which there may be so many."""
    span = 1
    for span in (1, 2, 3, 4, 6, 8, 12, 24):
        if len(hours) <= span * most:
            break
    while len(hours) > span * most:
        span += 24
    parts = (hours[place : place + span] for place in range(0, len(hours), span))
    return span, [Hour(some[0].at, *(sum(counts) for counts in list(zip(*some, strict=True))[1:])) for some in parts]


def levels(parts: Sequence[int], end: int, steps: int) -> list[int]:
    """How high each part of a column ends, all together `steps` high if they are `end`. Something is never nothing."""
    found, total = list[int](), 0
    for part in parts:
        total += part
        found.append(round(total * steps / end) if end else 0)
    if total and not found[-1]:
        largest = max(range(len(parts)), key=lambda place: parts[place])
        found = [int(place >= largest) for place in range(len(parts))]
    return found


def shared(parts: Sequence[int], width: int) -> list[int]:
    """The width shared out to the parts, none of it left over unless there are none."""
    ends = levels(parts, sum(parts), width)
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]


# The report.


@dataclass(frozen=True, slots=True)
class Report:
    """Draws itself into so many columns."""

    numbers: Numbers

    def drawn(self, width: int, *, plain: bool = False) -> Iterator[Text]:
        """The lines of it."""
        width = max(NARROWEST, min(width, WIDEST))
        brush = Plot(plain=plain)
        for each in (self._hours(width, brush), self._failed(width, brush), self._projects(width, brush)):
            yield from each
            yield Text()

    def _hours(self, width: int, brush: "Plot") -> Iterator[Text]:
        span, columns = together(self.numbers.hours, min(MOST_COLUMNS, width - AXIS))
        every = "hour by hour" if span == 1 else f"every {span} hours"
        yield brush.heading(f"How people felt, {every} (UTC)")
        if not columns:
            yield brush.dim("  nothing was said")
            return
        wide = (width - AXIS) // len(columns)
        yield from brush.stacked(columns, wide)
        yield from brush.strip([each.errors for each in columns], wide)
        yield brush.hours(columns, wide, span)
        yield Text()
        yield from brush.legend(self.numbers)

    def _failed(self, width: int, brush: "Plot") -> Iterator[Text]:
        categories, total = self.numbers.categories, self.numbers.errors
        yield brush.heading("What was not to be had, and what is done about it")
        if not total:
            yield brush.dim("  everything was")
        room = width - NAME - COUNT - SHARE - ACTION - 3
        most = max(categories.values(), default=0)
        for name, number in sorted(categories.items(), key=lambda each: (-each[1], each[0])):
            line = Text(brush.cell(name, NAME, right=True) + " ")
            line.append_text(brush.bar(number, most, room))
            line.append(f"{short(number):>{COUNT}}{number / total:>{SHARE}.0%}  ")
            yield line.append_text(brush.dim(action_of(name)))

    def _projects(self, width: int, brush: "Plot") -> Iterator[Text]:
        room = width - NAME - 2 * COUNT - 2 * (COUNT + 1) - 3
        yield brush.heading("What was said about whom")
        heads = (f"{'posts':>{COUNT}}", f"{'mean':>{COUNT}}", f"{'negative':>{COUNT + 1}}", f"{'at risk':>{COUNT + 1}}")
        yield brush.dim(" " * (NAME + 1 + room) + "".join(heads))
        for each in self.numbers.projects:
            line = Text(brush.cell(each.name, NAME, right=True) + " ")
            line.append_text(brush.shares(each, room))
            line.append(f"{short(each.posts):>{COUNT}}{each.score:>+{COUNT}.2f}{each.negative_share:>{COUNT + 1}.0%}")
            yield line.append(f"{short(each.risky):>{COUNT + 1}}", "" if brush.plain or not each.risky else "red")


@dataclass(frozen=True, slots=True)
class Plot:
    """How things are drawn: with blocks and colours, or plain."""

    plain: bool = False
    axis: int = AXIS  # columns before a plot

    def heading(self, text: str) -> Text:
        """What follows, in a few words."""
        return self._styled(text, "bold")

    def dim(self, text: str) -> Text:
        """What matters less."""
        return self._styled(text, "dim")

    def _styled(self, text: str, style: str) -> Text:
        """Of this text alone: what is appended has a style of its own."""
        return Text.assemble((text, "" if self.plain else style))

    def cell(self, text: str, width: int, *, right: bool = False) -> str:
        """A stranger's text in exactly so many columns."""
        text = unmarked(printable(text)) if self.plain else printable(text)
        if cell_len(text) > width:
            return set_cell_size(text, width - 1) + ("~" if self.plain else "…")
        space = " " * (width - cell_len(text))
        return space + text if right else text + space

    def bar(self, number: int, most: int, width: int) -> Text:
        """A number beside the largest."""
        steps = self._steps(width)
        (end,) = levels([number], most, steps)
        if self.plain:
            return Text((LETTERS["errors"] * end).ljust(width))
        return Text((FULL * (end // EIGHTHS) + self._rest(end)).ljust(width), COLOURS["errors"])

    def _steps(self, cells: int) -> int:
        return cells if self.plain else cells * EIGHTHS

    @staticmethod
    def _rest(end: int) -> str:
        """The last part of a bar, an eighth of a cell fine."""
        return " ▏▎▍▌▋▊▉"[end % EIGHTHS].strip()

    def shares(self, project: Project, width: int) -> Text:
        """How posts were meant, as parts of a bar."""
        counts = {"positive": project.positive, "neutral": project.neutral, "negative": project.negative}
        text = Text()
        for label, cells in zip(STACK, shared([counts[label] for label in STACK], width), strict=True):
            text.append((LETTERS[label] if self.plain else FULL) * cells, "" if self.plain else COLOURS[label])
        return text.append(" " * (width - len(text)))

    def stacked(self, columns: Sequence[Hour], wide: int, height: int = HEIGHT) -> Iterator[Text]:
        """Columns of posts, the highest row first, with an axis of counts."""
        end = nice(max((each.judged for each in columns), default=0))
        steps = self._steps(height)
        ends = [levels([getattr(each, label) for label in STACK], end, steps) for each in columns]
        halfway = short(end / 2) if end > 1 and not height % 2 else ""
        marks = {height // 2 - 1: halfway, height - 1: short(end)}
        for row in reversed(range(height)):
            line = self._axis(marks.get(row, ""))
            for column in ends:
                line.append_text(self._padded(self._stacked_cell(column, row), wide))
            yield line
        yield self._floor(len(columns) * wide)

    def _stacked_cell(self, ends: Sequence[int], row: int) -> tuple[str, str]:
        """The letter and the style of one cell of a column."""
        per = 1 if self.plain else EIGHTHS
        low = row * per
        inside = [max(0, min(end, low + per) - max(before, low)) for before, end in zip([0, *ends], ends, strict=False)]
        filled = sum(inside)
        if not filled:
            return " ", ""
        most = max(range(len(inside)), key=lambda place: inside[place])
        if self.plain:
            return LETTERS[STACK[most]], ""
        if filled < per:  # the top: a cell has two colours, and one of them is nothing
            return BLOCKS[filled], COLOURS[STACK[most]]
        below = next(place for place, cells in enumerate(inside) if cells)
        above = max(range(below + 1, len(inside)), key=lambda place: inside[place], default=below)
        if inside[below] == per:
            return FULL, COLOURS[STACK[below]]
        return BLOCKS[inside[below]], f"{COLOURS[STACK[below]]} on {COLOURS[STACK[above]]}"

    def strip(self, counts: Sequence[int], wide: int, height: int = ERROR_HEIGHT) -> Iterator[Text]:
        """Columns of errors, low ones."""
        end = nice(max(counts, default=0))
        steps, per = self._steps(height), 1 if self.plain else EIGHTHS
        ends = [levels([number], end, steps)[0] for number in counts]
        for row in reversed(range(height)):
            line = self._axis(short(end) if row else "errors")
            for column in ends:
                filled = max(0, min(per, column - row * per))
                letter = LETTERS["errors"] if self.plain and filled else BLOCKS[filled]
                line.append_text(self._padded((letter, "" if self.plain else COLOURS["errors"]), wide))
            yield line
        yield self._floor(len(counts) * wide)

    @staticmethod
    def _padded(cell: tuple[str, str], wide: int) -> Text:
        """A cell as wide as its column; a column that is wide enough leaves a gap to the next."""
        letter, style = cell
        gap = 1 if wide > 2 else 0
        return Text.assemble((letter * (wide - gap), style), " " * gap)

    def _axis(self, mark: str) -> Text:
        tick = "|" if self.plain else "┤" if mark[:1].isdigit() else "│"
        return self.dim(f"{mark:>{self.axis - 2}} {tick}")

    def _floor(self, width: int) -> Text:
        return self.dim(f"{'0':>{self.axis - 2}} {'+' if self.plain else '┼'}{('-' if self.plain else '─') * width}")

    def hours(self, columns: Sequence[Hour], wide: int, span: int) -> Text:
        """The axis of time: the hour of the day, or the day where a column is that long."""
        form = "%H" if span < 24 else "%m-%d"
        size = len(datetime.fromtimestamp(0, UTC).strftime(form))
        step = next(each for each in (1, 2, 3, 4, 6, 12, 24, 48) if each * wide >= size + 2 or each >= len(columns))
        labels = [label(each.at, form) if not place % step else "" for place, each in enumerate(columns)]
        line = "".join(each.ljust(wide) for each in labels) if size <= wide else _overlaid(labels, wide)
        return self.dim(" " * AXIS + line[: max(size, wide * len(columns))].rstrip())

    def legend(self, numbers: Numbers) -> Iterator[Text]:
        """What the colours mean, with the sums."""
        yield self.key({name: sum(getattr(each, name) for each in numbers.hours) for name in LABELS})
        if numbers.unread:
            yield self.dim(f"{' ' * self.axis}{short(numbers.unread)} more were too short, or advertisements")

    def key(self, counts: Mapping[str, int]) -> Text:
        """What the colours mean, with a number for each."""
        line = Text(" " * self.axis)
        for place, (name, number) in enumerate(counts.items()):
            mark = LETTERS[name] if self.plain else "■"
            line.append(" " if place else "").append(mark, "" if self.plain else COLOURS[name])
            line.append(f" {name} {short(number)}")
        return line


def _overlaid(labels: Sequence[str], wide: int) -> str:
    """Labels that are wider than their columns, over those of the next, which have none."""
    line = ""
    for place, each in enumerate(labels):
        line = line.ljust(place * wide) + each if each else line
    return line


def label(at: float, form: str) -> str:
    """A time on an axis."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return "?"


def unmarked(text: str) -> str:
    """The text without the marks on its letters, for what can take nothing else."""
    bare = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return bare.replace("đ", "d").replace("Đ", "D").encode("ascii", "replace").decode()


# In words.


def told(numbers: Numbers) -> Iterator[str]:
    """What stands out."""
    yield from filter(None, (most_negative(numbers), most_errors(numbers)))


def most_negative(numbers: Numbers) -> str:
    """When people were least pleased; empty if they always were."""
    if (worst := numbers.worst) is None:
        return ""
    return f"Most negative from {_between(worst)}: {worst.negative_share:.0%} of {count(worst.judged, 'post')}."


def most_errors(numbers: Numbers) -> str:
    """When most failed; empty if nothing did."""
    if (worst := numbers.roughest) is None:
        return ""
    return f"Most errors from {_between(worst)}: {worst.errors / worst.items:.0%} of {count(worst.items, 'item')}."


def _between(hour: Hour) -> str:
    return f"{label(hour.at, '%H:%M')} to {label(hour.at + HOUR, '%H:%M')}"
