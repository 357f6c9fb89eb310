"""What a consumer of events reports."""

from typing import Any

import msgspec
import pytest
from fake_events import digested, error, mixed
from known_reports import EVENTS_FACTS, events, standing

from sanderling.events.measures import MINUTES, MOST_RECENT, EventMeasures
from sanderling.events.modes import Modes
from sanderling.observe.report import Severity
from sanderling.testing import FakeClock

CALM = {"ready": 1, "taken": 0, "delayed": 0, "dead": 0}
OFF = Modes(new=False, legacy=False, inline=False)


@pytest.mark.parametrize(
    ("changes", "severity", "says"),
    [
        ({"queue": None}, Severity.ERROR, "the queue does not answer"),
        ({"trouble": "no database"}, Severity.ERROR, "no database"),
        ({"queue": CALM | {"dead": 2}}, Severity.ERROR, "2 messages given up"),
        ({"modes_trouble": "no JSON"}, Severity.WARNING, "the modes are as before: no JSON"),
        ({"outbox_trouble": "no broker"}, Severity.WARNING, "no broker"),
    ],
)
def test_what_is_wrong_has_its_severity(changes: dict[str, Any], severity: Severity, says: str) -> None:
    (found,) = events(**{"queue": CALM, **changes}).troubles

    assert (found.severity, found.text) == (severity, says)


def test_lines_say_what_came_of_messages() -> None:
    messages = msgspec.structs.replace(EVENTS_FACTS.messages, processed=9, duplicates=1)
    made = events(
        queue={"ready": 5, "taken": 2, "delayed": 0, "dead": 1},
        messages=messages,
        sentiments={"POSITIVE": 3},
        skipped={"ad": 4},
        outbox=7,
    )

    lines = dict(made.lines)
    assert lines["queue"] == "5 waiting, 2 in hand, 1 given up"
    assert lines["messages"].startswith("9 done, 1 seen before")
    assert lines["sentiment"] == "3 positive, 0 neutral, 0 negative, 4 not read"
    assert lines["sent"].endswith("; 7 messages in the outbox")
    assert [each.label for each in made.activity] == ["positive", "neutral", "negative", "errors"]


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({}, "at 3 batches"),
        ({"messages": msgspec.structs.replace(EVENTS_FACTS.messages, received=117)}, "waiting for messages"),
        ({"modes": OFF}, "all formats are switched off"),
        ({"modes": Modes(new=False)}, "at 3 batches"),
        ({"queue": None, "modes": OFF}, "waiting for the queue"),
        ({"queue": None, "trouble": "no database"}, "waiting for what is not to be had"),
    ],
)
def test_it_is_at_one_thing(changes: dict[str, Any], doing: str) -> None:
    assert events(**changes).doing == doing
    assert events(standing(process={"paused": True})).doing == "paused: somebody wants it to rest"


def test_there_is_no_error_rate_without_items() -> None:
    assert events(posts=0, errors=0).facts.error_rate == 0.0


def test_a_report_stays_small_and_can_be_written_whatever_comes() -> None:
    clock = FakeClock()
    seen, long = EventMeasures(clock), "x" * 10_000
    seen.kept(digested([error("\ud800\0", error_message="\ud83d\x1b" * 9999, platform="\udfff"), "\ud800"]))
    hostile = digested([error(f"{number}{long}", error_message=long, platform=f"p{number}") for number in range(100)])
    for _ in range(2 * MINUTES):
        seen.kept(hostile)
        clock.advance(60.0)
    made = events(minutes=seen.minutes, recent=seen.recent)

    assert (len(seen.minutes), len(seen.recent)) == (MINUTES, MOST_RECENT)
    assert len(msgspec.json.encode(made)) < 40_000
    assert len(msgspec.json.encode(tuple(seen.metrics()))) < 40_000


def test_it_says_how_it_went_lately() -> None:
    clock = FakeClock(now=600.0)
    seen = EventMeasures(clock)
    seen.kept(mixed())
    clock.advance(10.0)

    assert (seen.lately.batches, seen.lately.items, seen.lately.errors) == (0.1, 0.8, 0.3)
    assert [(each.positive, each.errors) for each in seen.minutes] == [(2, 3)]
    assert [each.code for each in seen.recent] == ["RATE_LIMITED", "?", "INVALID_RESPONSE"]
