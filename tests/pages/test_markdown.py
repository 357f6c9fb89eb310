import html as escaping
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from sanderling.pages.markdown import WIDEST, render
from sanderling.pages.markup import parse
from sanderling.pages.prose import DEEPEST

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown(html: str) -> str:
    return render(parse(html).events, lambda href: f"https://e.example{href}" if href.startswith("/") else None)


def shown(text: str) -> str:
    """What a reader of Markdown shows for `text`: words only."""
    root = LexborHTMLParser(READER.render(text)).body
    return " ".join(root.text(separator=" ").split()) if root else ""


WRITTEN = {
    "<h1>A</h1><h3> B\n c</h3>": "# A\n\n### B c",
    "<p>a<p>b": "a\n\nb",
    "a<div>b</div>c": "a\n\nb\n\nc",
    "<p> a \n\t b&nbsp;c </p>": "a b c",
    "a<br>b": "a  \nb",
    "a<br><br>b<br>": "a\n\nb",
    "a<hr>b": "a\n\n***\n\nb",
    "<ul><li>a<li>b</ul>": "- a\n- b",
    "<ul><li><p>a</p><p>b</p></li><li>c</ul>d": "- a\n\n  b\n- c\n\nd",
    "<ul><li>a<ul><li>b<ul><li>c</ul></ul><li>d</ul>": "- a\n  - b\n    - c\n- d",
    "<ol><li>a<li>b</ol>": "1. a\n2. b",
    "<ol start=9><li>a<li>b</ol>": "9. a\n10. b",
    "<ol start=x><li>a</ol>": "1. a",
    "<ul><li>a<ol><li>b</ol></ul>": "- a\n  1. b",
    "<ul><li>a<ol start=5><li>b</ol></ul>": "- a\n\n  5. b",
    "<ul><li><li>a</ul>": "- a",
    "<li>a": "- a",
    "<blockquote>a<p>b</blockquote>c": "> a\n>\n> b\n\nc",
    "<blockquote>a<blockquote>b</blockquote></blockquote>": "> a\n>\n> > b",
    "<blockquote>a</blockquote><blockquote>b</blockquote>": "> a\n\n> b",
    "<blockquote><ul><li>a<li>b</ul></blockquote>": "> - a\n> - b",
    "<ul><li><blockquote>a<br>b</blockquote></ul>": "- > a  \n  > b",
    "<dl><dt>a<dd>b<dd>c</dl>": "**a**\n\n- b\n\n- c",
    "a <strong>b</strong> <em>c</em> <del>d</del>": "a **b** *c* ~~d~~",
    "a<b> b </b>c": "a **b** c",
    "<b>a<br></b>b": "**a**  \nb",
    "<b></b>a<b> </b>b": "a b",
    "<b>a <i>b</i></b> <i>c</i>": "**a b** *c*",
    "<b>a</b><a href=/x><b>b</b></a>": "**a**[**b**](https://e.example/x)",
    "<code>a</code><code>b</code>": "`ab`",
    "!<a href=/x>a</a>": "\\![a](https://e.example/x)",
    "<del> ~a </del>": "~~\\~a~~",
    "<b>a<strong>b</strong></b>": "**ab**",
    "<b>a</b><b>b</b>": "**ab**",
    "<b>a</b><i>b</i>": "**a**b",
    "<b>Note:</b> a": "**Note:** a",
    "<b>Note:</b>a": "Note:a",
    "a<b>(b)</b>": "a(b)",
    "<b>a<p>b</b>c": "**a**\n\n**bc**",
    '<a href="/x">a <b>b</b></a>': "[a **b**](https://e.example/x)",
    '<a href="/x(1) &lt;">a ] b</a>': "[a \\] b](https://e.example/x\\(1\\)%20%3C)",
    '<a href="mailto:a@e.example">a</a> <a>b</a> <a href="#c">c</a> <a href="#d">¶</a>': "a b c",
    '<a href="/x"></a>a': "a",
    '<a href="/x"><h2>a</h2>b</a>': "## [a](https://e.example/x)\n\n[b](https://e.example/x)",
    '<img src="/i" alt="a *b*">': "![a \\*b\\*](https://e.example/i)",
    '<img src="data:x" alt="a"><img src="/i">': "a![](https://e.example/i)",
    '<img src="data:x" data-src="/late">': "![](https://e.example/late)",
    '<img src="data:x" data-lazy-src="/late">': "![](https://e.example/late)",
    '<img src="/grey" data-src="" data-original="/late">': "![](https://e.example/late)",
    "<code>a  b</code>": "`a b`",
    "<code>a`b``c</code>": "```a`b``c```",
    "<code>`</code>": "`` ` ``",
    "<code><b>*a*</b> <kbd>b</kbd></code>": "`*a* b`",
    "<code> </code>a": "a",
    "<pre>\n a\n\n\n  *b*\n</pre>": "```\n a\n\n\n  *b*\n```",
    '<pre><code class="hljs language-c++">a</code></pre>': "```c++\na\n```",
    '<pre class="brush: python; gutter: false">a</pre>': "```python\na\n```",
    "<pre lang=rust><code>a</code></pre>": "```rust\na\n```",
    "<pre lang=en>a</pre>": "```\na\n```",
    '<pre class="lang-py">a<br>b</pre>': "```py\na\nb\n```",
    "<pre>```\na</pre>": "````\n```\na\n````",
    "<ul><li>a<pre>b\n\nc</pre></ul>": "- a\n\n  ```\n  b\n\n  c\n  ```",
    "<table><tr><th>a<th>b<tr><td>c<td>d|e</table>": "| a | b |\n| --- | --- |\n| c | d\\|e |",
    "<table><tr><td>a<tr><td>b<td>c<td>d</table>": "| a |  |  |\n| --- | --- | --- |\n| b | c | d |",
    "<table><tr><td colspan=2>a<td>b<tr><td>c<td>d<td>e</table>": "| a |  | b |\n| --- | --- | --- |\n| c | d | e |",
    "<table><caption>a</caption><tr><td>b<td><p>c<p>d<ul><li>e</ul></table>": "a\n\n| b | c d e |\n| --- | --- |",
    "<table><tr><td>a<tr><td>- b</table>": "a\n\n\\- b",
    "<table><tr><td><h2>a</h2><td>b</table>": "## a\n\nb",
    "H<sub>2</sub>O <u>a</u> <mark>b</mark>": "H2O a b",
}


