"""The main text of a page as Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from sanderling.extract.content import main_content
from sanderling.extract.html import read_page
from sanderling.extract.markdown import MAX_BOXES, MAX_COLUMNS

URL = "https://a.example/x/"


def markdown(html: str) -> str | None:
    return read_page(f"<article>{html}</article>".encode(), "text/html; charset=utf-8", URL).text


TABLE = "<table><tr><th>A<th>B|C<tr><td>1<td>2 <b>x</b><tr><td colspan=2>w</table>"
CASES = [
    ("<h1>One</h1><h6>Six #</h6>", "# One\n\n###### Six \\#"),
    ("a  b\n<p>c<p>d", "a b\n\nc\n\nd"),
    ("a<br>b<br><br>c", "a  \nb\n\nc"),
    ("<b>a</b> <em>b</em> <i><i>c</i></i> <del>d</del>", "**a** *b* *c* ~~d~~"),
    ("<b>a <i>b</i></b>, x<b> c </b>d", "**a *b***, x **c** d"),
    ("<b>a<p>b</p>c</b>", "**a**\n\n**b**\n\n**c**"),
    # CommonMark does not read marks between a sign and a letter, nor those of two emphases side by side.
    ("<b>Note:</b>this x<b>:y</b> <b>a</b><b>b</b> <b> </b>", "Note:this x:y **a**b"),
    ("<a href=/p>a <b>b</b></a> <a href=#n>c</a> <a href='mailto:a@b'>d</a>", "[a **b**](https://a.example/p) c d"),
    ("<a href='/p(1)'>a [b]</a>", "[a \\[b\\]](https://a.example/p%281%29)"),
    ("<p>x<img src=i.png alt='*'> <img alt=k>", "x![\\*](https://a.example/x/i.png) k"),
    ("<p><img data-src=/j.png src=data:x>", "![](https://a.example/j.png)"),
    ("2 * 3, a_b, _c_, [d], &lt;e>, 1 < 2", "2 \\* 3, a_b, \\_c\\_, \\[d\\], \\<e>, 1 < 2"),
    ("&amp;amp; R&amp;D ~~f~~ `g` \\", "\\&amp; R&D \\~\\~f\\~\\~ \\`g\\` \\\\"),
    ("<p># a<p>- b<p>1. c<p>> d", "\\# a\n\n\\- b\n\n1\\. c\n\n\\> d"),
    ("<p>---<p>| e<p>1 f<p>2019-01", "\\---\n\n\\| e\n\n1 f\n\n2019-01"),
    ("<code>a `b`</code> <kbd>*</kbd> <code></code>", "`` a `b` `` `*`"),
    ("<pre>\n  a\n\n<b>b</b><br>c\n</pre>", "```\n  a\n\nb\nc\n```"),
    ("<pre><code class='hljs language-c++'>```</code></pre>", "````c++\n```\n````"),
    ("<ul><li>a<li><p>b</p><p>c</p><ol start=3><li>d<li>e</ol></ul>f", "- a\n- b\n\n  c\n  3. d\n  4. e\n\nf"),
    ("<blockquote>a<p>b<ul><li>c</ul></blockquote>", "> a\n>\n> b\n>\n> - c"),
    ("<ol><li>a<blockquote>b<p>c</blockquote></ol>", "1. a\n\n   > b\n   >\n   > c"),
    ("<ul><li><pre>a\n\nb</pre></ul>", "- ```\n  a\n\n  b\n  ```"),
    ("<dl><dt>a<dd>b</dl><hr>", "**a**\n\n- b\n\n***"),
    (TABLE, "| A | B\\|C |\n| --- | --- |\n| 1 | 2 **x** |\n| w |  |"),
    ("<table><tr><td><p>a<td><h2>b</h2></table>", "a\n\n## b"),
    ("<table><tr><td>a<tr><td>- b</table>", "a\n\n\\- b"),
    ("<table><tr><td>a<table><tr><td>1<td>2</table></table>", "a\n\n| 1 | 2 |\n| --- | --- |"),
    ("a<script>b</script><style>c</style><template>d</template><!--e--><svg><text>f</text></svg>", "a"),
    ("<p hidden>a<p>b<p style='display: none'>c", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("html", "expected"), CASES)
def test_each_tag_has_its_markdown(html: str, expected: str) -> None:
    # Some prose, so that what is tested is no small part of its page.
    prose = (
        "Prose that goes on for a while, as it does, with commas, and so on, and on, until it ends at last here. " * 3
    )
    assert markdown(f"<p>{prose}</p>{html}") == f"{prose.strip()}\n\n{expected}"


MENU = "<ul>" + "".join(f"<li><a href=/{number}>Entry {number}</a></li>" for number in range(20)) + "</ul>"
PARAGRAPH = "<p>A paragraph of prose, which has some commas, and goes on, and on, until there is enough of it.</p>"


@pytest.mark.parametrize(
    "furniture",
    [
        f"<nav>{MENU}</nav>",
        f"<header>{MENU}</header>",
        f"<footer>Words of a footer</footer>{MENU}",
        f"<div class='sidebar'>{MENU}</div>",
        f"<div id=related-posts>{PARAGRAPH}</div>",
        f"<aside>{PARAGRAPH}</aside>",
        f"<div role=dialog>{PARAGRAPH}</div>",
        "<form>Your address <input name=a><button>Send it</button></form>",
        "<noscript>Turn on scripts, please</noscript>",
        "<div aria-hidden=true>An icon's name</div>",
        MENU,
    ],
)
def test_what_is_around_the_main_text_is_cut(furniture: str) -> None:
    body = f"<body>{furniture}<div class=story><h1>Head</h1>{PARAGRAPH * 6}</div>{furniture}</body>"
    text = read_page(body.encode(), None, URL).text or ""

    assert text.count("A paragraph of prose") == 6
    assert set(re.findall(r"\w+", text)) == set(re.findall(r"\w+", re.sub("<[^>]*>", " ", PARAGRAPH))) | {"Head"}


def test_a_box_within_the_text_is_cut_by_its_name() -> None:
    """Though so much of the page is named alike that it is not taken for furniture."""
    box = f"<div class=promo>{PARAGRAPH.replace('prose', 'praise')}</div>"
    others = f"<div class=promo>{'x ' * 150}</div>" * 3
    page = f"<meta property=og:type content=article><body><div class=story>{box}{PARAGRAPH * 6}</div>{others}"
    text = read_page(page.encode(), None, URL).text or ""

    assert ("praise" in text, "x x" in text, text.count("prose")) == (False, False, 6)


def test_a_list_of_links_is_the_text_of_a_page_that_has_nothing_else() -> None:
    assert "Entry 19" in (read_page(f"<body><h1>Index</h1>{MENU}</body>".encode(), None, URL).text or "")


def test_a_page_whose_parts_are_all_named_alike_keeps_them() -> None:
    body = "".join(f"<div class=widget>{PARAGRAPH}</div>" for _ in range(9))
    assert (read_page(body.encode(), None, URL).text or "").count("A paragraph") == 9


def test_depth_and_columns_are_bounded() -> None:
    deep = markdown("<ul><li>a" * 200) or ""
    wide = markdown(f"<table><tr>{'<td>a' * 300}{'<tr><td>b' * 300}</table>") or ""

    assert max(len(line) - len(line.lstrip()) for line in deep.splitlines()) <= 2 * MAX_BOXES
    assert wide.splitlines()[0].count("|") == MAX_COLUMNS + 1
    assert wide.splitlines()[0].count("a") == 300


TAGS = "p b i a ul li ol pre code table tr td blockquote h2 br img div nav article font"


@given(st.lists(st.sampled_from([*TAGS.split(), *(f"/{tag}" for tag in TAGS.split()), ""]), max_size=40))
def test_no_word_is_lost_whatever_is_nested_in_what(tags: list[str]) -> None:
    """But for what is cut, each word of the main content is there once, in its order."""
    html = "".join(f"<{tag}>w{number} " if tag else f"w{number} " for number, tag in enumerate(tags))
    body = LexborHTMLParser(html).body
    assert body is not None
    events = [event for event in main_content(body, is_article=False) if isinstance(event, str)]

    assert re.findall(r"w\d+", read_page(html.encode(), None, URL).text or "") == re.findall(r"w\d+", "".join(events))
