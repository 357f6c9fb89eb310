"""What a crawl of ids looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import textwrap
from collections import deque
from collections.abc import Iterator
from math import ceil

from rich.console import Console
from rich.text import Text

from sanderling.cli.screen import NAME, Lines, Picture, ScreenOf, Window, label, labelled, suited
from sanderling.cli.sequence.words import News, age, answers, counters, kept, missed, position
from sanderling.observe.alerts import Alert
from sanderling.sequence.status import SequenceStatus
from sanderling.words import clock_face, printable

SPAN = 300.0  # seconds that a chart shows
STEP = 1.0  # seconds between two values of it
CHART = 40  # columns of a chart at most, or words would be too far away
TIME = 7  # columns of when something happened
EVENTS = 8  # lines about what happened, at most
BLOCKS = " ▁▂▃▄▅▆▇█"

STYLES = {"catch_up": "yellow", "gap": "magenta", "normal": "green"}

Screen = ScreenOf[SequenceStatus, Alert]


def fitting(*, json: bool, logs: bool = False) -> Screen:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    return suited(Terminal, Plain, json=json, logs=logs)


class Plain(Lines[SequenceStatus, Alert]):
    """A line now and then to stderr; the summary to stdout."""

    def __init__(self) -> None:
        super().__init__()
        self._news = News()
        self._seconds = 0.0

    def show(self, status: SequenceStatus, /) -> None:
        """Print what happened, and now and then how it stands."""
        self._seconds = status.seconds
        self._say(status.seconds, self._news.of_status(status), ", ".join(counters(status)))

    def tell(self, alert: Alert, /) -> None:
        """Print it, if it is for people."""
        line = self._news.of_alert(alert)
        if line is not None:
            self.note(f"{clock_face(self._seconds)}  {line}")


class Trace:
    """A number over the last minutes, as a row of blocks."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()

    def add(self, seconds: float, value: float | None) -> None:
        """Keep the value, unless that was just done; None is as before."""
        last = self._values[-1] if self._values else None
        if last is not None and seconds - last[0] < STEP:
            return
        known = value if value is not None else last[1] if last else 0.0
        self._values.append((seconds, known))
        while seconds - self._values[0][0] > SPAN:
            self._values.popleft()

    def drawn(self, width: int) -> str:
        """The highest value of each column's time; the highest of all is a full block."""
        if not self._values:
            return " " * width
        began, span = self._values[0][0], max(STEP, self._values[-1][0] - self._values[0][0])
        columns = [0.0] * width
        for at, value in self._values:
            column = min(width - 1, int(width * (at - began) / span))
            columns[column] = max(columns[column], value)
        most = max(columns)
        for column in range(1, width):  # at first there are more columns than values
            columns[column] = columns[column] or columns[column - 1]
        return "".join(BLOCKS[ceil((len(BLOCKS) - 1) * value / most)] if most else " " for value in columns)


class Terminal(Picture[SequenceStatus, Alert]):
    """How it stands, how lag and workers got there, and what happened lately."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._news = News()
        self._events: deque[tuple[float, str]] = deque(maxlen=EVENTS)
        self._lags, self._workers = Trace(), Trace()

    def show(self, status: SequenceStatus, /) -> None:
        """Draw the crawl over the frame before."""
        self._events.extend((status.seconds, line) for line in self._news.of_status(status))
        self._lags.add(status.seconds, status.lag)
        self._workers.add(status.seconds, status.plan.workers)
        super().show(status)

    def tell(self, alert: Alert, /) -> None:
        """Keep it under the picture, if it is for people."""
        line = self._news.of_alert(alert)
        if line is not None:
            self._events.append((self._shown.seconds if self._shown else 0.0, line))

    def _lines(self, status: SequenceStatus, window: Window) -> Iterator[Text]:
        above = [*self._picture(status, window.width), Text()]
        room = window.left(len(above))
        events = list(self._events)[-room:] if room else []
        yield from above
        yield from (labelled(clock_face(at), line, columns=TIME) for at, line in events)

    def _picture(self, status: SequenceStatus, width: int) -> Iterator[Text]:
        chart = max(8, min(CHART, width // 3))
        yield Text.assemble(
            label(clock_face(status.seconds), TIME), (status.doing, "bold"), f"  {status.api} at {status.host}"
        )
        yield Text()
        yield labelled("ids", position(status), "bold")
        yield Text.assemble(
            label("lag"),
            (self._lags.drawn(chart), "cyan"),
            f"  {age(status.lag)}, {status.rate:,.1f} records/s",
        )
        yield Text.assemble(
            label("workers"),
            (self._workers.drawn(chart), STYLES.get(status.plan.strategy, "")),
            f"  {status.plan.workers}, {status.inflight} busy, {status.waiting} ids wait for another try",
        )
        yield from _wrapped("why", status.plan.why, width)
        yield labelled("answers", ", ".join(answers(status)))
        yield labelled("missed", missed(status.missed, status.gaps))
        yield labelled("kept", kept(status))
        if status.limiter is not None:
            view = status.limiter
            latency = "" if view.latency is None else f", {1000 * view.latency:,.0f} ms"
            yield labelled("host", f"{view.rate:,.1f} requests/s{latency}: {view.why}")


def _wrapped(name: str, text: str, width: int, most: int = 2) -> Iterator[Text]:
    """A line about something, on as many lines as it needs, up to `most`; all that are not needed are empty."""
    room = max(10, width - NAME - 2)
    parts = textwrap.wrap(printable(text), room, max_lines=most, placeholder=" …")
    for number in range(most):
        yield labelled("" if number else name, parts[number] if number < len(parts) else "")
