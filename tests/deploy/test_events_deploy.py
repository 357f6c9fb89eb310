"""The dashboard and the alarms of events: they ask for what there is, and a real Prometheus knows what."""

import asyncio
import json
import re
import shutil
import time
from collections.abc import Callable

import msgspec
import pytest
from deployed import DATASOURCE, Deployed, Panel, as_grafana_asks, overlapping, promtool_says, served
from known_reports import EVENTS_FACTS, histogram_of, registry_for, standing
from measured_reports import measured

from sanderling.events.alarms import ROLL_BACK, AlarmRules
from sanderling.events.analysis.sentiment import Label
from sanderling.events.lately import RECENT_ITEMS, Share
from sanderling.events.measures import BATCH_BUCKETS, ERROR, STATUSES, SUCCESS, EventMeasures
from sanderling.events.report import report_events
from sanderling.observe.metrics import serve
from sanderling.observe.prometheus import PrometheusServer
from sanderling.observe.report import AnyReport
from sanderling.testing import FakeClock

EVENTS = Deployed("events")
BOARD, PANELS, EXPRS, ALARMS = EVENTS.board, EVENTS.panels, EVENTS.exprs, EVENTS.alarms
RULES, CASES = EVENTS.rules.read_text(), EVENTS.cases.read_text()
METRIC = re.compile(r"\banalytics_\w+")


class Troubled:
    """A consumer for which all goes wrong, ever more with each scrape: it takes nothing and can send nothing."""

    def __init__(self) -> None:
        self.scrapes = 0

    def __call__(self) -> AnyReport:
        self.scrapes += 1
        number = self.scrapes
        measures = EventMeasures(FakeClock())
        measures.counted["objects_failed"] = 20 * number
        measures.items.update({("tiktok", "success"): 20 * number, ("tiktok", "error"): 30 * number})
        measures.categories["network", "tiktok"] = 30 * number
        measures.shares["tiktok"] = Share()
        measures.shares["tiktok"].add(40, 60)
        measures.batch_seconds["tiktok"] = histogram_of(BATCH_BUCKETS, *[12.0] * 5 * number)
        facts = msgspec.structs.replace(EVENTS_FACTS, connected=False, trouble="no database")
        return report_events(facts, standing(), measures.metrics())


def names() -> set[str]:
    return set(served(registry_for(lambda: measured()["events"])))


@pytest.mark.parametrize("text", [json.dumps(BOARD), RULES, CASES], ids=["board", "rules", "cases"])
def test_every_metric_that_is_asked_for_exists(text: str) -> None:
    asked = set(METRIC.findall(text))

    assert asked
    assert asked - names() == set()


@pytest.mark.parametrize("text", [json.dumps(EXPRS), RULES], ids=["board", "rules"])
def test_every_state_status_and_sentiment_that_is_asked_for_exists(text: str) -> None:
    known: dict[str, set[str]] = {
        "state": set(EVENTS_FACTS.queue or ()),
        "status": {SUCCESS, ERROR, *STATUSES},
        "sentiment": {*Label},
    }

    asked = re.findall(r'\b(state|status|sentiment)[=!]~?\\?"([A-Za-z_|]+)', text)

    assert asked
    assert [(label, values) for label, values in asked if not set(values.split("|")) <= known[label]] == []


def test_every_metric_of_events_is_on_the_dashboard() -> None:
    shown = " ".join(EXPRS)

    own = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names() if name.startswith("analytics_")}
    assert [name for name in own if not re.search(rf"\b{name}(_bucket)?\{{", shown)] == []


def test_the_dashboard_is_one_for_grafana_10_and_asks_for_its_source() -> None:
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}

    assert 37 <= BOARD["schemaVersion"] <= 39
    assert BOARD["uid"] == "sanderling-events"
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
    assert units <= {"s", "short", "percent", "percentunit", "cps"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_seconds_rates_and_shares_are_shown_as_such(panel: Panel) -> None:
    unit, exprs = panel["fieldConfig"]["defaults"]["unit"], [each["expr"] for each in panel["targets"]]

    for expr in exprs:
        if " / " in expr:
            assert unit == "percentunit"
        elif "_seconds" in expr:
            assert unit == "s"
        elif "rate(" in expr:
            assert unit == "cps"
        else:
            assert unit == ("percent" if re.search(r"_(success|error)_rate", expr) else "short")


def test_no_panel_covers_another_or_leaves_the_page() -> None:
    assert overlapping(BOARD["panels"]) == []
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in BOARD["panels"])


def bounds(alarm: str) -> list[float]:
    """What an alarm compares with."""
    return [float(number) for number in re.findall(r"[<>]=? ([\d.]+)", ALARMS[alarm])]


@pytest.mark.parametrize(
    ("title", "alarm"),
    [
        ("Errors", "EventsErrorRateCritical"),
        ("Share of errors by platform", "EventsErrorRateCritical"),
        ("Duration of a batch", "EventsBatchSlow"),
        ("Failures of the object store", "EventsObjectStoreFailing"),
    ],
)
def test_a_panel_is_red_from_where_its_alarm_is_on(title: str, alarm: str) -> None:
    (panel,) = (panel for panel in PANELS if panel["title"] == title)
    *_, red = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]

    assert red["color"] == "red"
    assert bounds(alarm)[0] == red["value"]


def test_the_alarms_are_on_where_the_alerts_of_the_process_are() -> None:
    rules = AlarmRules()

    assert bounds("EventsErrorRateHigh") == [rules.warning, rules.least]
    assert bounds("EventsErrorRateCritical") == [rules.critical, rules.least]
    assert ROLL_BACK in RULES


def test_the_alarm_about_slow_batches_is_at_a_bound_of_the_histogram() -> None:
    """Between bounds, a quantile is a guess."""
    assert bounds("EventsBatchSlow")[0] in BATCH_BUCKETS


def test_how_many_items_a_rate_is_of_is_said() -> None:
    assert any(f"{RECENT_ITEMS:,} items" in panel["title"] for panel in PANELS)


def test_every_alarm_says_how_bad_it_is_and_what_to_do() -> None:
    _, *alarms = RULES.split("- alert: ")

    assert len(alarms) == len(ALARMS) == 12
    for alarm in alarms:
        assert re.search(r"severity: (warning|critical)\n", alarm)
        assert all(re.search(rf"{name}: \S", alarm) for name in ("for", "summary", "description"))
        assert len(alarm.split("runbook:")[1]) > 100


def test_panels_that_a_runbook_names_exist() -> None:
    titles = {panel["title"] for panel in PANELS}

    named = re.findall(r'"([^"]+)"', " ".join(re.findall(r"runbook: >-\n((?: {12}.*\n)+)", RULES)))
    assert named
    assert {re.sub(r"\s+", " ", each) for each in named} <= titles


def test_every_alarm_has_a_case_in_which_it_is_on() -> None:
    assert set(re.findall(r'alertname="(\w+)"', CASES)) == set(ALARMS)


@pytest.mark.parametrize(
    "command",
    [("check", "rules", str(EVENTS.rules)), ("test", "rules", str(EVENTS.cases))],
    ids=["check", "test"],
)
def test_promtool_agrees(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")

    assert promtool_says(promtool, *command) == ""


# The first is on only where nothing is scraped; the other compares with an hour ago, which is before this server began.
MAY_BE_ABSENT = {ALARMS["EventsDown"], ALARMS["EventsErrorSpike"]}


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
