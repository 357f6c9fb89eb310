"""Bounds against traps, as counts: which kinds of pages are cut off, and which go first."""

from itertools import combinations
from typing import Literal

import pytest

from sanderling.crawl.pages import text_digest
from sanderling.crawl.repeats import DOUBTFUL, Repeats, mark_of
from sanderling.extract.html import read_page

HOST = "http://shop.example"


def filters(number: int) -> list[str]:
    """So many addresses of one page, of many kinds: each has other parameters."""
    kinds = [names for length in range(1, 9) for names in combinations("abcdefgh", length)]
    return [f"{HOST}/find?" + "&".join(f"{name}={at}" for name in kinds[at % len(kinds)]) for at in range(number)]


def test_filters_that_multiply_are_cut_off_by_their_path_and_items_beside_them_are_not() -> None:
    repeats = Repeats(50)
    for number, url in enumerate(filters(2000)):
        if not repeats.is_over(url):
            repeats.see(url, b"same", b"")
        repeats.see(f"{HOST}/item/{number}", str(number).encode(), b"")

    assert repeats.is_over(filters(2001)[-1])
    assert repeats.is_over(f"{HOST}/find?never=seen")
    assert not repeats.is_over(f"{HOST}/item/5000")
    assert not repeats.is_over(f"{HOST}/other?never=seen")


def test_what_gives_new_texts_goes_first_once_a_host_repeats_itself() -> None:
    repeats = Repeats(200)
    lists, items, calendar = f"{HOST}/list?page=1", f"{HOST}/item/1", f"{HOST}/calendar/1"
    repeats.see(lists, b"a list", b"")
    assert repeats.priority(items) == repeats.priority(lists) == repeats.priority(calendar) == 0

    for number in range(DOUBTFUL + 1):
        repeats.see(f"{HOST}/calendar/{number}", b"no event", b"")
        repeats.see(f"{HOST}/list?page={number}", b"a list", b"")
        repeats.see(f"{HOST}/item/{number}", str(number).encode(), mark_of(lists))

    assert repeats.priority(items) > repeats.priority(f"{HOST}/strange") > repeats.priority(calendar)
    assert repeats.priority(lists) >= 0


@pytest.mark.parametrize("text", ["fast", "none"])
def test_pages_with_one_title_are_known_apart_by_their_text(text: Literal["fast", "none"]) -> None:
    def seen(words: str) -> bytes:
        source = f"<title>Entry</title><main><p>{words} and a good many words that all of the entries have</p></main>"
        return text_digest(read_page(source.encode(), "text/html", HOST, text=text), HOST)

    assert seen("heather granite fjord") == seen("heather granite fjord")
    assert seen("heather granite fjord") != seen("heather granite juniper")
