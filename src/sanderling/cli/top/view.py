"""The picture of `sanderling top`: what people chose to see, and the lines of it for a terminal of any size. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from rich.text import Text

from sanderling.cli.house_words import ended, heading, standing, titled
from sanderling.cli.plots import Trail, spark
from sanderling.cli.report_words import rate
from sanderling.cli.top.keys import ESCAPE, QUIT
from sanderling.cli.top.series import TopSeries, series_of
from sanderling.web.house_facts import System
from sanderling.web.house_hosts import HostRow, HostsQuery, page
from sanderling.web.house_live import Seen
from sanderling.words import count, duration, printable

SORTS: dict[str, tuple[str, str]] = {
    "r": ("rate", "rate"),
    "l": ("latency", "latency"),
    "e": ("error_rate", "errors"),
    "w": ("queued", "waiting"),
}
USUAL = "requests"
CELL, LABEL, VALUE = 26, 8, 9  # columns of a small plot at least; of its name and of its number
GAP = 3  # columns between two of them
MOST_EVENTS = 4
NAME = 10  # columns of what a line is about, where one system is looked at
# How much of a system is shown, and whether with a line between two, the most first.
DETAILS = ((3, True), (2, True), (2, False), (1, False))
MOST_TROUBLES, MOST_ENDED, FEWEST_HOSTS = 3, 5, 4
ROW = "{:>9}{:>8}{:>9}{:>9}{:>9}{:>8}{:>9}  {:<10}"
HEADS = ("requests", "rate", "ceiling", "latency", "p95", "errors", "waiting", "state")
NUMBERS = 73  # columns of a row
SHORTEST_NAME, LONGEST_NAME = 24, 44
HELP = (
    ("1 - 9", "look at one system alone"),
    ("0, Esc", "look at all of them"),
    ("r", "sort hosts by the rate they are asked at; once more: by requests, as at first"),
    ("l", "by latency"),
    ("e", "by the share of errors"),
    ("w", "by what waits for them"),
    ("?", "show this, or go back"),
    ("q", "quit"),
)
FOOT = "q quit   1-9 one system   0 all   hosts by: r rate  l latency  e errors  w waiting   ? help"
STATES = {"closed": "green", "open": "bold red", "half-open": "yellow", "set aside": "bold red"}


class Look(NamedTuple):
    """What there is to draw."""

    home: str
    seen: Seen
    hosts: Sequence[HostRow]  # of the systems that run


@dataclass(slots=True)
class View:
    """What people chose to see, and what was seen so far."""

    sort: str = USUAL
    focus: str | None = None  # the name of a system
    helping: bool = False
    keys: bool = True  # whether any can be pressed
    trails: dict[str, Trail] = field(default_factory=dict)

    def take(self, seen: Seen) -> None:
        """Remember what is seen now."""
        self.trails = {each.name: self.trails.get(each.name) or Trail() for each in seen.systems}
        for each in seen.systems:
            self.trails[each.name].add(each.points if isinstance(each.points, dict) else {})

    def press(self, key: str, systems: Sequence[System]) -> bool:
        """Do what a key is for; whether to go on."""
        if key == QUIT:
            return False
        if key == "?":
            self.helping = not self.helping
            return True
        self.helping = False
        if key in SORTS:
            wanted = SORTS[key][0]
            self.sort = USUAL if self.sort == wanted else wanted
        elif key in ("0", ESCAPE):
            self.focus = None
        elif key in "123456789" and int(key) <= len(systems):
            self.focus = systems[int(key) - 1].name
        return True

    def lines(self, look: Look, width: int, height: int) -> list[Text]:
        """The whole picture, in so many lines at most, none of them too wide."""
        foot = [Text(FOOT, "dim")] if self.keys else []
        room = max(1, height - len(foot))
        if self.helping:
            lines = [Text("keys", "bold"), *(Text(f"{key:>8}   {what}") for key, what in HELP)]
        else:
            lines = list(self._picture(look, width, room))
        lines = [*lines[:room], *[Text()] * (room - len(lines)), *foot]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines

    def _picture(self, look: Look, width: int, room: int) -> Iterator[Text]:
        systems = look.seen.systems
        at = datetime.fromtimestamp(look.seen.wall).astimezone().strftime("%H:%M:%S")
        yield Text.assemble((f"{at}  ", "dim"), (heading(look.home, systems), "bold"))
        yield Text()
        alone = next(((n, each) for n, each in enumerate(systems, 1) if each.name == self.focus), None)
        if alone is None:
            above, hosts = self._all(look, width, room - 2), look.hosts
        else:
            above = [*self._one(alone[0], alone[1], look, width), Text()]
            hosts = [row for row in look.hosts if row.system == alone[1].name]
        yield from above
        numbers = {each.name: number for number, each in enumerate(systems, 1)}
        yield from self._hosts(hosts, numbers, width, room - 2 - len(above))

    def _all(self, look: Look, width: int, room: int) -> list[Text]:
        """All systems, in as much detail as there is room for."""
        hosts = min(len(look.hosts), FEWEST_HOSTS) + 2 if look.hosts else 0
        lines: list[Text] = []
        for detail, gap in DETAILS:
            lines = [line for line in self._systems(look, width, detail) if gap or line.plain]
            if len(lines) <= room - hosts:
                break
        return lines

    def _systems(self, look: Look, width: int, detail: int) -> Iterator[Text]:
        wall = look.seen.wall
        numbered = list(enumerate(look.seen.systems, 1))
        if not numbered:
            yield Text(f"nothing has run in {printable(look.home)} yet; it is looked at again and again", "dim")
        for number, each in numbered:
            if each.running:
                yield self._title(number, each, wall)
                yield from self._below(each, width, detail)
                yield Text()
        resting = [(number, each) for number, each in numbered if not each.running]
        for number, each in resting[:MOST_ENDED]:
            yield Text(f"{number} {ended(each, look.seen.found[each.name], wall)}", "dim")
        if len(resting) > MOST_ENDED:
            yield Text(f"  and {len(resting) - MOST_ENDED:,} more that ended", "dim")
        if resting:
            yield Text()

    def _title(self, number: int, system: System, wall: float) -> Text:
        style = "bold yellow" if system.paused else "bold red" if system.troubles else "bold green"
        return Text.assemble(
            (f"{number} ", "dim"),
            (titled(system), style),
            (f"  {standing(system, wall)}  ", "dim"),
            printable(system.doing),
        )

    def _below(self, system: System, width: int, detail: int) -> Iterator[Text]:
        """What stands under the title."""
        if detail > 1:
            yield from self._plots(system, width)
        if detail > 2 and system.numbers:
            said = "   ".join(f"{label} {text}" for label, text in system.numbers if label != "waiting")
            flow = f"waiting {system.flow.waiting:,}   allowed {rate(system.flow.allowed)}/s"
            yield Text(printable(f"  {flow}   {said}"), "dim")
        for trouble in system.troubles[: (0, 0, 1, MOST_TROUBLES)[detail]]:
            yield Text(f"  ! {printable(trouble)}", "red")

    def _plots(self, system: System, width: int) -> Iterator[Text]:
        """Small plots beside each other, as many to a line as there is room for."""
        several = series_of(system)
        rows = -(-len(several) // max(1, (width - 2) // CELL))
        across = -(-len(several) // rows)
        for start in range(0, len(several), across):
            line = Text("  ")
            for each in several[start : start + across]:
                line.append_text(self._plot(system, each, (width - 2) // across - GAP)).append(" " * GAP)
            yield line

    def _plot(self, system: System, series: TopSeries, width: int, label: int = LABEL) -> Text:
        points = self.trails[system.name].of(series.name)
        last = points[-1] if points else None
        value = "-" if last is None else series.said(last)
        return Text.assemble(
            (f"{series.label:<{label}}", "dim"),
            (spark(points, max(0, width - label - VALUE)), series.style),
            f"{value:>{VALUE}}",
        )

    def _one(self, number: int, system: System, look: Look, width: int) -> Iterator[Text]:
        """One system, with all there is to say about it."""
        yield Text.assemble(
            (f"{number} ", "dim"), (titled(system), "bold"), (f"  {standing(system, look.seen.wall)}", "dim")
        )
        yield _line("doing", system.doing)
        if system.running:
            for each in series_of(system):
                yield self._plot(system, each, width, NAME)
            yield _line(
                "waiting", f"{system.flow.waiting:,}; {rate(system.flow.allowed)} a second allowed{_left(system)}"
            )
        numbers = [printable(f"{label} {text}") for label, text in system.numbers]
        for start in range(0, len(numbers), 4):
            yield _line("" if start else "numbers", "   ".join(numbers[start : start + 4]))
        for name, text in system.lines:
            yield _line(name, text)
        for event in system.events[-MOST_EVENTS:]:
            at = datetime.fromtimestamp(event.wall).astimezone().strftime("%H:%M:%S")
            yield _line(at, event.text)
        for trouble in system.troubles:
            yield _line("trouble", trouble, "red")

    def _hosts(self, hosts: Sequence[HostRow], numbers: Mapping[str, int], width: int, room: int) -> Iterator[Text]:
        """As many hosts as there is room for, sorted as people want them; each with the number of its system."""
        if not hosts or room < 2:
            return
        shown = page(hosts, HostsQuery(sort=self.sort, limit=min(1000, max(1, room - 1)))).hosts
        names = [printable(f"{numbers.get(row.system, 0)} {row.host}") for row in shown]
        longest = max(map(len, names))
        name = max(SHORTEST_NAME, min(longest, LONGEST_NAME, width - NUMBERS)) + 1
        by = next((word for column, word in SORTS.values() if column == self.sort), "requests")
        left = f"  {count(len(hosts), 'host')}, by {by}"
        yield Text(f"{left:<{name}}{ROW.format(*HEADS)}why", "dim")
        for row, shown_name in zip(shown, names, strict=True):
            yield _host(row, shown_name, name)


def _host(row: HostRow, shown: str, name: int) -> Text:
    state = "paused" if row.paused else row.state
    cells = (
        f"{row.requests:,}",
        rate(row.rate),
        "-" if row.ceiling is None else rate(row.ceiling),
        "-" if row.latency is None else duration(row.latency),
        "-" if row.p95 is None else duration(row.p95),
        "-" if row.error_rate is None else f"{100 * row.error_rate:.1f} %",
        f"{row.queued:,}",
    )
    shown = shown if len(shown) < name else f"{shown[: name - 2]}…"
    numbers = ROW.format(*cells, "").rstrip(" ")
    return Text.assemble(
        (shown.ljust(name), "bold"),
        numbers,
        (f"  {printable(state):<10}", STATES.get(state, "yellow")),
        (printable(row.trouble or row.why), "dim"),
    )


def _left(system: System) -> str:
    return "" if system.time_left is None else f"; about {duration(system.time_left)} left"


def _line(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:<{NAME}}", "dim"), (printable(text), style))
