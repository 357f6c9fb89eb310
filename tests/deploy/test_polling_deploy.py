"""The dashboard and the alarms of polling: they ask for what there is, and a real Prometheus knows what."""

import asyncio
import json
import re
import shutil
import time
from collections.abc import Callable

import msgspec
import pytest
from deployed import DATASOURCE, METRIC, Deployed, Panel, as_grafana_asks, overlapping, promtool_says, served
from known_reports import POLLING_FACTS, RACE, registry_for, standing
from measured_reports import measured
from prometheus_client import CollectorRegistry

from sanderling.observe.metrics import serve
from sanderling.observe.prometheus import PrometheusServer
from sanderling.observe.report import AnyReport
from sanderling.outcome import Code
from sanderling.polling.measures import ACCELERATED, LATE_BUCKETS, USUAL, PollingMeasures
from sanderling.polling.report import report_polling
from sanderling.testing import FakeClock

POLLING = Deployed("polling")
BOARD, PANELS, EXPRS, ALARMS = POLLING.board, POLLING.panels, POLLING.exprs, POLLING.alarms
RULES, CASES = POLLING.rules.read_text(), POLLING.cases.read_text()


class Troubled:
    """Polling for which all goes wrong, ever more with each scrape."""

    def __init__(self) -> None:
        self.scrapes = 0

    def __call__(self) -> AnyReport:
        self.scrapes += 1
        number, clock = self.scrapes, FakeClock()
        measures = PollingMeasures(("race",), ("laps",), clock)
        for _ in range(5 * number):
            for live in (True, False):
                measures.ran("race", "TIMEOUT", late=0.7, seconds=2.0, accelerated=live)
        measures.changed("laps", "insert", number)
        measures.missed("race", 5 * number)
        for _ in range(number):
            measures.promoted("admin")
            measures.discovered(ok=False)
            measures.wrote(3)
        clock.advance(301.0 + number)
        facts = msgspec.structs.replace(
            POLLING_FACTS,
            targets={**POLLING_FACTS.targets, "failing": 40},
            newest=1068 + number,
            store_trouble="no database",
            settings_problems=1,
        )
        return report_polling(facts, standing(RACE), measures.metrics())


def registry() -> CollectorRegistry:
    return registry_for(lambda: measured()["polling"])


@pytest.mark.parametrize("text", [json.dumps(BOARD), RULES, CASES], ids=["board", "rules", "cases"])
def test_every_metric_that_is_asked_for_exists(text: str) -> None:
    asked = set(METRIC.findall(text))

    assert asked
    assert asked - set(served(registry())) == set()


@pytest.mark.parametrize("text", [json.dumps(EXPRS), RULES, CASES], ids=["board", "rules", "cases"])
def test_every_state_pace_result_and_code_that_is_asked_for_exists(text: str) -> None:
    known: dict[str, set[str]] = {
        "state": {*POLLING_FACTS.targets},
        "pace": {ACCELERATED, USUAL},
        "result": {"ok", "failed"},
        "code": {*Code},
    }

    asked = re.findall(r'\b(state|pace|result|code)[=!]~?\\?"([A-Za-z_|]+)', text)

    assert asked
    assert [(label, values) for label, values in asked if not set(values.split("|")) <= known[label]] == []


def test_codes_that_went_well_are_all_those_that_did() -> None:
    (well,) = re.findall(r'code=~"([A-Z_|]+)"', ALARMS["PollingNothing"])

    assert set(well.split("|")) == {code.value for code in Code if code.ok}


def test_every_metric_of_polling_is_on_the_dashboard() -> None:
    shown = " ".join(EXPRS)

    own = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served(registry())}
    missing = [name for name in own if "_polling_" in name and not re.search(rf"{name}(_bucket)?\{{", shown)]
    assert missing == []


def test_the_dashboard_is_one_for_grafana_10_and_asks_for_its_source() -> None:
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}

    assert 37 <= BOARD["schemaVersion"] <= 39
    assert BOARD["uid"] == "sanderling-polling"
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert variables["instance"]["datasource"] == DATASOURCE
    assert all(panel["datasource"] == DATASOURCE for panel in PANELS)
    assert all(target["datasource"] == DATASOURCE for panel in PANELS for target in panel["targets"])


