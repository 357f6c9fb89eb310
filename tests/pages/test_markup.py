import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from sanderling.pages.markup import DEEPEST, MOST_TAGS, attributes, parse


def shape(html: str) -> str:
    """The events of `html` as tags without attributes."""
    return "".join(event if isinstance(event, str) else f"<{event[0]}>" for event in parse(html).events)


@pytest.mark.parametrize(
    ("html", "nested"),
    [
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<p>a<div>b</div>", "<p>a</p><div>b</div>"),
        ("<p>a<b>b<div>c", "<p>a<b>b</b></p><div>c</div>"),
        ("<p>a<span>b</span>c", "<p>a<span>b</span>c</p>"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
        ("<table><tr><td>a<td>b<tr><th>c</table>d", "<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>d"),
        ("<table><thead><tr><td>a<tbody>b", "<table><thead><tr><td>a</td></tr></thead><tbody>b</tbody></table>"),
        ("<a href=x>a<a href=y>b", "<a>a</a><a>b</a>"),
        ("<b>a<div>b</b>c</div>d", "<b>a<div>bc</div>d</b>"),
        ("<div><table><tr><td>a</div>b</table>c", "<div><table><tr><td>ab</td></tr></table>c</div>"),
        ("a</p></b></nothing>b", "ab"),
        ("<i>a", "<i>a</i>"),
        ("a<br>b</br><IMG>c<BR/>d", "a<br>b<img>c<br>d"),
        ("<title>a<p>b", "<title>a</title><p>b</p>"),
    ],
)  # fmt: skip
def test_what_was_left_open_is_closed(html: str, nested: str) -> None:
    assert shape(html) == nested


def test_a_table_inside_a_table_closes_nothing_of_it() -> None:
    inner = "<table><tr><td>b</td></tr></table>"

    assert shape(f"<table><tr><td>a{inner}c</table>d") == f"<layout><tr><td>a{inner}c</td></tr></table>d"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<!-- <p> -- -->b", "ab"),
        ("a<!-->b", "ab"),
        ("a<!--->b", "ab"),
        ("a<!-- x --!>b", "ab"),
        ("a<!-- never closed", "a"),
        ("a<!doctype html>b<?php echo 1 ?>c</>d</ >e", "abcde"),
        ("a<script>if (a<b) '</style>' // <p></script >b", "ab"),
        ("a<SCRIPT>x</scripts>y</Script\n>b", "ab"),
        ("a<style>p > a { }</style>b<textarea><p></textarea>c", "abc"),
        ("a<script>never closed", "a"),
        ("1 < 2 <3 a<>b", "1 < 2 <3 a<>b"),
        ("&lt;p&gt; &amp;amp; &copy &#65;&#x42;", "<p> &amp; © AB"),
        ("&#0;&#xD800;&#x110000;", "\ufffd\ufffd\ufffd"),
        ("&#" + "9" * 5000 + ";&#" + "0" * 5000 + "65;", "\ufffd\ufffd"),
    ],
)
def test_what_is_no_markup_is_read_as_browsers_do(html: str, text: str) -> None:
    assert shape(html) == text


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (' a=1 b="2" c=\'3\' d', {"a": "1", "b": "2", "c": "3", "d": ""}),
        (' A = "x" a=y', {"a": "x"}),
        ('a="1"b="2"/c/', {"a": "1", "b": "2", "c": ""}),
        (" href=/a/b?c=d/ x", {"href": "/a/b?c=d/", "x": ""}),
        (' a="<>&quot;&#39;"', {"a": "<>\"'"}),
        (' a="?b=1&copy=2&lt=3&amp;d&lt"', {"a": "?b=1&copy=2&lt=3&d<"}),
        (" =a b", {"=a": "", "b": ""}),
        (' a="never closed', {"a": "never closed"}),
        ("", {}),
    ],
)  # fmt: skip
def test_attributes(raw: str, found: dict[str, str]) -> None:
    assert attributes(raw) == found


