"""A report of `events` as a picture: the same plots, in one SVG file that needs nothing else."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from sanderling.cli.events.numbers import HOUR, LABELS, Hour, Numbers, Project
from sanderling.cli.events.report import STACK, action_of, label, most_errors, most_negative, nice, short, together
from sanderling.words import count, printable

SVG = "http://www.w3.org/2000/svg"
WIDTH, MARGIN = 1200, 56
LEFT, RIGHT = MARGIN + 44, WIDTH - MARGIN  # of the plots through the day
FELT, FAILED = 260, 84  # heights of these
LINE, HEADED = 34, 38  # heights of a line of a table, and of what is above it
MOST_COLUMNS = 96
MOST_LINES = 12  # of a table
LONGEST_NAME = 24
INK, SOFT, RULE, PAPER = "#22303c", "#6b7785", "#e3e7ec", "#fcfcfa"
COLOURS = {"positive": "#3f9b74", "neutral": "#c3c9d1", "negative": "#cf4a5b", "errors": "#dd8f2d"}
STYLE = f"""
text {{ font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; fill: {INK}; }}
.title {{ font-size: 26px; font-weight: 650; }}
.head {{ font-size: 16px; font-weight: 600; }}
.soft {{ fill: {SOFT}; }}
.small {{ font-size: 12.5px; }}
.end {{ text-anchor: end; }}
.middle {{ text-anchor: middle; }}
"""


def svg(numbers: Numbers, title: str) -> str:
    """The picture, as the text of a file."""
    _, columns = together(numbers.hours, MOST_COLUMNS)
    tables = max(len(_lines(numbers)), min(len(numbers.projects), MOST_LINES), 1)
    top = 148
    below = top + FELT + 64
    tabled = below + FAILED + 92
    height = tabled + HEADED + tables * LINE + MARGIN - 10
    parts = [
        f"""<svg xmlns="{SVG}" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">""",
        f"<title>{_said(title)}</title>",
        f"<style>{STYLE}</style>",
        _box(0, 0, WIDTH, height, PAPER),
        _text(MARGIN, 62, title, "title"),
        _text(MARGIN, 90, _under(numbers), "soft"),
        *_felt(columns, top, most_negative(numbers)),
        *_failed(columns, below, most_errors(numbers)),
        *_categories(numbers, tabled),
        *_projects(numbers.projects[:MOST_LINES], tabled),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _under(numbers: Numbers) -> str:
    day = f"{label(numbers.hours[0].at, '%d %B %Y')}, UTC. " if numbers.hours else ""
    return f"{day}{count(numbers.posts, 'post')}, {count(numbers.errors, 'error')}."


def _said(text: str) -> str:
    """A text in the file: whatever a stranger wrote, it is text."""
    return escape(printable(text).replace("\N{REPLACEMENT CHARACTER}", "?"))


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    kinds = f" class={quoteattr(kind)}" if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kinds}>{_said(text)}</text>'


def _box(x: float, y: float, width: float, height: float, colour: str, hint: str = "") -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" width="{max(0.0, width):.2f}" height="{max(0.0, height):.2f}"'
    return f'<rect {place} fill="{colour}">{f"<title>{_said(hint)}</title>" if hint else ""}</rect>'


def _rule(x: float, y: float, right: float, colour: str = RULE) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="{colour}"/>'


# Through the day.


def _felt(columns: Sequence[Hour], top: float, note: str) -> Iterator[str]:
    yield _text(MARGIN, top - 16, "How people felt", "head")
    yield _text(MARGIN + 156, top - 16, note, "soft small")
    yield from _legend(top - 16)
    end = nice(max((each.judged for each in columns), default=0))
    yield from _grid(top, FELT, end, (0.0, 0.25, 0.5, 0.75, 1.0) if end >= 4 else (0.0, 1.0))
    for x, wide, each in _places(columns):
        y, counts = top + FELT, {name: getattr(each, name) for name in STACK}
        hint = f"{label(each.at, '%H:%M')}: {', '.join(f'{name} {counts[name]:,}' for name in LABELS)}"
        for name, number in counts.items():
            tall = FELT * number / end
            y -= tall
            if number:
                yield _box(x, y, wide, tall, COLOURS[name], hint)
    yield from _axis(columns, top + FELT)