def test_each_panel_has_a_number_a_title_words_and_a_unit_of_its_own() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]

    assert len(set(numbers)) == len(numbers)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert all(panel["description"] and panel["targets"] for panel in PANELS)
    assert all(len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) for panel in PANELS)
    units = {panel["fieldConfig"]["defaults"]["unit"] for panel in PANELS}
    assert units <= {"s", "short", "none", "percentunit", "reqps", "cps"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_seconds_rates_and_shares_are_shown_as_such(panel: Panel) -> None:
    unit, exprs = panel["fieldConfig"]["defaults"]["unit"], [each["expr"] for each in panel["targets"]]

    for expr in exprs:
        if " / " in expr:
            assert unit == "percentunit"
        elif "_seconds" in expr:
            assert unit == "s"
        elif "rate(" in expr and "histogram_quantile" not in expr:
            assert unit in {"reqps", "cps"}
        else:
            assert unit in {"short", "none", "reqps"}


def test_no_panel_covers_another_or_leaves_the_page() -> None:
    assert overlapping(BOARD["panels"]) == []
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in BOARD["panels"])


@pytest.mark.parametrize(
    ("title", "alarm"),
    [
        ("Live targets late (P99)", "PollingAcceleratedLate"),
        ("Lateness of live targets", "PollingAcceleratedLate"),
        ("Failing", "PollingTargetsFailing"),
        ("Age of the last good discovery", "PollingDiscoveryFailing"),
        ("Subscribers behind", "PollingSubscriberBehind"),
    ],
)
def test_a_panel_is_red_from_where_its_alarm_is_on(title: str, alarm: str) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == title)
    *_, red = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]

    assert red["color"] == "red"
    assert float(re.findall(r"> ([\d.]+)", ALARMS[alarm])[0]) == red["value"]


def test_the_alarm_about_lateness_is_at_a_bound_of_the_histogram() -> None:
    """Between bounds, a quantile is a guess."""
    assert float(ALARMS["PollingAcceleratedLate"].split("> ")[-1]) in LATE_BUCKETS


def test_every_alarm_says_how_bad_it_is_and_what_to_do() -> None:
    _, *alarms = RULES.split("- alert: ")

    assert len(alarms) == len(ALARMS) == 9
    for alarm in alarms:
        assert re.search(r"severity: (warning|critical)\n", alarm)
        assert all(re.search(rf"{name}: \S", alarm) for name in ("for", "summary", "description"))
        assert len(alarm.split("runbook:")[1]) > 100


def test_panels_that_a_runbook_names_exist() -> None:
    titles = {panel["title"] for panel in PANELS}

    named = re.findall(r'panel "([^"]+)"', RULES)
    assert named
    assert set(named) <= titles


def test_every_alarm_has_a_case_in_which_it_is_on() -> None:
    assert set(re.findall(r'alertname="(\w+)"', CASES)) == set(ALARMS)


@pytest.mark.parametrize(
    "command",
    [("check", "rules", str(POLLING.rules)), ("test", "rules", str(POLLING.cases))],
    ids=["check", "test"],
)
def test_promtool_agrees(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")

    assert promtool_says(promtool, *command) == ""


# The first is known once the host has said or shown it, which the one of this test has not. The other is on only where
# nothing is scraped.
MAY_BE_ABSENT = {'sanderling_limiter_host_ceiling{instance=~".*"}', ALARMS["PollingDown"]}


@pytest.mark.timeout(90)
def test_every_panel_shows_something_and_every_alarm_is_on_if_all_goes_wrong(prometheus: Callable[[int], str]) -> None:
    asked = {*map(as_grafana_asks, EXPRS), *ALARMS.values()}

    async def empty(url: str) -> set[str]:
        async with PrometheusServer(url) as server:
            now = time.time()
            found = {expr: await server.query_range(expr, now - 2, now, 1) for expr in sorted(asked)}
        return {expr for expr, series in found.items() if not series}

    with serve(registry_for(Troubled()), 0) as exposition:
        url = prometheus(exposition.server_port)
        until = time.monotonic() + 300
        while (left := asyncio.run(empty(url))) - MAY_BE_ABSENT and time.monotonic() < until:
            time.sleep(0.5)  # a real server, in real time

    assert left - MAY_BE_ABSENT == set()
