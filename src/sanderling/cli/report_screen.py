"""The screen of every system: its report as a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf

from rich.console import Console
from rich.text import Text

from sanderling.cli.plots import Trail, spark
from sanderling.cli.report_words import (
    FINE,
    host_words,
    numbers,
    ranked,
    rate,
    report_flow,
    take_rates,
    troubles_besides,
)
from sanderling.cli.screen import (
    NAME,
    Lines,
    Picture,
    ScreenOf,
    Window,
    broken,
    cut,
    label,
    labelled,
    suited,
)
from sanderling.observe.rates import Rates
from sanderling.observe.report import AnyReport, Event, HostCondition, HostReport, Progress, Severity
from sanderling.words import clock_face, count, duration, printable

WIDEST = 180  # columns; longer lines cannot be read
WIDE = 132  # columns from which the words about a host stand beside its numbers, and not under them
LONGEST_NAME, SHORTEST_NAME = 48, 12  # columns of a host's name
WORDS = 2  # lines that one text may have
PLOT, NARROWEST = 40, 8  # columns of a plot
STEP = 1.0  # seconds between two points of a plot
REORDER = 2.0  # seconds; rows that change places more often cannot be read
MOST_EVENTS, MOST_WARNINGS, FEWEST_HOSTS = 8, 3, 4
ROW = "{:>6}{:>8}{:>9}{:>8}{:>8}  {}"
HEADS = ("rate", "ceiling", "latency", "refused", "waiting", "state")
NUMBERS = 41 + 10  # columns of a row behind the name, with the longest state
STYLES = {
    HostCondition.SET_ASIDE: "red",
    HostCondition.FAILING: "bold red",
    HostCondition.FAILED: "red",
    HostCondition.THROTTLED: "yellow",
    HostCondition.SLOW: "magenta",
    HostCondition.FLAKY: "yellow",
    HostCondition.CAPPED: "cyan",
    HostCondition.GOING: "green",
    HostCondition.DONE: "dim",
}
WRONG = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}

FIGURES = re.compile(r"\d[\d.,]*|s\b")  # and the s of several

Screen = ScreenOf[AnyReport, str]


def fitting(*, json: bool, logs: bool = False, names: Mapping[str, str] | None = None) -> Screen:
    """The screen for what stdout is.

    With `logs`, what happens is in the log and is not said twice. `names` are those that people know the hosts by.
    """
    return suited(partial(Terminal, names=names or {}), partial(Plain, names or {}), json=json, logs=logs)


class Plain(Lines[AnyReport, str]):
    """What it is at and what is wrong when that changes, what happens, and a line now and then; all to stderr."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names
        self._rates = Rates()
        self._seconds = 0.0
        self._seen = self._doing = ""  # in the last frame, and as was said

    def show(self, report: AnyReport, /) -> None:
        """Print what is other than before, and now and then how it stands."""
        take_rates(self._rates, report)
        self._seconds = report.process.seconds
        # At first nobody has asked the services yet.
        wrong = self._changed(map(self._named, report.texts(*Severity))) if self._frames else ()
        self._say(
            self._seconds,
            (*self._began(report), *wrong),
            f"{report.doing}; {report_flow(report, self._rates)}; {numbers(report)}",
        )

    def _began(self, report: AnyReport) -> tuple[str, ...]:
        """What it is at, once it has been at something else for two frames. Numbers change all the time."""
        before, self._seen = self._seen, FIGURES.sub("", report.doing.partition(";")[0])
        if self._seen != before or self._seen == self._doing:
            return ()
        earlier, self._doing = self._doing, self._seen
        # How it ended is in the summary.
        return (report.doing,) if earlier and report.process.running else ()

    def _named(self, trouble: str) -> str:
        """A trouble, under the name that people know its host by."""
        host, colon, said = trouble.partition(": ")
        return f"{self._names.get(host, host)}{colon}{said}"

    def tell(self, told: str, /) -> None:
        """Print it."""
        self.note(f"{clock_face(self._seconds)}  {told}")


