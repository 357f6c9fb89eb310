"""Small pictures of rows of the limiter's simulation: what was served over time, beside what was allowed.

One SVG each, drawn by hand. The colours lie midway, so that they can be read on light paper and on dark.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape

from limiter_cases import HOUR, MINUTE, Case, Plan, Row
from simulation import Result

WIDTH, HEIGHT = 640, 216
LEFT, RIGHT, TOP, BOTTOM = 40.0, 632.0, 34.0, 146.0  # of the plot
STRIPS = {"ours": 157.0, "rival": 166.0}  # where refusals are dotted
STEPS = (0.5, 1.0, 2.0, 4.0, 5.0, 6.0, 10.0, 20.0, 30.0, 60.0)  # seconds of one point of a line
MOST_POINTS = 180
LEGEND = (
    ("served a second, ours", "ours"),
    ("AWS adaptive", "rival"),
    ("allowed", "allowed"),
    ("refused", "dots ours"),
)
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #7a8591; }
.title { font-weight: 600; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
path, line { fill: none; }
.rule { stroke: #7a8591; stroke-opacity: 0.3; }
.allowed { stroke: #2f9e6e; }
.ours { stroke: #2f7fd6; stroke-width: 1.8; stroke-linejoin: round; }
.rival { stroke: #98a2ad; stroke-width: 1.2; stroke-linejoin: round; }
.dots { stroke-linecap: round; stroke-width: 4; }
.dots.ours { stroke: #d9485f; }
"""


def file_name(row: Row) -> str:
    """By the row's name."""
    return re.sub(r"[^a-z0-9]+", "-", row.name.lower()).strip("-") + ".svg"


def picture(row: Row, case: Case, seed: int, ours: Result, rival: Result) -> str:
    """Ours in colour, AWS adaptive in grey, as the text of a file."""
    plan, seconds = case.plan(seed), row.seconds
    lines = {"rival": served(rival, seconds), "ours": served(ours, seconds)}
    top = nice(1.15 * max(*(rate for _, rate in plan), *lines["ours"]))
    dots = {"ours": ours.refused_at, "rival": rival.refused_at}
    title = f"{row.name}: {case.name}" if case.name else row.name
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT:g}" y="18" class="title">{escape(title)}</text>',
        *_legend(),
        *_axes(top, seconds),
        f'<path class="allowed" d="{_allowed(plan, seconds, top)}"/>',
        *(f'<path class="{who}" d="{_line(rates, top)}"/>' for who, rates in lines.items()),
        *(f'<path class="dots {who}" d="{_dots(at, seconds, STRIPS[who])}"/>' for who, at in dots.items()),
        "</svg>\n",
    ]
    return "\n".join(parts)


def served(result: Result, seconds: float) -> list[float]:
    """Good answers a second, in as many steps as a line has."""
    step = next(each for each in STEPS if seconds / each <= MOST_POINTS)
    return [result.served_between(place * step, (place + 1) * step) / step for place in range(int(seconds / step))]


def nice(number: float) -> float:
    """The next number that people like on an axis."""
    power = 10.0 ** (len(str(int(number))) - 1) if number >= 1 else 0.1
    return next(round(power * each, 1) for each in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * each >= number)


def _x(at: float, seconds: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(at, seconds) / seconds


def _y(rate: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(rate / top, 1.04)  # what is beyond runs along the edge


def _line(rates: Sequence[float], top: float) -> str:
    points = ((_x(place + 0.5, len(rates)), _y(rate, top)) for place, rate in enumerate(rates))
    return "M" + " ".join(f"{x:.0f},{y:.1f}" for x, y in points)


def _allowed(plan: Plan, seconds: float, top: float) -> str:
    ends = [*(start for start, _ in plan[1:]), seconds]
    steps = (
        f"{_x(start, seconds):.1f},{_y(rate, top):.1f} {_x(end, seconds):.1f},{_y(rate, top):.1f}"
        for (start, rate), end in zip(plan, ends, strict=True)
    )
    return "M" + " ".join(steps)


def _dots(times: Sequence[float], seconds: float, y: float) -> str:
    places = sorted({round(_x(at, seconds) / 3) * 3 for at in times})
    return "".join(f"M{x},{y:g}h0" for x in places)


def _axes(top: float, seconds: float) -> Iterator[str]:
    for share in (0, 0.5, 1):
        y = _y(share * top, top)
        yield f'<line class="rule" x1="{LEFT:g}" y1="{y:g}" x2="{RIGHT:g}" y2="{y:g}"/>'
        yield f'<text x="{LEFT - 6:g}" y="{y + 4:g}" class="end">{share * top:g}</text>'
    unit, word = (HOUR, "h") if seconds > HOUR else (MINUTE, "min") if seconds > 2 * MINUTE else (1.0, "s")
    count = seconds / unit
    step = next(each for each in (0.5, 1, 2, 3, 5, 10, 20) if count / each <= 6.5)
    for place in range(int(count / step) + 1):
        x = _x(place * step * unit, seconds)
        kind = "end" if x > RIGHT - 10 else "middle"
        yield f'<text x="{x:.0f}" y="184" class="{kind}">{place * step:g} {word}</text>'


def _legend() -> Iterator[str]:
    x = LEFT
    for word, kind in LEGEND:
        yield f'<path class="{kind}" d="M{x:g},206h{0 if kind.startswith("dots") else 14}"/>'
        yield f'<text x="{x + 20:g}" y="210">{word}</text>'
        x += 46 + 6.2 * len(word)
