"""The one renderer of reports: as styled lines for the live screen, `status`, and the end of a run."""

from collections.abc import Iterable
from datetime import UTC, datetime

from sanderling.observe.report import Fact, Hint, HostReport, Kind, Report, RunState

# A piece of a line and how it looks: "", dim, bold, good or bad.
Piece = tuple[str, str]
Line = list[Piece]

MOST_HOSTS = 10
MOST_VALUES = 6  # of a fact that has a table of values
MOST_HINTS = 3
_BAR = 30  # characters
_STATES = {RunState.RUNNING: "good", RunState.ENDED: "", RunState.KILLED: "bad"}
_HOST_STATES = {"ok": "good", "done": "dim"}


def render(report: Report, width: int = 100, commands: Iterable[str] = ()) -> list[Line]:
    """A report in lines of at most `width` characters. `commands` are its hints as they are typed here."""
    lines = [_headline(report)]
    if report.progress:
        lines.append(_progress(*report.progress))
    facts = [fact for fact in report.facts if not fact.more and fact.value not in (None, "", {})]
    facts = [fact for fact in facts if fact.value != 0 or fact is facts[0]]
    labels = max((len(_label(fact)) for fact in facts), default=0)
    lines += [[(f"  {_label(fact):<{labels}}  ", "dim"), *_value(fact)] for fact in facts]
    lines += _hosts(report.hosts[:MOST_HOSTS], len(report.hosts))
    lines += [[("! ", "bad"), (trouble, "")] for trouble in report.troubles]
    lines = [_cut(line, width) for line in lines]
    hints = zip(report.hints[:MOST_HINTS], commands, strict=False)
    # A command is never cut: it has to work when it is pasted.
    return lines + [[(f"{hint.why}: ", "dim"), (command, "bold")] for hint, command in hints]


def plain(lines: Iterable[Line]) -> str:
    """Lines without styles."""
    return "\n".join("".join(piece for piece, _ in line).rstrip() for line in lines)


def _headline(report: Report) -> Line:
    line: Line = [(report.system, "bold"), (f" {report.folder}  ", "")]
    state = report.state.value
    if report.state is RunState.ENDED:
        state = {None: state, 0: "done", 3: "ended, something is left", 130: "stopped"}.get(report.exit, "failed")
    style = "bad" if state == "failed" else _STATES.get(report.state, "bold")
    line.append((state, style))
    if report.doing:
        line.append((f", {report.doing}", ""))
    if report.started:
        line.append((f"  {show_seconds(report.wall - report.started)}", "dim"))
    if report.state in (RunState.KILLED, RunState.ENDED):
        line.append((f", until {datetime.fromtimestamp(report.wall, UTC):%Y-%m-%d %H:%M:%S} UTC", "dim"))
    return line


def _progress(done: int, whole: int) -> Line:
    share = min(1.0, done / whole) if whole else 0.0
    filled = int(share * _BAR)
    bar = "━" * filled
    return [("  ", ""), (bar, "good"), ("─" * (_BAR - filled), "dim"), (f"  {done:,} of {whole:,}", "")]


def _label(fact: Fact) -> str:
    return fact.name.replace("_", " ")


def _value(fact: Fact) -> Line:
    if isinstance(fact.value, dict):
        largest = sorted(fact.value.items(), key=lambda each: (-each[1], each[0]))
        shown = ", ".join(f"{name} {show_number(number)}" for name, number in largest[:MOST_VALUES])
        more = len(largest) - MOST_VALUES
        return [(shown + (f" and {more} more" if more > 0 else ""), "")]
    if isinstance(fact.value, str):
        return [(fact.value, "")]
    number = float(fact.value) if isinstance(fact.value, int | float) else 0.0
    show = {Kind.SECONDS: show_seconds, Kind.BYTES: show_bytes}.get(fact.kind, show_number)
    return [(show(number), ""), *([(f"  {show_number(fact.rate)}/s", "dim")] if fact.rate else [])]


def _hosts(hosts: tuple[HostReport, ...], known: int) -> list[Line]:
    names = max((len(host.host) for host in hosts), default=0)
    lines: list[Line] = []
    for host in hosts:
        allowed = f" of {show_number(host.allowed)}" if host.allowed is not None else ""
        figures = [
            f"{show_number(host.rate)}{allowed}/s",
            f"{host.waiting:,} waiting" if host.waiting else "",
            f"{host.in_flight} in flight" if host.in_flight else "",
            f"{host.failed:,} failed" if host.failed else "",
            show_seconds(host.latency) if host.latency is not None else "",
        ]
        state = [] if host.state == "ok" else [(f"{host.state}  ", _HOST_STATES.get(host.state, "bad"))]
        dot = ("  ● ", _HOST_STATES.get(host.state, "bad"))
        line = [dot, (f"{host.host:<{names}}  ", ""), *state, ("  ".join(filter(None, figures)), "")]
        lines.append([*line, (f"  {host.why}", "dim")] if host.why else line)
    if known > len(hosts):
        lines.append([(f"    and {known - len(hosts)} more hosts", "dim")])
    return lines


def _cut(line: Line, width: int) -> Line:
    room = max(width, 8)
    if sum(len(piece) for piece, _ in line) <= room:
        return line
    short: Line = []
    for piece, style in line:
        if len(piece) >= room:
            return [*short, (piece[: room - 1] + "…", style)]
        short.append((piece, style))
        room -= len(piece)
    return short


def show_number(value: float) -> str:
    """A number as people read it: 1,234 or 0.25."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def show_seconds(value: float) -> str:
    """A duration in two units at most: 1.5 s, 3 min 20 s, 2 d 4 h."""
    if value < 60:
        return f"{value * 1000:.0f} ms" if 0 < value < 0.9995 else f"{value:.3g} s"
    for large, small, size, part in (("min", "s", 60, 1), ("h", "min", 3600, 60), ("d", "h", 86_400, 3600)):
        if value < size * (24 if size == 3600 else 60) or large == "d":
            whole, rest = divmod(int(value), size)
            return f"{whole} {large} {rest // part} {small}" if rest // part else f"{whole} {large}"
    raise AssertionError  # the last unit has no end


def show_bytes(value: float) -> str:
    """A size in the largest unit that fits, by 1,024."""
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024:
            return f"{value:.3g} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1024
    return f"{value:,.3g} TB"


def hint_words(hints: Iterable[Hint]) -> list[tuple[str, ...]]:
    """The commands of the hints that are shown."""
    return [hint.words for hint in list(hints)[:MOST_HINTS]]
