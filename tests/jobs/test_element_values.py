"""`::text` and `::attr(…)` find what they find in Scrapy; what an element says is words, and no scripts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elements import page

from sanderling.jobs.elements import Elements

# The XPath that parsel makes of each selector.
SAME = {
    "div ::text": "//div/descendant-or-self::*/text()",
    "div::text": "//div/text()",
    "div > *::text": "//div/*/text()",
    "div > ::text": "//div/*/text()",
    "b + ::text": "//b/following-sibling::*[1]/text()",
    "::text": "//text()",
    "*::text": "//text()",
    "b::text, i *::text": "//b/text() | //i/descendant-or-self::*/text()",
    "div::attr(id)": "//div/@id",
    "div ::attr(id)": "//div/descendant-or-self::*/@id",
    "[title='a,b']::text, i::attr(title)": "//*[@title='a,b']/text() | //i/@title",
    "::attr( title )": "//@title",
}


def markup(depth: int) -> st.SearchStrategy[str]:
    """Some HTML that every parser reads alike."""
    texts = st.sampled_from(["x", "y z", " ", "\n", "&amp;ü", "<!--c-->", "<br>"])
    if not depth:
        return texts
    attributes = st.sampled_from(["", ' id="1"', ' title="a,b"', ' id="2" title=""'])
    element = st.builds("<{0}{1}>{2}</{0}>".format, st.sampled_from(["div", "b", "i"]), attributes, markup(depth - 1))
    return st.lists(texts | element, max_size=4).map("".join)


@settings(max_examples=150, deadline=None)
@given(markup(4))
def test_css_finds_the_texts_and_attributes_that_scrapy_finds_in_the_order_of_the_page(inside: str) -> None:
    read = page(f"<html><body><div>{inside}</div></body></html>")

    assert {each: read.css(each).getall() for each in SAME} == {
        each: read.xpath(path).getall() for each, path in SAME.items()
    }


@pytest.mark.parametrize("selector", ["a::text,", "a::text, b[", "::text::text"])
def test_what_is_no_selector_is_said(selector: str) -> None:
    with pytest.raises(ValueError, match="is no CSS selector"):
        page().css(selector)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("one<br>two", "one two"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><th>3</th></tr></table>", "1 2 3"),
        ("<ul><li>1<li>2</ul>", "1 2"),
        ("<div>a</div><div>b</div>c<p>d</p>e", "a b c d e"),
        ("<select><option>1<option>2</select>", "1 2"),
        ("x<script>var y = 1;</script><style>.q {}</style>z<!-- no -->", "xz"),
        ("A <b>bo<i>l</i>d</b>, w&nbsp;\n o<my-part>rd</my-part>", "A bold, w ord"),
        ("<h1>Head</h1>line", "Head line"),
    ],
)
def test_an_element_says_its_words_apart_and_no_scripts(html: str, text: str) -> None:
    read = page(f"<div id=a>{html}</div>")

    assert read.css("#a").text == text
    assert read.xpath("//div[@id='a']").text == text


def test_a_script_that_is_asked_for_says_what_is_in_it() -> None:
    read = page('<script type="application/json">{"a": 1}</script>')

    assert read.css("script").text == '{"a": 1}'
    assert read.xpath("//script").text == '{"a": 1}'


def test_some_of_what_was_found_is_such_a_list_again() -> None:
    found = page().css("li a")[:1]

    assert isinstance(found, Elements)
    assert found.texts == ["One"]


def test_an_element_has_attr_and_re_as_a_list_has() -> None:
    for elements in (page().css("li a"), page().xpath("//li/a")):
        first = elements[0]
        assert not isinstance(first, str)
        assert (first.attr("href"), first.attr("id"), first.attr("id", "none")) == ("/1", None, "none")
        assert first.re('href="(.*?)"') == ["/1"]
        assert elements.re('href="(.)(.*?)"') == ["/", "1", "2", "#x"]
    assert page().css("a::text").re(r"[A-Z]\w+") == ["One", "Two"]
    assert page().css("a::text").re_first(r"T\w+") == "Two"
    assert page().css("a::text").re_first("none", "-") == "-"


def test_an_element_that_two_selectors_find_is_there_once() -> None:
    assert page().css("li, .a, ul > li").attrs("class") == ["a b", "a"]
