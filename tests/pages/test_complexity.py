"""Pages that would cost a parser seconds or gigabytes are refused, those that are meant to be read are not."""

import sys
import time
from pathlib import Path
from random import Random

import pytest
from selectolax.lexbor import LexborHTMLParser

from sanderling.pages import complexity_python
from sanderling.pages.complexity import LONGEST, PageTooComplexError, check_complexity

_complexity = pytest.importorskip("sanderling.pages._complexity", reason="the C part was not built")
sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
twins = pytest.importorskip("twins", reason="a C part was not built")

N = 80_000
NUMBERS = range(N)
COSTLY = "nested too deeply, or has too many tags or attributes"
UNCLEAR = "markup that parsers read differently"
HOSTILE = {
    "nested blocks": ("<div>" * N, COSTLY),
    "nested formatting": ("<b>" * N, COSTLY),
    "unknown tags": ("<x-a>" * N, COSTLY),
    "nested tables": ("<table>" * N, COSTLY),
    "different formatting": ("".join(f"<font size={each}>" for each in NUMBERS), COSTLY),
    "closed across a block": ("<span><div></span>" * N, COSTLY),
    "closed across a fence": (("<div>" * 50 + "<object>" + "</div>" * 50) * 1000, COSTLY),
    "forms that end alone": ("<form><div></form>" * N, COSTLY),
    "cells without a table": ("<td><div></td>" * N, COSTLY),
    "lists that end lists": ("<select><div>" * N, COSTLY),
    "text between what is ignored": ("x<col>" * 4 * N, COSTLY),
    "text between stray ends": ("x</i>" * 4 * N, COSTLY),
    "options": ("<select>" + "<option>" * N, COSTLY),
    "behind a comment": ('<!-- <a b=" -->' + "<div>" * N, COSTLY),
    "behind a title": ('<title><a b="</title>' + "<div>" * N + '">', COSTLY),
    "behind a script in a script": ("<script><!--<script></script>--></script>" + "<div>" * N, COSTLY),
    "behind a script that seems open": ("<script><!--><script></script>" + "<div>" * N, COSTLY),
    "in the quotes of an end": ("</p a='<!--'>" + "<div>" * N, COSTLY),
    "in a style of a picture": ("<svg><style>" + "<g>" * N, COSTLY),
    "inputs of a picture": ("<svg>" + "<input>" * N, COSTLY),
    "a slash that is a value": ("<svg>" + "<g a=b/>" * N, COSTLY),
    "a style in a title of a picture": ("<svg><title></g><style><!--</style>" + "<div>" * N, UNCLEAR),
    "data in a formula": ("<math><mi><![CDATA[<!--]]>" + "<div>" * N, UNCLEAR),
    "HTML in a formula": ("<math><annotation-xml encoding=text/&#104;tml><style><!--</style>" + "<g>" * N, UNCLEAR),
    "frames": ("<frameset><style></frameset>" + "<frameset>" * N, UNCLEAR),
    "attributes": (f"<p {' '.join(f'a{each}=1' for each in NUMBERS)}>", COSTLY),
    "attributes without values": (f"<p {' '.join(f'a{each}' for each in NUMBERS)}>", COSTLY),
    "attributes with brackets": ("<p " + " ".join(f"a{each}='>'" for each in NUMBERS) + ">", COSTLY),
    "attributes of many bodies": ("".join(f"<body a{each}>" for each in NUMBERS), COSTLY),
    "many tags of many attributes": (("<p " + " ".join(map(str, range(1000))) + ">") * 2000, COSTLY),
    "formatting that comes back": ("<p>" + "".join(f"<b id={n}>" for n in range(300)) + "</p><p>x" * 5000, COSTLY),
    "formatting that outlives its marker": ("<table><marquee>" + "<em><em id=1></table>x<table>" * N, COSTLY),
    "a large page": (" " * (LONGEST + 1), "characters, expected at most 8,388,608"),
}


@pytest.mark.parametrize(("html", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_page_that_costs_too_much_is_refused_soon(html: str, says: str) -> None:
    before = time.process_time()

    with pytest.raises(PageTooComplexError) as raised:
        check_complexity(html)

    assert says in str(raised.value)
    assert time.process_time() - before < 1


def depths(html: str) -> int:
    """The levels of all elements that the parser makes of a page, together."""
    root = LexborHTMLParser(html).root
    levels: dict[int, int] = {}
    total = 0
    for node in root.traverse() if root is not None else ():
        level = levels[node.mem_id] = levels.get(node.parent.mem_id, 0) + 1 if node.parent is not None else 0
        total += level if node.is_element_node else 0
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_parser_makes_no_deeper_tree_than_was_told(seed: int) -> None:
    for number in range(25):
        html = twins.draw_repeated(Random(f"{seed}/{number}"), 400)
        verdict, work = _complexity.weigh(html)
        if verdict == complexity_python.FINE and len(html) > complexity_python.SMALL:
            assert depths(html) <= 3 * work + 1_000_000 * ("<frameset" in html), html[:300]


def test_both_say_the_same_of_pages_that_nobody_wrote() -> None:
    for number in range(300):
        twins.run("complexity", 7, number, ())


USUAL = {
    "items without ends": "<ul>" + "<li>x" * 20_000,
    "cells without ends": "<table>" + "<tr><td><p>x<td><font size=2>y" * 5_000,
    "paragraphs": "<p>a<b>b</b>" * 20_000,
    "a list of links": '<a href="/x" class="y">z</a>' * 20_000,
    "a script with markup": f"<script>{'<div>' * 5_000}</script>",
    "some formatting that is never closed": "<p><font size=2>a</p>" * 50 + "<p>b</p>" * 2_000,
    "400 levels": "<div>" * 400 + "a",
    "a picture with a style": "<svg><title>a</title><style>a>b{}</style>"
    + "<path d='m0'/>" * 5_000
    + "</svg><p>" * 5_000,
    "rows without ends": "<table>" + "<tr><td>x<td>y</tr>" * 20_000,
    "paragraphs that end twice": "<p><div>a</div></p>" * 10_000,
    "crossed formatting": "<p><b><i>a</b></i>" * 200,
    "a surrogate": "\ud800<p>",
}


@pytest.mark.parametrize("html", USUAL.values(), ids=USUAL)
def test_a_page_that_forgets_its_ends_is_read(html: str) -> None:
    before = time.process_time()

    check_complexity(html)

    assert LexborHTMLParser(html).root is not None
    assert time.process_time() - before < 2
