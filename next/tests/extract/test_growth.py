"""What is read takes in proportion to its size, however it is built.

Deep nesting is not among these: there the parser itself takes the square, which the deadline of a reader bounds.
"""

from collections.abc import Callable

import pytest
from kit.growth import is_slow

from sanderling.extract.html import read_page
from sanderling.extract.robots import directives, read_robots
from sanderling.extract.sitemaps import read_sitemap

URL = "https://a.example/x/"

SHAPES = [
    # before, repeated
    ("<table>", "<tr><td>x"),
    ("<table><tr>", "<td>x"),
    ("<table><tr><td>a<td>b", "<tr><td colspan=999>|"),
    ("<ol>", "<li>x"),
    ("", "<b>a</b>"),
    ("", "<p><i><a href=/x>w</a></i><br>"),
    ("<p>", "&amp;a_*[~"),
    ("<p>", "- 1. # > "),
    ("<pre>", "`<br>"),
    ("", "<code>``</code>"),
    ("", "<div class='menu sidebar article'>a, b</div>"),
    ("", "<div class=x><p hidden>a</p></div>"),
    ("", "<a href='/x?a=%zz;jsessionid=#'>y</a>"),
    ("", "<img data-src=/a alt='*'>"),
    ("", "<meta name=og:a content=b><meta name=robots content='a, b: c'>"),
    ("", "<link rel=alternate hreflang=de href=/d><base href=/x>"),
    ("", "<script type=application/ld+json>[[1]]</script>"),
    ("<script type=application/ld+json>", "["),
    ("<title>", " a"),
    ("<meta charset=", "x"),
]


@pytest.mark.parametrize(("before", "unit"), SHAPES)
def test_a_page(before: str, unit: str) -> None:
    assert not is_slow(lambda size: read_page((before + unit * size).encode(), None, URL))


@pytest.mark.parametrize(
    ("before", "unit"),
    [
        ("<urlset>", "<url><loc>/x</loc></url>"),
        ("<urlset>", "<url><loc>&"),
        ("<urlset><url><loc>", "<![CDATA[]]>"),
        ("<urlset ", "a='b' "),
        ("", "https://a.example/x\n"),
        ("<?xml ", "encoding="),
    ],
)
def test_a_sitemap(before: str, unit: str) -> None:
    assert not is_slow(lambda size: read_sitemap((before + unit * size).encode(), URL))


@pytest.mark.parametrize(
    "act",
    [
        lambda size: read_robots(200, b"user-agent: *\n" + b"disallow: /*a*b$\n" * size),
        lambda size: read_robots(200, b"".join(b"user-agent: *\nallow: /%d*%%x\n" % each for each in range(size))),
        lambda size: read_robots(200, b"user-agent: *\ndisallow: /" + b"*a" * size),
        lambda size: read_robots(200, b"user-agent: *\ndisallow: /" + b"*a" * 999).decide(URL + "a" * size),
        lambda size: read_robots(200, b"user-agent: *\ndisallow: /*" + b"a" * 999 + b"b").decide(URL + "a" * size),
        lambda size: directives(["noindex:" * size, "a," * size]),
    ],
)
def test_robots(act: Callable[[int], object]) -> None:
    assert not is_slow(act)
