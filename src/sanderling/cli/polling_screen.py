"""What polling looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.cli.pages_summary import clock_face, printable
from sanderling.cli.polling_news import MOST, News, lines
from sanderling.cli.polling_strips import Strips
from sanderling.cli.polling_words import host, line, now, often, punctual, runs, targets, told, troubles
from sanderling.cli.screen import Silent, Wordy, ascii_of, drawable
from sanderling.polling.status import PollingStatus
from sanderling.stores.polling import Change

SAY_EVERY = 10  # frames between plain lines: five seconds, of the people who watch
NAME = 10  # columns of what a line is about
PACE = 28  # columns of how often a kind is asked for
WIDEST, NARROWEST = 60, 8  # columns of a strip
CAPTION = "asked for, second by second"
MOST_KINDS = 10
MOST_CHANGES = 10_000  # that a frame takes in; of more, the last ones
OTHER_LINES = 11  # of the picture, beside kinds and troubles
MOST_TROUBLES = 3


class KindPace(NamedTuple):
    """How often a kind is asked for. Times are in seconds."""

    kind: str
    targets: int  # that there are, as far as is known
    interval: float  # 0 if it is switched off


class Frame(NamedTuple):
    """What there is to see."""

    status: PollingStatus
    paces: Sequence[KindPace] = ()


class Screen(Protocol):
    """Where polling is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, frame: Frame) -> None:
        """Show how it stands."""

    def tell(self, changes: Sequence[Change]) -> None:
        """Show what changed, with the next frame."""

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

    def tell(self, changes: Sequence[Change]) -> None:
        """Say nothing."""


class Logged(Wordy):
    """Leaves what happens to the log, and prints the summary in words."""

    def tell(self, changes: Sequence[Change]) -> None:
        """Say nothing."""


class Plain(Logged):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    every = 0.5

    def __init__(self) -> None:
        self._frames = 0
        self._now = ""
        self._troubles: tuple[str, ...] = ()

    def show(self, frame: Frame) -> None:
        """Print who is live when that changes, what is wrong when that does, and now and then how it stands."""
        status = frame.status
        if (said := now(status)) != self._now:
            self._now = said
            self._say(status, said)
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
    """Who is live, how often each kind is asked for, and what changed just now; redrawn four times a second."""

    every = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        self._frame: Frame | None = None
        self._notes: deque[str] = deque(maxlen=2)
        self._changes: deque[Change] = deque(maxlen=MOST_CHANGES)  # since the last frame
        self._news, self._strips = News(), Strips()
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, frame: Frame) -> None:
        """Draw it over the frame before."""
        self._frame = frame
        self._strips.add(frame.status)
        self._news.add(self._changes, frame.status.started)
        self._changes.clear()
        self._live.refresh()

    def tell(self, changes: Sequence[Change]) -> None:
        """Keep them for the next frame."""
        self._changes.extend(changes)

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
        if self._frame is None:
            return
        kinds = max(1, min(MOST_KINDS, console.height - OTHER_LINES - len(self._notes)))
        above = [*self._picture(self._frame, options.max_width, kinds), Text()]
        below = [Text(note, "bold") for note in self._notes]
        # As many lines in every frame, so that nothing jumps.
        room = max(0, min(MOST, console.height - len(above) - len(below) - 2))
        for each in [*above, *self._told(room), Text(), *below]:
            each.truncate(options.max_width, overflow="ellipsis")
            yield each

    def _told(self, room: int) -> list[Text]:
        shown = [_line(clock_face(at), text) for at, text in list(lines(self._news))[-room:]] if room else []
        return shown + [Text()] * (room - len(shown))

    def _picture(self, frame: Frame, width: int, kinds: int) -> Iterator[Text]:
        status = frame.status
        where = f"{status.source} at {status.host}" if status.host else status.source
        yield _line(clock_face(status.seconds), f"polling {where}: {targets(status)}", "bold")
        yield _line("now", now(status), "bold green" if status.accelerated else "")
        yield Text()
        strip = max(NARROWEST, min(WIDEST, width - NAME - PACE - 4))
        yield _line("", CAPTION[:strip], "dim italic")
        for pace in chosen(frame, kinds):
            yield self._kind(pace, status, strip)
        yield Text()
        yield _line("runs", runs(status))
        yield _line("late", punctual(status))
        yield _line("host", host(status))
        yield from self._wrong(status)
        yield _line("changes", told(status))

    def _kind(self, pace: KindPace, status: PollingStatus, width: int) -> Text:
        """The last seconds of a kind, and how often it is asked for."""
        live = [each for each in status.accelerated if each.kind == pace.kind]
        if live:
            several = f", {len(live)} of them" if len(live) > 1 else ""
            style, said = "bold green", f"every {often(live[0].interval)}: live{several}"
        elif pace.interval <= 0:
            style, said = "dim", "switched off"
        else:
            style, said = "", f"every {often(pace.interval)}"
            said += f", {pace.targets:,} of them" if pace.targets > 1 else ""
        return Text.assemble(
            (f"{printable(pace.kind)[:NAME]:>{NAME}}  ", style or "dim"),
            self._strips.of(pace.kind).drawn(width, status.seconds),
            (f"  {printable(said)}", style),
        )

    def _wrong(self, status: PollingStatus) -> Iterator[Text]:
        for trouble in list(troubles(status))[:MOST_TROUBLES]:
            yield _line("trouble", trouble, "bold red")


def chosen(frame: Frame, most: int) -> list[KindPace]:
    """The kinds that there is room for, in their order; those that are live are among them."""
    live = {each.kind for each in frame.status.accelerated}
    kept = sorted(frame.paces, key=lambda pace: pace.kind not in live)[:most]
    return [pace for pace in frame.paces if pace in kept]


def _line(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:>{NAME}}  ", "dim"), (printable(text), style))
