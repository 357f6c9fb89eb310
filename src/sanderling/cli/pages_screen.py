"""What a crawl looks like: a picture that redraws itself on a terminal, plain lines elsewhere, or JSON at the end."""

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.cli.pages_hosts import Mood, Pace, mood, ranked, words_of
from sanderling.cli.pages_summary import Summary, clock_face, printable, size, words
from sanderling.cli.screen import Quiet, ascii_of, drawable
from sanderling.pages.status import HostStatus, Status

ROW = "{:>6}{:>8}{:>9}{:>8}{:>8}  {}"  # behind the name
NUMBERS = 41  # columns of all that but the state
HEADS = ("rate", "ceiling", "latency", "refused", "waiting", "state")
STATE = 10  # columns of the state, and a space
NAME, LONGEST_NAME = 29, 48  # columns of a host's name; the first is what is left of 80
WIDE = 132  # columns from which the words stand beside the numbers, and not under them
WIDEST = 180
REORDER = 2.0  # seconds; rows that change places more often cannot be read
NAMED = 3  # troubled hosts that a plain line names
SAY_EVERY = 5.0  # seconds between plain lines
STYLES = {
    Mood.FAILING: "bold red",
    Mood.FAILED: "red",
    Mood.THROTTLED: "yellow",
    Mood.SLOW: "magenta",
    Mood.FLAKY: "yellow",
    Mood.CAPPED: "cyan",
    Mood.GOING: "green",
    Mood.DONE: "dim",
}


