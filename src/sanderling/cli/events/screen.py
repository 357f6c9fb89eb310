"""What consuming looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import floor

from rich.console import Console
from rich.text import Text

from sanderling.cli.events.numbers import LABELS, Hour
from sanderling.cli.events.report import Plot
from sanderling.cli.events.words import (
    categories,
    codes,
    done,
    error,
    line,
    listed,
    messages,
    modes,
    pace,
    queue,
    sent,
    troubles,
)
from sanderling.cli.screen import Lines, Picture, ScreenOf, Window, labelled, suited
from sanderling.cli.strips import spread
from sanderling.events.status import EventsStatus
from sanderling.observe.alerts import Alert
from sanderling.words import clock_face, printable

NAME = 13  # columns of what a line is about
WIDEST, NARROWEST = 90, 8  # columns of the plot
HIGHEST, LOWEST = 8, 3  # rows of it
OTHER_LINES = 24  # of a whole picture, beside it
TALL = 30  # lines, from which on there is room for what matters less
CAPTION = "items, second by second"
MOST_RECENT, MOST_TROUBLES, MOST_ALERTS = 6, 3, 3
KINDS = (*LABELS, "errors")


Screen = ScreenOf[EventsStatus, Alert]


@dataclass(frozen=True, slots=True)
class View:
    """How the plot of a picture is drawn: what is said above it, and how many seconds a column stands for."""

    caption: Callable[[], str] = lambda: CAPTION
    column: float = 1.0


USUAL_VIEW = View()


def fitting(*, json: bool, logs: bool = False, view: View = USUAL_VIEW) -> Screen:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    return suited(partial(Terminal, view=view), Plain, json=json, logs=logs)


class Plain(Lines[EventsStatus, Alert]):
    """What is wrong when that changes, alerts, and a line now and then, to stderr; the summary to stdout."""

    def show(self, status: EventsStatus, /) -> None:
        """Print what is other than before, and now and then how it stands."""
        # At first nobody has asked the queue yet.
        wrong = self._changed(troubles(status)) if self._frames else ()
        self._say(status.seconds, wrong, line(status))

    def tell(self, alert: Alert, /) -> None:
        """Print it."""
        self.note(alerted(alert))


class Columns:
    """What came lately, by columns of so many seconds each: as many as may be drawn."""

    def __init__(self, column: float) -> None:
        self._column = column
        self._columns: deque[tuple[int, dict[str, int]]] = deque(maxlen=WIDEST)  # those in which something came
        self._seconds = 0.0
        self.counts: dict[str, int] = {}

    def add(self, status: EventsStatus) -> None:
        """Take in what came since the status before, as if it had come evenly."""
        counts = {label.lower(): number for label, number in status.sentiments.items()} | {"errors": status.errors}
        until = status.seconds / self._column
        since = max(self._seconds, until - WIDEST)
        found: dict[int, dict[str, int]] = {}
        for kind in KINDS:
            for place, number in spread(counts.get(kind, 0) - self.counts.get(kind, 0), since, until):
                found.setdefault(place, {})[kind] = number
        for place in sorted(found):
            self._put(place, found[place])
        self.counts, self._seconds = counts, until

    def _put(self, place: int, more: Mapping[str, int]) -> None:
        if not self._columns or self._columns[-1][0] < place:
            self._columns.append((place, dict.fromkeys(KINDS, 0)))
        column = self._columns[-1][1]
        for kind, number in more.items():
            column[kind] += number

    def last(self, width: int) -> list[Hour]:
        """The last ones, the current one at the end."""
        columns, end = dict(self._columns), floor(self._seconds)
        return [Hour(float(place), **columns.get(place, {})) for place in range(end - width + 1, end + 1)]


class Terminal(Picture[EventsStatus, Alert]):
    """How it stands, how posts are meant as they come, and the last errors."""

    def __init__(self, console: Console, view: View = USUAL_VIEW) -> None:
        super().__init__(console)
        self._view = view
        self._alerts: deque[str] = deque(maxlen=MOST_ALERTS)
        self._columns = Columns(view.column)

    def show(self, status: EventsStatus, /) -> None:
        """Draw it over the frame before."""
        self._columns.add(status)
        super().show(status)

    def tell(self, alert: Alert, /) -> None:
        """Keep it under the picture."""
        self._alerts.append(printable(alerted(alert)))

    def _lines(self, status: EventsStatus, window: Window) -> Iterator[Text]:
        above = list(self._picture(status, window.width, window.height))
        room = min(MOST_RECENT, window.left(len(above) + len(self._alerts) + 1))
        yield from (*above, *self._recent(status, room), Text())
        yield from (Text(each, "yellow") for each in self._alerts)

    def _picture(self, status: EventsStatus, width: int, height: int) -> Iterator[Text]:
        yield _line(clock_face(status.seconds), done(status), "bold")
        yield _line("now", f"{status.doing}; {pace(status)}")
        yield Text()
        yield from self._plot(width, height)
        yield Text()
        yield _line("queue", queue(status))
        yield _line("messages", messages(status))
        yield _line("why", categories(status))
        yield _line("codes", codes(status))
        if height >= TALL:
            platforms = {name: each.posts + each.errors for name, each in status.platforms.items()}
            yield _line("platforms", listed(platforms) or "none yet")
            yield _line("modes", modes(status))
            yield _line("sent", sent(status))
        for trouble in list(troubles(status))[:MOST_TROUBLES]:
            yield _line("trouble", trouble, "bold red")
        yield Text()

    def _plot(self, width: int, height: int) -> Iterator[Text]:
        """What came lately: posts by how they were meant, and below them what is no post."""
        wide = max(NARROWEST, min(WIDEST, width - NAME - 4))
        columns, plot = self._columns.last(wide), Plot(axis=NAME + 2)
        yield _line("", self._view.caption(), "dim italic")
        yield from plot.stacked(columns, 1, max(LOWEST, min(HIGHEST, height - OTHER_LINES)))
        yield from plot.strip([each.errors for each in columns], 1, height=1)
        yield plot.key({kind: self._columns.counts.get(kind, 0) for kind in KINDS})

    def _recent(self, status: EventsStatus, room: int) -> list[Text]:
        """The last errors; as many lines in every frame, so that nothing jumps."""
        shown = (
            [_line(printable(each.category)[:NAME], error(each), "dim") for each in status.recent[-room:]]
            if room
            else []
        )
        return shown + [Text()] * (room - len(shown))


def alerted(alert: Alert) -> str:
    """An alert on one line."""
    return (
        f"{alert.level.name.lower()}: {alert.title}: {', '.join(f'{each.name} {each.value}' for each in alert.fields)}"
    )


def _line(name: str, text: str, style: str = "") -> Text:
    return labelled(name, text, style, NAME)
