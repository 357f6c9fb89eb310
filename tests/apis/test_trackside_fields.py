"""Dates, spans and ids as Trackside writes them."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.trackside_fields import (
    Guid,
    LocalDate,
    RecordKey,
    TracksideRecord,
    TracksideSpan,
    read_value,
    row_of,
    table_of,
)
from sanderling.stores.documents import ColumnKind

ZERO = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2026/05/03 9:04:05", "2026-05-03T09:04:05"),
        ("2026/05/03 09:04:05", "2026-05-03T09:04:05"),
        ("2026/5/3 19:04:05.6", "2026-05-03T19:04:05.600"),
        ("2026/05/03 13:03:01.43", "2026-05-03T13:03:01.430"),
        ("2026/05/03 2:43:20.787", "2026-05-03T02:43:20.787"),
        ("2026/05/03 2:43:20.1234567", "2026-05-03T02:43:20.1234567"),
        ("2026/05/03 2:43:20.", "2026-05-03T02:43:20"),
        ("2024/02/29 0:00:00", "2024-02-29T00:00:00"),
        ("9999/12/31 23:59:59.9999999", "9999-12-31T23:59:59.9999999"),
    ],
)
def test_a_date_is_local_and_gets_no_zone(text: str, local: str) -> None:
    moment = LocalDate.read(text)

    assert (str(moment), moment.local()) == (text, local)


@pytest.mark.parametrize("text", ["0001/01/01 0:00:00", "0001/01/01 00:00:00.000", "0000/00/00 0:00:00", ""])
def test_a_date_of_zeros_is_not_set(text: str) -> None:
    assert LocalDate.read(text).local() is None


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-03T09:04:05Z",
        "2026/05/03",
        "2026/13/03 9:04:05",
        "2026/02/30 9:04:05",
        "2026/05/03 24:00:00",
        "2026/05/03 9:04:60",
        "2026/05/03 9:04:05 AM",
        "2026/05/03 9:04:05\n",
        "2026/05/03 9:04:05.12345678",
        "03/05/2026 9:04:05",
        "2026/05/03 ٩:04:05",  # a digit, to Python
        "1777799045",
        "0",
        "now",
        " ",
    ],
)
def test_any_other_date_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match="found '") as raised:
        LocalDate.read(text)
    assert repr(text)[1:-1] in str(raised.value)


@given(st.datetimes(min_value=datetime(1000, 1, 1)))  # noqa: DTZ001 - as they come
def test_dates_sort_as_the_moments_do(moment: datetime) -> None:
    text = f"{moment:%Y/%m/%d} {moment.hour}:{moment:%M:%S}.{moment.microsecond // 1000:03}"

    local = LocalDate.read(text).local()

    assert local == moment.isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:02:00", 120.0),
        ("00:00:00.5000000", 0.5),
        ("00:08:31.5605717", 511.5605717),
        ("1.02:03:04", 93_784.0),
        ("-00:00:01.5", -1.5),
        ("10675199.02:48:05.4775807", 922_337_203_685.4775807),
        ("", None),
    ],
)
def test_a_span_is_so_many_seconds(text: str, seconds: float | None) -> None:
    assert TracksideSpan.read(text).seconds() == seconds


@pytest.mark.parametrize("text", ["120", "02:00", "24:00:00", "00:60:00", "00:00:60", "00:00:00.", "a", "1:2:3", " "])
def test_any_other_span_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a span like 00:02:00\.5"):
        TracksideSpan.read(text)


def test_an_id_is_spelled_in_one_way_and_that_of_zeros_is_none() -> None:
    upper = "ABCDEF00-0000-4000-8000-000000000001"

    assert Guid.read(upper) == RecordKey.read(upper) == upper.lower()
    assert not Guid.read(ZERO)
    with pytest.raises(ValueError, match="expected an id of its own"):
        RecordKey.read(ZERO)


@pytest.mark.parametrize(
    "text", ["", "race-1", "{" + ZERO + "}", ZERO + "\n", ZERO[:-1], ZERO.replace("-", ""), "../x"]
)
def test_anything_else_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="expected a GUID"):
        Guid.read(text)


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}])
def test_a_value_that_is_no_text_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match=f"found a value of type {type(value).__name__}, expected a text"):
        read_value(LocalDate, value)


def attempt(kind: type, text: str) -> object:
    try:
        return read_value(kind, text)
    except ValueError as error:
        return error


@given(st.text(max_size=40), st.sampled_from([Guid, RecordKey, LocalDate, TracksideSpan]))
def test_whatever_the_text_it_is_a_value_or_a_value_error(text: str, kind: type) -> None:
    value = attempt(kind, text)

    assert isinstance(value, kind) or "found " in str(value)


class Flight(TracksideRecord, frozen=True, rename="pascal"):
    pilot: Guid | None = None
    took_off: LocalDate | None = None
    length: TracksideSpan | None = None
    stops: list[str] | None = None


def test_a_record_is_a_row_of_the_table_made_for_it() -> None:
    table = table_of("flights", Flight, pilot="pilots")
    flight = Flight(
        id=RecordKey("a"), took_off=LocalDate("2026/05/03 9:04:05"), length=TracksideSpan("00:02:00"), stops=["here"]
    )

    row = row_of("flights", flight)

    assert [column.name for column in table.columns] == list(row.values)
    assert {column.name: column.references for column in table.columns if column.references} == {"pilot": "pilots"}
    assert {column.kind for column in table.columns} == {ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.REAL}
    assert row.values == {
        "external_id": None,
        "pilot": None,
        "took_off_text": "2026/05/03 9:04:05",
        "took_off_local": "2026-05-03T09:04:05",
        "length_text": "00:02:00",
        "length_seconds": 120.0,
    }
    assert {type(value) for value in row.values.values()} <= {str, float, type(None)}  # not one of our own
