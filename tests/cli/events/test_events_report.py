"""Plots of a report: exact small cases, and what must hold of any numbers."""

import asyncio
import xml.etree.ElementTree as ET
from collections import Counter
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

from sanderling.cli.events.numbers import HOUR, Hour, Numbers, Project, gather
from sanderling.cli.events.report import (
    NARROWEST,
    Plot,
    Report,
    action_of,
    levels,
    most_errors,
    most_negative,
    nice,
    shared,
    short,
    together,
    told,
)
from sanderling.cli.events.report_svg import svg
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
    many = draw(st.sampled_from((0, 1, 2, 24, 47, 49, 120, 2000)))
    hours = tuple(Hour(MIDNIGHT + place * HOUR, *some[place % len(some)]) for place in range(many))
    # Each is there because something was counted.
    names, some_errors = st.one_of(st.sampled_from(list(Category)), st.text(max_size=30)), counts.map(lambda n: n + 1)
    categories = draw(st.dictionaries(names, some_errors))
    projects = st.builds(Project, st.text(max_size=40), counts, counts, counts, counts, st.floats(-1, 1), counts)
    return Numbers(hours, categories, tuple(draw(st.lists(projects, max_size=5))), draw(counts))


def lines(of: Numbers, width: int = 60, *, plain: bool = True) -> list[str]:
    return [line.plain for line in Report(of).drawn(width, plain=plain)]


# Exact cases.

DAY = Numbers(
    hours=(Hour(MIDNIGHT, 2, 4, 2, 1), Hour(MIDNIGHT + HOUR, 0, 0, 4, 3), Hour(MIDNIGHT + 2 * HOUR)),
    categories={"rate_limiting": 3, "content": 1},
    projects=(Project("Mây Sậy", 13, 2, 4, 6, -0.25, 5),),
    unread=1,
)


def test_a_plot_stacks_what_is_bad_below_what_is_good_on_one_axis_with_errors() -> None:
    seen = lines(DAY)

    assert seen[:15] == [
        "How people felt, hour by hour (UTC)",
        "     8 |++++++++++++++++                                   ",
        "       |++++++++++++++++                                   ",
        "       |................                                   ",
        "       |................                                   ",
        "     4 |................ ################                  ",
        "       |................ ################                  ",
        "       |################ ################                  ",
        "       |################ ################                  ",
        "     0 +---------------------------------------------------",
        "     3 |                 xxxxxxxxxxxxxxxx                  ",
        "errors |xxxxxxxxxxxxxxxx xxxxxxxxxxxxxxxx                  ",
        "     0 +---------------------------------------------------",
        "        00               01               02",
        "",
    ]
    assert seen[15:17] == [
        "        + positive 2 . neutral 4 # negative 6",
        "        1 more were too short, or advertisements",
    ]


def test_categories_have_their_share_and_what_is_done_about_them() -> None:
    seen = lines(DAY)

    assert " rate_limiting xxxx       3   75%  fetch again, more slowly" in seen
    assert "       content x          1   25%  it is gone: leave it out" in seen


def test_projects_have_how_people_felt_and_what_is_at_risk() -> None:
    seen = lines(DAY)

    assert "                           posts    mean negative  at risk" in seen
    assert "       May Say ####....+      13   -0.25      50%        5" in seen
    assert any(line.startswith("       Mây Sậy █████████") for line in lines(DAY, plain=False))


def test_a_cell_has_the_colours_of_both_parts_that_meet_in_it() -> None:
    """Half of the lowest of two rows is negative, and the rest of the column is positive."""
    seen = list(Plot(axis=2).stacked([Hour(0.0, positive=3, negative=1)], 1, height=2))

    assert [line.plain[-1] for line in seen[:2]] == ["█", "▄"]
    styles = {line.plain[-1]: str(line.spans[-1].style) for line in seen[:2]}
    assert styles == {"█": "green", "▄": "red on green"}


def test_axis_and_columns_have_styles_of_their_own() -> None:
    """A style of the whole line would dim the columns."""
    assert all(not line.style for line in Report(DAY).drawn(80))


def test_plain_is_without_any_style() -> None:
    assert all(not str(span.style) for line in Report(DAY).drawn(80, plain=True) for span in line.spans)


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


@pytest.mark.parametrize(
    ("most", "end"), [(0, 1), (1, 1), (7, 7), (10, 10), (11, 12), (99, 100), (101, 120), (361, 400), (2001, 2500)]
)
def test_an_axis_ends_where_people_like_it(most: int, end: int) -> None:
    assert nice(most) == end


def test_something_is_never_nothing() -> None:
    assert levels([1, 0, 2], 1000, 8) == [0, 0, 1]
    assert levels([2, 1, 0], 1000, 8) == [1, 1, 1]
    assert levels([0, 0, 0], 1000, 8) == [0, 0, 0]


