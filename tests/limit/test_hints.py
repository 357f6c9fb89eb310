from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.limit.hints import LONGEST, Quota, http_date, quota, retry_after

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NOW = NOON.timestamp()
NAN, INF = float("nan"), float("inf")


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def written(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def wait(value: str | None, date: str | None = None) -> float | None:
    return retry_after(value, date=date, now=NOW)


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0.0), ("120", 120.0), (" 7\t", 7.0), ("007", 7.0), ("1.5", 1.5), ("0.0", 0.0)]
)
def test_a_delay_is_in_seconds(value: str, seconds: float) -> None:
    assert wait(value) == seconds


NO_NUMBERS = ["", " ", "-1", "+1", "1e3", "1.", ".5", "1,5", "0x10", "10s", "nan", "1 2", "1\n", "\u0661", "\u00b2"]


@pytest.mark.parametrize("value", [*NO_NUMBERS, None, "soon", "Sun", "Sun, 01 Mar 2026", "2026-03-01T12:00:00Z"])
def test_what_is_no_delay_and_no_date_is_ignored(value: str | None) -> None:
    assert wait(value) is None


@pytest.mark.parametrize(
    "value", ["31622401", str(10**18), "9" * 400, "9" * 400 + ".5", "Fri, 31 Dec 9999 23:59:59 GMT"]
)
def test_a_huge_wait_is_capped_and_not_forgotten(value: str) -> None:
    assert wait(value) == LONGEST


@pytest.mark.parametrize(
    "value", ["Sun, 01 Mar 2026 12:01:30 GMT", "Sunday, 01-Mar-26 12:01:30 GMT", "Sun Mar  1 12:01:30 2026"]
)
def test_all_three_formats_of_a_date_are_read(value: str) -> None:
    assert wait(value) == 90.0


def test_a_date_is_measured_by_the_clock_of_the_server() -> None:
    """The server runs ten minutes behind us; it still means one minute."""
    assert wait(written(after(-540)), date=written(after(-600))) == 60.0


@pytest.mark.parametrize("date", [None, "", "yesterday", "2026-03-01T11:00:00Z"])
def test_without_a_date_header_the_wall_clock_serves(date: str | None) -> None:
    assert wait(written(after(60)), date=date) == 60.0


def test_a_date_in_the_past_means_now() -> None:
    assert wait(written(after(-60))) == 0.0


def test_a_wrong_weekday_does_not_void_a_date() -> None:
    assert wait("Mon, 01 Mar 2026 12:01:30 GMT") == 90.0


NO_DAYS = ["Sun, 1 Mar 2026", "Sun, 30 Feb 2026", "Sun, 01 Mar 26", "Sun, 01 Mar 0000", "Sun, 0\u0661 Mar 2026"]
NO_NAMES = ["Xyz, 01 Mar 2026", "Sun, 01 Xyz 2026", "sun, 01 mar 2026", "Sun, 01-Mar-26", "Sunday, 01-Mar-2026"]
NO_TIMES = ["24:00:00 GMT", "12:60:00 GMT", "12:01:61 GMT", "12:01 GMT", "12:01:30 CET", "12:01:30 +0000", "12:01:30"]


@pytest.mark.parametrize(
    "value",
    [
        *(f"{day} 12:01:30 GMT" for day in NO_DAYS + NO_NAMES),
        *(f"Sun, 01 Mar 2026 {time}" for time in NO_TIMES),
        "Sun Mar 1 12:01:30 2026",
        "Fri, 31 Dec 9999 23:59:60 GMT",
        "Sun, 01 Mar 2026 12:01:30 GMT, Sun, 01 Mar 2026 12:01:30 GMT",
    ],
)
def test_a_date_that_is_not_quite_one_is_ignored(value: str) -> None:
    assert wait(value) is None


def test_a_leap_second_is_a_second() -> None:
    assert http_date("Sat, 31 Dec 2016 23:59:60 GMT", now=NOW) == http_date("Sun, 01 Jan 2017 00:00:00 GMT", now=NOW)


