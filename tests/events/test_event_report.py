"""The report of a consumer: services are its hosts, and who is at fault is said of each."""

from typing import Any

import pytest
from fake_events import status

from sanderling.events.report import report
from sanderling.events.status import QueueStatus, StationStatus
from sanderling.observe.report import AtFault, HostCondition, Severity


def test_services_are_hosts_and_a_failure_is_a_messages_until_its_service_is_down() -> None:
    stations = (
        StationStatus(name="lookups", down=False, waiting=0, in_flight=1),
        StationStatus(name="objects", down=False, waiting=2, in_flight=0, trouble="500"),
        StationStatus(name="rows", down=True, waiting=5, in_flight=1, trouble="nobody answers"),
    )

    made = report(status(stations=stations, classes={"new": 7}, paused=True))

    found = [(each.host, each.state, each.waiting, each.in_flight, each.trouble, each.at_fault) for each in made.hosts]
    assert found == [
        ("lookups", HostCondition.GOING, 0, 1, "", None),
        ("objects", HostCondition.GOING, 2, 0, "500", AtFault.ITEMS),
        ("rows", HostCondition.FAILING, 5, 1, "nobody answers", AtFault.HOST),
    ]
    assert (made.process.paused, made.classes, made.work.kept) == (True, {"new": 7}, 106)


@pytest.mark.parametrize(
    ("changes", "severity", "says"),
    [
        ({"queue": None}, Severity.ERROR, "the queue does not answer"),
        ({"trouble": "no database"}, Severity.ERROR, "no database"),
        ({"queue": QueueStatus(ready=0, taken=0, delayed=0, dead=2)}, Severity.ERROR, "2 messages given up"),
        ({"modes_trouble": "no JSON"}, Severity.WARNING, "the modes are as before: no JSON"),
        ({"outbox_trouble": "no broker"}, Severity.WARNING, "no broker"),
    ],
)
def test_what_is_wrong_has_its_severity(changes: dict[str, Any], severity: Severity, says: str) -> None:
    calm = QueueStatus(ready=1, taken=0, delayed=0, dead=0)

    (found,) = report(status(**{"queue": calm, **changes})).troubles

    assert (found.severity, found.text) == (severity, says)


def test_lines_say_what_came_of_messages() -> None:
    queue = QueueStatus(ready=5, taken=2, delayed=0, dead=1)
    made = report(
        status(
            queue=queue, processed=9, duplicates=1, failed=2, sentiments={"POSITIVE": 3}, skipped={"ad": 4}, outbox=7
        )
    )

    lines = dict(made.lines)
    assert lines["queue"] == "5 waiting, 2 in hand, 1 given up"
    assert lines["messages"].startswith("9 done, 1 seen before")
    assert lines["sentiment"] == "3 positive, 0 neutral, 0 negative, 4 not read"
    assert lines["sent"].endswith("; 7 messages in the outbox")
    assert [each.label for each in made.activity] == ["positive", "neutral", "negative", "errors"]
