"""What came of a crawl, in words, and what to do next."""

import msgspec
import pytest

from sanderling.cli.pages.summary import MEANINGS, PageSummary, meaning, reasons, words
from sanderling.stores.frontier_rows import Aside

SUMMARY = PageSummary(
    complete=True,
    crawl=1,
    seconds=38.2,
    known=20,
    fetched=12,
    unchanged=0,
    moved=0,
    refused=0,
    left_out=0,
    failed=0,
    left=0,
    waiting=0,
    bytes=1_234_567,
    hosts=3,
    seeds_fetched=True,
    out="a crawl",
    failed_by={},
    set_aside=0,
    set_aside_by={},
    aside=(),
    resumed=False,
    files=("pages.jsonl",),
    again="sanderling pages crawl --resume --out 'a crawl' --rps 2",
    retry="sanderling pages failed 'a crawl' --retry --rps 2",
)
RESUME = f"    {SUMMARY.again}"


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
        ({"left_out": 2}, "2 URLs left out, as --leave-out says.\n"),
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
        (
            {"set_aside": 8, "aside": (Aside("b.example", 8, "CONNECTION_REFUSED", 0, "robots.txt: ECONNREFUSED"),)},
            "their hosts were set aside.\n\n    b.example  8 URLs, nobody listens there: robots.txt: ECONNREFUSED\n",
        ),
        ({"left": 1}, f"1 URL left because of --max-pages. Ask for them as well with:\n\n{RESUME}\n"),
        ({"files": ("pages.jsonl", "bodies")}, "The output:\n\n    'a crawl/pages.jsonl'\n    'a crawl/bodies'\n"),
        ({}, "    sanderling verify 'a crawl'\n"),
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


def test_what_budgets_cut_off_is_told_apart_from_what_was_left_out() -> None:
    said = told(left_out=7, cut_off=5)

    assert "2 URLs left out, as --leave-out says." in said
    assert "5 URLs cut off by budgets. List them, or ask for them all the same:\n\n" in said
    assert "    sanderling pages failed 'a crawl' --cut-off\n" in said
    assert "--leave-out" not in told(left_out=5, cut_off=5)


def test_that_links_were_not_followed_for_their_depth_is_said() -> None:
    assert "3 pages lead further than --depth 16 goes: what only they" in told(depth=16, at_depth=3)
    assert "--depth" not in told(depth=16)
