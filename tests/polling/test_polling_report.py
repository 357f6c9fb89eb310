"""What polling reports, from its status."""

from typing import Any

import pytest
from fake_polling import STATUS, status

from sanderling.observe.report import HostCondition, Severity
from sanderling.polling.report import describe_interval, report
from sanderling.polling.status import TargetCounts


@pytest.mark.parametrize(
    ("changes", "severity", "says"),
    [
        ({"store_trouble": "no disk"}, Severity.ERROR, "no disk"),
        (
            {"discovery_trouble": "REFUSED: address 127.0.0.1 is loopback"},
            Severity.ERROR,
            "what there is to poll could not be found out: REFUSED: address 127.0.0.1 is loopback; see --private",
        ),
        ({"problems": ("burst is 'many'",)}, Severity.WARNING, "burst is 'many'"),
    ],
)
def test_what_is_wrong_has_its_severity(changes: dict[str, Any], severity: Severity, says: str) -> None:
    quiet = {"store_trouble": "", "discovery_trouble": "", "problems": (), "subscribers": ()}

    (found,) = report(status(**{**quiet, **changes})).troubles

    assert (found.severity, found.text) == (severity, says)


@pytest.mark.parametrize(
    ("changes", "label", "says"),
    [
        ({"host": ""}, "source", "trackside, not asked yet"),
        ({"targets": TargetCounts(all=3, paused=1, gone=2)}, "targets", "3 targets, 1 paused, 2 gone"),
        ({"late": {}}, "late", "no runs lately"),
    ],
)
def test_lines_say(changes: dict[str, Any], label: str, says: str) -> None:
    assert dict(report(status(**changes)).lines)[label] == says


def test_each_kind_is_plotted_by_its_runs_and_what_changed_is_an_event() -> None:
    made = report(STATUS)

    assert {each.label: each.value for each in made.activity} == {
        kind: sum(runs.values()) for kind, runs in STATUS.runs.items()
    }
    assert any(each.text.startswith("live: every ") for each in made.activity)
    assert [each.wall for each in made.events] == [each.at for each in STATUS.recent]
    assert all(change.table in event.text for change, event in zip(STATUS.recent, made.events, strict=True))
    assert made.hosts[0].state is not HostCondition.DONE, "it is asked again and again"


@pytest.mark.parametrize(("seconds", "says"), [(0.2, "200 ms"), (5, "5 s"), (90, "90 s"), (600, "10 min")])
def test_an_interval_is_said_as_people_say_it(seconds: float, says: str) -> None:
    assert describe_interval(seconds) == says