class Terminal(Picture[AnyReport, str]):
    """What it is at, what is wrong, how far it is and how that went, its hosts, and what happened lately."""

    def __init__(self, console: Console, names: Mapping[str, str]) -> None:
        super().__init__(console)
        self._names = names
        self._rates = Rates()
        self._plots = Plots()
        self._told: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._places: dict[str, int] = {}
        self._ordered = -inf

    def show(self, report: AnyReport, /) -> None:
        """Draw it over the frame before."""
        take_rates(self._rates, report)
        self._plots.add(report)
        super().show(report)

    def tell(self, told: str, /) -> None:
        """Keep it under the picture."""
        self._told.append(Event(self._shown.process.wall if self._shown else 0.0, told))

    def _lines(self, report: AnyReport, window: Window) -> Iterator[Text]:
        width = min(window.width, WIDEST)
        above = list(self._above(report, width, window))[: max(1, window.left(0))]
        warnings = [
            labelled("note" if each.severity is Severity.INFO else each.severity.value, each.text, WRONG[each.severity])
            for each in troubles_besides(report, report.hosts)
            if each.severity is not Severity.ERROR
        ][:MOST_WARNINGS]
        events = sorted((*report.events, *self._told), key=lambda each: each.wall)[-MOST_EVENTS:]
        room = window.left(len(above) + len(warnings))
        table = min(room, FEWEST_HOSTS) if report.hosts else 0
        lines = [part for name, text in report.lines for part in wrapped(name, text, width)]
        lines = lines[: max(0, room - table - min(len(events), 2))]
        room -= len(lines)
        hosts = list(self._hosts(report, max(0, room - min(len(events), room // 3) - 2), width))
        room -= len(hosts)
        yield from (*above, *lines, *hosts, *warnings)
        began = report.process.started
        shown = events[-room:] if room > 0 else []
        yield from (labelled(clock_face(max(0.0, each.wall - began)), each.text) for each in shown)

    def _above(self, report: AnyReport, width: int, window: Window) -> Iterator[Text]:
        """What is always drawn. Errors come before all that may be cut off where the window ends."""
        yield from wrapped(clock_face(report.process.seconds), report.doing, width, "bold")
        errors = report.texts(Severity.ERROR)
        for text in errors:
            yield from wrapped("error", text, width, WRONG[Severity.ERROR], max(1, window.left(3) // len(errors)))
        yield from wrapped("flow", report_flow(report, self._rates), width)
        if report.progress is not None:
            yield bar(report.progress, width)
        yield from flowing(report.numbers, width)
        plot = max(NARROWEST, min(PLOT, width // 3))
        for each in report.activity:
            yield Text.assemble(
                label(each.label[:NAME]), (spark(self._plots.of(each.label), plot), "cyan"), f"  {printable(each.text)}"
            )

    def _hosts(self, report: AnyReport, room: int, width: int) -> Iterator[Text]:
        """A row for each host that there is room for, the worst first."""
        if not report.hosts or room < 2:
            return
        beside = width >= WIDE
        longest = max(len(self._name(host)) for host in report.hosts)
        name = max(SHORTEST_NAME, min(longest + 1, LONGEST_NAME, width - NUMBERS))
        yield Text("host".ljust(name) + ROW.format(*HEADS) + ("     why" if beside else ""), "dim")
        room, shown = room - 2, 0  # the head, and a line about the others
        for host in self._in_order(report, max(1, room // 2)):
            lines = list(self._host(host, name, width, beside=beside))
            if len(lines) > room:
                break
            room, shown = room - len(lines), shown + 1
            yield from lines
        others = max(report.hosts_known, len(report.hosts)) - shown
        if others > 0:
            yield Text(f"and {count(others, 'more host')}", "dim")

    def _in_order(self, report: AnyReport, room: int) -> list[HostReport]:
        """Hosts in the order of their rows, which change places only now and then."""
        if abs(report.process.wall - self._ordered) >= REORDER:
            self._ordered = report.process.wall
            self._places = {host.host: place for place, host in enumerate(ranked(report.hosts, room))}
        return sorted(report.hosts, key=lambda host: self._places.get(host.host, len(self._places)))

    def _host(self, host: HostReport, name: int, width: int, *, beside: bool) -> Iterator[Text]:
        requests = self._rates.rate(f"host {host.host}")
        cells = (
            "-" if requests is None else rate(requests),
            "-" if host.ceiling is None else rate(host.ceiling),
            "-" if host.latency is None else duration(host.latency),
            f"{host.refused:,}",
            f"{host.waiting:,}",
        )
        quiet = "dim" if host.state is HostCondition.DONE else ""
        shown = cut(printable(self._name(host)), name - 1).ljust(name)
        row = Text.assemble((shown, quiet or "bold"), (ROW.format(*cells, ""), quiet), (host.state, STYLES[host.state]))
        said = printable(host_words(host))
        if beside and not quiet:
            row.append(" " * (10 - len(host.state)) + said, "dim")
        yield row
        if said and not beside and host.state not in FINE:
            yield Text("  " + cut(said, width - 2), "dim")

    def _name(self, host: HostReport) -> str:
        return self._names.get(host.host, host.host)


class Plots:
    """What the activity of a system was, second by second."""

    def __init__(self) -> None:
        self._trail = Trail()
        self._wall = -inf
        self._counts: dict[str, float] = {}

    def add(self, report: AnyReport) -> None:
        """Take a point, unless that was just done. Of a count it is what it grew by a second."""
        wall = report.process.wall
        passed = wall - self._wall
        if 0 <= passed < STEP:
            return
        values = {each.label: each.value for each in report.activity if each.value is not None}
        counts = {each.label for each in report.activity if each.counts}
        grown = {
            name: max(0.0, value - self._counts[name]) / passed
            for name, value in values.items()
            if name in counts and name in self._counts and passed > 0
        }
        self._trail.add({**{name: value for name, value in values.items() if name not in counts}, **grown})
        self._wall, self._counts = wall, values

    def of(self, name: str) -> Sequence[float | None]:
        """The points of one of them, the oldest first."""
        return self._trail.of(name)


def bar(progress: Progress, width: int) -> Text:
    """How much of a whole is done, what failed of it in red, and that in words. What is not all is never 100 %."""
    whole = max(1, progress.whole)
    said = f" {100 * min(progress.done, whole) // whole} % of {progress.whole:,} {printable(progress.what)}"
    cells = max(0, width - len(said))
    red = min(cells, max(1, round(cells * progress.failed / whole)) if progress.failed else 0)
    good = max(0, min(cells, round(cells * progress.done / whole)) - red)
    return Text.assemble(("━" * good, "green"), ("━" * red, "red"), ("━" * (cells - good - red), "bright_black"), said)


def wrapped(name: str, text: str, width: int, style: str = "", most: int = WORDS) -> Iterator[Text]:
    """A line about something, on as many lines as it needs, `most` at most."""
    for place, part in enumerate(broken(text, max(10, width - NAME - 2), most)):
        yield labelled("" if place else name, part, style)


def flowing(pairs: Iterable[tuple[str, str]], width: int) -> Iterator[Text]:
    """Labels and texts beside each other, as many to a line as there is room for."""
    row = Text("")
    for name, text in pairs:
        each = Text.assemble((f"{printable(name)} ", "dim"), printable(text))
        if len(row) and len(row) + len(each) + 3 > width:
            yield row
            row = Text("")
        row = Text.assemble(row, "   ", each) if len(row) else each
    if len(row):
        yield row
