"""Pages that would cost a parser seconds or gigabytes are refused, those that are meant to be read are not."""

import time

import pytest
from selectolax.lexbor import LexborHTMLParser

from sanderling.pages.complexity import LONGEST, PageTooComplexError, check_complexity

N = 80_000
HOSTILE = {
    "nested blocks": ("<div>" * N, "512 levels deep, at <div>"),
    "nested formatting": ("<b>" * N, "512 levels deep"),
    "unknown tags": ("<x-a>" * N, "512 levels deep"),
    "nested tables": ("<table>" * N, "512 levels deep"),
    "different formatting": ("".join(f"<font size={each}>" for each in range(N)), "512 levels deep"),
    "closed across a block": ("<span><div></span>" * N, "512 levels deep"),
    "closed across a fence": (("<div>" * 50 + "<object>" + "</div>" * 50) * 1000, "512 levels deep"),
    "behind a comment": ('<!-- <a b=" -->' + "<div>" * N, "512 levels deep"),
    "in a quote that a title opens": ('<title><a b="</title>' + "<div>" * N + '">', "80,001 tags in its attributes"),
    "attributes": (f"<p {' '.join(f'a{each}=1' for each in range(N))}>", "<p> has 80,000 attributes"),
    "attributes without values": (f"<p {' '.join(f'a{each}' for each in range(N))}>", "<p> has 80,000 attributes"),
    "attributes with brackets": ("<p " + " ".join(f"a{each}='>'" for each in range(N)) + ">", "80,000 attributes"),
    "formatting that comes back": (
        "<p>" + "".join(f"<b id={each}>" for each in range(300)) + "</p><p>x" * 5000,
        "tags like <font> that are never closed",
    ),
    "a large page": (" " * (LONGEST + 1), "characters, expected at most 8,388,608"),
}


@pytest.mark.parametrize(("html", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_page_that_costs_too_much_is_refused_soon(html: str, says: str) -> None:
    before = time.process_time()

    with pytest.raises(PageTooComplexError) as raised:
        check_complexity(html)

    assert says in str(raised.value)
    assert time.process_time() - before < 1


USUAL = {
    "items without ends": "<ul>" + "<li>x" * 20_000,
    "cells without ends": "<table>" + "<tr><td><p>x<td><font size=2>y" * 5_000,
    "paragraphs": "<p>a<b>b</b>" * 20_000,
    "a list of links": '<a href="/x" class="y">z</a>' * 20_000,
    "a script with markup": f"<script>{'<div>' * 5_000}</script>",
    "some formatting that is never closed": "<p><font size=2>a</p>" * 50 + "<p>b</p>" * 2_000,
    "400 levels": "<div>" * 400 + "a",
}


@pytest.mark.parametrize("html", USUAL.values(), ids=USUAL)
def test_a_page_that_forgets_its_ends_is_read(html: str) -> None:
    before = time.process_time()

    check_complexity(html)

    assert LexborHTMLParser(html).root is not None
    assert time.process_time() - before < 2