def test_what_stands_out_is_said_in_words() -> None:
    assert most_negative(DAY) == "Most negative from 01:00 to 02:00: 100% of 4 posts."
    assert most_errors(DAY) == "Most errors from 01:00 to 02:00: 43% of 7 items."
    assert list(told(Numbers(hours=(Hour(MIDNIGHT, positive=1),)))) == []


def test_every_action_of_the_taxonomy_has_words() -> None:
    assert len({action_of(each.value) for each in ACTIONS}) == len(set(ACTIONS.values()))
    assert action_of("?") == action_of("generic")


def test_days_are_named_where_a_column_is_a_day() -> None:
    hours = tuple(Hour(MIDNIGHT + place * HOUR, 1) for place in range(24 * 40))

    seen = lines(Numbers(hours))

    assert seen[0] == "How people felt, every 24 hours (UTC)"
    assert "01-15" in seen[13]
    assert "00" not in seen[13].split()


# What must hold of any.


@settings(max_examples=40)
@given(numbers(), st.integers(1, 200), st.booleans())
def test_no_line_is_wider_than_it_may_be(of: Numbers, width: int, plain: bool) -> None:  # noqa: FBT001 - drawn
    seen = lines(of, width, plain=plain)

    assert max(map(cell_len, seen)) <= max(NARROWEST, width)
    assert all(line.isprintable() for line in seen)
    assert not plain or "".join(seen).isascii()


@given(st.lists(st.tuples(counts, counts, counts, counts), max_size=60), st.integers(1, 20))
def test_nothing_is_lost_where_hours_come_together(several: list[tuple[int, int, int, int]], most: int) -> None:
    hours = [Hour(place * HOUR, *each) for place, each in enumerate(several)]

    span, columns = together(hours, most)

    assert len(columns) <= most
    assert [each.at for each in columns] == [each.at for each in hours[::span]]
    assert [sum(each) for each in zip(*[c[1:] for c in columns], strict=True)] == [
        sum(each) for each in zip(*several, strict=True)
    ]


@given(st.lists(counts, min_size=1, max_size=5), st.integers(1, 100))
def test_a_width_is_shared_out_as_a_whole(parts: list[int], width: int) -> None:
    cells = shared(parts, width)

    assert sum(cells) == (width if sum(parts) else 0)
    assert min(cells) >= 0
    assert all(not cell for part, cell in zip(parts, cells, strict=True) if not part)


@given(st.integers(0, 10**40))
def test_an_axis_has_room_and_is_not_mostly_empty(most: int) -> None:
    assert most <= nice(most) <= max(1, most * 4 // 3 + 1)


@settings(max_examples=30)
@given(numbers(), st.text(max_size=50))
def test_a_picture_is_xml_with_nothing_outside_of_it(of: Numbers, title: str) -> None:
    root = ET.fromstring(svg(of, title))  # noqa: S314 - ours

    wide, tall = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [each.attrib for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    for box in boxes:
        x, y, width, height = (float(box[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= wide + 0.1
        assert 0 <= y <= y + height <= tall + 0.1


def test_what_others_write_is_text_in_a_picture_and_on_a_terminal() -> None:
    of = Numbers(DAY.hours, {HOSTILE: 1}, (Project(HOSTILE, 1, 1, 0, 0, 0.0, 0),))

    root = ET.fromstring(svg(of, HOSTILE))  # noqa: S314 - ours

    assert {each.tag.partition("}")[2] for each in root.iter()} == {"svg", "title", "style", "rect", "text", "line"}
    assert all(line.isprintable() for line in lines(of, plain=False))


def test_the_heights_of_a_picture_are_those_of_the_numbers() -> None:
    root = ET.fromstring(svg(DAY, "A day"))  # noqa: S314 - ours
    tall: Counter[str] = Counter()
    for each in root.iter("{http://www.w3.org/2000/svg}rect"):
        hint = each.find("{http://www.w3.org/2000/svg}title")
        if hint is not None and str(hint.text).startswith("00:00: positive 2, neutral 4, negative 2"):
            tall[each.attrib["fill"]] += round(float(each.attrib["height"]))

    assert list(tall.values()) == [65, 130, 65], "negative, neutral, positive, of 260 for eight"


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
    monkeypatch.setattr("sanderling.cli.events.numbers.PAGE", 2)
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

    assert found.hours == (Hour(at - HOUR, 0, 0, 1, 0), Hour(at, 1, 1, 1, 3)), "what is earlier is of the first"
    assert found.categories == {"network": 2, "parsing": 1}
    assert (found.posts, found.errors, found.unread) == (5, 3, 1)
    first, nobody = found.projects
    assert (first.name, first.posts, first.positive, first.neutral, first.negative) == ("Zorvani", 5, 1, 1, 2)
    assert nobody == Project("nobody", 0, 0, 0, 0, 0.0, 0)
    assert isinstance(next(iter(Report(found).drawn(80))), Text)
