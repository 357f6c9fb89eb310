"""What CSS selectors and XPath find in a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling import Page, Reply, Request
from sanderling.extras import MissingExtraError

HTML = """<!doctype html><html><head><title>Tide</title><meta charset=utf-8></head><body>
<main><h1>High <b>tide</b></h1><p>The birds follow the waves along the shore, and run from them again.</p>
<ul><li class="a b"><a href="/1" data-n>One</a><li class=a><a href="2#x"> Two\n2 </a></ul></main></body></html>"""


def page(body: str = HTML, content_type: str = "text/html") -> Page:
    reply = Reply(200, (("Content-Type", content_type),), body.encode(), "https://a.example/dir/", 0.1)
    return Page(reply, Request("https://a.example/dir/"), {})


@pytest.mark.parametrize(
    ("selector", "texts"),
    [
        ("h1", ["High tide"]),
        ("h1 b, title", ["Tide", "tide"]),
        ("li.a > a", ["One", "Two 2"]),
        ("li:nth-child(2)", ["Two 2"]),
        ("a::attr(href)", ["/1", "2#x"]),
        ("a::attr(id)", []),
        ("h1::text", ["High "]),
        ("a[href^='/']::text", ["One"]),
        (".none", []),
    ],
)
def test_css_finds(selector: str, texts: list[str]) -> None:
    assert page().css(selector).texts == texts


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("//h1", ["High tide"]),
        ("//li/a/@href", ["/1", "2#x"]),
        ("//h1/text()", ["High "]),
        ("count(//a)", ["2.0"]),
        ("//a[contains(., 'Two')]", ["Two 2"]),
        ("//none", []),
    ],
)
def test_xpath_finds(expression: str, texts: list[str]) -> None:
    assert page().xpath(expression).texts == texts


def test_what_was_found_is_an_element_with_attributes_html_and_more_inside() -> None:
    found, by_path = page().css("li"), page().xpath("//li")

    for elements in (found, by_path):
        assert elements.attr("class") == "a b"
        assert elements.attrs("class") == ["a b", "a"]
        assert elements.getall()[1].startswith('<li class="a"><a href="2#x">')
        assert 'Element <li class="a b"><a href="/1" data-n' in repr(elements[0])
    assert found.css("a").texts == by_path.xpath("./a").texts == ["One", "Two 2"]
    assert page().css("a").get() == '<a href="/1" data-n="">One</a>'
    assert (page().css("x").get("none"), page().css("x").text, page().css("x").attr("y")) == ("none", None, None)
    assert found.css("a::text").css("b") == []


def test_the_two_kinds_of_selectors_are_not_mixed() -> None:
    with pytest.raises(ValueError, match=r"expected page\.xpath"):
        page().css("li").xpath("//a")
    with pytest.raises(ValueError, match=r"expected page\.css"):
        page().xpath("//li").css("a")


def test_a_page_has_its_text_its_main_text_and_its_links() -> None:
    assert page().text() == HTML
    assert "The birds follow the waves" in page().markdown()
    assert "# High" in page().markdown()
    assert page().links() == ("https://a.example/1", "https://a.example/dir/2#x")
    assert page("über", "text/html; charset=utf-8").text() == "über"
    assert page('{"a": 1}', "application/json").json() == {"a": 1}
    assert repr(page()).startswith("<Page 200 https://a.example/dir/ ")


def test_links_are_followed_as_a_browser_would() -> None:
    hrefs = (" 1 ", "mailto:a@b", "http://[bad", "//c.example/")
    links = "<base href='/x/'><a>none</a>" + "".join(f"<a href='{href}'></a>" for href in hrefs)

    assert [each.url for each in page(links).follow_all("a")] == ["https://a.example/x/1", "https://c.example/"]
    assert page(links).follow("2", data=1).data == 1


def test_without_lxml_xpath_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr("sanderling.extras.importlib.import_module", refuse)

    with pytest.raises(MissingExtraError, match=r"XPath needs lxml.*sanderling\[xpath\]"):
        page().xpath("//a")


def test_a_page_that_is_too_deep_for_xpath_is_refused_and_not_cut() -> None:
    with pytest.raises(ValueError, match="expected at most 255 levels"):
        page("<div>" * 400 + "<a>").xpath("//a")


@given(st.text(max_size=200), st.sampled_from(["a", "*", "p > b", "::text"]))
def test_any_text_is_a_page(body: str, selector: str) -> None:
    assert isinstance(page(body.encode(errors="replace").decode(), "text/html").css(selector).texts, list)
    assert isinstance(page(body.encode(errors="replace").decode(), "text/html").xpath("//*").texts, list)
