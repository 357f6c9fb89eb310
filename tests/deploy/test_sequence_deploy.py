"""The dashboard and the alarms of a crawl of ids: they ask for what there is, and a real Prometheus knows what."""

import asyncio
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from known_reports import SEQUENCE_FACTS, histogram_of, registry_for, standing
from measured_reports import measured, sequence_measures
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.apis.numbered import Status
from sanderling.observe.metrics import serve
from sanderling.observe.prometheus import PrometheusServer
from sanderling.observe.report import AnyReport
from sanderling.sequence.measures import REQUEST_BUCKETS
from sanderling.sequence.report import report_sequence, store_metrics
from sanderling.sequence.retries import Reason
from sanderling.sequence.store import StoreTally
from sanderling.stores.queue import Depth

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "sequence.json").read_text())
RULES = DEPLOY / "prometheus" / "sequence-alerts.yml"
CASES = DEPLOY / "prometheus" / "sequence-alerts-test.yml"

PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
NAMES = re.compile(r"\b(?:sanderling|crawler)_\w+")
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Growing:
    """A crawl whose every count has grown by each scrape."""

    def __init__(self) -> None:
        self.scrapes = 0

    def __call__(self) -> AnyReport:
        self.scrapes += 1
        number = self.scrapes
        facts = msgspec.structs.replace(SEQUENCE_FACTS, published=number, publish_failures=number)
        measures = sequence_measures(5 * number)
        for status in Status:
            measures.answers[status.value, "1"] = 5 * number
        measures.requests = {"Success": histogram_of(REQUEST_BUCKETS, *[0.1] * 5 * number)}
        measures.gaps = measures.skipped = number
        stored = store_metrics(StoreTally(stored=number), Depth(10, 5, 2, 1))
        return report_sequence(facts, standing(), (*measures.metrics(), *stored))


def registry() -> CollectorRegistry:
    return registry_for(lambda: measured()["sequence"])


def served() -> Iterator[str]:
    """Every name that a scrape may find, also of what is absent for now."""
    for family in text_string_to_metric_families(generate_latest(registry()).decode()):
        yield family.name + ("_total" if family.type == "counter" else "")
        if family.type == "histogram":
            yield from (f"{family.name}_{part}" for part in ("bucket", "sum", "count"))


@pytest.mark.parametrize(
    "text", [json.dumps(BOARD), RULES.read_text(), CASES.read_text()], ids=["board", "rules", "cases"]
)
def test_every_metric_that_is_asked_for_exists(text: str) -> None:
    asked = set(NAMES.findall(text))

    assert asked
    assert asked - set(served()) == set()


@pytest.mark.parametrize("text", [json.dumps([expr for _, expr in EXPRS]), RULES.read_text()], ids=["board", "rules"])
def test_every_status_state_and_reason_that_is_asked_for_exists(text: str) -> None:
    known: dict[str, set[str]] = {"status": {*Status}, "state": {*Depth._fields}, "reason": {*Reason}}

    asked = re.findall(r'(status|state|reason)[=!]~?\\?"([a-z_|]+)', text)

    assert asked
    assert [(label, values) for label, values in asked if not set(values.split("|")) <= known[label]] == []


def test_every_metric_of_the_crawl_is_on_the_dashboard() -> None:
    shown = " ".join(expr for _, expr in EXPRS)

    families = text_string_to_metric_families(generate_latest(registry()).decode())
    own = [family.name for family in families if family.name.startswith("sanderling_sequence_")]
    assert [name for name in own if not re.search(rf"{name}(_total|_bucket)?\{{", shown)] == []


def test_the_dashboard_is_one_for_grafana_10_and_asks_for_its_source() -> None:
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}

    assert 37 <= BOARD["schemaVersion"] <= 39
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert variables["instance"]["datasource"] == DATASOURCE
    assert all(panel["datasource"] == DATASOURCE for panel in PANELS)
    assert all(target["datasource"] == DATASOURCE for panel in PANELS for target in panel["targets"])


def test_each_panel_has_a_number_a_title_and_words_of_its_own() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]

    assert len(set(numbers)) == len(numbers)
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in PANELS)
    assert all(len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) for panel in PANELS)


def test_no_panel_covers_another_or_leaves_the_page() -> None:
    places = [panel["gridPos"] for panel in BOARD["panels"]]

    def apart(one: dict[str, int], other: dict[str, int]) -> bool:
        return any(
            first[at] + first[size] <= second[at]
            for first, second in ((one, other), (other, one))
            for at, size in (("x", "w"), ("y", "h"))
        )

    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert all(apart(one, other) for one, other in combinations(places, 2))


def test_workers_are_amber_from_70_and_red_from_170() -> None:
    steps = [panel["fieldConfig"]["defaults"]["thresholds"]["steps"] for panel in PANELS if panel["title"] == "Workers"]

    assert len(steps) == 2
    assert all([step["value"] for step in each] == [None, 70, 170] for each in steps)


def test_every_alarm_says_how_bad_it_is_and_what_to_do() -> None:
    _, *alarms = RULES.read_text().split("- alert: ")

    assert len(alarms) == 9
    for alarm in alarms:
        assert re.search(r"severity: (warning|critical)\n", alarm)
        assert all(re.search(rf"{name}: \S", alarm) for name in ("for", "summary", "description"))
        assert len(alarm.split("runbook:")[1]) > 100


def test_every_alarm_has_a_case_in_which_it_is_on() -> None:
    alarms = set(re.findall(r"- alert: (\w+)", RULES.read_text()))

    assert set(re.findall(r'alertname="(\w+)"', CASES.read_text())) == alarms


@pytest.mark.parametrize(
    "command", [("check", "rules", str(RULES)), ("test", "rules", str(CASES))], ids=["check", "test"]
)
def test_promtool_agrees(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")

    done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours

    assert done.returncode == 0, done.stdout + done.stderr


def as_grafana_asks(expr: str) -> str:
    return expr.replace("$__rate_interval", "1m").replace("$instance", ".*")


# Known once the host has said or shown it, which the one of this test has not.
MAY_BE_ABSENT = {'sanderling_limiter_host_ceiling{instance=~".*"}'}


@pytest.mark.timeout(90)
def test_every_panel_shows_something_on_a_real_prometheus(prometheus: Callable[[int], str]) -> None:
    crawl = Growing()
    asked = {as_grafana_asks(expr) for _, expr in EXPRS}

    async def empty(url: str) -> set[str]:
        async with PrometheusServer(url) as server:
            now = time.time()
            found = {expr: await server.query_range(expr, now - 2, now, 1) for expr in sorted(asked)}
        return {expr for expr, series in found.items() if not series}

    with serve(registry_for(crawl), 0) as exposition:
        url = prometheus(exposition.server_port)
        until = time.monotonic() + 300
        while (left := asyncio.run(empty(url))) - MAY_BE_ABSENT and time.monotonic() < until:
            time.sleep(0.5)  # a real server, in real time

    assert left - MAY_BE_ABSENT == set()
