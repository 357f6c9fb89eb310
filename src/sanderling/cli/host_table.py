"""What the screens of crawls share: hosts in rows that keep their places, how fast things go, and how far they are."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Generic, NamedTuple, Protocol, TypeVar

from rich.text import Text

from sanderling.cli.screen import cut
from sanderling.limit import HostView
from sanderling.words import count, printable

STATE = 10  # columns of the state, and a space
LONGEST_NAME = 48  # columns of a host's name
REORDER = 2.0  # seconds; rows that change places more often cannot be read
SECONDS, STEP = 10.0, 0.5  # that rates are counted over, and between two counts


class Viewed(Protocol):
    """A host, as the limiter knows it."""

    @property
    def view(self) -> HostView:
        """What it knows."""


Host = TypeVar("Host", bound=Viewed)


class Columns(NamedTuple):
    """The columns of a table of hosts."""

    row: str  # the format of all behind the name; the state is the last
    heads: tuple[str, ...]
    name: int  # of a host's name, at least

    @property
    def numbers(self) -> int:
        """Columns of all that is between the name and the state."""
        return len(self.row.format(*("" for _ in self.heads)))


class HostTable(Generic[Host]):
    """A row for each host, under the names that people know them by."""

    def __init__(self, columns: Columns, names: Mapping[str, str]) -> None:
        self._columns = columns
        self._names = names
        self._order: list[str] = []
        self._ordered = -inf

    def in_order(self, hosts: Sequence[Host], now: float, rank: Callable[[], Iterable[Host]]) -> list[Host]:
        """The hosts, those that matter first; they change places only now and then."""
        if abs(now - self._ordered) >= REORDER:
            self._ordered = now
            self._order = [host.view.host for host in rank()]
        left = {host.view.host: host for host in hosts}
        before = [left.pop(name) for name in self._order if name in left]
        return [*before, *left.values()]

    def name_width(self, hosts: Iterable[Host], width: int) -> int:
        """Columns for names, in a window of that width."""
        longest = max((len(self._name(host)) for host in hosts), default=0)
        return max(self._columns.name, min(longest + 1, width - self._columns.numbers - STATE, LONGEST_NAME))

    def head(self, name: int) -> Text:
        """What the columns are."""
        return Text("host".ljust(name) + self._columns.row.format(*self._columns.heads), "dim")

    def row(self, host: Host, name: int, cells: Iterable[str], state: tuple[str, str]) -> Text:
        """A host, its numbers, and its state with the style of it."""
        word, style = state
        quiet = "dim" if style == "dim" else ""
        shown = cut(printable(self._name(host)), name - 1).ljust(name)
        return Text.assemble((shown, quiet or "bold"), (self._columns.row.format(*cells, ""), quiet), (word, style))

    def _name(self, host: Host) -> str:
        return self._names.get(host.view.host, host.view.host)


def others(hosts: int, waiting: int, what: str) -> Iterator[Text]:
    """The line about hosts that there is no room for, if there are any."""
    if hosts > 0:
        yield Text(f"and {count(hosts, 'more host')}, {max(0, waiting):,} {what} waiting for them", "dim")


def headline(counters: Iterable[str]) -> Text:
    """How long it runs, and the totals."""
    time, *numbers = counters
    return Text.assemble((f"{time}  ", "dim"), ("".join(f"  {number}" for number in numbers), "bold"))


def progress(done: int, whole: int, what: str, width: int, failed: int = 0) -> Text:
    """How much of a whole is done, what failed of it in red, and that in words. What is not all is never 100 %."""
    known = max(1, whole)
    said = f" {100 * done // known} % of {whole:,} {what}"
    cells = max(10, width - len(said))
    red = max(1, round(cells * failed / known)) if failed else 0
    good = max(0, round(cells * done / known) - red)
    return Text.assemble(("━" * good, "green"), ("━" * red, "red"), ("━" * (cells - good - red), "bright_black"), said)


def latency(seconds: float | None) -> str:
    """How long a host takes, in a column of nine."""
    if seconds is None:
        return "-"
    return f"{1000 * seconds:,.0f} ms" if seconds < 9.9995 else f"{seconds:,.0f} s"


class _Count(NamedTuple):
    at: float
    totals: Mapping[str, int]
    requests: Mapping[str, int]  # by host


class Growth:
    """How fast numbers grew over the last seconds."""

    def __init__(self, longest: float = SECONDS) -> None:
        self._longest = longest
        self._counts: deque[_Count] = deque()

    def count(self, at: float, totals: Mapping[str, int], hosts: Iterable[Viewed]) -> None:
        """Count what there is, unless that was just done."""
        passed = at - self._counts[-1].at if self._counts else STEP
        if 0 <= passed < STEP:
            return
        if passed < 0:
            self._counts.clear()  # somebody has set the clock back
        self._counts.append(_Count(at, totals, {host.view.host: host.view.requests for host in hosts}))
        while at - self._counts[0].at > self._longest:
            self._counts.popleft()

    def rate(self, what: str, over: float = SECONDS) -> float:
        """How many of these a second; 0 if it is not known yet."""
        first, last, passed = self._between(over)
        return (last.totals[what] - first.totals[what]) / passed if passed else 0.0

    def requests(self, host: str, over: float = SECONDS) -> float | None:
        """How many a second the host was sent; None if it is not known yet."""
        first, last, passed = self._between(over)
        return max(0, last.requests.get(host, 0) - first.requests.get(host, 0)) / passed if passed else None

    def _between(self, over: float) -> tuple[_Count, _Count, float]:
        """The first count of that time, the last one, and the seconds between them."""
        last = self._counts[-1] if self._counts else _Count(0.0, {}, {})
        first = next((each for each in self._counts if last.at - each.at <= over), last)
        return first, last, last.at - first.at
