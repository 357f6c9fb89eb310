"""Boards and rules are made of a report, and Prometheus takes the rules."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sanderling.observe.report import Report, count, gauge, seconds, text

SCRIPT = Path(__file__).parents[2] / "deploy" / "monitoring.py"


def made(what: str, folder: Path) -> str:
    facts = (
        count("stored", 3, "Stored."),
        count("failed", {"TIMEOUT": 1}, "Failed.", by="code", metric="crawl_failed_total"),
        gauge("waiting", 1, "Waiting."),
        seconds("oldest", 2.0, "The oldest."),
        text("last", "x", "The last."),
    )
    path = folder / "status.json"
    path.write_bytes(Report(system="toys", doing="", facts=facts).to_json())
    return subprocess.run([sys.executable, SCRIPT, what, path], check=True, capture_output=True, text=True).stdout


def test_a_board_has_a_panel_for_each_number(tmp_path: Path) -> None:
    panels = json.loads(made("board", tmp_path))["panels"]

    assert [panel["targets"][0]["expr"] for panel in panels] == [
        "rate(sanderling_toys_stored_total[1m])",
        "rate(crawl_failed_total[1m])",
        "sanderling_toys_waiting",
        "sanderling_toys_oldest_seconds",
        "sanderling_host_rate",
    ]


@pytest.mark.real
def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool; apt-get install prometheus")
    (tmp_path / "rules.yml").write_text(made("rules", tmp_path))

    subprocess.run([promtool, "check", "rules", tmp_path / "rules.yml"], check=True, capture_output=True)
