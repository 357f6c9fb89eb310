"""What is remembered of the last while: right by a slow and obvious twin, in bounded memory, and fit to be shown."""

from collections import Counter
from itertools import accumulate, pairwise

import msgspec
import pytest
from fake_events import digested, error, mixed
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.events.lately import LONGEST, RECENT_ITEMS, Lately, Minute, Share, ShortError, Spans, in_short
from sanderling.events.measures import LATELY, MINUTES, MOST_RECENT, EventMeasures
from sanderling.events.posts import CrawlError
from sanderling.outcome import Category
from sanderling.testing import FakeClock

# Strangers' texts.


@pytest.mark.parametrize("text", ["", "429 Too Many Requests", "k" * LONGEST, "Lỗi mạng 🙂"])
def test_a_short_text_is_shown_as_it_is(text: str) -> None:
    assert in_short(text) == text


@pytest.mark.parametrize("length", [LONGEST + 1, 1_000_000])
def test_a_long_text_is_cut(length: int) -> None:
    assert in_short("k" * length) == "k" * (LONGEST - 1) + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two lines"),
        ("\x1b[31mred", "[31mred"),
        ("half \ud800 of a pair", "half   of a pair"),
        ("turned \u202e round", "turned   round"),
        ("\0", ""),
    ],
)
def test_what_does_not_print_is_left_out(text: str, shown: str) -> None:
    assert in_short(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "proxy http://me:hunter2@10.0.0.1:8080 refused",
        "proxy http://me:hun@ter2@10.0.0.1:8080 refused",
        "x" * 85 + " http://me:hunter2@host",
        "proxy //me:hunter2@host\n",
    ],
)
def test_passwords_are_left_out(text: str) -> None:
    shown = in_short(text)

    assert "ter2" not in shown
    assert "//…@" in shown


@given(st.text(st.characters(), max_size=300))
@example("\ud800" * 300)
def test_every_text_can_be_shown(text: str) -> None:
    shown = in_short(text)

    assert len(shown) <= LONGEST
    assert shown.isprintable()
    assert msgspec.json.decode(msgspec.json.encode(shown)) == shown


def test_an_error_in_short_has_all_of_its_texts_cut() -> None:
    long = "x\n" * 500
    error = CrawlError(content_id=long, platform=long, code=long, category=Category.MEDIA, message=long)

    told = ShortError.of(error, 7.0)

    assert (told.at, told.category) == (7.0, "media")
    for text in (told.platform, told.code, told.content_id, told.message):
        assert len(text) == LONGEST
        assert text.isprintable()


# Counts by time.


@given(
    st.lists(st.tuples(st.floats(0, 40), st.sampled_from("ab"), st.integers(0, 9)), max_size=60),
    st.integers(1, 5),
    st.floats(0, 100),
)
def test_spans_count_what_a_list_of_everything_would(
    events: list[tuple[float, str, int]], most: int, silence: float
) -> None:
    spans, times = Spans(10.0, most), list(accumulate(wait for wait, _, _ in events))
    for time, (_, name, number) in zip(times, events, strict=True):
        spans.add(time, {name: number})
    now = (times[-1] if times else 0.0) + silence

    expected: Counter[str] = Counter()
    for time, (_, name, number) in zip(times, events, strict=True):
        if time // 10 > now // 10 - most:
            expected[name] += number
    assert spans.total(now) == expected
    assert sum((each for each in spans.recent(now).values()), Counter()) == +expected


def test_spans_are_known_by_their_beginning() -> None:
    spans = Spans(60, 3)
    spans.add(59.9, {"a": 1})
    spans.add(60.0, {"a": 2})
    spans.add(119.0, {"a": 3})

    assert spans.recent(119.0) == {0.0: {"a": 1}, 60.0: {"a": 5}}
    assert spans.recent(180.0) == {60.0: {"a": 5}}
    assert spans.recent(1e9) == {}


def test_spans_are_bounded_however_long_it_goes_on() -> None:
    spans = Spans(1, 30)
    for second in range(10_000):
        spans.add(float(second), {"a": 1})

    assert len(spans._spans) == 30
    assert spans.total(9_999.0)["a"] == 30


