"""Draw what benchmarks found, one SVG a line of JSON.

    python bench/bars_plot.py docs/images/bench < docs/images/bench/figures.jsonl
    python bench/repos.py --json | python bench/bars_plot.py build --where "two cores, 2026-11-18"

A line of a benchmark's `--json` becomes its bars, beside what each needed. A line of figures that were measured before
has `name`, `title`, `where` and `rows` of words and numbers; rows of ours begin with "ours" or end with it.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

from limiter_plots import STYLE

WIDTH, ROW, TOP = 760, 22, 52
LEFT, RIGHT = 300.0, 660.0  # of the longest bar
MORE = """rect { stroke: none; }
rect.ours { fill: #2f7fd6; } rect.rival { fill: #98a2ad; } rect.short { fill: #d9485f; }
"""
NUMBER = re.compile(r"[0-9.]+(?:e[+-]?[0-9]+)?")


class Line(NamedTuple):
    """One bar."""

    words: str
    value: float
    kind: str  # ours, rival or short
    note: str = ""


def lines_of(found: dict[str, Any]) -> Iterable[Line]:
    """The bars of a line."""
    for bar in found.get("bars", ()):
        yield Line(bar["what"], bar["got"], "ours" if bar["ok"] else "short", f" ({bar['need']})")
    for words, value in found.get("rows", ()):
        yield Line(words, value, "ours" if re.search(r"^ours\b|\bours$", words) else "rival")


def picture(title: str, where: str, lines: Sequence[Line], *, logarithmic: bool = False) -> str:
    """Bars below each other, as the text of a file."""
    height = TOP + ROW * len(lines) + 8
    most = max((line.value for line in lines), default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}{MORE}</style>",
        f'<text x="8" y="18" class="title">{escape(title)}</text>',
        f'<text x="8" y="36">{escape(where)}{", logarithmic" if logarithmic else ""}</text>',
    ]
    for place, line in enumerate(lines):
        top = TOP + ROW * place
        # A bar of a benchmark is drawn against what it needed: the others are of other units.
        full = most if not line.note else max(line.value, float(NUMBER.findall(line.note)[0]), 1e-9)
        share = log10(1 + line.value) / log10(1 + full) if logarithmic else line.value / full
        wide = max(1.0, (RIGHT - LEFT) * share)
        parts += [
            f'<text x="{LEFT - 8:g}" y="{top + 12}" class="end">{escape(line.words[:48])}</text>',
            f'<rect class="{line.kind}" x="{LEFT:g}" y="{top}" width="{wide:.1f}" height="15" rx="2"/>',
            f'<text x="{LEFT + wide + 6:.1f}" y="{top + 12}">{line.value:,.12g}{escape(line.note)}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Read lines from standard input, and write a file for each."""
    parser = argparse.ArgumentParser(description="Draw what benchmarks found, one SVG a line of JSON.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--where", default="", help="machine and date of lines that do not say so themselves")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for text in sys.stdin:
        if not text.startswith("{"):
            continue  # what a benchmark says to people
        found = json.loads(text)
        if not (where := found.get("where") or asked.where):
            sys.exit(f"{found['name']}: nothing says when and where it was measured; say it with --where")
        drawn = picture(
            found.get("title", found["name"]), where, list(lines_of(found)), logarithmic=found.get("scale") == "log"
        )
        path = asked.folder / f"{found['name']}.svg"
        path.write_text(drawn, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
