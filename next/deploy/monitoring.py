"""A Grafana board and alert rules for Prometheus, from the report of a run.

python deploy/monitoring.py board example/status.json > board.json
python deploy/monitoring.py rules example/status.json > rules.yml
"""

import json
import sys
from pathlib import Path

import msgspec

from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Fact, Kind, Report

UNITS = {Kind.SECONDS: "s", Kind.BYTES: "bytes"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3


def board(report: Report) -> str:
    """One panel for each fact that is a number, and one for the rates of hosts."""
    panels = [(fact.help, _query(report.system, fact), UNITS.get(fact.kind, "short")) for fact in _numbers(report)]
    panels.append(("Requests a second, by host.", "sanderling_host_rate", "reqps"))
    return json.dumps(
        {
            "title": f"Sanderling: {report.system}",
            "uid": f"sanderling-{report.system}",
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "panels": [_panel(number, *panel) for number, panel in enumerate(panels)],
        },
        indent=1,
    )


def rules(report: Report) -> str:
    """What nobody should find out the next morning. JSON is YAML."""
    job = f'{{job="sanderling-{report.system}"}}'
    alerts = [
        ("SanderlingSilent", f"time() - sanderling_report_time_seconds{job} > 60", "1m", "makes no report any more"),
        ("SanderlingTroubled", f"sanderling_troubles{job} > 0", "10m", "has troubles; see `sanderling status`"),
    ]
    group = [
        {
            "alert": name,
            "expr": expression,
            "for": lasting,
            "labels": {"severity": "warning"},
            "annotations": {"summary": f"A run of {report.system} {says}."},
        }
        for name, expression, lasting, says in alerts
    ]
    return json.dumps({"groups": [{"name": f"sanderling-{report.system}", "rules": group}]}, indent=1)


def _numbers(report: Report) -> list[Fact]:
    return [fact for fact in report.facts if not isinstance(fact.value, str) and fact.value is not None]


def _query(system: str, fact: Fact) -> str:
    name = metric_name(system, fact)
    return f"rate({name.removesuffix('_total')}_total[1m])" if fact.kind is Kind.COUNT else name


def _panel(number: int, title: str, query: str, unit: str) -> dict[str, object]:
    place = {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
    return {
        "id": number + 1,
        "title": title,
        "type": "timeseries",
        "gridPos": place,
        "targets": [{"expr": query, "refId": "A"}],
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
    }


def main() -> int:
    """Print what was asked for."""
    makers = {"board": board, "rules": rules}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.stderr.write(f"expected: python deploy/monitoring.py {'|'.join(makers)} FOLDER/status.json\n")
        return 2
    report = msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=Report)
    sys.stdout.write(makers[sys.argv[1]](report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
