"""When people are told about batches, and in which words; time is a number."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from fake_events import batch, digested, error, fields, post
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events import alarms
from sanderling.events.alarms import AlarmRules, Alarms
from sanderling.events.rows import ProcessedBatch
from sanderling.observe.alerts import Alert, Level

RULES = AlarmRules()
SPAN = RULES.window / 60  # how exactly times are kept


GOOD, BAD, AWFUL = (45, 5), (44, 6), (39, 11)  # a tenth exactly, a little more, more than a fifth


def told(alarms: Alarms, now: float) -> list[str]:
    return [alert.kind for alert in alarms.due(now)]


def run(
    alarms: Alarms, batches: Sequence[ProcessedBatch], start: float = 0.0, every: float = 1.0
) -> list[tuple[float, Alert]]:
    """What is said about these, of which one comes every so often."""
    said = []
    for number, each in enumerate(batches):
        now = start + number * every
        alarms.processed(each, now)
        said += [(now, alert) for alert in alarms.due(now)]
    return said


def kinds(said: list[tuple[float, Alert]]) -> list[str]:
    return [alert.kind for _, alert in said]


# Items that cannot be read.


def test_items_that_cannot_be_read_are_said_at_once_with_an_example() -> None:
    alarms = Alarms()
    broken = digested(
        [post("ok"), error("PARSE_ERROR", error_message="no JSON\nat 7"), error("INVALID_URL"), error("invalid-url")],
        job_id="job`1",
        project_id=None,
    )

    alarms.processed(broken, 0.0)
    (alert,) = alarms.due(0.0)

    assert (alert.kind, alert.title, alert.level) == ("items_unreadable", "Items Cannot Be Read", Level.ERROR)
    assert fields(alert) == {
        "Count": "3",
        "Codes": "INVALID_URL 2, PARSE_ERROR 1",
        "Platform": "tiktok",
        "Job": "`job'1`",
        "Event": "`evt_abc123`",
        "For Example": "no JSON at 7",
    }


def test_what_a_crawler_did_not_say_is_not_said() -> None:
    alarms = Alarms()
    alarms.processed(digested([error("PARSE_ERROR")], platform=None, job_id=None), 0.0)
    (alert,) = alarms.due(0.0)

    assert {*fields(alert).items()} >= {("Platform", "unknown"), ("Job", "none"), ("For Example", "not said")}


@pytest.mark.parametrize("code", ["TIMEOUT", "CONTENT_REMOVED", "MEDIA_TOO_LARGE", "RATE_LIMITED", "INTERNAL_ERROR"])
def test_other_errors_are_no_reason_to_call_anybody(code: str) -> None:
    alarms = Alarms()
    alarms.processed(batch(45, 5, code), 0.0)

    assert told(alarms, 0.0) == []


def test_a_crowd_is_said_once_and_then_together() -> None:
    alarms = Alarms()
    said = run(alarms, [batch(49, 1, "PARSE_ERROR")] * 601)

    assert [(now, fields(alert)["Count"]) for now, alert in said] == [(0.0, "1"), (600.0, "600")]


def test_what_was_held_back_is_said_also_if_nothing_more_comes() -> None:
    alarms = Alarms()
    run(alarms, [batch(49, 1, "PARSE_ERROR")] * 3)

    assert told(alarms, RULES.every - 0.1) == []
    (alert,) = alarms.due(RULES.every)
    assert fields(alert)["Count"] == "2"
    assert told(alarms, 10 * RULES.every) == []


# Buried messages.


def test_a_buried_message_is_said_at_once_with_the_reason() -> None:
    alarms = Alarms()
    alarms.buried("evt_1", "message: found nothing, expected JSON")
    (alert,) = alarms.due(0.0)

    assert (alert.kind, alert.title, alert.level) == ("message_buried", "Message Buried", Level.ERROR)
    assert fields(alert) == {
        "Count": "1",
        "Message": "`evt_1`",
        "Why": "message: found nothing, expected JSON",
    }


def test_buried_messages_are_counted_apart_from_items_and_the_last_one_is_shown() -> None:
    alarms = Alarms()
    alarms.processed(batch(0, 2, "PARSE_ERROR"), 0.0)
    alarms.buried("evt_1", "")
    assert told(alarms, 0.0) == ["items_unreadable", "message_buried"]

    for number in range(5):
        alarms.buried(f"evt_{number}", f"reason {number}")
    (alert,) = alarms.due(RULES.every)

    assert fields(alert) == {"Count": "5", "Message": "`evt_4`", "Why": "reason 4"}


def test_no_secret_and_no_long_text_is_said() -> None:
    alarms = Alarms()
    alarms.buried("k" * 1000, "cannot reach http://me:hunter2@host/ " + "x" * 10_000)
    (alert,) = alarms.due(0.0)

    assert "hunter2" not in fields(alert)["Why"]
    assert all(len(value) <= 102 for value in fields(alert).values())


# Errors of storage.


def test_storage_errors_are_said_when_several_batches_within_minutes_have_some() -> None:
    alarms = Alarms()
    said = run(alarms, [batch(49, 1, "UPLOAD_FAILED"), batch(50), batch(40, 10, "DATABASE_ERROR")] * 2, every=50.0)

    ((now, alert),) = said
    assert (now, alert.kind, alert.level) == (150.0, "storage_errors", Level.ERROR)
    assert alert.title == "Storage Errors Persist"
    assert fields(alert) == {"Batches": "3 of 4", "Within": "5m"}


def test_a_storage_error_now_and_then_is_an_accident() -> None:
    assert run(Alarms(), [batch(49, 1, "STORAGE_ERROR")] * 50, every=RULES.storage_window / 2) == []


def test_storage_has_recovered_when_batches_come_without() -> None:
    alarms = Alarms()
    run(alarms, [batch(49, 1, "STORAGE_ERROR")] * 3, every=10.0)
    said = run(alarms, [batch(50)] * 60, start=30.0, every=10.0)

    ((now, alert),) = said
    assert (alert.kind, alert.title, alert.level) == ("storage_recovered", "Storage Recovered", Level.INFO)
    assert 20.0 + RULES.storage_window - SPAN <= now <= 30.0 + RULES.storage_window
    assert {*fields(alert)} == {"Time Elapsed"}


def test_silence_is_no_recovery() -> None:
    alarms = Alarms()
    run(alarms, [batch(49, 1, "STORAGE_ERROR")] * 3)
    run(alarms, [batch(*AWFUL)] * 3, start=3.0)

    assert [told(alarms, 1000.0 * hour) for hour in range(1, 10)] == [[]] * 9


# The error rate.


@pytest.mark.parametrize(
    ("items", "kind"), [((50, 0), []), (GOOD, []), (BAD, ["error_rate_high"]), (AWFUL, ["error_rate_critical"])]
)
def test_an_error_rate_above_a_bound_is_said_once(items: tuple[int, int], kind: list[str]) -> None:
    assert kinds(run(Alarms(), [batch(*items)] * 500, every=10.0)) == kind


def test_exactly_a_fifth_is_not_critical() -> None:
    assert kinds(run(Alarms(), [batch(40, 10)] * 20)) == ["error_rate_high"]


def test_a_high_rate_is_a_warning_with_the_codes() -> None:
    alarms = Alarms()
    several = (
        [error("TIMEOUT")] * 3 + [error("rate-limited")] * 2 + [error("?"), error("DNS_ERROR"), error("TLS_ERROR")]
    )
    alarms.processed(digested([post("ok")] * 52 + several), 0.0)
    alarms.processed(batch(52, 8, "TIMEOUT"), 0.0)
    (alert,) = alarms.due(0.0)

    assert (alert.kind, alert.title, alert.level, alert.ping) == (
        "error_rate_high",
        "Error Rate High",
        Level.WARNING,
        False,
    )
    assert fields(alert) == {
        "Rate": "13.3%",
        "Items": "120",
        "Within": "10m",
        "Codes": "TIMEOUT 11, RATE_LIMITED 2, other 1",
    }


def test_a_critical_rate_calls_people_and_says_how_to_roll_back() -> None:
    ((_, alert),) = run(Alarms(), [batch(*AWFUL)] * 5)

    assert (alert.title, alert.level, alert.ping) == ("Error Rate Critical", Level.CRITICAL, True)
    assert fields(alert)["Roll Back"] == "`sanderling events mode --no-new`"
    assert fields(alert)["Rate"] == "22.0%"


def test_a_few_items_prove_nothing() -> None:
    alarms = Alarms()
    assert run(alarms, [batch(0, 9)] * 11) == []

    assert kinds(run(alarms, [batch(0, 9)], start=11.0)) == ["error_rate_critical"]


def test_what_is_long_ago_does_not_count() -> None:
    """Nine items a minute are never a hundred within ten minutes."""
    assert run(Alarms(), [batch(0, 9)] * 500, every=60.0) == []


def test_a_rate_that_rises_is_said_at_each_bound() -> None:
    said = run(Alarms(), [batch(*BAD)] * 10 + [batch(0, 50)] * 10)

    assert kinds(said) == ["error_rate_high", "error_rate_critical"]


def test_a_rate_has_recovered_when_it_is_well_below_for_minutes() -> None:
    alarms = Alarms()
    run(alarms, [batch(*AWFUL)] * 100)
    said = run(alarms, [batch(50)] * 1000, start=100.0)

    ((now, alert),) = said
    assert (alert.kind, alert.title, alert.level) == ("error_rate_recovered", "Error Rate Recovered", Level.INFO)
    # 22 % of 100 batches are 8 % of all after 175 more; then it must stay so.
    assert now == pytest.approx(100 + 175 + RULES.calm, abs=2)
    assert fields(alert)["Time Elapsed"] == f"{(now - RULES.calm - 1) // 60:.0f}m {(now - RULES.calm - 1) % 60:.0f}s"


def test_a_rate_around_the_bound_is_said_once() -> None:
    wavering = [batch(*BAD), batch(46, 4)] * 200

    assert kinds(run(Alarms(), wavering, every=20.0)) == ["error_rate_high"]


def test_a_rate_that_stays_between_the_bounds_has_not_recovered() -> None:
    said = run(Alarms(), [batch(*AWFUL)] * 20 + [batch(*BAD)] * 500, every=10.0)

    assert kinds(said) == ["error_rate_critical"]


def test_a_rate_that_got_better_and_then_worse_is_said_again() -> None:
    alarms = Alarms()
    run(alarms, [batch(*AWFUL)] * 20)
    run(alarms, [batch(*BAD)] * 100, start=20.0, every=10.0)
    said = run(alarms, [batch(0, 50)] * 100, start=1020.0, every=10.0)

    assert kinds(said) == ["error_rate_critical"]


def test_a_rate_that_comes_back_too_soon_is_said_when_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarms, "RULES", AlarmRules(window=60.0, calm=30.0))
    said = run(Alarms(), ([batch(*BAD)] * 60 + [batch(50)] * 120) * 3 + [batch(*BAD)] * 120)

    assert kinds(said) == ["error_rate_high", "error_rate_recovered", "error_rate_high"]
    assert [now for now, alert in said if alert.level is Level.WARNING] == [1.0, 601.0]


# No flood, whatever comes.

BATCHES = st.tuples(
    st.floats(0, 400),
    st.integers(0, 120),
    st.integers(0, 120),
    st.sampled_from(["TIMEOUT", "PARSE_ERROR", "STORAGE_ERROR", "?"]),
    st.booleans(),
)


@given(st.lists(BATCHES, max_size=60))
def test_an_alert_of_a_kind_is_said_at_most_every_so_often(
    batches: list[tuple[float, int, int, str, bool]],
) -> None:
    alarms, now, said = Alarms(), 0.0, []
    for wait, posts, errors, code, buried in batches:
        now += wait
        alarms.processed(batch(posts // 10 * 10, errors // 10 * 10, code), now)
        if buried:
            alarms.buried("key", "why")
        said += [(now, alert.kind) for alert in alarms.due(now)]

    for kind in ("items_unreadable", "message_buried", "storage_errors", "error_rate_high", "error_rate_critical"):
        times = [now for now, each in said if each == kind]
        assert all(later - earlier >= RULES.every for earlier, later in pairwise(times))
    for begun, over in (("storage_errors", "storage_recovered"), ("error_rate", "error_rate_recovered")):
        moves = [kind == over for _, kind in said if kind.startswith(begun) or kind == over]
        assert moves[:1] != [True], "what did not begin is not over"
        assert not any(one and other for one, other in pairwise(moves)), "it is over once"


@given(st.lists(st.tuples(st.floats(0, 400), st.integers(1, 5)), max_size=40))
def test_every_item_that_cannot_be_read_is_counted_in_some_alert(batches: list[tuple[float, int]]) -> None:
    alarms, now, counted = Alarms(), 0.0, 0
    for wait, number in batches:
        now += wait
        alarms.processed(batch(50, number, "PARSE_ERROR"), now)
        counted += sum(int(fields(alert)["Count"]) for alert in alarms.due(now))
    counted += sum(int(fields(alert)["Count"]) for alert in alarms.due(now + RULES.every))

    assert counted == sum(number for _, number in batches)


def test_what_is_remembered_is_bounded() -> None:
    alarms = Alarms()
    run(alarms, [batch(49, 1)] * 500, every=20.0)

    assert len(alarms._items._spans) == len(alarms._batches._spans) == 60