# The share of posts.


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=40))
def test_a_share_is_of_the_last_batches_that_make_up_enough_items(batches: list[tuple[int, int]]) -> None:
    share = Share()
    for posts, errors in batches:
        share.add(posts, errors)

    posts = items = 0
    for good, bad in reversed(batches):
        if items < RECENT_ITEMS:
            posts, items = posts + good, items + good + bad
    if items:
        assert share.percent == pytest.approx(100 * posts / items)


def test_a_batch_without_items_does_not_change_a_share() -> None:
    share = Share()
    share.add(3, 1)
    for _ in range(5000):
        share.add(0, 0)

    assert share.percent == 75
    assert len(share._batches) == 1


def test_a_share_is_bounded_however_small_the_batches_are() -> None:
    share = Share()
    for _ in range(10_000):
        share.add(1, 0)

    assert len(share._batches) == RECENT_ITEMS


# All of it, for real batches.


def test_speed_is_that_of_the_last_seconds() -> None:
    clock = FakeClock(now=0.5)
    seen = EventMeasures(clock)
    for _ in range(100):
        clock.advance(1.0)
        seen.kept(mixed())

    assert seen.lately.batches == pytest.approx(1.0, abs=1 / LATELY)
    assert seen.lately.items == pytest.approx(8.0, abs=8 / LATELY)
    assert seen.lately.errors == pytest.approx(3.0, abs=3 / LATELY)


def test_speed_is_right_soon_after_the_start_and_nothing_at_once_and_after_silence() -> None:
    clock = FakeClock(now=1000.25)
    seen = EventMeasures(clock)
    seen.kept(mixed())
    assert seen.lately == Lately()

    clock.advance(4.0)
    assert seen.lately == Lately(batches=0.25, items=2.0, errors=0.75)

    clock.advance(LATELY)
    assert seen.lately == Lately()


def test_the_last_hour_is_told_minute_by_minute() -> None:
    clock = FakeClock(now=120.0, wall=1_800_000_000.0)
    seen = EventMeasures(clock)
    seen.kept(mixed())
    clock.advance(150.0)
    seen.kept(mixed())
    seen.kept(mixed())

    assert seen.minutes == (
        Minute(at=1_800_000_000.0, positive=2, neutral=1, negative=1, skipped=1, errors=3),
        Minute(at=1_800_000_060.0),
        Minute(at=1_800_000_120.0, positive=4, neutral=2, negative=2, skipped=2, errors=6),
    )


def test_an_hour_is_all_that_is_remembered() -> None:
    clock = FakeClock(now=30.0)
    seen = EventMeasures(clock)
    for _ in range(3 * MINUTES):
        seen.kept(mixed())
        clock.advance(60.0)

    minutes = seen.minutes
    assert len(minutes) == MINUTES
    assert [after.at - before.at for before, after in pairwise(minutes)] == [60.0] * 59
    assert [each.errors for each in minutes] == [3] * 59 + [0]


def test_the_wall_clock_may_be_set_without_mixing_up_the_minutes() -> None:
    clock = FakeClock(now=0.0)
    seen = EventMeasures(clock)
    seen.kept(mixed())
    clock.advance(60.0)
    clock.set_wall(5_000.0)
    seen.kept(mixed())

    assert [(each.at, each.errors) for each in seen.minutes] == [(4_940.0, 3), (5_000.0, 3)]


def test_the_last_errors_are_told_in_short_oldest_first() -> None:
    clock = FakeClock(wall=50.0)
    seen = EventMeasures(clock)
    seen.kept(digested([error("TIMEOUT", error_message="slow", id=str(number)) for number in range(1, 15)]))
    clock.advance(1.0)
    seen.kept(
        digested([error("MEDIA_TOO_LARGE", error_message="y" * 10**6, id=str(number)) for number in range(15, 22)])
    )

    first, *_, last = seen.recent
    assert [each.content_id for each in seen.recent] == [str(number) for number in range(2, 22)]
    assert (first.at, first.code, first.category, first.message) == (50.0, "TIMEOUT", "network", "slow")
    assert (last.at, last.platform, last.category, len(last.message)) == (51.0, "tiktok", "media", 100)


def test_a_batch_of_nothing_but_errors_leaves_the_last_of_them() -> None:
    seen = EventMeasures(FakeClock())
    seen.kept(digested([error("TIMEOUT", id=str(number)) for number in range(1, 501)]))

    assert [each.content_id for each in seen.recent] == [str(number) for number in range(501 - MOST_RECENT, 501)]
