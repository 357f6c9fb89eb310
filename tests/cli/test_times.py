"""Times as people type them: an age, a moment, and nothing that could be meant otherwise."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.cli.command_error import CommandError
from sanderling.cli.times import LONGEST, read_age, read_time, written
from sanderling.words import AGES

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
WALL = NOW.timestamp()
HOUR, DAY = 3600.0, 86_400.0
PAST = st.datetimes(datetime(1971, 1, 1), datetime(2026, 11, 1))  # noqa: DTZ001 - zones are drawn apart
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("12h", 12 * HOUR), ("90d", 90 * DAY), ("2w", 14 * DAY), ("1.5h", 5400), (" 60 s ", 60)],
)
def test_an_age_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert read_age("--older-than", text) == seconds


@given(number=st.integers(0, 10**9), unit=st.sampled_from(sorted(AGES)))
def test_every_age_within_bounds_is_read_and_no_other(number: int, unit: str) -> None:
    seconds = number * AGES[unit]
    if 60 <= seconds <= LONGEST and number < 10**9:
        assert read_age("--older-than", f"{number}{unit}") == seconds
    else:
        with pytest.raises(CommandError, match="from 60s to 10000d"):
            read_age("--older-than", f"{number}{unit}")


# A bare number has no unit, and an M may be a month.
@pytest.mark.parametrize(
    "text", ["", "90", "3M", "90D", "d", "-1d", "1e3d", "1 day", "nan", "٣d", "59s", "0d", "9" * 50]
)
def test_what_might_mean_something_else_is_no_age(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        read_age("--older-than", text)

    assert refused.value.code == 2
    assert str(refused.value).startswith(f"--older-than is '{text[:40]}'")
    assert "expected an age such as 30m, 12h, 90d or 2w" in str(refused.value)


@given(at=PAST, zone=ZONES)
def test_a_moment_is_read_as_it_was_written(at: datetime, zone: timezone) -> None:
    moment = at.replace(tzinfo=zone)

    assert read_time("--from", moment.isoformat(), WALL) == pytest.approx(moment.timestamp(), abs=1e-5)


@given(PAST)
def test_what_names_no_zone_is_of_utc_and_a_date_is_its_beginning(at: datetime) -> None:
    in_utc = at.replace(tzinfo=UTC)
    day = in_utc.replace(hour=0, minute=0, second=0, microsecond=0)

    assert read_time("--from", at.isoformat(), WALL) == pytest.approx(in_utc.timestamp(), abs=1e-5)
    assert read_time("--from", at.date().isoformat(), WALL) == day.timestamp()


@given(st.floats(1, 250e9))
def test_what_is_shown_may_be_typed_again(at: float) -> None:
    assert read_time("--from", written(at), 260e9) == int(at)


@given(number=st.integers(1, 9999), unit=st.sampled_from(["s", "m", "h", "d"]))
def test_an_age_is_so_long_before_now(number: int, unit: str) -> None:
    assert read_time("--from", f"{number}{unit}", WALL) == WALL - number * AGES[unit]


@pytest.mark.parametrize("text", ["2026-11-15T12:00:01Z", "2026-11-16", "2026-11-15T11:59:59-01:00"])
def test_the_future_is_refused_and_it_is_said_what_time_it_is(text: str) -> None:
    with pytest.raises(CommandError, match="in the future; it is 2026-11-15T12:00:00Z now") as refused:
        read_time("--to", text, WALL)

    assert refused.value.code == 2


def test_now_is_not_the_future() -> None:
    assert read_time("--to", "2026-11-15T12:00:00Z", WALL) == WALL


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "20261101", "10001d", "3M", "-2h", "2026-11-01T08:00Z" * 9]
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match=r"^--from is .*, expected a time such as 2026-11-01T08:00:00Z") as refused:
        read_time("--from", text, WALL)

    assert refused.value.code == 2
    assert len(str(refused.value)) < 250


@given(st.text())
def test_whatever_is_typed_is_a_time_or_refused(text: str) -> None:
    with suppress(CommandError):
        assert 0 < read_time("--from", text, WALL) <= WALL
    with suppress(CommandError):
        assert 60 <= read_age("--older-than", text) <= LONGEST


@pytest.mark.parametrize("at", [0.0, -5.0, 1e15, float("inf"), float("nan")])
def test_what_no_calendar_has_is_unknown(at: float) -> None:
    assert written(at) == "an unknown time"
