"""What the demo looks like: a table that redraws itself on a terminal, plain lines elsewhere, or JSON at the end."""

import os
import shutil
import sys
import textwrap
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Never

from rich.console import Console
from rich.text import Text

from sanderling.cli.demos.limiter_summary import HARD_SPACE, STORIES, Summary, words
from sanderling.cli.screen import Picture, ScreenOf, Window, Wordy, suited
from sanderling.limit import HostView, Snapshot
from sanderling.worlds.showcase import CALLERS

MINUTE = 60.0  # of the hosts' time, that a chart spans
ROWS = 3  # of a chart: beside it stand the words, and the longest of them need three lines
BLOCKS = " ▁▂▃▄▅▆▇█"
COLOURS = {"closed": "green", "open": "bold red", "half-open": "yellow"}
ROW = "{:<15}{:>6}{:>8}{:>7} {:<9}{:>5}{:>5}{:>6}{:>8}{:>5}{:>5}"  # 80 columns
GROUPS = f"{{:<46}}{'latency ms':>10}{'requests':>14}{'callers':>10}"
HEADS = ("host", "rate", "ceiling", "tokens", "breaker", "mean", "p95", "sent", "refused", "wait", "busy")
PLAIN = "{:>4} {:<15}{:>6}{:>8} {:<9}{:>5}{:>5}{:>6}{:>8}{:>5}{:>5}  {}"  # the same with a time and without tokens
WORDS = 50  # columns for why the rate is what it is; the chart gets the rest
TALL = 24  # lines; lower terminals get no empty lines between the hosts
WIDEST = 120  # columns; beyond that, words and chart would be too far apart


@dataclass(frozen=True, slots=True)
class Frame:
    """What there is to see at one moment. Times are the hosts' seconds, which pass `speed` times as fast as ours."""

    snapshot: Snapshot
    elapsed: float
    seconds: float
    speed: float

    @property
    def hosts(self) -> list[HostView]:
        """The hosts, always in the same order."""
        views = {view.host: view for view in self.snapshot.top}
        return [views[name] for name in STORIES if name in views]


Screen = ScreenOf[Frame, Never]


def fitting(*, json: bool) -> Screen:
    """The screen for what stdout is."""
    return suited(Terminal, Plain, json=json)


class Plain(Wordy[Frame, Never]):
    """A line per host every few seconds, for pipes, files and terminals that cannot do more. ASCII only."""

    every = 4.0
    _begun = False

    def show(self, frame: Frame, /) -> None:
        """Print a line for each host."""
        try:
            self._show(frame)
        except BrokenPipeError:
            # Whoever read this has gone, as `head` does: that ends the demo like Ctrl-C, and without a word.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise KeyboardInterrupt from None

    def _show(self, frame: Frame) -> None:
        if not self._begun:
            print(_title(frame))
            self._print("s", HEADS, "why")
            self._begun = True
        for host in frame.hosts:
            self._print(f"{frame.elapsed:.0f}", _cells(host), host.why)
        sys.stdout.flush()

    def _print(self, time: str, cells: tuple[str, ...], why: str) -> None:
        """Print one line; on a terminal, as much of it as fits."""
        line = PLAIN.format(time, *cells[:3], *cells[4:], why)
        print(line[: shutil.get_terminal_size().columns] if sys.stdout.isatty() else line)


class Terminal(Picture[Frame, Never]):
    """The numbers of each host, and the last minute of its rate."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._paths: dict[str, deque[tuple[float, float]]] = {}  # rates by when, of the last minute

    def show(self, frame: Frame, /) -> None:
        """Draw the frame over the one before."""
        for host in frame.hosts:
            path = self._paths.setdefault(host.host, deque())
            path.append((frame.elapsed, _pace(host)))
            while path[0][0] < frame.elapsed - MINUTE:
                path.popleft()
        super().show(frame)

    def _lines(self, frame: Frame, window: Window) -> Iterator[Text]:
        yield Text(_title(frame), "bold")
        yield Text()
        yield Text(GROUPS.format("charts: the last minute of the rate"), "dim")
        yield Text(ROW.format(*HEADS), "dim")
        for host in frame.hosts:
            yield from self._block(host, frame.elapsed, min(window.width, WIDEST))
            if window.height >= TALL:
                yield Text()
        yield from (Text(line) for line in _totals(frame))

    def _block(self, host: HostView, now: float, width: int) -> Iterator[Text]:
        """The numbers of a host, and under them the last minute of its rate beside the words."""
        row = Text(ROW.format(*_cells(host)))
        row.highlight_words([host.host], "bold")
        row.highlight_words([host.state], COLOURS[host.state])
        yield row
        columns = max(20, width - WORDS - 3)
        told = textwrap.wrap(host.why, WORDS, break_on_hyphens=False)[:ROWS]
        for line, said in zip(chart(self._paths[host.host], now, columns), [*told, "", "", ""], strict=False):
            yield Text.assemble(" ", (line, "cyan"), "  ", said)


def chart(path: Sequence[tuple[float, float]], now: float, columns: int) -> list[str]:
    """A minute of values up to `now`, as lines of blocks; the highest value fills the height."""
    ends = [now - MINUTE * (1 - (column + 1) / columns) for column in range(columns)]
    values = [next((value for when, value in reversed(path) if when <= end), 0.0) for end in ends]
    full = ROWS * (len(BLOCKS) - 1)
    heights = [round(full * value / (max(values) or 1)) for value in values]
    above = [(len(BLOCKS) - 1) * row for row in reversed(range(ROWS))]
    return ["".join(BLOCKS[min(len(BLOCKS) - 1, max(0, height - low))] for height in heights) for low in above]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it, as paragraphs."""

    summary: Summary

    def drawn(self, width: int, *, plain: bool = False) -> Iterator[Text]:
        """The lines of it; what stands around a hard space stays together."""
        del plain  # there is nothing in it but words
        for paragraph in words(self.summary):
            text = Text(textwrap.fill(paragraph, width, break_on_hyphens=False).replace(HARD_SPACE, " "))
            host = paragraph.split(" ", 1)[0]
            if host in STORIES:
                text.stylize("bold", 0, len(host))
            yield Text()
            yield from text.split("\n")


def _title(frame: Frame) -> str:
    return f"One limiter learns three hosts at once: {CALLERS} callers each, time {frame.speed:g}x as fast."


def _totals(frame: Frame) -> Iterator[str]:
    totals, gone, left = frame.snapshot, frame.elapsed / frame.speed, (frame.seconds - frame.elapsed) / frame.speed
    yield f"{totals.requests:,} requests, {totals.throttled:,} of them after waiting for leave"
    yield f"{totals.rejected:,} refused; {totals.denied:,} callers turned away by an open breaker"
    yield f"{gone:.0f} s gone, {left:.0f} s to go; Ctrl-C ends it" if left > 0 else f"{gone:.0f} s, done"


def _pace(host: HostView) -> float:
    """Requests a second that may leave now: none while the breaker is open, whatever the rate will be after it."""
    return 0.0 if host.state == "open" else host.rate


def _cells(host: HostView) -> tuple[str, ...]:
    return (
        host.host,
        f"{_pace(host):.1f}",
        "-" if host.ceiling is None else f"{host.ceiling:.1f}",
        f"{max(0.0, host.tokens):.2f}",
        host.state,
        _milliseconds(host.latency),
        _milliseconds(host.p95),
        _short(host.requests),
        _short(host.rejected),
        str(host.waiting),
        str(host.inflight),
    )


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f}"


def _short(count: int) -> str:
    return f"{count:,}" if count < 10_000 else f"{count / 1000:.0f}k"
