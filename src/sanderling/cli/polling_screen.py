"""What polling looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.cli.pages_summary import clock_face, printable
from sanderling.cli.polling_words import change, lateness, line, live, often, runs, targets, troubles
from sanderling.cli.screen import Silent, Wordy, ascii_of, drawable
from sanderling.cli.sequence_screen import Trace
from sanderling.polling.measures import ACCELERATED, USUAL
from sanderling.polling.status import NextStatus, PollingStatus

SAY_EVERY = 10  # frames between plain lines: five seconds, of the people who watch
NAME = 10  # columns of what a line is about
CHART = 40  # columns of a chart at most
AHEAD = 10.0  # seconds that the timeline of what is due next shows
COLORS = {"insert": "green", "update": "yellow", "delete": "red", "purge": "magenta"}


class Screen(Protocol):
    """Where polling is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, status: PollingStatus) -> None:
        """Show how it stands."""

    def note(self, text: str) -> None:
        """Say something besides, at once."""

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Say what came of it, once, after the last frame: in words, or as JSON."""


def fitting(*, json: bool, logs: bool = False) -> Screen:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    if json:
        return Silent()
    if (console := drawable()) is not None:
        return Terminal(console)
    return Wordy() if logs else Plain()


class Plain(Wordy):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    every = 0.5

    def __init__(self) -> None:
        self._frames = 0
        self._live = ""
        self._troubles: tuple[str, ...] = ()

    def show(self, status: PollingStatus) -> None:
        """Print what is live when that changes, what is wrong when that does, and now and then how it stands."""
        if (now := live(status)) != self._live:
            self._live = now
            self._say(status, f"live: {now}")
        if (wrong := tuple(troubles(status))) != self._troubles:
            self._troubles = wrong
            for each in wrong or ("all is well again",):
                self._say(status, each)
        self._frames += 1
        if self._frames % SAY_EVERY == 0:
            self._say(status, line(status))

    def _say(self, status: PollingStatus, text: str) -> None:
        self.note(ascii_of(f"{clock_face(status.seconds)}  {text}"))


class Terminal:
    """How it stands, what is due, what is live and what changed just now; redrawn four times a second."""

    every = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: PollingStatus | None = None
        self._notes: deque[str] = deque(maxlen=2)
        self._late, self._rate = Trace(), Trace()
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: PollingStatus) -> None:
        """Draw it over the frame before."""
        self._status = status
        late = status.late.get(ACCELERATED) or status.late.get(USUAL)
        self._late.add(status.seconds, late.p99 * 1000 if late else None)
        self._rate.add(status.seconds, status.rate)
        self._live.refresh()

    def note(self, text: str) -> None:
        """Keep the words under the picture from now on."""
        self._notes.append(printable(text))
        self._live.refresh()

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Print the lines under the last frame, broken where the window ends."""
        del document
        width = min(100, self._console.width)
        for each in map(printable, lines):
            whole = not each or each.startswith(" ")
            for part in [each] if whole else textwrap.wrap(each, width, break_on_hyphens=False):
                self._console.print(Text(part), soft_wrap=whole)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        status = self._status
        if status is None:
            return
        lines = [*self._picture(status, options.max_width), Text()]
        notes = [Text(note, "bold") for note in self._notes]
        room = max(0, console.height - len(lines) - len(notes) - 1)
        told = [Text(change(each), COLORS[each.op]) for each in list(status.recent)[-room:]] if room else []
        for each in [*lines, *told, *notes]:
            each.truncate(options.max_width, overflow="ellipsis")
            yield each

    def _picture(self, status: PollingStatus, width: int) -> Iterator[Text]:
        chart = max(8, min(CHART, width // 3))
        yield Text.assemble(
            (f"{clock_face(status.seconds):>7}  ", "dim"), (status.doing, "bold"), f"  {status.source} at {status.host}"
        )
        yield Text()
        yield _line("targets", targets(status))
        yield _line("live", live(status), "bold green" if status.accelerated else "dim")
        yield _line("due", "")
        for each in status.next[:6]:
            yield _due(each, chart)
        yield Text.assemble(
            (f"{'late':>{NAME}}  ", "dim"),
            (self._late.drawn(chart), "cyan"),
            f"  {lateness(status.late.get(ACCELERATED) or status.late.get(USUAL))}",
        )
        yield Text.assemble((f"{'runs':>{NAME}}  ", "dim"), (self._rate.drawn(chart), "blue"), f"  {runs(status)}")
        if status.limiter is not None:
            view = status.limiter
            latency = "" if view.latency is None else f"{1000 * view.latency:,.0f} ms, "
            yield _line("host", f"{latency}{view.why}")
        for trouble in troubles(status):
            yield _line("trouble", trouble, "bold red")


def _due(each: NextStatus, width: int) -> Text:
    """A target on the line of the next seconds: the nearer it is to the left, the sooner it runs."""
    place = min(width - 1, max(0, round((width - 1) * each.due / AHEAD)))
    road = "·" * place + "●" + "·" * (width - 1 - place)
    style = "green" if each.interval < 1 else ""
    what = f"  {each.kind} {each.source_id[:8]}, every {often(each.interval)}"
    status = "" if each.status in ("", "ok") else f": {printable(each.status)}"
    return Text.assemble((" " * (NAME + 2), ""), (road, style or "dim"), what, (status, "yellow"))


def _line(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:>{NAME}}  ", "dim"), (printable(text), style))