TWO_DIGITS = [("Nov-94", 1994), ("Nov-75", 2075), ("Jan-76", 2076), ("Nov-76", 1976), ("Nov-77", 1977)]


@pytest.mark.parametrize(("value", "year"), TWO_DIGITS)
def test_a_year_of_two_digits_is_never_more_than_fifty_years_ahead(value: str, year: int) -> None:
    instant = http_date(f"Sunday, 06-{value} 08:49:37 GMT", now=NOW)

    assert instant is not None
    assert datetime.fromtimestamp(instant, UTC).year == year


MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0))


@given(MOMENTS)
def test_every_date_comes_back_from_its_long_forms(moment: datetime) -> None:
    assert http_date(written(moment), now=NOW) == moment.timestamp()
    assert http_date(f"{moment:%a %b} {moment.day:2} {moment:%H:%M:%S} {moment.year:04}", now=NOW) == moment.timestamp()


@given(st.datetimes(datetime(1977, 1, 1), datetime(2075, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_every_near_date_comes_back_from_its_short_form(moment: datetime) -> None:
    assert http_date(f"{moment:%A, %d-%b-%y %H:%M:%S} GMT", now=NOW) == moment.replace(microsecond=0).timestamp()


DATES = MOMENTS.map(written) | MOMENTS.map(lambda moment: f"{moment:%A, %d-%b-%y %H:%M:%S} GMT")


@given(st.text() | DATES, st.none() | st.text() | DATES)
@example("Sunday, 06-Nov-94 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:60 GMT")
def test_any_retry_after_is_a_bounded_wait_or_ignored(value: str, date: str | None) -> None:
    seconds = retry_after(value, date=date, now=NOW)

    assert seconds is None or 0 <= seconds <= LONGEST


@given(st.integers(0, 10**9), st.integers(0, 10**8))
def test_a_delay_and_a_date_that_mean_the_same_are_the_same(seconds: int, skew: int) -> None:
    server = NOON + timedelta(seconds=skew)

    assert wait(written(server + timedelta(seconds=seconds)), date=written(server)) == wait(str(seconds))


def limits(prefix: str, limit: str = "100", remaining: str = "50", reset: str = "30") -> dict[str, str]:
    return {f"{prefix}-Limit": limit, f"{prefix}-Remaining": remaining, f"{prefix}-Reset": reset}


def of(**fields: str) -> Quota | None:
    """The quota in headers given as names, underscores for hyphens."""
    return quota({name.replace("_", "-"): value for name, value in fields.items()}, now=NOW)


def test_no_headers_no_quota() -> None:
    assert quota({}, now=NOW) is None
    assert of(Content_Type="text/html", RateLimit_Policy='"p";q=100;w=60') is None


@pytest.mark.parametrize("prefix", ["RateLimit", "X-RateLimit", "X-Rate-Limit", "x-ratelimit", "X-RATELIMIT"])
def test_three_headers_make_a_quota(prefix: str) -> None:
    assert quota(limits(prefix), now=NOW) == Quota(50, 30, 100)
    assert quota(limits(prefix) | {"RateLimit-Policy": "10;w=1, 100;w=60"}, now=NOW) == Quota(50, 30, 100, 60)


def test_the_draft_names_its_policies() -> None:
    found = of(RateLimit='"p";r=50;t=30', RateLimit_Policy='"p";q=100;w=60')

    assert found == Quota(remaining=50, resets_in=30, limit=100, window=60)


@pytest.mark.parametrize(
    "field",
    [
        '"p";r=50;t=30',
        "p;r=50;t=30",
        '  "p";r=50;t=30 ',
        '"p"; r=50;  t=30',
        '"p";t=30;r=50',
        '"p";r=1;r=50;t=30',
        '"p";r=50;t=30;pk=:c2FuZA==:',
        '"p";r=50;t=30;a;b=?1;c="x;r=1, \\"";d=tok/en;e=1.5;f=-3;g=@1659578233;h=%"f%c3%bc"',
    ],
)
def test_what_the_draft_allows_is_read(field: str) -> None:
    assert of(RateLimit=field) == Quota(50, 30)


NO_POLICY = [',"p"', '"p', "'p'", '"p" ', '("p")', '"p\\x"', '"\u00fc"', "P@", "1234567890123456", "limit=5, 'q'"]
NO_ENDS = [",", ' "q"', ";", ";A=1", ";x=", ";x=()", ';x="', ', "q";r=\u0665', ", limit=5", ";t=1234567890123456"]


@pytest.mark.parametrize(
    "field", [f"{policy};r=50;t=30" for policy in NO_POLICY] + [f'"p";r=50;t=30{end}' for end in NO_ENDS]
)
def test_a_malformed_field_is_ignored_as_a_whole(field: str) -> None:
    assert of(RateLimit=field) is None


NO_REMAINDER = ["t=30", "r;t=30", "r=-1;t=30", "r=1.5;t=30", "r=?1;t=30", "r=x;t=30", 'r="5";t=30']
NO_RESET = ["r=50", "r=50;t", "r=50;t=0", "r=50;t=-30", "r=50;t=3.5", "r=50;t=99999999"]


@pytest.mark.parametrize("parameters", NO_REMAINDER + NO_RESET)
def test_a_policy_that_states_no_quota_is_ignored(parameters: str) -> None:
    assert of(RateLimit=f"p;{parameters}") is None
    assert of(RateLimit=f'p;{parameters}, "q";r=50;t=30') == Quota(50, 30)


def test_several_policies_bind_by_the_tightest() -> None:
    """A minute allows one a second, the day only one in three."""
    found = of(
        RateLimit='"minute";r=60;t=60, "day";r=1200;t=3600', RateLimit_Policy='"minute";q=60;w=60, "day";q=9000;w=86400'
    )

    assert found == Quota(1200, 3600, 9000, 86400)


def test_several_kinds_of_header_bind_by_the_tightest() -> None:
    assert of(RateLimit='"p";r=50;t=30', X_RateLimit_Remaining="5", X_RateLimit_Reset="30") == Quota(5, 30)
    assert of(RateLimit='"p";r=5;t=30', X_RateLimit_Remaining="50", X_RateLimit_Reset="30") == Quota(5, 30)


def test_of_two_spent_quotas_the_longer_binds() -> None:
    assert of(RateLimit='"a";r=0;t=30, "b";r=0;t=90, "c";r=0;t=60') == Quota(0, 90)


def test_without_a_reset_the_window_serves() -> None:
    assert of(RateLimit='"p";r=50', RateLimit_Policy='"p";q=100;w=60') == Quota(50, 60, 100, 60)
    assert of(RateLimit='"p";r=50;t=0', RateLimit_Policy='"p";q=100;w=60') is None


@pytest.mark.parametrize("unit", ['"content-bytes"', '"concurrent-requests"', "content-bytes"])
def test_a_policy_that_counts_something_else_is_not_about_pace(unit: str) -> None:
    assert of(RateLimit='"p";r=5;t=30', RateLimit_Policy=f'"p";q=9;qu={unit};w=60') is None
    assert of(RateLimit='"p";r=5;t=30', RateLimit_Policy='"p";q=9;qu="requests";w=60') == Quota(5, 30, 9, 60)


def test_a_malformed_policy_leaves_the_quota() -> None:
    assert of(RateLimit='"p";r=5;t=30', RateLimit_Policy='"p";q=9;w=60;') == Quota(5, 30)
    assert of(RateLimit='"p";r=5;t=30', RateLimit_Policy='"p";q=9;w=0') == Quota(5, 30, 9)


@pytest.mark.parametrize("field", ["limit=100, remaining=50, reset=30", "reset=30,limit=100;x=1,remaining=50, flag"])
def test_the_combined_form_of_draft_07_is_read(field: str) -> None:
    assert of(RateLimit=field) == Quota(50, 30, 100)
    assert of(RateLimit=field, RateLimit_Policy="10;w=1, 100;w=60") == Quota(50, 30, 100, 60)


NO_TRIPLE = ["remaining=50", "remaining=-5, reset=30", 'remaining="50", reset=30', "remaining=50; reset=30"]


@pytest.mark.parametrize("field", [*NO_TRIPLE, "remaining=50, reset=30, Flag", "remaining=50, reset=30,"])
def test_the_combined_form_must_be_whole(field: str) -> None:
    assert of(RateLimit=field) is None


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("100, 100;w=60", Quota(50, 30, 100, 60)),
        ("100, 10;w=1, 100;w=60", Quota(50, 30, 100, 60)),
        ("100;w=60", Quota(50, 30, 100, 60)),
        (" 100\t", Quota(50, 30, 100)),
        ('100, 100;window=60;comment="sliding"', Quota(50, 30, 100)),
        ("100 , oh dear (", Quota(50, 30, 100)),
        ("60.5", Quota(50, 30, 60.5)),
        ("unlimited", Quota(50, 30)),
        ("-1", Quota(50, 30)),
        ("100 per hour", Quota(50, 30)),
        ("", Quota(50, 30)),
    ],
)
def test_the_first_number_of_a_limit_counts(limit: str, expected: Quota) -> None:
    assert quota(limits("X-RateLimit", limit=limit), now=NOW) == expected


SOON = round(NOW) + 30
INSTANTS = [str(SOON), f"{SOON}.000", str(SOON * 1000), written(after(30)), "Sunday, 01-Mar-26 12:00:30 GMT"]
ISO = ["2026-03-01T12:00:30Z", "2026-03-01t12:00:30.000z", "2026-03-01 13:00:30+01:00"]


@pytest.mark.parametrize("reset", ["30", " 30\t", "30.0", *INSTANTS, *ISO])
def test_a_reset_is_a_delay_or_an_instant(reset: str) -> None:
    assert quota(limits("X-RateLimit", reset=reset), now=NOW) == Quota(50, 30, 100)


def test_an_instant_is_measured_by_the_clock_of_the_server() -> None:
    slow = {"Date": written(after(-600))}

    assert quota(limits("X-RateLimit", reset=str(int(NOW) - 570)) | slow, now=NOW) == Quota(50, 30, 100)
    assert quota(limits("X-RateLimit", reset="30") | slow, now=NOW) == Quota(50, 30, 100)


NO_DELAYS = ["0", "0.0", "30s", "soon", "31622401", "1000000000", "1000000001", "9" * 15, "9" * 400, "2026-03-01"]
NO_ZONE = ["2026-03-01T12:00:30", "2026-03-01T12:00:30+24:00", "2026-03-01T12:00:30 CET"]
NO_INSTANTS = ["2026-02-30T12:00:30Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
PAST_OR_FAR = [str(round(NOW) + seconds) for seconds in (-1, 0, 40_000_000)] + [str(round(NOW) * 1000)]


@pytest.mark.parametrize("reset", [*NO_NUMBERS, *NO_DELAYS, *NO_ZONE, *NO_INSTANTS, *PAST_OR_FAR, written(after(-1))])
def test_a_reset_that_is_past_or_absurd_or_unreadable_is_ignored(reset: str) -> None:
    assert quota(limits("X-RateLimit", reset=reset), now=NOW) is None


@pytest.mark.parametrize("remaining", [*NO_NUMBERS, "many", "50, 49", "9" * 16])
def test_an_unreadable_remainder_is_ignored(remaining: str) -> None:
    assert quota(limits("X-RateLimit", remaining=remaining), now=NOW) is None


def test_reset_after_goes_before_reset() -> None:
    headers = limits("X-RateLimit", reset=str(int(NOW) + 99)) | {"X-RateLimit-Reset-After": "0.5"}

    assert quota(headers, now=NOW) == Quota(50, 0.5, 100)
    assert of(X_RateLimit_Remaining="5", X_RateLimit_Reset_After="9") == Quota(5, 9)


def test_no_more_remains_than_the_limit() -> None:
    assert quota(limits("X-RateLimit", remaining="101"), now=NOW) == Quota(100, 30, 100)
    assert of(RateLimit="limit=100, remaining=999, reset=30") == Quota(100, 30, 100)


def test_the_pace_spreads_what_remains_and_keeps_a_twentieth() -> None:
    assert Quota(100, 50).pace() == pytest.approx(1.9)
    assert Quota(0, 50).pace() == 0.0


WRONG = {
    "remaining": (-1, NAN, INF),
    "resets_in": (0, LONGEST + 1, NAN),
    "limit": (1, NAN, INF),
    "window": (0, NAN, INF),
}


@pytest.mark.parametrize(("part", "value"), [(part, value) for part, values in WRONG.items() for value in values])
def test_a_quota_that_cannot_be_is_refused(part: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{part} is"):
        replace(Quota(remaining=2, resets_in=30, limit=3, window=60), **{part: value})


COUNTS = st.integers(0, 10**15 - 1)
SECONDS = st.integers(1, int(LONGEST))
POLICY_NAMES = st.from_regex(r"[a-z]{1,5}", fullmatch=True)


@given(st.dictionaries(POLICY_NAMES, st.tuples(COUNTS, SECONDS, COUNTS, SECONDS), min_size=1, max_size=4))
def test_the_tightest_of_any_policies_comes_back(stated: dict[str, tuple[int, int, int, int]]) -> None:
    field = ", ".join(f'"{name}";r={r};t={t}' for name, (r, t, _, _) in stated.items())
    policy = " ,\t".join(f"{name};w={w};q={q}" for name, (_, _, q, w) in stated.items())

    found = of(RateLimit=field, RateLimit_Policy=policy)

    quotas = [Quota(min(r, q), t, q, w) for r, t, q, w in stated.values()]
    assert found
    assert found in quotas
    assert found.pace() == min(each.pace() for each in quotas)


PARTS = ['"p"', "p", ";", ",", "=", '"', "\\", "r=", "t=", "q=", "w=", "limit=", "remaining=", "reset=", "5", "-1"]
VALUES = [":YQ==:", "?1", "@1", "%", "("]
PIECES = st.sampled_from([*PARTS, *VALUES, *INSTANTS, *ISO, " "])
FIELDS = st.text(max_size=40) | st.lists(PIECES, max_size=10).map("".join) | DATES
ENDS = ("", "-Policy", "-Limit", "-Remaining", "-Reset", "-Reset-After")
HEADER_NAMES = st.sampled_from(["Date", *(f"{family}{end}" for family in ("RateLimit", "X-RateLimit") for end in ENDS)])


@given(st.dictionaries(HEADER_NAMES, FIELDS))
@example({"Date": "Fri, 31 Dec 9999 23:59:59 GMT", "X-RateLimit-Reset": "Sunday, 06-Nov-94 08:49:37 GMT"})
@example({"Date": "Mon, 01 Jan 0001 00:00:00 GMT", "X-RateLimit-Reset": "Sunday, 06-Nov-94 08:49:37 GMT"})
def test_any_headers_give_a_sane_quota_or_none(headers: dict[str, str]) -> None:
    found = quota(headers, now=NOW)

    assert found is None or 0 <= found.pace() < INF


@pytest.mark.parametrize("piece", ["a", '"', '"\\', ";a", '"p";r=1;t=1,', "; ", "1", ",", '%"', "a=", " "])
def test_a_long_field_takes_no_time_beyond_its_length(piece: str) -> None:
    """A million characters: any work that grows with the square of them would meet the time limit of the suite."""
    field = piece * (1_000_000 // len(piece)) + "!"

    assert of(RateLimit=field, RateLimit_Policy=field, X_RateLimit_Limit=field, X_RateLimit_Reset=field) is None
    assert wait(field) is None


@given(st.integers(-14 * 60, 14 * 60), st.integers(1, 86400))
def test_an_iso_instant_may_be_in_any_zone(minutes: int, seconds: int) -> None:
    reset = after(seconds).astimezone(timezone(timedelta(minutes=minutes))).isoformat()

    assert quota(limits("RateLimit", reset=reset), now=NOW) == Quota(50, seconds, 100)