def test_a_sign_inside_quotes_does_not_end_the_tag() -> None:
    markup = parse("<a title='a > b' href=\"/x>y\">c</a>")

    assert markup.attributes(0) == {"title": "a > b", "href": "/x>y"}
    assert markup.events[1] == "c"


def test_ends_and_opens_say_where_things_are() -> None:
    markup = parse("<nav>a<br></nav><nav>b</nav>")

    assert [markup.events[at : markup.ends[at] + 1] for at in markup.opens["nav"]] == [
        [("nav", ""), "a", ("br", ""), ("/nav", "")],
        [("nav", ""), "b", ("/nav", "")],
    ]


def test_what_is_too_deep_becomes_a_sibling_and_its_text_stays() -> None:
    markup = parse("<div>" * 100_000 + "<a href=/x>found</a>")

    level = deepest = 0
    for event in markup.events:
        if isinstance(event, tuple):
            level += -1 if event[0].startswith("/") else 1
            deepest = max(deepest, level)
    assert (level, deepest) == (0, DEEPEST + 1)
    assert markup.events.count("found") == 1
    assert len(markup.opens["a"]) == 1


def test_too_many_tags_are_not_read() -> None:
    markup = parse("<br>x" * (MOST_TAGS + 1000))

    assert len(markup.opens["br"]) == MOST_TAGS
    assert markup.events[-1] == ("br", "")


# Each of these would take minutes if any part of it took time by the square.
HOSTILE = {
    "quotes never closed": '<a b="' * 100_000,
    "two kinds of quotes": "<a b='\"" * 100_000,
    "attributes": "<a " + " ".join(f"a{n}=1" for n in range(60_000)) + ">",
    "attributes with signs": "<a " + " ".join(f'a{n}=">"' for n in range(60_000)) + ">",
    "scripts": "<script>" * 100_000,
    "scripts that nearly end": "<script></scrip" * 60_000,
    "comments": "<!-- -" * 100_000,
    "signs": "<" * 1_000_000,
    "ends without beginnings": "<b><div>" + "<span>" * 120 + "</b>" * 60_000,
    "paragraphs behind a fence": "<p><object>" + "<span>" * 120 + "<div></div>" * 40_000,
    "nested lists": "<ul><li>" * 60_000,
    "nested tables": "<table><tr><td>" * 60_000,
    "crossed": "<b><i><u></b></i></u>" * 30_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pages_take_no_longer_than_others(html: str) -> None:
    markup = parse(html)

    opened = sum(isinstance(event, tuple) and event[0][0] != "/" for event in markup.events)
    assert len(markup.ends) == opened == sum(map(len, markup.opens.values()))


TAGS = """
<p> </p> <div> </div> <b> </b> <i> <a> </a> <ul> <li> </ul> </li> <h1> </h1> <br> <span> </span> <section> <dl> <dt>
<dd> <blockquote> <!--x--> <!--> <script>a<b</script> <style></style> < & &amp; <a|href='>'> <div|x=">"y> </div|> <?x>
</> <b|="> <i|a=b="> <u|a/="c"/>
"""
TAG = st.sampled_from(TAGS.split()).map(lambda tag: tag.replace("|", " "))
WORD = st.integers(0, 999).map(lambda number: f" w{number} ")
SOUP = st.lists(TAG | WORD, max_size=40).map("".join)


@given(SOUP)
@example('<b ="> w1 <i a="> w2 ')
def test_every_word_a_browser_would_show_is_there_in_order(html: str) -> None:
    """Against lexbor, which builds the tree of the standard."""
    root = LexborHTMLParser(html).root
    assert root is not None
    shown = [
        node.text_content or ""
        for node in root.traverse(include_text=True)
        if node.is_text_node and node.parent and node.parent.tag not in ("script", "style")
    ]

    said = [event for event in parse(html).events if isinstance(event, str)]

    assert "".join(said).split() == "".join(shown).split()
