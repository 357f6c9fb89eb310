"""Moments as strangers write them."""

import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.moments import moment

NOON = 1765016130.0  # 2025-12-06T10:15:30Z, a Saturday


@pytest.mark.parametrize(
    "value",
    [
        *("2025-12-06T10:15:30Z", "2025-12-06T10:15:30z", "2025-12-06T10:15:30+00:00", "2025-12-06T17:15:30+07:00"),
        *("2025-12-06T17:15:30+0700", "2025-12-06T10:15:30.000000000Z", " 2025-12-06T10:15:30Z ", "20251206T101530Z"),
        # Without a zone it is UTC.
        *("2025-12-06T10:15:30", "2025-12-06 10:15:30", "2025-12-06 10:15:30.0", "2025-12-06 10:15:30,0"),
        *("2025-12-06 10:15:30 UTC", "2025-12-06 10:15:30 GMT", "2025-12-06 10:15:30 +0000 UTC"),
        *("2025/12/06 10:15:30", "2025/12/06 17:15:30 +07:00"),
        *("Sat, 06 Dec 2025 10:15:30 GMT", "Sat, 6 Dec 2025 17:15:30 +0700", "6 December 2025 10:15:30 -0000"),
        *("06 Dec 2025 05:15:30 -0500 (EST)", "Saturday, 06 Dec 2025 10:15:30 UTC", "Mon, 06 Dec 2025 10:15:30"),
        *("Sat Dec  6 10:15:30 2025", "Sat Dec 06 10:15:30 +0000 2025"),
        *(1765016130, 1765016130.0, 1765016130000, 1765016130000000, 1765016130000000000),
        *("1765016130", "1765016130.0", "1765016130000", "1765016130000000", "1765016130000000000"),
    ],
)
def test_a_moment_may_be_written_in_many_ways(value: object) -> None:
    assert moment(value) == NOON


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine is seven hours ahead of UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC-7")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_elsewhere")
def test_a_moment_without_a_zone_is_of_utc_wherever_we_are() -> None:
    assert moment("2025-12-06T10:15:30") == moment("Sat Dec  6 10:15:30 2025") == NOON


def test_a_date_without_a_time_is_its_midnight() -> None:
    assert moment("2025-12-06") == moment("2025/12/06") == datetime(2025, 12, 6, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "yesterday", "2 days ago", "2025-13-01T00:00:00Z", "2025-02-30", "2025-12-06T25:00:00Z"),
        *("06/12/2025", "12/06/25", "30 Feb 2025 10:00:00 GMT", "06 Dec 2025 10:15:30 CET", "06 Dec 25 10:15:30 GMT"),
        *("06 Dec 2025 10:15:30 +9959", "Thu, 01 Jan 1970 00:30:00 +0200", "31 Dec 9999 23:59:59 -2359"),
        *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31", "9999-12-31T23:59:59-23:59"),
        *("\0", "\ud800", "0", "20251206", "2025-12-06T10:15:30Z" + " " * 60, "1" * 100_000),
        *(0, -1, 20251206, 10**20, 10**400, -(10**400), math.inf, -math.inf, math.nan, 1e30, True, [], {}, None),
    ],
)
def test_what_is_no_moment_is_none(value: object) -> None:
    assert moment(value) is None


def test_digits_alone_are_a_number_and_never_a_date() -> None:
    assert moment("12345678901") == 12345678901.0
    assert moment("20251206110") == 20251206110.0


@given(
    st.datetimes(min_value=datetime(1973, 6, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001 - the zone is drawn too
    st.integers(-14 * 60, 14 * 60),
)
def test_whatever_form_a_moment_is_written_in_it_is_the_same(naive: datetime, minutes: int) -> None:
    aware = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    whole = aware.replace(microsecond=0).astimezone(UTC)
    since = int(whole.timestamp())

    assert moment(aware.isoformat()) == moment(aware.isoformat(" ")) == aware.timestamp()
    assert moment(format_datetime(aware)) == moment(format_datetime(whole, usegmt=True)) == since
    assert moment(whole.ctime()) == moment(whole.strftime("%Y/%m/%d %H:%M:%S")) == since
    numbers = [shape(since * unit) for shape in (int, str) for unit in (1, 10**3, 10**6, 10**9)]
    assert [moment(number) for number in numbers] == [pytest.approx(since, abs=1e-6)] * 8


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=80), st.lists(st.none())))
def test_no_value_is_too_odd(value: object) -> None:
    assert moment(value) is None or 0 < (moment(value) or 0) < 1e12
