"""What a crawl of ids reports, ."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_reports import SEQUENCE, sequence, standing

from sanderling.engine.host_report import EngineStanding
from sanderling.observe.report import (
    AtFault,
    HostCondition,
    Report,
    Severity,
    Trouble,
    WorkCounts,
)
from sanderling.sequence.report import SequenceFacts


def test_a_crawl_reports_what_it_did() -> None:
    made = SEQUENCE

    assert (made.system, made.process.paused, made.troubles) == ("sequence", False, ())
    assert made.doing == "catching up, 5,500 ids behind; 50 workers"
    assert made.work == WorkCounts(asked=519, refused=1, kept=20, failed=2, waiting=7)
    assert made.gauges == {"lag": 135.0, "workers": 50}
    assert (made.facts.cursor, made.facts.head, made.facts.stored) == (16_000_000_500, 16_000_006_000, 17)


@pytest.mark.parametrize(
    ("facts", "at", "state", "trouble", "at_fault"),
    [
        ({}, None, HostCondition.GOING, "", None),
        ({}, standing(), HostCondition.GOING, "", None),  # before the first request
        ({"waiting": 0, "inflight": 0}, standing(process={"running": False}), HostCondition.DONE, "", None),
        ({"queue_trouble": "connection refused"}, None, HostCondition.GOING, "", None),  # that is the queue's
        ({"available": False}, None, HostCondition.FAILING, "bungie says that it is switched off", AtFault.HOST),
    ],
)
def test_its_host_has_its_state_and_the_reason(
    facts: dict[str, Any], at: EngineStanding | None, state: HostCondition, trouble: str, at_fault: AtFault | None
) -> None:
    (host,) = sequence(at, **facts).hosts

    assert (host.host, host.state, host.trouble, host.at_fault) == ("stats.example", state, trouble, at_fault)
    assert (host.requests, host.refused) == ((519, 1) if at is None else (0, 0))


def test_troubles_are_said_in_words() -> None:
    made = sequence(
        available=False,
        queue_trouble="connection refused",
        queue={"dead": 3},
        remarks={"error": "of 7: a list, expected a map"},
    )

    assert made.troubles == (
        Trouble(Severity.ERROR, "the queue takes nothing: connection refused"),
        Trouble(Severity.ERROR, "3 records could not be stored; see: sanderling dead list DIR"),
        Trouble(Severity.WARNING, "bungie says that it is switched off"),
        Trouble(Severity.INFO, "lately a failure, of 7: a list, expected a map"),
    )


def test_a_crawl_says_where_it_is_and_what_became_of_it() -> None:
    made = SEQUENCE

    assert dict(made.lines) == {
        "api": "bungie at stats.example",
        "ids": "all below 16,000,000,500 have their fate; the head is 5,500 ids ahead",
        "why": "catch_up: 135 s behind: 25 workers become 50.",
        "answers": "490 records, 20 wanted, 2.0 % not found, 2 failed, 1 refused, 3 hidden",
        "missed": "9,999 ids to be asked again: 9,996 in gaps, 3 hidden for now; 1 gap skipped with 9,996 ids",
        "kept": "20 queued, 3 wait there, 17 stored",
    }
    assert [each.text for each in made.events] == ["25 workers become 50: 5 min behind, 1.2 % not found (slew, little)"]
    assert [(each.label, each.value) for each in made.activity] == [("lag", 135.0), ("workers", 50)]


COUNTS = st.dictionaries(st.text(max_size=5) | st.sampled_from(["error", "success"]), st.integers(0, 10**9), max_size=5)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "available": st.booleans(),
        "queue_trouble": st.text(max_size=2000),
        "lag": st.none() | st.floats(0, 1e9),
        "behind": st.none() | st.integers(0, 10**9),
        "waiting": st.integers(0, 10**9),
        "inflight": st.integers(0, 10**4),
        "answers": COUNTS,
        "missed": COUNTS,
        "queue": st.none() | COUNTS,
        "stored": st.none(),
    },
)


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({"lag": 5.0}, "following the head"),
        ({"lag": 60.0}, "catching up"),
        ({"lag": None, "behind": 6000, "head_rate": 60.0}, "catching up"),
        ({"lag": None, "behind": 60, "head_rate": 60.0}, "following the head"),
        ({"lag": None, "behind": None, "head_rate": None}, "following the head"),
        ({"looking": True}, "looking for what is ahead"),
        ({"looking": True, "at_head": True}, "waiting at the head"),
        ({"queue_trouble": "no broker", "at_head": True}, "waiting for the queue"),
        ({"available": False, "queue_trouble": "no broker"}, "waiting: the API is switched off"),
    ],
)
def test_it_is_at_one_thing(changes: dict[str, Any], doing: str) -> None:
    assert sequence(**changes).doing.startswith(doing)


@given(CHANGES, st.fixed_dictionaries({"running": st.booleans(), "paused": st.booleans()}))
def test_a_report_agrees_with_its_facts_and_comes_back_from_json(
    changes: dict[str, Any], process: dict[str, Any]
) -> None:
    made = sequence(standing(*SEQUENCE.hosts, process=process), **changes)

    assert made.process.paused is process["paused"]
    assert made.work.asked >= max(made.facts.asked, made.work.failed)
    assert [each.host for each in made.hosts] == [made.facts.host]
    assert (made.hosts[0].at_fault is AtFault.HOST) is (not made.facts.available)
    assert made.doing
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report[SequenceFacts]) == made
