"""The dashboards and the alarms of pages and repos: they ask for what there is, and a real promtool agrees."""

import json
import re
import shutil

import pytest
from deployed import DATASOURCE, METRIC, Deployed, overlapping, promtool_says, served
from known_reports import registry_for
from measured_reports import measured
from prometheus_client import CollectorRegistry

from sanderling.stores.frontier_rows import End

CRAWLS = [Deployed("pages"), Deployed("repos")]
ENDS = {end.name.lower() for end in End}

crawls = pytest.mark.parametrize("crawl", CRAWLS, ids=lambda each: each.name)


def registry_of(name: str) -> CollectorRegistry:
    """What a crawl serves: its own metrics and the limiter's."""
    return registry_for(lambda: measured()[name])


@crawls
def test_every_metric_that_is_asked_for_exists_and_all_of_its_own_are_shown(crawl: Deployed) -> None:
    there = set(served(registry_of(crawl.name)))
    shown = " ".join(crawl.exprs)

    for text in (json.dumps(crawl.board), crawl.rules.read_text(), crawl.cases.read_text()):
        assert set(METRIC.findall(text)) - there == set()
    own = {re.sub(r"_(bucket|sum|count)$", "", name) for name in there if re.match(r"crawler_|sanderling_pages_", name)}
    own = {name for name in own if name != "crawler_pds"} | ({"crawler_pds_count"} & there)  # a gauge of that name
    assert [name for name in own if not re.search(rf"{name}(_bucket)?\{{", shown)] == []


@crawls
def test_every_end_that_is_asked_for_exists(crawl: Deployed) -> None:
    asked = re.findall(r'\bend=~?\\?"([a-z_|]+)', json.dumps(crawl.exprs) + crawl.rules.read_text())

    assert {each for several in asked for each in several.split("|")} <= ENDS


@crawls
def test_the_dashboard_is_one_for_grafana_10_with_words_and_units_on_every_panel(crawl: Deployed) -> None:
    board, panels = crawl.board, crawl.panels

    assert (37 <= board["schemaVersion"] <= 39, board["uid"]) == (True, f"sanderling-{crawl.name}")
    assert all(panel["datasource"] == DATASOURCE for panel in panels)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert all(panel["description"] and panel["targets"] for panel in panels)
    assert overlapping(board["panels"]) == []
    for panel in panels:
        unit = panel["fieldConfig"]["defaults"]["unit"]
        for expr in (each["expr"] for each in panel["targets"]):
            assert (unit == "percentunit") == (" / " in expr), panel["title"]
            assert ("_seconds" in expr) == (unit == "s"), panel["title"]


@crawls
def test_every_alarm_says_what_to_do_and_has_a_case_in_which_it_is_on(crawl: Deployed) -> None:
    rules = crawl.rules.read_text()
    _, *alarms = rules.split("- alert: ")

    assert len(alarms) == len(crawl.alarms) == 3
    for alarm in alarms:
        assert re.search(r"severity: (warning|critical)\n", alarm)
        assert all(re.search(rf"{name}: \S", alarm) for name in ("for", "summary", "description"))
        assert len(alarm.split("runbook:")[1]) > 100
    assert set(re.findall(r'alertname="(\w+)"', crawl.cases.read_text())) == set(crawl.alarms)
    named = re.findall(r'panel "([^"]+)"', " ".join(rules.split()))
    assert named
    assert set(named) <= {panel["title"] for panel in crawl.panels}


@crawls
@pytest.mark.parametrize("command", ["check", "test"])
def test_promtool_agrees(crawl: Deployed, command: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")

    assert promtool_says(promtool, command, "rules", str(crawl.rules if command == "check" else crawl.cases)) == ""
