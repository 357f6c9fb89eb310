"""What polling reports."""

from typing import Any

import pytest
from known_reports import POLLING, POLLING_FACTS, RACE, polling, standing

from sanderling.observe.report import HostCondition, Severity
from sanderling.polling.report import LONGEST_KEY, ShortChange, describe_interval
from sanderling.stores.polling import Op, RowChange


def targets(**counts: int) -> dict[str, int]:
    return dict.fromkeys(POLLING_FACTS.targets, 0) | counts


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

    (found,) = polling(**{**quiet, **changes}).troubles

    assert (found.severity, found.text) == (severity, says)


@pytest.mark.parametrize(
    ("changes", "label", "says"),
    [
        ({"host": ""}, "source", "trackside, not asked yet"),
        ({"targets": targets(all=3, paused=1, gone=2)}, "targets", "3 targets, 1 paused, 2 gone"),
        ({"late": {}}, "late", "no runs lately"),
    ],
)
def test_lines_say(changes: dict[str, Any], label: str, says: str) -> None:
    assert dict(polling(**changes).lines)[label] == says


def test_each_kind_is_plotted_by_its_runs_and_what_changed_is_an_event() -> None:
    made = POLLING

    assert {each.label: each.value for each in made.activity} == POLLING_FACTS.runs
    assert any(each.text.startswith("live: every ") for each in made.activity)
    assert [each.wall for each in made.events] == [each.at for each in POLLING_FACTS.recent]
    assert all(change.table in event.text for change, event in zip(POLLING_FACTS.recent, made.events, strict=True))
    assert made.hosts[0].state is not HostCondition.DONE, "it is asked again and again"


@pytest.mark.parametrize(("seconds", "says"), [(0.2, "200 ms"), (5, "5 s"), (90, "90 s"), (600, "10 min")])
def test_an_interval_is_said_as_people_say_it(seconds: float, says: str) -> None:
    assert describe_interval(seconds) == says


@pytest.mark.parametrize("length", [0, LONGEST_KEY, LONGEST_KEY + 1, 10_000])
def test_a_change_is_told_without_its_values_and_a_long_key_is_cut(length: int) -> None:
    change = RowChange(seq=7, at=5.0, op=Op.UPDATE, table="laps", key="k" * length, values={"lap": 3}, fields=("lap",))

    told = ShortChange.of(change)

    key = "k" * length if length <= LONGEST_KEY else "k" * (LONGEST_KEY - 1) + "…"
    assert told == ShortChange(seq=7, at=5.0, op="update", table="laps", key=key, fields=("lap",))


@pytest.mark.parametrize(
    ("facts", "process", "doing"),
    [
        ({"accelerated": ()}, {}, "polling 46 targets, none of them live"),
        ({}, {}, "race be0e8021 is live: asked for every 200 ms"),
        ({"targets": targets(all=3, paused=3)}, {}, "all targets are paused"),
        ({"targets": targets(gone=9)}, {}, "looking for what to poll"),
        ({}, {"paused": True}, "paused: nothing is polled until somebody resumes it"),
        ({"store_trouble": "no database"}, {"paused": True}, "waiting for the database"),
        ({}, {"running": False}, "ended after 492 runs"),
    ],
)
def test_it_is_at_one_thing(facts: dict[str, Any], process: dict[str, Any], doing: str) -> None:
    assert polling(standing(RACE, process=process), **facts).doing == doing