@pytest.mark.parametrize(("html", "text"), WRITTEN.items())
def test_what_becomes_what(html: str, text: str) -> None:
    assert markdown(html) == text


LITERAL = {
    "*a* 2 * 3 a*b": "\\*a\\* 2 * 3 a\\*b",
    "_a_ snake_case __init__": "\\_a\\_ snake_case \\_\\_init\\_\\_",
    "`a` [b](c) ![d]": "\\`a\\` \\[b](c) !\\[d]",
    "a &lt;b&gt; a &lt; b &amp;amp; a &amp; b": "a \\<b> a < b \\&amp; a & b",
    "~~a~~ ~b": "\\~\\~a\\~\\~ ~b",
    "a\\b \\* c\\": "a\\b \\\\\\* c\\\\",
    "# a": "\\# a",
    "#a": "#a",
    "- a": "\\- a",
    "-a": "-a",
    "+ a": "\\+ a",
    " * a * b": "\\* a * b",
    "1. a": "1\\. a",
    "1.5 a": "1.5 a",
    "2024) a": "2024\\) a",
    "&gt; a": "\\> a",
    "---": "\\---",
    "a<br>===": "a  \n\\===",
    "a | b<br>--- | ---": "a | b  \n\\--- | ---",
    "<h2>C #</h2>": "## C \\#",
}


@pytest.mark.parametrize(("html", "text"), LITERAL.items())
def test_what_was_literal_stays_literal(html: str, text: str) -> None:
    assert markdown(html) == text


