"""The pictures of benchmarks show figures that stand in a page, and are drawn anew by one command."""

import json
import re
from pathlib import Path

import pytest
from bars_plot import Line, lines_of, picture

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/images/bench"
FIGURES = [json.loads(line) for line in (FOLDER / "figures.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("found", FIGURES, ids=lambda found: found["name"])
def test_a_picture_is_what_the_command_draws_of_figures_in_its_page(found: dict[str, str]) -> None:
    lines = list(lines_of(found))

    drawn = picture(found["title"], found["where"], lines, logarithmic=found.get("scale") == "log")
    page = (ROOT / re.findall(r"docs/[\w/]+\.md", found["where"])[0]).read_text("utf-8")

    assert drawn == (FOLDER / f"{found['name']}.svg").read_text("utf-8")
    assert f"images/bench/{found['name']}.svg" in page
    assert [line.words for line in lines if f"{line.value:,.12g}" not in page] == []


def test_bars_of_a_benchmark_say_what_they_needed() -> None:
    found = {
        "bars": [
            {"what": "fast", "need": ">= 4", "got": 8.0, "ok": True},
            {"what": "small", "need": "<= 1", "got": 2.0, "ok": False},
        ]
    }

    lines = list(lines_of(found))

    assert lines == [Line("fast", 8.0, "ours", " (>= 4)"), Line("small", 2.0, "short", " (<= 1)")]
    assert "8 (&gt;= 4)" in picture("bench", "here", lines)
