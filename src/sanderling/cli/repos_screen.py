"""What a crawl of repos looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.apis.atproto import PERMANENT
from sanderling.cli.pages_summary import clock_face, duration, printable, size
from sanderling.cli.screen import Silent, Wordy, ascii_of, drawable
from sanderling.repos.status import ARCHIVED, HostStatus, RepoStatus

ROW = "{:>6}{:>6}{:>9}{:>8}{:>7}{:>9}  {}"  # behind the name
HEADS = ("rate", "most", "latency", "refused", "failed", "waiting", "state")
NUMBERS, STATE = 47, 10  # columns of all that but the state, and of the state
NAME, LONGEST_NAME = 22, 48  # columns of a host's name; the first is what is left of 80
REORDER = 2.0  # seconds; rows that change places more often cannot be read
SAY_EVERY = 5.0  # seconds between plain lines
SECONDS, STEP = 10.0, 0.5  # that rates are counted over, and between two counts
LONG = 60.0  # seconds that the time left is reckoned from, which should not jump about
SLOW = 2.0  # seconds; small repos take a tenth of that


class State(Enum):
    """What a host is like right now, in the word that people see. The worst come first."""

    BLOCKED = "blocked"
    FAILING = "failing"
    THROTTLED = "throttled"
    SLOW = "slow"
    GOING = "going"
    DONE = "done"


STYLES = {
    State.BLOCKED: "bold red",
    State.FAILING: "red",
    State.THROTTLED: "yellow",
    State.SLOW: "magenta",
    State.GOING: "green",
    State.DONE: "dim",
}
_RANK = {state: rank for rank, state in enumerate(State)}


def state_of(host: HostStatus) -> State:
    """The state of a host."""
    if host.blocked:
        return State.BLOCKED
    if not (host.waiting or host.view.inflight):
        return State.DONE
    if host.failures or host.view.state != "closed":
        return State.FAILING
    if host.view.not_before > 0 or (host.view.rejected and host.view.ceiling is not None):
        return State.THROTTLED
    return State.SLOW if (host.view.latency or 0.0) >= SLOW else State.GOING


class _Count(NamedTuple):
    seconds: float
    archived: int
    settled: int
    records: int
    bytes: int
    requests: Mapping[str, int]


class Pace:
    """How fast things went over the last seconds."""

    def __init__(self) -> None:
        self._counts: deque[_Count] = deque()

    def take(self, status: RepoStatus) -> None:
        """Count what there is, unless that was just done."""
        if self._counts and status.seconds - self._counts[-1].seconds < STEP:
            return
        requests = {host.view.host: host.view.requests for host in status.hosts}
        settled = settled_of(status)
        self._counts.append(
            _Count(status.seconds, status.archived, settled, status.records, status.bytes_read, requests)
        )
        while self._counts[-1].seconds - self._counts[0].seconds > LONG:
            self._counts.popleft()

    def rate(self, what: str, over: float = SECONDS) -> float:
        """How many of these a second: archived, settled, records or bytes."""
        first, last = self._between(over)
        passed = last.seconds - first.seconds if first and last else 0.0
        return (getattr(last, what) - getattr(first, what)) / passed if passed > 0 else 0.0

    def requests(self, host: str) -> float:
        """How many a second the host was sent."""
        first, last = self._between(SECONDS)
        if first is None or last is None or last.seconds <= first.seconds:
            return 0.0
        return (last.requests.get(host, 0) - first.requests.get(host, 0)) / (last.seconds - first.seconds)

    def _between(self, over: float) -> tuple[_Count | None, _Count | None]:
        if not self._counts:
            return None, None
        last = self._counts[-1]
        return next(each for each in self._counts if last.seconds - each.seconds <= over), last


def settled_of(status: RepoStatus) -> int:
    """DIDs that are complete by this run: archived, or failed for good."""
    return status.archived + sum(status.ended.get(category.value, 0) for category in PERMANENT)


def left_of(status: RepoStatus) -> int:
    """DIDs that are not complete yet; more than there are to ask for, if some hosts are skipped."""
    return max(0, status.known - status.before - settled_of(status))


class Screen(Protocol):
    """Where a crawl is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, status: RepoStatus) -> None:
        """Show how the crawl stands."""

    def note(self, text: str) -> None:
        """Say something besides, at once."""

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Say what came of it, once, after the last frame: in words, or as JSON."""


def fitting(*, json: bool, names: Mapping[str, str] | None = None) -> Screen:
    """The screen for what stdout is; `names` are those that people know the hosts by, where there are such."""
    if json:
        return Silent()
    console = drawable()
    return Plain() if console is None else Terminal(console, names or {})


class Plain(Wordy):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._said = 0.0

    def show(self, status: RepoStatus) -> None:
        """Print a line, if the last was long enough ago."""
        self._pace.take(status)
        if status.seconds - self._said >= SAY_EVERY:
            self._said = status.seconds
            self.note(ascii_of(", ".join([*counters(status, self._pace), *_errors(status)])))


class Terminal:
    """Totals, and a row for each host that matters, redrawn four times a second."""

    every = 0.25

    def __init__(self, console: Console, names: Mapping[str, str]) -> None:
        self._console = console
        self._names = names
        self._pace = Pace()
        self._status: RepoStatus | None = None
        self._notes: list[str] = []
        self._order: list[str] = []
        self._ordered = float("-inf")
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: RepoStatus) -> None:
        """Draw the crawl over the frame before."""
        self._status = status
        self._pace.take(status)
        self._live.refresh()

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
        time, *numbers = counters(status, self._pace)
        lines = [
            Text.assemble((f"{time}  ", "dim"), ("".join(f"  {number}" for number in numbers), "bold")),
            bar(status, self._pace, options.max_width),
            Text("  ".join(_errors(status)) or "no errors", "red" if status.ended.keys() - {ARCHIVED} else "dim"),
            Text(),
        ]
        notes = [Text(note, "bold") for note in self._notes]
        room = console.height - len(lines) - len(notes) - 3  # the heads, the line about the others, and the cursor's
        for line in [*lines, *self._table(status, max(1, room), options.max_width), *notes]:
            line.truncate(options.max_width, overflow="ellipsis")
            yield line

    def _table(self, status: RepoStatus, room: int, width: int) -> Iterator[Text]:
        longest = max((len(self._name(host)) for host in status.hosts), default=0)
        name = max(NAME, min(longest + 1, width - NUMBERS - STATE, LONGEST_NAME))
        yield Text("host".ljust(name) + ROW.format(*HEADS), "dim")
        shown = self._in_order(status)[:room]
        yield from (self._host(host, name) for host in shown)
        if status.hosts_known > len(shown):
            waiting = max(0, status.waiting - sum(host.waiting for host in shown))
            yield Text(f"and {status.hosts_known - len(shown):,} more hosts, {waiting:,} repos waiting for them", "dim")

    def _in_order(self, status: RepoStatus) -> list[HostStatus]:
        """The hosts, those that matter first; they change places only now and then."""
        if status.seconds - self._ordered >= REORDER:
            self._ordered = status.seconds
            ranked = sorted(status.hosts, key=lambda host: (_RANK[state_of(host)], -host.waiting, host.view.host))
            self._order = [host.view.host for host in ranked]
        hosts = {host.view.host: host for host in status.hosts}
        before = [hosts.pop(name) for name in self._order if name in hosts]
        return [*before, *hosts.values()]

    def _host(self, host: HostStatus, name: int) -> Text:
        view, state = host.view, state_of(host)
        most = min(each for each in (view.ceiling, view.cap, view.rate) if each is not None)
        cells = (
            f"{self._pace.requests(view.host):.1f}",
            f"{most:.1f}",
            "-" if view.latency is None else f"{1000 * view.latency:,.0f} ms",
            f"{view.rejected:,}",
            f"{host.failures:,}",
            f"{host.waiting:,}",
            "",
        )
        dim = "dim" if state is State.DONE else ""
        shown = _cut(printable(self._name(host)), name - 1).ljust(name)
        return Text.assemble((shown, dim or "bold"), (ROW.format(*cells), dim), (state.value, STYLES[state]))

    def _name(self, host: HostStatus) -> str:
        return self._names.get(host.view.host, host.view.host)


def bar(status: RepoStatus, pace: Pace, width: int) -> Text:
    """How many of the directory's DIDs are complete, and when the others will be."""
    known = max(1, status.known)
    done = min(known, status.before + settled_of(status))
    speed = pace.rate("settled", LONG)
    until = f", {duration(left_of(status) / speed)} left" if speed > 0 and left_of(status) else ""
    label = f" {100 * done // known} % of {status.known:,} DIDs{until}"
    cells = max(10, width - len(label))
    filled = round(cells * done / known)
    return Text.assemble(("━" * filled, "green"), ("━" * (cells - filled), "bright_black"), label)


def counters(status: RepoStatus, pace: Pace) -> list[str]:
    """The totals, in words."""
    return [
        clock_face(status.seconds),
        f"{status.archived:,} repos",
        f"{pace.rate('archived'):.1f}/s",
        f"{pace.rate('records'):,.0f} records/s",
        f"{pace.rate('bytes') / 1e6:.2f} MB/s",
        f"{status.inflight:,} in flight",
        f"segment {status.segment:,}: {size(status.segment_bytes)}",
        *([f"{status.hosts_blocked:,} blocked"] if status.hosts_blocked else []),
    ]


def _errors(status: RepoStatus) -> list[str]:
    """What repos were not archived for, the most frequent first."""
    ordered = sorted(status.ended.items(), key=lambda each: (-each[1], each[0]))
    return [f"{number:,} {name}" for name, number in ordered if name != ARCHIVED]


def _cut(text: str, width: int) -> str:
    """As much of the text as fits, and a sign that there was more."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
