"""Alerts at the seed's thresholds, each once in ten minutes; and the report."""

import shutil
import subprocess
from pathlib import Path

import pytest
from events.plays import make_consumer

from sanderling.clock import run_virtual
from sanderling.events.options import EventsOptions
from sanderling.events.report import make_report
from sanderling.events.watch import Watch
from sanderling.observe.alerts import Alert, Alerts
from sanderling.observe.metrics import ReportCollector
from sanderling.options import OptionError

DEPLOY = Path(__file__).parents[2] / "deploy"


class Kept(Alerts):
    def __init__(self, clock: object) -> None:
        super().__init__(None, "", clock)  # type: ignore[arg-type]
        self.titles: list[str] = []

    def post(self, alert: Alert) -> None:
        self.titles.append(alert.title)


def told(*lately: tuple[float, int, int, bool, bool], away: float | None = None, until: float = 0.0) -> list[str]:
    """The alerts of a run in which this happened: when, posts, errors, whether of parsing or of storage."""

    async def play() -> list[str]:
        play = make_consumer()
        kept = Kept(play.clock)
        watch = Watch(play.consumer, kept, play.clock)
        if away is not None:
            play.consumer.away_since["database"] = away
        waiting = sorted(lately)
        while waiting or play.clock.now() <= until:
            while waiting and waiting[0][0] <= play.clock.now():
                at, good, bad, parsing, storage = waiting.pop(0)
                play.consumer.figures.lately.append((at, "tiktok", good, bad, parsing, storage))
            watch.alert()
            await play.clock.sleep(1.0)
        return kept.titles

    return run_virtual(play())


@pytest.mark.parametrize(
    ("lately", "titles"),
    [
        (((0.0, 80, 20, False, False),), []),
        (((0.0, 79, 21, False, False),), ["Too many items fail"]),
        (((0.0, 40, 50, False, False),), []),  # fewer than 100 items say nothing
        (((0.0, 40, 50, False, False), (599.0, 0, 20, False, False)), ["Too many items fail"]),
        (((0.0, 40, 50, False, False), (650.0, 0, 20, False, False)), []),
        (((0.0, 100, 1, True, False),), ["Items or messages cannot be read"]),
        (((0.0, 100, 1, False, True),), []),
        (((0.0, 100, 1, False, True), (400.0, 100, 1, False, True)), ["Errors of storage persist"]),
    ],
)
def test_thresholds(lately: tuple[tuple[float, int, int, bool, bool], ...], titles: list[str]) -> None:
    assert told(*lately) == titles


def test_an_alert_comes_again_after_ten_minutes_while_it_lasts() -> None:
    lately = [(60.0 * minute, 50, 50, False, False) for minute in range(21)]
    assert told(*lately, until=1230.0) == ["Too many items fail"] * 3


def test_a_service_that_is_away_for_a_minute_is_told() -> None:
    assert told(away=0.0, until=59.0) == []
    assert told(away=0.0, until=61.0) == ["database is away"]


def test_the_report_has_the_metrics_of_the_seed_with_their_labels() -> None:
    async def scrape() -> dict[str, dict[str, str]]:
        play = make_consumer()
        figures = play.consumer.figures
        figures.items["tiktok,success"] = figures.items["tiktok,error"] = 2
        figures.codes["tiktok,A,B"] = 1
        figures.took.add(0.3)
        options = EventsOptions(out=Path("x"))
        report = make_report(play.consumer, options, play.readers.report(), "", 0.0, running=True)
        return {
            sample.name: sample.labels for each in ReportCollector(lambda: report).collect() for sample in each.samples
        }

    found = run_virtual(scrape())
    assert found["analytics_items_processed_total"] == {"platform": "tiktok", "status": "error"}
    assert found["analytics_errors_by_code_total"] == {"platform": "tiktok", "error_code": "A,B"}
    assert found["analytics_event_processing_duration_seconds_bucket"] == {"le": "+Inf"}
    assert "analytics_event_processing_duration_seconds_sum" in found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queue_name": ("a", "a")}, "given twice"),
        ({"pipeline": "judge"}, "expected module:function"),
        ({"canary": 2.0}, "from 0 to 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        EventsOptions(out=Path("x"), **given)


@pytest.mark.real
def test_prometheus_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool; apt-get install prometheus")
    subprocess.run([promtool, "check", "rules", DEPLOY / "prometheus" / "events.yml"], check=True, capture_output=True)
