"""What polling looks like: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from sanderling.cli.polling.news import MOST, News, lines
from sanderling.cli.polling.words import host, line, now, often, punctual, runs, targets, told, troubles
from sanderling.cli.screen import NAME, Lines, Picture, ScreenOf, Window, labelled, suited
from sanderling.cli.strips import Strips
from sanderling.polling.status import PollingStatus
from sanderling.stores.polling import Change
from sanderling.words import clock_face, printable

PACE = 28  # columns of how often a kind is asked for
WIDEST, NARROWEST = 60, 8  # columns of a strip
CAPTION = "asked for, second by second"
MOST_KINDS = 10
MOST_CHANGES = 10_000  # that a frame takes in; of more, the last ones
OTHER_LINES = 10  # of the picture, beside kinds and troubles
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


Screen = ScreenOf[Frame, Sequence[Change]]


def fitting(*, json: bool, logs: bool = False) -> Screen:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    return suited(Terminal, Plain, json=json, logs=logs)


class Plain(Lines[Frame, Sequence[Change]]):
    """Who is live when that changes, what is wrong when that does, and a line now and then; the summary to stdout."""

    def __init__(self) -> None:
        super().__init__()
        self._now = ""

    def show(self, frame: Frame, /) -> None:
        """Print what is other than before, and now and then how it stands."""
        status, before = frame.status, self._now
        self._now = now(status)
        live = () if self._now == before else (self._now,)
        self._say(status.seconds, (*live, *self._changed(troubles(status))), line(status))


class Terminal(Picture[Frame, Sequence[Change]]):
    """Who is live, how often each kind is asked for, and what changed just now."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._changes: deque[Change] = deque(maxlen=MOST_CHANGES)  # since the last frame
        self._news, self._strips = News(), Strips()

    def show(self, frame: Frame, /) -> None:
        """Draw it over the frame before."""
        self._strips.add(frame.status)
        self._news.add(self._changes, frame.status.started)
        self._changes.clear()
        super().show(frame)

    def tell(self, changes: Sequence[Change], /) -> None:
        """Keep them for the next frame."""
        self._changes.extend(changes)

    def _lines(self, frame: Frame, window: Window) -> Iterator[Text]:
        above = [*self._picture(frame, window.width, max(1, min(MOST_KINDS, window.left(OTHER_LINES)))), Text()]
        yield from above
        # As many lines in every frame, so that nothing jumps.
        yield from self._told(min(MOST, window.left(len(above) + 1)))
        yield Text()

    def _told(self, room: int) -> list[Text]:
        shown = [labelled(clock_face(at), text) for at, text in list(lines(self._news))[-room:]] if room else []
        return shown + [Text()] * (room - len(shown))

    def _picture(self, frame: Frame, width: int, kinds: int) -> Iterator[Text]:
        status = frame.status
        where = f"{status.source} at {status.host}" if status.host else status.source
        yield labelled(clock_face(status.seconds), f"polling {where}: {targets(status)}", "bold")
        yield labelled("now", now(status), "bold green" if status.accelerated else "")
        yield Text()
        strip = max(NARROWEST, min(WIDEST, width - NAME - PACE - 4))
        yield labelled("", CAPTION[:strip], "dim italic")
        for pace in chosen(frame, kinds):
            yield self._kind(pace, status, strip)
        yield Text()
        yield labelled("runs", runs(status))
        yield labelled("late", punctual(status))
        yield labelled("host", host(status))
        yield from self._wrong(status)
        yield labelled("changes", told(status))

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
            yield labelled("trouble", trouble, "bold red")


def chosen(frame: Frame, most: int) -> list[KindPace]:
    """The kinds that there is room for, in their order; those that are live are among them."""
    live = {each.kind for each in frame.status.accelerated}
    kept = sorted(frame.paces, key=lambda pace: pace.kind not in live)[:most]
    return [pace for pace in frame.paces if pace in kept]
