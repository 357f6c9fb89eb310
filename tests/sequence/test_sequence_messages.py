"""What people are told, word for word: they search for these titles."""

import json

import pytest

from sanderling.observe.alerts import Alert, Level
from sanderling.observe.alerts_webhook import embed
from sanderling.sequence.alerts import (
    api_back,
    api_disabled,
    gap_skipped,
    high_404,
    runaway,
    starting_up,
    status_update,
    unresolved,
    unresolved_warning,
    workers_starting,
    workers_stopped,
)

ALL = [
    (starting_up(), "Starting up...", {}),
    (
        workers_stopped(25, 17_000_000_001),
        "Workers Stopped",
        {"Count": "25", "Current Instance Id": "`17000000001`"},
    ),
    (
        workers_starting(25, 10_000, 17_000_000_001),
        "Workers Starting",
        {"Count": "25", "Period": "10000", "Current Instance Id": "`17000000001`"},
    ),
    (
        status_update(45.5, 0.02512, 0.0001, 37),
        "Status Update",
        {
            "Lag Behind Head (P20)": "45.5s",
            "404 Percentage": "2.512%",
            "Error Percentage": "0.010%",
            "Workers Used": "37",
        },
    ),
    (high_404(0.9, 123.4), "High 404 Rate Detected", {"Rate": "90.000%", "Count": "123"}),
    (
        gap_skipped(100, 10_096, 9_996),
        "Gap Mode Block Skip",
        {"Previous Id": "`100`", "New Starting Id": "`10096`", "Minimum Block Size": "9996"},
    ),
    (runaway(7, 5415.5), "Runaway Error", {"Last Instance Id": "`7`", "Time Waited": "1h 30m 15.5s"}),
    (
        unresolved_warning(7, 60),
        "Unresolved Instance (Warning)",
        {"Instance Id": "`7`", "Time Elapsed": "1m"},
    ),
    (unresolved(7, 400), "Unresolved Instance", {"Instance Id": "`7`", "Time Elapsed": "6m 40s"}),
    (api_disabled("bungie"), "API Disabled", {"API": "bungie"}),
    (api_back("bungie", 0.5), "API Back", {"API": "bungie", "Time Elapsed": "500ms"}),
]


@pytest.mark.parametrize(("alert", "title", "fields"), ALL)
def test_each_message_says_this(alert: Alert, title: str, fields: dict[str, str]) -> None:
    assert (alert.title, {field.name: field.value for field in alert.fields}) == (title, fields)


def test_people_are_called_only_for_what_they_must_look_at() -> None:
    assert [alert.kind for alert, _, _ in ALL if alert.ping] == ["gap_skipped", "runaway"]


def test_ids_that_are_given_up_are_sparse_and_nothing_else_is() -> None:
    sparse = {alert.kind: alert.patience for alert, _, _ in ALL if alert.patience is not None}

    assert sparse == {"unresolved_warning": 5, "unresolved": 10}


def test_how_it_goes_is_what_is_dropped_first() -> None:
    assert [alert.kind for alert, _, _ in ALL if alert.level is Level.STATUS] == ["status_update"]


def test_each_kind_is_told_apart() -> None:
    assert len({alert.kind for alert, _, _ in ALL}) == len(ALL)


def test_a_lag_that_nobody_knows_is_said_to_be_unknown() -> None:
    assert status_update(None, 1, 0, 25).fields[0].value == "unknown"


@pytest.mark.parametrize(("alert", "title", "fields"), ALL)
def test_discord_can_be_told_each_of_them(alert: Alert, title: str, fields: dict[str, str]) -> None:
    (shown,) = json.loads(embed(alert, 1_800_000_000, "42", "sanderling"))["embeds"]

    assert (shown["title"], len(shown["fields"])) == (title, len(fields))
