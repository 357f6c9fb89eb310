"""The report of a consumer: services are its hosts, and who is at fault is said of each."""

from fake_events import status

from sanderling.events.report import report
from sanderling.events.status import StationStatus
from sanderling.observe.report import AtFault, HostCondition


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