class Screen(Protocol):
    """Where a crawl is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, status: Status) -> None:
        """Show how the crawl stands."""

    def note(self, text: str) -> None:
        """Say something besides, at once."""

    def tell(self, lines: Iterable[str]) -> None:
        """Say what people want to know after the last frame; lines that are indented are not broken."""

    def end(self, summary: Summary) -> None:
        """Say what came of it, once, after the last frame."""


def fitting(*, json: bool, names: Mapping[str, str] | None = None) -> Screen:
    """The screen for what stdout is; `names` are those that people know the hosts by, where there are such."""
    if json:
        return Silent()
    console = drawable()
    return Plain(names or {}) if console is None else Terminal(console, names or {})


class Silent(Quiet):
    """Says nothing but the summary, as JSON."""

    def tell(self, lines: Iterable[str]) -> None:
        """Say nothing: no program wants to know."""

    def end(self, summary: Summary) -> None:
        """Print the summary."""
        print(json.dumps(summary.as_json(), indent=2))


class Plain(Quiet):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._pace = Pace()
        self._said = 0.0

    def show(self, status: Status) -> None:
        """Print a line, if the last was long enough ago."""
        self._pace.take(status)
        if status.seconds - self._said >= SAY_EVERY:
            self._said = status.seconds
            self.note(", ".join([*_counters(status, self._pace), *self._troubles(status)]))

    def note(self, text: str) -> None:
        """Print it."""
        print(ascii_of(text), file=sys.stderr, flush=True)

    def tell(self, lines: Iterable[str]) -> None:
        """Print the lines."""
        for line in lines:
            print(ascii_of(line))

    def end(self, summary: Summary) -> None:
        """Print the summary in words."""
        self.tell(words(summary))

    def _troubles(self, status: Status) -> Iterator[str]:
        for host in ranked(status.hosts, room=NAMED)[:NAMED]:
            if mood(host).troubled:
                yield f"{self._names.get(host.view.host, host.view.host)} {mood(host).value}"


class Terminal:
    """A headline and a row for each host that matters, redrawn four times a second."""

    every = 0.25

    def __init__(self, console: Console, names: Mapping[str, str]) -> None:
        self._console = console
        self._names = names
        self._pace = Pace()
        self._status: Status | None = None
        self._notes: list[str] = []
        self._order: list[str] = []
        self._ordered = float("-inf")
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: Status) -> None:
        """Draw the crawl over the frame before."""
        self._status = status
        self._pace.take(status)
        self._live.refresh()

    def note(self, text: str) -> None:
        """Keep the words under the picture from now on."""
        self._notes = [*self._notes, printable(text)][-2:]
        self._live.refresh()

    def tell(self, lines: Iterable[str]) -> None:
        """Print the lines under the last frame, broken where the window ends."""
        width = min(100, self._console.width)
        for line in map(printable, lines):
            whole = not line or line.startswith(" ")
            for part in [line] if whole else textwrap.wrap(line, width, break_on_hyphens=False):
                self._console.print(Text(part), soft_wrap=whole)

    def end(self, summary: Summary) -> None:
        """Print the summary in words."""
        self.tell(words(summary))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self._status is None:
            return
        width, lines = min(options.max_width, WIDEST), list(self._headline(self._status, options.max_width))
        notes = [Text(note, "bold") for note in self._notes]
        room = console.height - len(lines) - len(notes) - 3  # the heads, the line about the others, and the cursor's
        lines += [*self._table(self._status, max(1, room), width), *notes]
        for line in lines:
            line.truncate(options.max_width, overflow="ellipsis")
            yield line

    def _headline(self, status: Status, width: int) -> Iterator[Text]:
        time, *numbers = _counters(status, self._pace)
        line = Text.assemble((f"{time}  ", "dim"), ("".join(f"  {number}" for number in numbers), "bold"))
        if status.counts["failed"]:
            line.highlight_regex(r"[\d,]+ failed", "red")
        yield line
        yield bar(status, min(width, WIDEST))
        yield Text()

    def _table(self, status: Status, room: int, width: int) -> Iterator[Text]:
        beside, name = width >= WIDE, self._name_width(status, width)
        yield Text(_cut("host", name).ljust(name) + ROW.format(*HEADS) + ("     why" if beside else ""), "dim")
        shown: list[HostStatus] = []
        for host in self._in_order(status, room):
            lines = list(self._host(host, name, width, beside=beside))
            if len(lines) > room:
                break
            room -= len(lines)
            shown.append(host)
            yield from lines
        if status.hosts_known > len(shown):
            waiting = max(0, status.waiting - status.inflight - sum(host.queued for host in shown))
            others = f"and {status.hosts_known - len(shown):,} more hosts"
            yield Text(f"{others}, {waiting:,} URLs waiting for them", "dim")

    def _name_width(self, status: Status, width: int) -> int:
        longest = max((len(self._names.get(host.view.host, host.view.host)) for host in status.hosts), default=0)
        return max(NAME, min(longest + 1, width - NUMBERS - STATE, LONGEST_NAME))

    def _in_order(self, status: Status, room: int) -> list[HostStatus]:
        """The hosts, those that matter first; they change places only now and then."""
        if abs(status.wall - self._ordered) >= REORDER:
            self._ordered = status.wall
            self._order = [host.view.host for host in ranked(status.hosts, room // 2)]
        views = {host.view.host: host for host in status.hosts}
        before = [views.pop(name) for name in self._order if name in views]
        return [*before, *views.values()]

    def _host(self, host: HostStatus, name: int, width: int, *, beside: bool) -> Iterator[Text]:
        view, state = host.view, mood(host)
        rate = self._pace.requests(view.host)
        cells = (
            "-" if rate is None else f"{rate:.1f}",
            "-" if view.ceiling is None else f"{view.ceiling:.1f}",
            _latency(view.latency),
            f"{view.rejected:,}",
            f"{host.queued:,}",
            "",
        )
        dim = "dim" if state is Mood.DONE else ""
        shown, said = _cut(self._names.get(view.host, view.host), name - 1), words_of(host)
        line = Text.assemble(
            (shown.ljust(name), dim or "bold"), (ROW.format(*cells), dim), (state.value, STYLES[state])
        )
        if beside and state is not Mood.DONE:
            line.append(" " * (STATE - len(state.value)) + _cut(said, width - name - NUMBERS - STATE), "dim")
        yield line
        if state.troubled and not beside:
            yield Text("  " + _cut(said, width - 2), "dim")


def bar(status: Status, width: int) -> Text:
    """How much of what is known is decided: the good, the failed, the rest."""
    known = max(1, status.known)
    failed = status.counts["failed"]
    decided = status.known - status.waiting
    label = f" {_percent(decided, status.known)} of {status.known:,} known URLs"
    cells = max(10, width - len(label))
    red = max(1, round(cells * failed / known)) if failed else 0
    good = max(0, round(cells * decided / known) - red)
    return Text.assemble(("━" * good, "green"), ("━" * red, "red"), ("━" * (cells - good - red), "bright_black"), label)


def _latency(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{1000 * seconds:,.0f} ms" if seconds < 9.9995 else f"{seconds:,.0f} s"


def _percent(part: int, whole: int) -> str:
    """Rounded down: what is not all is never 100 %."""
    return f"{100 * part // max(1, whole)} %"


def _counters(status: Status, pace: Pace) -> list[str]:
    return [
        clock_face(status.seconds),
        f"{status.pages:,} pages",
        f"{pace.pages:.1f}/s",
        f"{status.counts['failed']:,} failed",
        f"{max(0, status.waiting - status.inflight):,} waiting",
        f"{status.inflight:,} in flight",
        size(status.bytes),
    ]


def _cut(text: str, width: int) -> str:
    """As much of the text as fits, and a sign that there was more."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
