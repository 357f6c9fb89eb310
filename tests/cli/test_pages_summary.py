"""What came of a crawl, in words, and what to do next."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.cli.pages_summary import (
    MEANINGS,
    Summary,
    clock_face,
    duration,
    meaning,
    printable,
    reasons,
    size,
    words,
)

SUMMARY = Summary(
    complete=True,
    crawl=1,
    seconds=38.2,
    known=20,
    fetched=12,
    unchanged=0,
    moved=0,
    refused=0,
    failed=0,
    left=0,
    waiting=0,
    bytes=1_234_567,
    hosts=3,
    seeds_fetched=True,
    out="a crawl",
    failed_by={},
    resumed=False,
    files=("pages.jsonl",),
    flags=("--rps", "2"),
)
RESUME = "    sanderling pages crawl --resume --out 'a crawl' --rps 2"


def told(**changes: object) -> str:
    return "\n".join(words(msgspec.structs.replace(SUMMARY, **changes)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Fetched 12 pages, 1.2 MB, from 3 hosts in 38 s.\n"),
        ({"hosts": 1, "fetched": 1}, "Fetched 1 page, 1.2 MB, from 1 host in 38 s.\n"),
        ({"unchanged": 4, "moved": 3}, "in 38 s, 4 unchanged, 3 moved elsewhere.\n"),
        ({"resumed": True}, "The crawl holds 12 pages now; this run fetched 1.2 MB in 38 s.\n"),
        ({"refused": 2}, "robots.txt forbids 2 URLs; nothing was sent for those.\n"),
        ({"failed": 2, "failed_by": {"TIMEOUT": 2}}, "2 URLs of 20 failed: 2 no answer in time.\n"),
        (
            {"failed": 2},
            "    sanderling pages failed 'a crawl'\n    sanderling pages failed 'a crawl' --retry --rps 2\n",
        ),
        ({"seeds_fetched": False}, "Not every first address could be fetched.\n"),
        (
            {"waiting": 8, "complete": False},
            f"8 URLs still to ask for. Nothing is lost; go on where it stopped with:\n\n{RESUME}\n",
        ),
        ({"left": 1}, f"1 URL left because of --max-pages. Ask for them as well with:\n\n{RESUME}\n"),
        ({"files": ("pages.jsonl", "bodies")}, "The output:\n\n    'a crawl/pages.jsonl'\n    'a crawl/bodies'\n"),
        ({}, "    sanderling pages verify 'a crawl'\n"),
    ],
)
def test_the_words(changes: dict[str, object], said: str) -> None:
    assert said in told(**changes)


@pytest.mark.parametrize("word", ["--resume", "failed", "robots.txt", "first address"])
def test_where_all_went_well_nothing_else_is_said(word: str) -> None:
    assert word not in told()


def test_what_has_no_rows_has_no_output() -> None:
    assert "The output" not in told(files=())


def test_the_rarer_reasons_are_counted_together() -> None:
    by = {"TIMEOUT": 9, "DNS_ERROR": 8, "CONTENT_REMOVED": 7, "TOO_LARGE": 6, "TLS_ERROR": 5, "HTTP_ERROR": 2, "NEW": 1}

    assert reasons(by).startswith("9 no answer in time, 8 no such host, or no DNS, 7 gone, ")
    assert reasons(by).endswith(", 5 TLS failed, 3 for other reasons")


def test_a_code_without_a_meaning_of_its_own_speaks_for_itself() -> None:
    assert meaning("PARSE_ERROR") == "parse error"
    assert meaning("FROM_ANOTHER_VERSION") == "from another version"
    assert all(meaning(code) == words for code, words in MEANINGS.items())


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (2 * 10**9, "2.0 GB")]
)
def test_sizes(number: int, said: str) -> None:
    assert size(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.26, "0.3 s"), (59.6, "60 s"), (150, "2 min"), (3600, "60 min"), (7260, "2 h 1 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(0, "0:00"), (65.9, "1:05"), (3725, "1:02:05")])
def test_clock_faces(seconds: float, said: str) -> None:
    assert clock_face(seconds) == said


@given(st.text())
def test_printable_text_keeps_its_length_and_cannot_act(text: str) -> None:
    shown = printable(text)

    assert shown.isprintable()
    assert len(shown) == len(text)


def test_plain_text_stays_as_it_is() -> None:
    assert printable("Grüße, 世界: 5 %") == "Grüße, 世界: 5 %"
