"""The picture of `top`, whatever the terminal, the systems and the keys."""

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_reports import events, host, pages, polling, sequence

from sanderling.cli.plots import BLOCKS, POINTS, Trail, spark
from sanderling.cli.status import house_in
from sanderling.cli.top.keys import keys_in
from sanderling.cli.top.view import Look, View
from sanderling.clock import SystemClock
from sanderling.observe.report import AnyReport
from sanderling.stores.status_file import write_status


def put(home: Path, **statuses: AnyReport) -> None:
    for name, status in statuses.items():
        (home / name).mkdir(parents=True, exist_ok=True)
        write_status(home / name, status)


def looked(home: Path, view: View) -> Look:
    live = house_in(home, SystemClock())
    asyncio.run(live.look())
    view.take(live.seen)
    running = [live.seen.found[each.name] for each in live.seen.systems if each.running]
    return Look("home", live.seen, [row for each in running for row in live.rows_of(each)])


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A home with one of each that has something of its own to show."""
    now = time.time()
    put(
        tmp_path,
        crawl=pages(
            host("slow.example", latency=2.0, requests=5, waiting=3),
            host("busy.example", requests=900, rate=3.0, error_rate=0.25, waiting=1),
            host("bad.example", requests=7, rate=9.0, waiting=70, state="open", trouble="TIMEOUT"),
            wall=now,
            started=now - 60,
        ),
        ids=sequence(wall=now, started=now - 60),
        polling=polling(wall=now, started=now - 60),
        posts=events(wall=now, started=now - 60),
        old=pages(wall=now, running=False),
    )
    return tmp_path


def text_of(view: View, look: Look, width: int = 120, height: int = 50) -> str:
    return "\n".join(line.plain for line in view.lines(look, width, height))


def hosts_in(text: str) -> list[str]:
    return [name for line in text.splitlines() for name in line.split() if name.endswith(".example") and "%" in line]


def test_all_systems_are_shown_with_their_plots_and_those_that_ended_in_a_line(full: Path) -> None:
    view = View()

    text = text_of(view, looked(full, view))

    assert "home: 4 running" in text
    assert "1 crawl (pages)  running for 60 s  asking 3 hosts; 30 URLs wait" in text
    assert "! bad.example: TIMEOUT" in text
    assert "old (pages): ended a moment ago" in text
    assert all(f" {label} " in text for label in ("asked", "kept", "failed", "lag", "workers", "late", "posts"))


def test_hosts_are_sorted_by_requests_and_by_what_a_key_says(full: Path) -> None:
    view = View()
    look = looked(full, view)
    orders = {}

    for key in ("", "r", "l", "e", "w", "w"):
        if key:
            view.press(key, look.seen.systems)
        orders[view.sort] = [name for name in hosts_in(text_of(view, look)) if name.split(".")[0] in "slow busy bad"]

    assert orders["requests"] == ["busy.example", "bad.example", "slow.example"]
    assert orders["rate"][0] == "bad.example"
    assert orders["latency"][0] == "slow.example"
    assert orders["error_rate"][0] == "busy.example"
    assert orders["queued"][0] == "bad.example"
    assert view.sort == "requests"


def test_a_number_looks_at_one_system_alone_and_0_at_all(full: Path) -> None:
    view = View()
    look = looked(full, view)

    view.press("2", look.seen.systems)
    alone = text_of(view, look)
    view.press("9", look.seen.systems)  # there is none
    still = text_of(view, look)
    view.press("0", look.seen.systems)

    assert "2 ids (sequence)" in alone
    assert "crawl" not in alone
    assert "135 s behind: 25 workers become 50." in alone
    assert still == alone
    assert "crawl" in text_of(view, look)


def test_whoever_is_looked_at_alone_stays_so_when_others_come_and_go(full: Path) -> None:
    view = View()
    view.press("2", looked(full, view).seen.systems)
    put(full, another=sequence(wall=time.time()))

    assert "3 ids (sequence)" in text_of(view, looked(full, view))


@pytest.mark.parametrize("number", ["1", "2", "3", "4", "5"])
def test_every_system_has_a_picture_of_its_own(full: Path, number: str) -> None:
    view = View()
    look = looked(full, view)
    view.press(number, look.seen.systems)

    text = text_of(view, look)

    assert "doing" in text
    assert "numbers" in text


def test_the_help_lists_every_key_and_any_other_key_ends_it(full: Path) -> None:
    view = View()
    look = looked(full, view)

    view.press("?", look.seen.systems)
    shown = text_of(view, look)
    view.press("x", look.seen.systems)

    assert all(f" {key} " in shown for key in "rlewq?")
    assert "home: 4 running" in text_of(view, look)
    assert view.press("q", look.seen.systems) is False


@pytest.mark.parametrize(("width", "height"), [(1, 1), (20, 5), (40, 10), (80, 24), (80, 10), (200, 60)])
@pytest.mark.parametrize("focus", [None, "posts"])
def test_the_picture_fits_a_terminal_of_any_size(full: Path, width: int, height: int, focus: str | None) -> None:
    view = View(focus=focus)
    look = looked(full, view)

    lines = view.lines(look, width, height)

    assert len(lines) == max(2, height)
    assert max(line.cell_len for line in lines) <= width


def test_small_terminals_get_all_systems_in_less_detail_and_still_hosts(full: Path) -> None:
    view = View()

    text = text_of(view, looked(full, view), 100, 18)

    assert all(f" {name} (" in text or f" {name}  " in text for name in ("crawl", "ids", "polling", "posts"))
    assert "busy.example" in text


def test_nothing_is_a_picture_too(tmp_path: Path) -> None:
    view = View()

    assert "nothing has run in home yet" in text_of(view, looked(tmp_path, view))


def test_what_strangers_wrote_is_harmless(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e\n.example"
    put(tmp_path, crawl=pages(host(hostile, state="open", trouble=hostile, why=hostile), wall=time.time()))
    view = View()

    assert text_of(view, looked(tmp_path, view)).replace("\n", "").isprintable()


def test_a_spark_is_as_high_as_the_point_and_what_is_unknown_is_empty() -> None:
    assert spark([0, 1, 2, 4, 8, None], 8) == f"  {BLOCKS[0]}{BLOCKS[1]}{BLOCKS[1]}{BLOCKS[3]}{BLOCKS[7]} "
    assert spark([0, 0], 2) == BLOCKS[0] * 2
    assert spark([1, 2, 3], 0) == ""


@given(points=st.lists(st.none() | st.floats()), width=st.integers(0, 50))
def test_a_spark_is_as_wide_as_it_should_be(points: list[float | None], width: int) -> None:
    drawn = spark(points, width)

    assert len(drawn) == width
    assert set(drawn) <= {*BLOCKS, " "}


def test_a_trail_remembers_so_many_points_and_a_new_series_was_unknown_before() -> None:
    trail = Trail()

    trail.add({"asked": 1.0})
    trail.add({"asked": 2.0, "lag": 3.0})
    trail.add({"lag": 4.0})
    assert (trail.of("asked"), trail.of("lag"), trail.of("no")) == ((1.0, 2.0, None), (None, 3.0, 4.0), ())
    for _ in range(POINTS):
        trail.add({"asked": 0.0})
    assert len(trail.of("asked")) == len(trail.of("lag")) == POINTS


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"q", ["q"]),
        (b"r2", ["r", "2"]),
        (b"\x1b", ["\x1b"]),
        (b"\x1b[A", []),
        (b"r\x1b[1;5Bl", ["r", "l"]),
        (b"\x1bOPe\xff", ["e"]),
    ],
)
def test_keys_are_told_apart_from_arrows(typed: bytes, keys: list[str]) -> None:
    assert keys_in(typed) == keys