SIGNS = st.text(st.sampled_from("ab1 \\`*_[]()<>&;#~|=+-.!:/\"'"), min_size=1)
WORDS = st.text(string.printable, min_size=1) | st.text(min_size=1)


@given(st.lists(SIGNS | WORDS, min_size=1, max_size=4))
@example(["*a*", "[a]: /b", "    a", "1.", "a\n---"])
@example(["<!-- a", "&copy;", "![a](b)", "```", "~~~"])
def test_a_reader_shows_the_words_of_plain_paragraphs_and_no_others(paragraphs: list[str]) -> None:
    html = "".join(f"<p>{escaping.escape(text)}</p>" for text in paragraphs)

    page = LexborHTMLParser(html).body
    assert page is not None
    assert shown(markdown(html.replace("\0", ""))) == " ".join(page.text(separator=" ").replace("\0", "").split())


INLINE = st.recursive(
    SIGNS.map(escaping.escape),
    lambda inner: st.tuples(
        st.sampled_from(["b", "i", "del", "span", "a href=/x", "code"]), st.lists(inner, max_size=3)
    ).map(lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0].split()[0]}>"),
    max_leaves=6,
)
BLOCK = st.recursive(
    INLINE,
    lambda inner: st.tuples(
        st.sampled_from(["p", "div", "ul><li", "ol><li", "blockquote", "h2"]), st.lists(inner, max_size=3)
    ).map(lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0].split('><')[0]}>"),
    max_leaves=8,
)


@given(BLOCK)
@example("<b>a</b><b><i>b</i></b>c")
@example("<b>!</b><b><a href=/x>a</a></b>")
@example("<i>a:</i>b<code>`</code><code>c</code>")
def test_a_reader_shows_every_sign_of_any_markup_and_no_other(html: str) -> None:
    page = LexborHTMLParser(html).body
    assert page is not None

    assert "".join(shown(markdown(html)).split()) == "".join(page.text().split())


@given(BLOCK)
def test_there_are_never_more_than_two_line_breaks_in_a_row(html: str) -> None:
    text = markdown(html)

    assert "\n\n\n" not in text
    assert text == text.strip("\n")


def test_an_emphasis_that_is_long_already_is_not_made_longer() -> None:
    """Or a thousand in a row would be copied a thousand times."""
    assert markdown(f"<b>{'x' * 2000}</b><b>y</b>") == f"**{'x' * 2000}**y"


def test_lists_and_quotes_go_no_deeper_than_anyone_reads() -> None:
    text = markdown("<blockquote>" * 100 + "a" + "</blockquote>" * 100 + "b")

    assert text == "> " * DEEPEST + "a\n\nb"


def test_a_wide_row_does_not_multiply_the_table() -> None:
    text = markdown("<table><tr>" + "<td>x" * 40_000 + "<tr><td>y" * 20_000 + "</table>")

    lines = text.split("\n")
    assert len(lines) == 20_002
    assert lines[0].count("x") == 40_000
    assert all(line.count("|") == WIDEST + 1 for line in lines)


# Each of these would take minutes if any part of it took time by the square.
HOSTILE = {
    "emphasis after emphasis": "<p>" + f"<b>{'x' * 40}</b>" * 50_000,
    "kinds of emphasis": "<b>x</b><i>y</i>" * 40_000,
    "emphasis around blocks": "<b><i><del><a href=/x>" * 30 + "<p>x</p>" * 30_000,
    "signs": "<p>" + "*_`[~\\" * 100_000,
    "backticks": "<code>" + "` `` " * 100_000,
    "breaks": "x<br>" * 80_000,
    "items inside items": "<ul><li>x" * 50_000,
    "code": "<pre>" + "\n" * 500_000 + "x",
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pages_take_no_longer_than_others(html: str) -> None:
    text = markdown(html)

    assert 0 < len(text) < 60 * len(html)
