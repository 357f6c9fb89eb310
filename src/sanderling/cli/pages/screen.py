"""What a crawl looks like: a picture that redraws itself on a terminal, plain lines elsewhere, or JSON at the end."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple, Never

from rich.console import Console
from rich.text import Text

from sanderling.cli.host_table import STATE, Columns, HostTable, headline, latency, others, progress
from sanderling.cli.pages.hosts import CrawlStatus, Mood, Pace, mood, ranked, words_of
from sanderling.cli.screen import Picture, ScreenOf, Window, Wordy, cut, suited
from sanderling.engine.host_report import HostStatus
from sanderling.words import clock_face, size

COLUMNS = Columns(
    "{:>6}{:>8}{:>9}{:>8}{:>8}  {}",
    ("rate", "ceiling", "latency", "refused", "waiting", "state"),
    name=29,  # what is left of 80
)
WIDE = 132  # columns from which the words stand beside the numbers, and not under them
WIDEST = 180
NAMED = 3  # troubled hosts that a plain line names
SAY_EVERY = 5.0  # seconds between plain lines
STYLES = {
    Mood.SET_ASIDE: "red",
    Mood.FAILING: "bold red",
    Mood.FAILED: "red",
    Mood.THROTTLED: "yellow",
    Mood.SLOW: "magenta",
    Mood.FLAKY: "yellow",
    Mood.CAPPED: "cyan",
    Mood.GOING: "green",
    Mood.DONE: "dim",
}


class Words(NamedTuple):
    """What the things are called that a crawl keeps, and that it asks for."""

    kept: str
    asked: str


PAGES = Words("pages", "URLs")
Screen = ScreenOf[CrawlStatus, Never]


def fitting(*, json: bool, names: Mapping[str, str] | None = None, words: Words = PAGES) -> Screen:
    """The screen for what stdout is; `names` are those that people know the hosts by, where there are such."""
    return suited(partial(Terminal, names=names or {}, words=words), partial(Plain, names or {}, words), json=json)


class Plain(Wordy[CrawlStatus, Never]):
    """A line now and then to stderr, for pipes, files and terminals that cannot do more; the summary to stdout."""

    def __init__(self, names: Mapping[str, str], words: Words = PAGES) -> None:
        self._names = names
        self._words = words
        self._pace = Pace()
        self._said = 0.0

    def show(self, status: CrawlStatus, /) -> None:
        """Print a line, if the last was long enough ago."""
        self._pace.take(status)
        if status.seconds - self._said >= SAY_EVERY:
            self._said = status.seconds
            self.note(", ".join([*_counters(status, self._pace, self._words), *self._troubles(status)]))

    def _troubles(self, status: CrawlStatus) -> Iterator[str]:
        for host in ranked(status.hosts, room=NAMED)[:NAMED]:
            if mood(host).troubled:
                yield f"{self._names.get(host.view.host, host.view.host)} {mood(host).value}"


class Terminal(Picture[CrawlStatus, Never]):
    """A headline and a row for each host that matters."""

    def __init__(self, console: Console, names: Mapping[str, str], words: Words = PAGES) -> None:
        super().__init__(console)
        self._words = words
        self._pace = Pace()
        self._table = HostTable[HostStatus](COLUMNS, names)

    def show(self, status: CrawlStatus, /) -> None:
        """Draw the crawl over the frame before."""
        self._pace.take(status)
        super().show(status)

    def _lines(self, status: CrawlStatus, window: Window) -> Iterator[Text]:
        width = min(window.width, WIDEST)
        totals = headline(_counters(status, self._pace, self._words))
        if status.counts["failed"]:
            totals.highlight_regex(r"[\d,]+ failed", "red")
        yield from (totals, bar(status, width, self._words), Text())
        yield from self._hosts(status, max(1, window.left(5)), width)  # beside these, heads, and a line on the others

    def _hosts(self, status: CrawlStatus, room: int, width: int) -> Iterator[Text]:
        beside, name = width >= WIDE, self._table.name_width(status.hosts, width)
        yield self._table.head(name).append("     why" if beside else "")
        shown: list[HostStatus] = []
        for host in self._table.in_order(status.hosts, status.wall, partial(ranked, status.hosts, room // 2)):
            lines = list(self._host(host, name, width, beside=beside))
            if len(lines) > room:
                break
            room -= len(lines)
            shown.append(host)
            yield from lines
        waiting = status.waiting - status.inflight - sum(host.queued for host in shown)
        yield from others(status.hosts_known - len(shown), waiting, self._words.asked)

    def _host(self, host: HostStatus, name: int, width: int, *, beside: bool) -> Iterator[Text]:
        view, state = host.view, mood(host)
        rate = self._pace.requests(view.host)
        cells = (
            "-" if rate is None else f"{rate:.1f}",
            "-" if view.ceiling is None else f"{view.ceiling:.1f}",
            latency(view.latency),
            f"{view.rejected:,}",
            f"{host.queued:,}",
        )
        line, said = self._table.row(host, name, cells, (state.value, STYLES[state])), words_of(host)
        if beside and state is not Mood.DONE:
            room = width - name - COLUMNS.numbers - STATE
            line.append(" " * (STATE - len(state.value)) + cut(said, room), "dim")
        yield line
        if state.troubled and not beside:
            yield Text("  " + cut(said, width - 2), "dim")


def bar(status: CrawlStatus, width: int, words: Words = PAGES) -> Text:
    """How much of what is known is decided: the good, the failed, the rest."""
    decided = status.known - status.waiting
    return progress(decided, status.known, f"known {words.asked}", width, status.counts["failed"])


def _counters(status: CrawlStatus, pace: Pace, words: Words) -> list[str]:
    return [
        clock_face(status.seconds),
        f"{status.kept:,} {words.kept}",
        f"{pace.kept:.1f}/s",
        f"{status.counts['failed']:,} failed",
        f"{max(0, status.waiting - status.inflight):,} waiting",
        f"{status.inflight:,} in flight",
        size(status.bytes),
    ]