def _failed(columns: Sequence[Hour], top: float, note: str) -> Iterator[str]:
    yield _text(MARGIN, top - 16, "Items that were not to be had", "head")
    yield _text(MARGIN + 284, top - 16, note, "soft small")
    end = nice(max((each.errors for each in columns), default=0))
    yield from _grid(top, FAILED, end, (0.0, 0.5, 1.0) if end > 1 else (0.0, 1.0))
    for x, wide, each in _places(columns):
        tall = FAILED * each.errors / end
        if each.errors:
            hint = f"{label(each.at, '%H:%M')}: {count(each.errors, 'error')}"
            yield _box(x, top + FAILED - tall, wide, tall, COLOURS["errors"], hint)
    yield from _axis(columns, top + FAILED)


def _places(columns: Sequence[Hour]) -> Iterator[tuple[float, float, Hour]]:
    """Where each column begins and how wide it is, with a gap to the next."""
    step = (RIGHT - LEFT) / max(1, len(columns))
    gap = min(6.0, step * 0.16)
    for place, each in enumerate(columns):
        yield LEFT + place * step + gap / 2, step - gap, each


def _grid(top: float, tall: float, end: int, shares: Sequence[float]) -> Iterator[str]:
    for share in shares:
        y = top + tall * (1 - share)
        yield _rule(LEFT, y, RIGHT, INK if not share else RULE)
        yield _text(LEFT - 10, y + 4.5, short(end * share), "soft small end")


def _axis(columns: Sequence[Hour], y: float) -> Iterator[str]:
    daily = len(columns) > 1 and columns[1].at - columns[0].at >= 24 * HOUR
    step = (RIGHT - LEFT) / max(1, len(columns))
    every = next(each for each in (1, 2, 3, 6, 12, 24) if each * step >= 44 or each == 24)
    for place, each in enumerate(columns):
        if not place % every:
            yield _text(LEFT + place * step, y + 20, label(each.at, "%m-%d" if daily else "%H:%M"), "soft small middle")


def _legend(y: float) -> Iterator[str]:
    x = RIGHT - 3 * 96.0
    for name in LABELS:
        x += 96
        yield _box(x - 82, y - 10, 12, 12, COLOURS[name])
        yield _text(x - 64, y + 1, name, "small")


# Tables.


def _lines(numbers: Numbers) -> list[tuple[str, int]]:
    return sorted(numbers.categories.items(), key=lambda each: (-each[1], each[0]))[:MOST_LINES]


def _categories(numbers: Numbers, top: float) -> Iterator[str]:
    left, bars = MARGIN, MARGIN + 108
    yield _text(left, top, "Why, and what is done about it", "head")
    lines, total = _lines(numbers), numbers.errors
    if not lines:
        yield _text(left, top + HEADED + 19, "Everything was to be had.", "soft")
    for place, (name, number) in enumerate(lines):
        y = top + HEADED + place * LINE
        wide = 150 * number / lines[0][1]
        yield _text(bars - 12, y + 19, _short(name.replace("_", " ")), "small end")
        yield _box(bars, y + 6, max(2.0, wide), 18, COLOURS["errors"], f"{name}: {number:,}")
        yield _text(bars + 150 + 56, y + 19, short(number), "small end")
        yield _text(bars + 150 + 100, y + 19, f"{number / total:.0%}", "soft small end")
        yield _text(bars + 150 + 116, y + 19, action_of(name), "soft small")


def _projects(projects: Sequence[Project], top: float) -> Iterator[str]:
    left, right = 664.0, float(RIGHT)
    yield _text(left, top, "What was said about whom", "head")
    columns = {"posts": right - 202, "mean": right - 142, "negative": right - 66, "at risk": right}
    for name, x in columns.items():
        yield _text(x, top + 28, name, "soft small end")
    for place, each in enumerate(projects):
        y = top + HEADED + place * LINE
        yield _text(left + 96, y + 19, _short(each.name), "small end")
        yield from _shares(each, left + 108, y + 6, right - 262 - left - 108)
        cells = (short(each.posts), f"{each.score:+.2f}", f"{each.negative_share:.0%}", short(each.risky))
        for x, text in zip(columns.values(), cells, strict=True):
            yield _text(x, y + 19, text, "small end")


def _shares(project: Project, x: float, y: float, width: float) -> Iterator[str]:
    for name in STACK:
        number = getattr(project, name)
        wide = width * number / max(1, project.judged)
        if number:
            yield _box(x, y, wide, 18, COLOURS[name], f"{name}: {number:,}")
        x += wide


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
