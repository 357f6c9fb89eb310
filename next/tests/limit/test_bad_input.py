"""What nobody should say to a limiter, and what hosts say in headers: refused in one sentence, ignored, or bounded."""

from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.clock import FakeClock
from sanderling.ids import HostError
from sanderling.limit import Limiter, LimitOptions
from sanderling.limit.memory import FORMAT, SavedLimiter
from sanderling.limit.permit import outcome_of
from sanderling.limit.rate_headers import stated_quota
from sanderling.limit.retry_after import retry_after
from sanderling.limit.rules import LONGEST_WAIT
from sanderling.limit.scope import Saved
from sanderling.options import OptionError

HOST = "host.example"
NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


def limiter(**more: Any) -> Limiter:
    return Limiter(policy="aimd", clock=FakeClock(), random=Random(1), **more)


# Options.


@pytest.mark.parametrize("name", [name for name, each in LimitOptions.fields.items() if each.item in (int, float)])
@pytest.mark.parametrize("value", [-1, -inf, inf, nan, "fast", None, True])
def test_numbers_that_are_none(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=name):
        limiter(**{name: value})


@pytest.mark.parametrize("name", ["initial_rps", "min_rps", "max_rps", "aimd_increase", "stats_bucket", "max_hosts"])
def test_zero_is_none_either(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        limiter(**{name: 0})


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"min_rps": 5, "max_rps": 4}, ("min_rps", "max_rps")),
        ({"min_rps": 5, "initial_rps": 4, "max_rps": 6}, ("min_rps", "initial_rps")),
        ({"initial_rps": 9, "max_rps": 8}, ("initial_rps", "max_rps")),
        ({"stats_window": 1, "stats_bucket": 2}, ("stats_window", "stats_bucket")),
        ({"stats_window": 3000, "stats_bucket": 1}, ("stats_window", "stats_bucket")),
        ({"retry_base_delay": 9}, ("retry_base_delay", "retry_max_delay")),
        ({"fill_rate": 3}, ("fill_rate",)),
        ({"transient_codes": (42,)}, ("transient_codes",)),
    ],
)
def test_values_that_do_not_go_together(fields: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as caught:
        limiter(**fields)

    assert all(name in str(caught.value) for name in named)


def test_limits_of_a_host_that_do_not_go_with_those_of_all() -> None:
    with pytest.raises(OptionError, match=r"api\.example: .*min_rps is 5"):
        limiter(max_rps=4, hosts={"api.example": LimitOptions(min_rps=5)})


@pytest.mark.parametrize(
    "more",
    [
        {"hosts": {"https://api.example": LimitOptions()}},
        {"hosts": {"a*.example": LimitOptions()}},
        {"scopes": {"cookie/a": LimitOptions()}},
        {"scopes": {"key": LimitOptions()}},
        {"scopes": {"key/": LimitOptions()}},
        {"policy": "fast"},
        {"limits": LimitOptions(), "max_rps": 4},
    ],
)
def test_names_that_are_none(more: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Limiter(**more)


@pytest.mark.parametrize("host", ["", "a b", "https://example.org", "key/", "key/unknown", "cookie/x", ".", "h" * 999])
def test_hosts_that_are_none(host: str) -> None:
    found = limiter(scopes={"key/maps": LimitOptions()})
    for call in (found.try_acquire, found.ready_at, found.feedback, found.saved):
        with pytest.raises(HostError):
            call(host)


@pytest.mark.parametrize("rps", [0, -1, inf, nan])
def test_a_cap_that_is_none(rps: float) -> None:
    with pytest.raises(OptionError, match=HOST):
        limiter().set_cap(HOST, rps)


# Reports.


@pytest.mark.parametrize("more", [{"status": 42}, {"status": -1}, {"retry_after": -1}, {"retry_after": nan}])
def test_a_report_that_cannot_be(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"status|retry_after"):
        limiter().feedback(HOST, **more)


@pytest.mark.parametrize("latency", [-5.0, nan, inf, 0.0])
def test_a_latency_that_cannot_be_is_not_known(latency: float) -> None:
    play = limiter(initial_rps=4.0)

    play.feedback(HOST, status=200, latency=latency)

    host = play.snapshot().hosts[0]
    assert (host.fill_rate, host.avg_latency) == (4.0, None)


def test_two_reports_of_one_attempt_count_once_and_none_frees_its_place() -> None:
    play = limiter(consecutive_fail_threshold=2)
    permit = play.try_acquire(HOST)
    assert permit is not None

    for _ in range(3):
        permit.report(outcome_of(503, (), None, None, 0.0))
        permit.release()
    other = play.try_acquire(HOST)
    assert other is not None
    other.release()

    host = play.snapshot().hosts[0]
    assert (host.consecutive_fails, host.in_flight, host.requests) == (1, 0, 2)


# What hosts say.

RETRY_AFTER = [
    ("120", 120.0),
    (" 7 ", 7.0),
    ("1.5", 1.5),
    ("0", 0.0),
    ("-5", None),
    ("soon", None),
    ("", None),
    ("9" * 20, LONGEST_WAIT),
    ("9" * 21, None),
    ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
    ("Wednesday, 21-Oct-15 07:28:30 GMT", 30.0),
    ("Wed Oct 21 07:28:30 2015", 30.0),
    ("Mon, 21 Oct 2015 07:28:30 GMT", 30.0),  # another weekday
    ("Wed, 21 Oct 2015 07:28:60 GMT", 60.0),  # a leap second
    ("Wed, 21 Oct 2015 09:28:30 +0200", 30.0),
    ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),  # past
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
    ("Fri, 31 Dec 10000 23:59:59 GMT", LONGEST_WAIT),
    ("Wed, 21 Oct 2015 07:28:30 GMT" + "x" * 99, None),
]


@pytest.mark.parametrize(("value", "seconds"), RETRY_AFTER)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after(value, None, NOW) == seconds


def test_a_retry_after_is_measured_by_the_hosts_clock() -> None:
    late, soon = "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:30 GMT"

    assert retry_after(soon, late, NOW + 9999) == 30.0
    outcome = outcome_of(503, {"retry-after": soon, "DATE": late}, None, None, 0.0)
    assert outcome.retry_after == 30.0


@given(st.text(st.sampled_from('0123456789 ,:-+.GMTWedJan=;"rqw\0é'), max_size=80))
def test_no_header_breaks_anything(text: str) -> None:
    wait = retry_after(text, text, NOW)
    assert wait is None or 0 <= wait <= LONGEST_WAIT
    for name in ("RateLimit", "X-RateLimit-Reset"):
        headers = {name: text, "RateLimit-Policy": text, "X-RateLimit-Remaining": "1", "Date": text}
        quota = stated_quota(headers, NOW)
        assert quota is None or (quota.left >= 0 and 0 < quota.seconds <= LONGEST_WAIT)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
QUOTAS: list[tuple[str, dict[str, str], tuple[float, float] | None]] = [
    ("drafts 03 to 06", {"RateLimit-Limit": "99, 99;w=60", "RateLimit-Remaining": "4", "RateLimit-Reset": "2"}, (4, 2)),
    ("draft 07", {"RateLimit": "limit=100, remaining=40, reset=20"}, (40, 20)),
    ("drafts 08 to 11", {"RateLimit-Policy": '"a";q=100;w=60', "RateLimit": '"a";r=40;t=20'}, (40, 20)),
    ("without t the policy's window", {"RateLimit-Policy": '"a";q=100;w=60', "RateLimit": '"a";r=40'}, (40, 60)),
    ("the tightest of several", {"RateLimit": '"day";r=900;t=9000, "a";r=40;t=20'}, (900, 9000)),
    ("a quota of bytes is none", {"RateLimit-Policy": '"a";q=9;qu="content-bytes"', "RateLimit": '"a";r=4;t=2'}, None),
    ("Discord", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "1e9", "X-RateLimit-Reset-After": "2.5"}, (4, 2.5)),
    ("GitHub: an instant", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "1445412490"}, (4, 10)),
    ("in milliseconds", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "1445412490000"}, (4, 10)),
    ("as a date", {"X-Rate-Limit-Remaining": "4", "X-Rate-Limit-Reset": "Wed, 21 Oct 2015 07:28:10 GMT"}, (4, 10)),
    ("as another date", {"X-Rate-Limit-Remaining": "4", "X-Rate-Limit-Reset": "2015-10-21T07:28:10Z"}, (4, 10)),
    ("more than it grants", {"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "9"}, (3, 9)),
    ("none left", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9"}, (0, 9)),
    ("a reset in the past", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "1445412470"}, None),
    ("a reset of no date", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "2015-99-21T07:28:10Z"}, None),
    ("years away", {"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "99999999"}, None),
    ("no reset", {"X-RateLimit-Remaining": "4"}, None),
    ("negative", {"X-RateLimit-Remaining": "-4", "X-RateLimit-Reset": "9"}, None),
    ("no list", {"RateLimit": '"a";r=40;t=20, ('}, None),
    ("others", {"X-Separate": "1"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "quota"), [row[1:] for row in QUOTAS], ids=[row[0] for row in QUOTAS])
def test_rate_headers(headers: dict[str, str], quota: tuple[float, float] | None) -> None:
    stated = stated_quota({**headers, "date": DATE}, 0.0)

    assert (stated and (stated.left, stated.seconds)) == quota
    if not any("Reset" in name for name in headers):
        assert stated_quota([(name.lower(), value) for name, value in headers.items()], NOW) == stated


def test_none_left_is_believed_for_an_hour() -> None:
    play = Limiter(clock=FakeClock(), policy="governor")
    permit = play.try_acquire(HOST)
    assert permit is not None

    permit.report(
        outcome_of(200, (), None, None, 0.0), headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999"}
    )

    assert play.ready_at(HOST) == 3600.0


# Files.


def test_what_was_learned_comes_back_from_a_file(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "learned"
    before = Limiter(clock=clock, policy="aimd", consecutive_fail_threshold=2)
    before.load(path)  # there is none yet
    for host, statuses in (("slow.example", (429,)), ("down.example", (503, 503)), ("good.example", (200,))):
        before.try_acquire(host)
        for status in statuses:
            before.feedback(host, status=status, retry_after=100 if host == "slow.example" else None)
    before.set_cap("capped.example", 0.5, "robots.txt")
    before.save(path)
    clock.advance(10)

    after = Limiter(clock=clock, policy="aimd")
    after.load(path)

    assert after.ready_at("slow.example") == 100.0
    assert after.snapshot().hosts_in_memory == 1  # the others wait until they are asked for
    assert after.snapshot().hosts[0].fill_rate == 1.0
    assert after.is_open("down.example")
    assert after.ready_at("down.example") == 15.0
    assert after.ready_at("good.example") <= clock.now()
    after.try_acquire("capped.example")
    assert after.snapshot(1).hosts[0].cap == 0.5
    assert after.saved("good.example") is None


def encoded(saved: Saved, at: float = NOW, form: int = FORMAT, host: str = HOST) -> bytes:
    return msgspec.msgpack.encode(SavedLimiter(form, at, {host: saved}))


@pytest.mark.parametrize(
    "data",
    [
        b"junk",
        b"",
        encoded(Saved(), form=FORMAT + 1),
        encoded(Saved(), host="other.example"),
        encoded(Saved(not_before=nan)),
        encoded(Saved(open_until=nan)),
        encoded(Saved(cap=(0.0, ""))),
        encoded(Saved(cap=(inf, ""))),
        encoded(Saved(), at=nan),
    ],
)
def test_what_no_limiter_has_saved(data: bytes) -> None:
    with pytest.raises(ValueError, match="saved"):
        limiter().restore(HOST, data)


def test_a_clock_that_was_set_back_makes_no_silence_longer() -> None:
    play = Limiter(clock=FakeClock(wall=NOW - 1e6), policy="aimd")

    play.restore(HOST, encoded(Saved(not_before=NOW + 30)))
    play.restore("other.example", encoded(Saved(not_before=inf), host="other.example"))
    play.restore("odd.example", encoded(Saved(pace={"rate": "fast"}), host="odd.example"))

    assert play.ready_at(HOST) == 30.0
    assert play.ready_at("other.example") == LONGEST_WAIT
    assert play.ready_at("odd.example") <= 0
