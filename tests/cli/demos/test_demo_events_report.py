"""Plots of a report: exact small cases, and what must hold of any numbers."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fake_events import BAD, GOOD, PLAIN, digested, error, post
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from sanderling.cli.demos.events_report import (
    HOUR,
    NARROWEST,
    EventsReport,
    HourMood,
    Numbers,
    ProjectMood,
    action_of,
    bar,
    describe_extremes,
    gather,
    picture,
    short,
)
from sanderling.events.taxonomy import ACTIONS
from sanderling.executor import in_threads
from sanderling.outcome import Category
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.testing import FakeClock

MIDNIGHT = 1_799_971_200.0
HOSTILE = '\x1b[2J\x1b]0;owned\x07[bold red]\u202e\r\n</text><script>alert("1")</script>&'

counts = st.one_of(st.integers(0, 60), st.integers(0, 10**30))


@st.composite
def numbers(draw: st.DrawFn) -> Numbers:
    # A few drawn and the others like them: what matters is how many there are, and how large the largest is.
    some = draw(st.lists(st.tuples(counts, counts, counts, counts), min_size=1, max_size=4))
    many = draw(st.sampled_from((0, 1, 24)))
    hours = tuple(HourMood(MIDNIGHT + place * HOUR, *some[place % len(some)]) for place in range(many))
    # Each is there because something was counted.
    names, some_errors = st.one_of(st.sampled_from(list(Category)), st.text(max_size=30)), counts.map(lambda n: n + 1)
    categories = draw(st.dictionaries(names, some_errors))
    projects = st.builds(ProjectMood, st.text(max_size=40), counts, counts, counts, counts, st.floats(-1, 1), counts)
    return Numbers(hours, categories, tuple(draw(st.lists(projects, max_size=5))), draw(counts))


def lines(of: Numbers, width: int = 60, *, plain: bool = True) -> list[str]:
    return [line.plain for line in EventsReport(of).drawn(width, plain=plain)]


# Exact cases.

DAY = Numbers(
    hours=(HourMood(MIDNIGHT, 2, 4, 2, 1), HourMood(MIDNIGHT + HOUR, 0, 0, 4, 3), HourMood(MIDNIGHT + 2 * HOUR)),
    categories={"rate_limiting": 3, "content": 1},
    projects=(ProjectMood("Mây Sậy", 13, 2, 4, 6, -0.25, 5),),
    unread=1,
)


def test_hours_failures_and_projects_are_lines_with_a_bar_and_numbers() -> None:
    seen = lines(DAY)

    assert seen[:4] == [
        "How people felt, hour by hour (UTC): posts, negative, errors",
        "         00:00 ######...........++++++xxx      8  25%      1",
        "         01:00 ############xxxxxxxx            4 100%      3",
        "         02:00                                 0   0%      0",
    ]
    assert seen[5:8] == [
        "What was unavailable, and what is done about it",
        " rate_limiting xxxxxxx      3  75%  fetch again, more slowly",
        "       content xx           1  25%  it is gone: leave it out",
    ]
    assert seen[10] == "       May Say #############.........++++     13  50%      5"
    assert lines(DAY, 80)[12].endswith("x errors 4, 1 not judged")
    assert any(line.startswith("       Mây Sậy █████████") for line in lines(DAY, plain=False))


def test_plain_is_without_any_style() -> None:
    assert all(not str(span.style) for line in EventsReport(DAY).drawn(80, plain=True) for span in line.spans)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (10**9, "1G"),
        (10**12, "1T"),
        (10**15, "1e+15"),
        (10**30, "1e+30"),
    ],
)
def test_a_number_is_short_however_large(number: int, said: str) -> None:
    assert short(number) == said


def test_something_is_never_nothing() -> None:
    assert bar({"negative": 1, "neutral": 0, "positive": 2}, 1000, 8, plain=True).plain == "+       "
    assert bar({"negative": 2, "neutral": 1, "positive": 0}, 1000, 8, plain=True).plain == "#       "
    assert bar({"negative": 0}, 1000, 8, plain=True).plain == "        "


def test_what_stands_out_is_said_in_words() -> None:
    assert list(describe_extremes(DAY)) == [
        "Most negative from 01:00 to 02:00: 100% of 4 posts.",
        "Most errors from 01:00 to 02:00: 43% of 7 items.",
    ]
    assert list(describe_extremes(Numbers(hours=(HourMood(MIDNIGHT, positive=1),)))) == []


def test_every_action_of_the_taxonomy_has_words() -> None:
    assert len({action_of(each.value) for each in ACTIONS}) == len(set(ACTIONS.values()))
    assert action_of("?") == action_of("generic")


# What must hold of any.


@settings(max_examples=40)
@given(numbers(), st.integers(1, 200), st.booleans())
def test_no_line_is_wider_than_it_may_be(of: Numbers, width: int, plain: bool) -> None:  # noqa: FBT001 - drawn
    seen = lines(of, width, plain=plain)

    assert max(map(cell_len, seen)) <= max(NARROWEST, width)
    assert all(line.isprintable() for line in seen)
    assert not plain or "".join(seen).isascii()


def test_what_others_write_is_text_in_a_picture_and_on_a_terminal() -> None:
    of = Numbers(DAY.hours, {HOSTILE: 1}, (ProjectMood(HOSTILE, 1, 1, 0, 0, 0.0, 0),))

    root = ET.fromstring(picture(EventsReport(of), "A day", ["all of it"]))  # noqa: S314 - ours

    drawn = {each.tag.partition("}")[2] for each in root.iter()}
    assert drawn <= {"svg", "style", "defs", "clipPath", "rect", "g", "text", "circle"}
    assert all(line.isprintable() for line in lines(of, plain=False))


# From the database.


@asynccontextmanager
async def stored(path: Path) -> AsyncIterator[AnalyticsStore]:
    with ThreadPoolExecutor(1) as threads:
        store = await open_analytics(f"sqlite:{path}", in_threads(threads))
        try:
            yield store
        finally:
            await store.close()


def test_numbers_are_read_from_the_database_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.cli.demos.events_report.PAGE", 2)
    clock = FakeClock()
    at = clock.wall() // HOUR * HOUR

    async def main() -> Numbers:
        async with stored(tmp_path / "events.db") as store:
            items = [post(GOOD, id="1"), post(BAD, id="2"), post(PLAIN, id="3"), post("ok", id="4")]
            items += [post(BAD, id="5", crawled_at="2001-01-01T00:00:00Z"), error("TIMEOUT"), error("PARSE_ERROR")]
            kept = await store.keep(digested([*items, error("TIMEOUT")], clock).batch)
            assert (kept.posts, kept.errors) == (5, 3)
            return await gather(store, {"proj_xyz": "Zorvani", "": "nobody"}, at - HOUR, 2)

    found = asyncio.run(main())

    assert found.hours == (HourMood(at - HOUR, 0, 0, 1, 0), HourMood(at, 1, 1, 1, 3)), "what is earlier is of the first"
    assert found.categories == {"network": 2, "parsing": 1}
    assert (found.posts, found.errors, found.unread) == (5, 3, 1)
    first, nobody = found.projects
    assert (first.name, first.posts, first.positive, first.neutral, first.negative) == ("Zorvani", 5, 1, 1, 2)
    assert nobody == ProjectMood("nobody", 0, 0, 0, 0, 0.0, 0)
    assert isinstance(next(iter(EventsReport(found).drawn(80))), Text)
