"""What a crawl of ids looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.cli.pages_summary import clock_face, printable
from sanderling.cli.screen import Silent, Wordy, ascii_of, drawable
from sanderling.cli.sequence_words import News, age, answers, counters, kept, missed, position
from sanderling.observe.alerts import Alert
from sanderling.sequence.status import SequenceStatus

SAY_EVERY = 10  # frames between plain lines: five seconds, of the people who watch
SPAN = 300.0  # seconds that a chart shows
STEP = 1.0  # seconds between two values of it
CHART = 40  # columns of a chart at most, or words would be too far away
NAME = 10  # columns of what a line is about
EVENTS = 8  # lines about what happened, at most
BLOCKS = " ▁▂▃▄▅▆▇█"

STYLES = {"catch_up": "yellow", "gap": "magenta", "normal": "green"}


class Screen(Protocol):
    """Where a crawl is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, status: SequenceStatus) -> None:
        """Show how the crawl stands."""

    def tell(self, alert: Alert) -> None:
        """Say what happened, if that is for here."""

    def note(self, text: str) -> None:
        """Say something besides, at once."""

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Say what came of it, once, after the last frame: in words, or as JSON."""


def fitting(*, json: bool, logs: bool = False) -> Screen:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    if json:
        return Unseen()
    if (console := drawable()) is not None:
        return Terminal(console)
    return Logged() if logs else Plain()


class Unseen(Silent):
    """Says nothing but the summary, as JSON."""

    def tell(self, alert: Alert) -> None:
        """Say nothing."""


class Logged(Wordy):
    """Leaves what happens to the log, and prints the summary in words."""

    def tell(self, alert: Alert) -> None:
        """Say nothing: the log does."""


class Plain(Logged):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    every = 0.5

    def __init__(self) -> None:
        self._news = News()
        self._frames = 0
        self._seconds = 0.0

    def show(self, status: SequenceStatus) -> None:
        """Print what happened, and now and then how it stands."""
        self._seconds = status.seconds
        for line in self._news.of_status(status):
            self._say(line)
        self._frames += 1
        if self._frames % SAY_EVERY == 0:
            self._say(", ".join(counters(status)))

    def tell(self, alert: Alert) -> None:
        """Print it, if it is for people."""
        line = self._news.of_alert(alert)
        if line is not None:
            self._say(line)

    def _say(self, line: str) -> None:
        self.note(ascii_of(f"{clock_face(self._seconds)}  {line}"))


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


class Terminal:
    """How it stands, how lag and workers got there, and what happened lately; redrawn four times a second."""

    every = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        self._news = News()
        self._status: SequenceStatus | None = None
        self._notes: list[str] = []
        self._events: deque[tuple[float, str]] = deque(maxlen=EVENTS)
        self._lags, self._workers = Trace(), Trace()
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: SequenceStatus) -> None:
        """Draw the crawl over the frame before."""
        self._status = status
        self._events.extend((status.seconds, line) for line in self._news.of_status(status))
        self._lags.add(status.seconds, status.lag)
        self._workers.add(status.seconds, status.plan.workers)
        self._live.refresh()

    def tell(self, alert: Alert) -> None:
        """Keep it under the picture, if it is for people."""
        line = self._news.of_alert(alert)
        if line is not None:
            self._events.append((self._status.seconds if self._status else 0.0, line))

    def note(self, text: str) -> None:
        """Keep the words under the picture from now on."""
        self._notes = [*self._notes, printable(text)][-2:]
        self._live.refresh()

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Print the lines under the last frame, broken where the window ends."""
        del document
        width = min(100, self._console.width)
        for line in map(printable, lines):
            whole = not line or line.startswith(" ")
            for part in [line] if whole else textwrap.wrap(line, width, break_on_hyphens=False):
                self._console.print(Text(part), soft_wrap=whole)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        status = self._status
        if status is None:
            return
        width = options.max_width
        lines = [*self._picture(status, width), Text()]
        notes = [Text(note, "bold") for note in self._notes]
        room = max(0, console.height - len(lines) - len(notes) - 1)
        events = list(self._events)[-room:] if room else []
        told = [Text.assemble((f"{clock_face(at):>7}  ", "dim"), printable(line)) for at, line in events]
        for line in [*lines, *told, *notes]:
            line.truncate(width, overflow="ellipsis")
            yield line

    def _picture(self, status: SequenceStatus, width: int) -> Iterator[Text]:
        chart = max(8, min(CHART, width // 3))
        yield Text.assemble(
            (f"{clock_face(status.seconds):>7}  ", "dim"), (status.doing, "bold"), f"  {status.api} at {status.host}"
        )
        yield Text()
        yield _line("ids", position(status), "bold")
        yield Text.assemble(
            (f"{'lag':>{NAME}}  ", "dim"),
            (self._lags.drawn(chart), "cyan"),
            f"  {age(status.lag)}, {status.rate:,.1f} records/s",
        )
        yield Text.assemble(
            (f"{'workers':>{NAME}}  ", "dim"),
            (self._workers.drawn(chart), STYLES.get(status.plan.strategy, "")),
            f"  {status.plan.workers}, {status.inflight} busy, {status.waiting} ids wait for another try",
        )
        yield from _lines("why", status.plan.why, width)
        yield _line("answers", ", ".join(answers(status)))
        yield _line("missed", missed(status.missed, status.gaps))
        yield _line("kept", kept(status))
        if status.limiter is not None:
            view = status.limiter
            latency = "" if view.latency is None else f", {1000 * view.latency:,.0f} ms"
            yield _line("host", f"{view.rate:,.1f} requests/s{latency}: {view.why}")


def _lines(name: str, text: str, width: int, most: int = 2) -> Iterator[Text]:
    """The same, on as many lines as it needs, up to `most`; all that are not needed are empty."""
    room = max(10, width - NAME - 2)
    parts = textwrap.wrap(printable(text), room, max_lines=most, placeholder=" …")
    for number in range(most):
        yield _line("" if number else name, parts[number] if number < len(parts) else "")


def _line(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:>{NAME}}  ", "dim"), (printable(text), style))
