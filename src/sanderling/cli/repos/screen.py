"""What a crawl of repos looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Never

from rich.console import Console
from rich.text import Text

from sanderling.apis.atproto import PERMANENT
from sanderling.cli.host_table import Columns, Growth, HostTable, headline, latency, others, progress
from sanderling.cli.screen import Picture, ScreenOf, Window, Wordy, suited
from sanderling.repos.source import ARCHIVED
from sanderling.repos.status import HostStatus, RepoStatus
from sanderling.words import clock_face, duration, size

COLUMNS = Columns(
    "{:>6}{:>6}{:>9}{:>8}{:>7}{:>9}  {}",
    ("rate", "most", "latency", "refused", "failed", "waiting", "state"),
    name=22,  # what is left of 80
)
SAY_EVERY = 5.0  # seconds between plain lines
LONG = 60.0  # seconds that the time left is reckoned from, which should not jump about
SLOW = 2.0  # seconds; small repos take a tenth of that


class State(Enum):
    """What a host is like right now, in the word that people see. The worst come first."""

    SET_ASIDE = "set aside"
    FAILING = "failing"
    THROTTLED = "throttled"
    SLOW = "slow"
    GOING = "going"
    DONE = "done"


STYLES = {
    State.SET_ASIDE: "bold red",
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
        return State.SET_ASIDE
    if not (host.waiting or host.view.inflight):
        return State.DONE
    if host.failures or host.view.state != "closed":
        return State.FAILING
    if host.view.not_before > 0 or (host.view.rejected and host.view.ceiling is not None):
        return State.THROTTLED
    return State.SLOW if (host.view.latency or 0.0) >= SLOW else State.GOING


class Pace(Growth):
    """How fast things went over the last seconds: repos archived and settled, records, bytes."""

    def __init__(self) -> None:
        super().__init__(LONG)

    def take(self, status: RepoStatus) -> None:
        """Count what there is, unless that was just done."""
        totals = {"archived": status.archived, "settled": settled_of(status)}
        totals |= {"records": status.records, "bytes": status.bytes_read}
        self.count(status.seconds, totals, status.hosts)


def settled_of(status: RepoStatus) -> int:
    """DIDs that are complete by this run: archived, or failed for good."""
    return status.archived + sum(status.ended.get(category.value, 0) for category in PERMANENT)


def left_of(status: RepoStatus) -> int:
    """DIDs that are not complete yet; more than there are to ask for, if some hosts are skipped."""
    return max(0, status.known - status.before - settled_of(status))


Screen = ScreenOf[RepoStatus, Never]


def fitting(*, json: bool, names: Mapping[str, str] | None = None) -> Screen:
    """The screen for what stdout is; `names` are those that people know the hosts by, where there are such."""
    return suited(partial(Terminal, names=names or {}), Plain, json=json)


class Plain(Wordy[RepoStatus, Never]):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._said = 0.0

    def show(self, status: RepoStatus, /) -> None:
        """Print a line, if the last was long enough ago."""
        self._pace.take(status)
        if status.seconds - self._said >= SAY_EVERY:
            self._said = status.seconds
            self.note(", ".join([*counters(status, self._pace), *_errors(status)]))


class Terminal(Picture[RepoStatus, Never]):
    """Totals, and a row for each host that matters."""

    def __init__(self, console: Console, names: Mapping[str, str]) -> None:
        super().__init__(console)
        self._pace = Pace()
        self._table = HostTable[HostStatus](COLUMNS, names)

    def show(self, status: RepoStatus, /) -> None:
        """Draw the crawl over the frame before."""
        self._pace.take(status)
        super().show(status)

    def _lines(self, status: RepoStatus, window: Window) -> Iterator[Text]:
        yield headline(counters(status, self._pace))
        yield bar(status, self._pace, window.width)
        yield Text("  ".join(_errors(status)) or "no errors", "red" if status.ended.keys() - {ARCHIVED} else "dim")
        yield Text()
        name = self._table.name_width(status.hosts, window.width)
        yield self._table.head(name)
        room = max(1, window.left(6))  # beside these, and a line on the others
        shown = self._table.in_order(status.hosts, status.seconds, partial(_ranked, status))[:room]
        yield from (self._host(host, name) for host in shown)
        waiting = status.waiting - sum(host.waiting for host in shown)
        yield from others(status.hosts_known - len(shown), waiting, "repos")

    def _host(self, host: HostStatus, name: int) -> Text:
        view, state = host.view, state_of(host)
        most = min(each for each in (view.ceiling, view.cap, view.rate) if each is not None)
        rate = self._pace.requests(view.host)
        cells = (
            "-" if rate is None else f"{rate:.1f}",
            f"{most:.1f}",
            latency(view.latency),
            f"{view.rejected:,}",
            f"{host.failures:,}",
            f"{host.waiting:,}",
        )
        return self._table.row(host, name, cells, (state.value, STYLES[state]))


def _ranked(status: RepoStatus) -> list[HostStatus]:
    return sorted(status.hosts, key=lambda host: (_RANK[state_of(host)], -host.waiting, host.view.host))


def bar(status: RepoStatus, pace: Pace, width: int) -> Text:
    """How many of the directory's DIDs are complete, and when the others will be."""
    speed, left = pace.rate("settled", LONG), left_of(status)
    until = f", {duration(left / speed)} left" if speed > 0 and left else ""
    done = min(status.known, status.before + settled_of(status))
    return progress(done, status.known, f"DIDs{until}", width)


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
        *([f"{status.hosts_blocked:,} set aside"] if status.hosts_blocked else []),
    ]


def _errors(status: RepoStatus) -> list[str]:
    """What repos were not archived for, the most frequent first."""
    ordered = sorted(status.ended.items(), key=lambda each: (-each[1], each[0]))
    return [f"{number:,} {name}" for name, number in ordered if name != ARCHIVED]
