"""A dashboard and its alarms, as files, and what can be wrong with them."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path(__file__).parents[2] / "deploy"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
METRIC = re.compile(r"\b(?:sanderling|crawler)_\w+")
# On one line, or folded over the lines below that are indented further.
EXPR = re.compile(r"- alert: (\w+)\n +expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)")

Panel = dict[str, Any]


@dataclass(frozen=True)
class Deployed:
    """Those of one system."""

    name: str

    @cached_property
    def board(self) -> dict[str, Any]:
        """The dashboard."""
        loaded: dict[str, Any] = json.loads((DEPLOY / "grafana" / f"{self.name}.json").read_text())
        return loaded

    @property
    def panels(self) -> list[Panel]:
        """Those that show something."""
        return [panel for panel in self.board["panels"] if panel["type"] != "row"]

    @property
    def exprs(self) -> list[str]:
        """What the panels ask for."""
        return [target["expr"] for panel in self.panels for target in panel["targets"]]

    @property
    def rules(self) -> Path:
        """The alarms."""
        return DEPLOY / "prometheus" / f"{self.name}-alerts.yml"

    @property
    def cases(self) -> Path:
        """The cases in which they are on."""
        return DEPLOY / "prometheus" / f"{self.name}-alerts-test.yml"

    @property
    def alarms(self) -> dict[str, str]:
        """What each alarm asks for, by its name."""
        found = EXPR.findall(self.rules.read_text())
        return {name: " ".join((folded or line).split()) for name, folded, line in found}


def served(registry: CollectorRegistry) -> Iterator[str]:
    """Every name that a scrape may find, also of what is absent for now."""
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        yield family.name + ("_total" if family.type == "counter" else "")
        if family.type == "histogram":
            yield from (f"{family.name}_{part}" for part in ("bucket", "sum", "count"))


def overlapping(panels: list[Panel]) -> list[tuple[str, str]]:
    """Panels of which one covers another."""

    def apart(one: dict[str, int], other: dict[str, int]) -> bool:
        return any(
            first[at] + first[size] <= second[at]
            for first, second in ((one, other), (other, one))
            for at, size in (("x", "w"), ("y", "h"))
        )

    pairs = combinations(panels, 2)
    return [(one["title"], other["title"]) for one, other in pairs if not apart(one["gridPos"], other["gridPos"])]


def as_grafana_asks(expr: str) -> str:
    """The expression with Grafana's variables filled in."""
    return expr.replace("$__rate_interval", "1m").replace("$instance", ".*")


def promtool_says(promtool: str, *command: str) -> str:
    """What it has against its arguments; nothing if all is well."""
    done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours
    return "" if done.returncode == 0 else done.stdout + done.stderr
