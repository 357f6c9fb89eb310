"""The dates that are asked for: days and moments, in UTC where they do not say otherwise, and in order."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from events_house import ANALYTICS, DAY, NOON, events_house
from hypothesis import given, settings
from hypothesis import strategies as st
from looping import in_loop
from msgspec import UNSET, UnsetType

from sanderling.web.events_types import read_moment, read_span
from sanderling.web.problems import ProblemError

MIDNIGHT = NOON - DAY / 2
zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=zones)


@given(moments)
def test_a_moment_is_read_as_it_was_written_wherever_it_was(moment: datetime) -> None:
    read = read_moment("from_date", moment.isoformat())

    assert read.seconds == (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assert not read.day


@given(st.dates())
def test_a_day_is_read_as_a_day_of_utc(day: date) -> None:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)

    assert read_moment("from_date", day.isoformat()) == (begin.timestamp(), True)
    assert read_moment("from_date", begin.replace(tzinfo=None).isoformat()) == (begin.timestamp(), False)


@given(st.text(max_size=40))
@settings(max_examples=300)
def test_any_text_is_a_date_or_is_refused_in_words(text: str) -> None:
    refusal, seconds = None, 0.0
    try:
        seconds = read_moment("to_date", text).seconds
    except ProblemError as error:
        refusal = error.problem

    assert -62_135_596_800 - DAY < seconds < 253_402_300_800 + DAY
    assert refusal is None or (refusal.status == 400 and refusal.detail.isprintable())


@given(moments, moments)
def test_the_end_is_not_before_the_beginning(one: datetime, other: datetime) -> None:
    first, last = sorted((one, other))

    start, end = read_span(first.isoformat(), last.isoformat())
    assert start is not None
    assert end is not None
    assert start <= end
    if first < last:
        with pytest.raises(ProblemError):
            read_span(last.isoformat(), first.isoformat())


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (UNSET, UNSET, (None, None)),
        ("2025-12-05", UNSET, (MIDNIGHT, None)),
        (UNSET, "2025-12-05", (None, MIDNIGHT + DAY)),
        (UNSET, "9999-12-31", (None, 253_402_300_800.0)),
        ("2025-12-05", "2025-12-05", (MIDNIGHT, MIDNIGHT + DAY)),
        ("2025-12-05T12:00", "2025-12-05", (NOON, MIDNIGHT + DAY)),
        ("2025-12-05T12:00Z", "2025-12-05T12:00Z", (NOON, NOON)),
        ("2025-12-05", "2025-12-05T12:00:00.5Z", (MIDNIGHT, NOON + 0.5)),
        ("2025-12-05T19:00+07:00", "2025-12-05T12:00Z", (NOON, NOON)),
    ],
)
def test_a_day_is_meant_to_its_end_and_a_moment_up_to_itself(
    start: str | UnsetType, end: str | UnsetType, expected: tuple[float | None, float | None]
) -> None:
    assert read_span(start, end) == expected


BAD = [
    ("from_date=2025-12-06&to_date=2025-12-05", "expected the former not to be after the latter"),
    ("from_date=2025-12-05T12:00:01Z&to_date=2025-12-05T12:00:00Z", "expected the former not to be after the latter"),
    ("from_date=2025-12-06T00:00&to_date=2025-12-05", "expected the former not to be after the latter"),
    ("from_date=yesterday&to_date=2025-12-05", "from_date is 'yesterday', expected a date or date-time in ISO 8601"),
    ("from_date=2025-12-05&to_date=2025-13-01", "to_date is '2025-13-01', expected a date or date-time in ISO 8601"),
    ("from_date=2025-02-29&to_date=2025-12-05", "from_date is '2025-02-29'"),
    ("from_date=2025-12-05T12:00:00+07:00&to_date=2025-12-06", "its + written as %2B"),
    ("from_date=&to_date=2025-12-05", "from_date is ''"),
    ("from_date=1764936000&to_date=2025-12-05", "from_date is '1764936000'"),
    ("from_date=%00&to_date=2025-12-05", "from_date is '\\x00'"),
    ("from_date=%D9%A2%D9%A0%D9%A2%D9%A5-12-05&to_date=2025-12-05", "from_date is"),
]


@pytest.mark.parametrize(("query", "said"), BAD)
@in_loop
async def test_dates_that_make_no_sense_are_refused_everywhere(query: str, said: str) -> None:
    async with events_house() as opened:
        paths = ["posts", "posts/all", "summary", "trends", "top-keywords", "alerts", "errors", "errors/counts"]
        answers = [await opened.ask("GET", f"{ANALYTICS}/{path}?project_id=p&{query}") for path in paths]

    assert [answer.status for answer in answers] == [400] * 8
    assert {answer.data["error"]["code"] for answer in answers} == {"VAL_003"}
    assert all(said in answer.data["detail"] for answer in answers)
    assert opened.rows.asked == []
