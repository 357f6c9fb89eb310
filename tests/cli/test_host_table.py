"""What the screens of crawls share: rows that keep their places, paces, and how far a crawl is."""

import pytest
from statuses import host

from sanderling.cli.host_table import Columns, Growth, HostTable, headline, latency, others, progress
from sanderling.engine.host_report import HostStatus

COLUMNS = Columns("{:>6}{:>8}  {}", ("rate", "waiting", "state"), name=20)
A, B, C = host("a.example"), host("b.example"), host("c.example")


def table(**names: str) -> HostTable[HostStatus]:
    return HostTable(COLUMNS, names)


def test_hosts_change_places_only_now_and_then() -> None:
    rows = table()

    assert rows.in_order([A, B], 0.0, lambda: [B, A]) == [B, A]
    assert rows.in_order([A, B], 1.9, lambda: [A, B]) == [B, A]
    assert rows.in_order([A, B], 2.0, lambda: [A, B]) == [A, B]


def test_a_host_that_is_new_is_shown_at_once_and_one_that_is_gone_is_not() -> None:
    rows = table()
    rows.in_order([A, B], 0.0, lambda: [B, A])

    assert rows.in_order([A, C], 1.0, list) == [A, C]


def test_a_clock_that_was_set_back_does_not_freeze_the_places() -> None:
    rows = table()
    rows.in_order([A, B], 1000.0, lambda: [B, A])

    assert rows.in_order([A, B], 10.0, lambda: [A, B]) == [A, B]


@pytest.mark.parametrize(
    ("name", "width", "columns"),
    [("short", 80, 20), ("n" * 30, 80, 31), ("n" * 70, 80, 54 - 6), ("n" * 70, 60, 34), ("n" * 70, 30, 20)],
)
def test_names_get_as_much_as_there_is_for_them(name: str, width: int, columns: int) -> None:
    assert table(**{"a.example": name}).name_width([A], width) == columns


def test_a_row_has_the_name_that_people_know_and_cuts_what_is_too_long() -> None:
    rows = table(**{"a.example": "library\x1b", "b.example": "n" * 30})

    assert rows.head(20).plain == "host                  rate waiting  state"
    assert rows.row(A, 20, ("1.0", "7"), ("going", "green")).plain == "library\ufffd               1.0       7  going"
    assert rows.row(B, 20, ("1.0", "7"), ("done", "dim")).plain == "nnnnnnnnnnnnnnnnnn…    1.0       7  done"


@pytest.mark.parametrize(
    ("hosts", "waiting", "said"),
    [(0, 5, []), (1, 5, ["and 1 more host, 5 URLs waiting for them"]), (1200, -3, ["and 1,200 more hosts, 0 URLs"])],
)
def test_hosts_without_room_are_counted(hosts: int, waiting: int, said: list[str]) -> None:
    lines = [line.plain for line in others(hosts, waiting, "URLs")]

    assert len(lines) == len(said)
    assert all(line.startswith(start) for line, start in zip(lines, said, strict=True))


def test_the_headline_has_the_time_and_then_the_totals() -> None:
    assert headline(["1:40", "60 pages", "0.5/s"]).plain == "1:40    60 pages  0.5/s"


def test_a_bar_shows_what_is_done_and_what_failed_of_it() -> None:
    bar = progress(70, 100, "known URLs", 43, failed=10)

    assert bar.plain == "━" * 20 + " 70 % of 100 known URLs"
    assert [(bar.plain[span.start : span.end].count("━"), span.style) for span in bar.spans] == [
        (12, "green"),
        (2, "red"),
        (6, "bright_black"),
    ]
    assert "99 %" in progress(9999, 10_000, "URLs", 44).plain, "what is not all is never 100 %"
    assert "0 % of 0 URLs" in progress(0, 0, "URLs", 44).plain


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "-"), (0.0512, "51 ms"), (9.99, "9,990 ms"), (9.9996, "10 s"), (1234.0, "1,234 s")]
)
def test_any_latency_fits_its_column(seconds: float | None, said: str) -> None:
    assert latency(seconds) == said
    assert len(said) < 9


def test_growth_is_that_of_the_time_that_is_asked_for() -> None:
    growth = Growth(60.0)
    for second in range(100):
        grown = max(0, second - 89)
        growth.count(float(second), {"repos": grown}, [host(requests=2 * grown)])

    assert growth.rate("repos") == 1
    assert growth.rate("repos", over=60.0) == 10 / 60
    assert growth.requests("a.example", over=5.0) == 2
    assert growth.requests("never.example") == 0


def test_there_is_no_growth_before_there_is_time() -> None:
    growth = Growth()

    assert (growth.rate("repos"), growth.requests("a.example")) == (0, None)
    growth.count(1.0, {"repos": 1}, [A])
    growth.count(1.4, {"repos": 9}, [A])
    assert (growth.rate("repos"), growth.requests("a.example")) == (0, None), "that was just counted"
