"""What a crawl of ids reports, from its status."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sequence_statuses import DECISION, STATUS, status

from sanderling.observe.report import (
    MOST_LISTED,
    AtFault,
    HostCondition,
    HostReport,
    Report,
    Severity,
    Trouble,
    WorkCounts,
)
from sanderling.sequence.report import SequenceFacts, report


def test_a_crawl_reports_what_it_did() -> None:
    made = report(STATUS)

    assert (made.system, made.process.paused, made.troubles) == ("sequence", False, ())
    assert made.doing == "catching up, 5,500 ids behind; 50 workers"
    assert made.work == WorkCounts(asked=519, refused=1, kept=20, failed=2, waiting=7)
    assert made.gauges == {"lag": 135.0, "workers": 50}
    assert (made.facts.cursor, made.facts.head, made.facts.stored) == (16_000_000_500, 16_000_006_000, 17)


@pytest.mark.parametrize(
    ("changes", "state", "trouble", "at_fault"),
    [
        ({}, HostCondition.GOING, "", None),
        ({"limiter": None}, HostCondition.GOING, "", None),
        ({"waiting": 0, "inflight": 0, "running": False}, HostCondition.DONE, "", None),
        ({"trouble": "connection refused"}, HostCondition.GOING, "", None),  # that is the queue's
        ({"available": False}, HostCondition.FAILING, "bungie says that it is switched off", AtFault.HOST),
    ],
)
def test_its_host_has_its_state_and_the_reason(
    changes: dict[str, Any], state: HostCondition, trouble: str, at_fault: AtFault | None
) -> None:
    of = status(**changes)

    assert report(of).hosts == (
        HostReport(
            host="stats.bungie.example",
            state=state,
            waiting=of.waiting,
            in_flight=of.inflight,
            trouble=trouble,
            at_fault=at_fault,
            requests=0 if of.limiter is None else 519,
            refused=0 if of.limiter is None else 1,
            latency=None if of.limiter is None else 0.16,
            why="" if of.limiter is None else "growing",
        ),
    )


def test_troubles_are_said_in_words() -> None:
    of = status(
        available=False,
        trouble="connection refused",
        queue={"dead": 3},
        remarks={"error": "of 7: a list, expected a map"},
    )

    assert report(of).troubles == (
        Trouble(Severity.ERROR, "the queue takes nothing: connection refused"),
        Trouble(Severity.ERROR, "3 records could not be stored; see: sanderling dead list DIR"),
        Trouble(Severity.WARNING, "bungie says that it is switched off"),
        Trouble(Severity.INFO, "lately a failure, of 7: a list, expected a map"),
    )


def test_a_crawl_says_where_it_is_and_what_became_of_it() -> None:
    made = report(STATUS)

    assert dict(made.lines) == {
        "api": "bungie at stats.bungie.example",
        "ids": "all below 16,000,000,500 have their fate; the head is 5,500 ids ahead",
        "why": "catch_up: 135 s behind: 25 workers become 50.",
        "answers": "490 records, 20 wanted, 2.0 % not found, 2 failed, 1 refused, 3 hidden",
        "missed": "9,999 ids to be asked again: 9,996 in gaps, 3 hidden for now; 1 gap skipped with 9,996 ids",
        "kept": "20 queued, 3 wait there, 17 stored",
    }
    assert [each.text for each in made.events] == ["25 workers become 50: 5 min behind, 1.2 % not found (slew, little)"]
    assert [(each.label, each.value) for each in made.activity] == [("lag", 135.0), ("workers", 50)]


def test_of_many_decisions_the_last_are_reported() -> None:
    decisions = tuple(msgspec.structs.replace(DECISION, workers=number) for number in range(3 * MOST_LISTED))

    shown = report(status(decisions=decisions)).facts.decisions

    assert [each.workers for each in shown] == list(range(2 * MOST_LISTED, 3 * MOST_LISTED))


COUNTS = st.dictionaries(st.text(max_size=5) | st.sampled_from(["error", "success"]), st.integers(0, 10**9), max_size=5)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "running": st.booleans(),
        "paused": st.booleans(),
        "available": st.booleans(),
        "trouble": st.text(max_size=2000),
        "lag": st.none() | st.floats(0, 1e9),
        "behind": st.none() | st.integers(0, 10**9),
        "waiting": st.integers(0, 10**9),
        "inflight": st.integers(0, 10**4),
        "answers": COUNTS,
        "missed": COUNTS,
        "queue": st.none() | COUNTS,
        "store": st.none(),
        "limiter": st.none(),
    },
)


@given(CHANGES)
def test_a_report_agrees_with_its_status_and_comes_back_from_json(changes: dict[str, Any]) -> None:
    of = status(**changes)

    made = report(of)

    assert (made.process.paused, made.set_aside, made.work.waiting) == (of.paused, 0, of.waiting)
    assert made.work.asked >= max(of.asked, made.work.failed)
    assert [each.host for each in made.hosts] == [of.host]
    assert (made.hosts[0].at_fault is AtFault.HOST) is (not of.available)
    assert made.doing
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report[SequenceFacts]) == made
