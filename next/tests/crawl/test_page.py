"""Each row of the tables of what a page and what selectors find can do."""

from typing import Any

import pytest

from sanderling.crawl.page import Page, Reply
from sanderling.crawl.request import Request
from sanderling.extract.html import MissingExtraError

HTML = """<html><head><title>Shore</title><base href="/birds/"></head><body>
<h1 class="name"> San<b>der</b>ling </h1><p>One<br>two <i>three</i></p><p>four<script>no</script></p>
<ul><li><a href="a?utm_source=x" title="A">first</a></li><li><a rel="nofollow" href="b">second</a></li>
<li><a href="mailto:x@y.example">mail</a></li><li><a href="http://[">bad</a></li></ul>
<img src="/i.png"><div class="price" data-cents="120">1.20 €</div></body></html>"""
CASES: dict[str, tuple[str, object]] = {
    "the text of an element": ("page.css('h1').text", "Sanderling"),
    "nothing found": ("page.css('h9').text", None),
    "words of blocks and lines are apart": ("page.css('p').texts", ["One two three", "four"]),
    "an attribute": ("page.css('.price').attr('data-cents')", "120"),
    "an attribute that is missing": ("page.css('.price').attr('no', '-')", "-"),
    "attributes": ("page.css('a').attrs('title')", ["A"]),
    "HTML": ("page.css('i').get()", "<i>three</i>"),
    "HTML of all": ("page.css('i, b').getall()", ["<b>der</b>", "<i>three</i>"]),
    "::text is of the element alone": ("page.css('h1::text').getall()", [" San", "ling "]),
    "a space before ::text is all within": ("page.css('h1 ::text').getall()", [" San", "der", "ling "]),
    "::attr": ("page.css('a::attr(href)').getall()[0]", "a?utm_source=x"),
    "lists of selectors are in the page's order": ("page.css('p i::text, h1 b').getall()", ["<b>der</b>", "three"]),
    "commas in strings": ("page.css('a[title=\"a,b\"], i::text').getall()", ["three"]),
    "a child's text": ("page.css('p > ::text').getall()", ["three", "no"]),
    "re": ("page.css('.price').re(r'(\\d+)\\.(\\d+)')", ["1", "20"]),
    "re_first": ("page.css('.price::text').re_first(r'\\d+')", "1"),
    "re of the page": ("page.re_first(r'data-(\\w+)')", "cents"),
    "within an element": ("page.css('ul').css('li')[1:].css('a').text", "second"),
    "an element's own": ("page.css('i')[0].css('i, *').texts", ["three"]),
    "a slice is such a list": ("page.css('li')[:1].text", "first"),
    "attributes of an element": ("page.css('img')[0].attributes['src']", "/i.png"),
    "xpath": ("page.xpath('//h1/b').text", "der"),
    "xpath of texts": ("page.xpath('//a/@title').getall()", ["A"]),
    "xpath of numbers": ("page.xpath('count(//li)').get()", "4.0"),
    "xpath within": ("page.xpath('//ul').xpath('./li[1]').text", "first"),
    "the page as text": ("page.text()[:6]", "<html>"),
    "urljoin": ("page.urljoin('c/../d')", "https://h.example/birds/d"),
    "links": ("page.links()", ("https://h.example/birds/a",)),
    "follow": ("page.follow('x', read='item').url", "https://h.example/birds/x"),
    "follow of an element": ("page.follow(page.css('img')[0]).url", "https://h.example/i.png"),
    "follow_all": ("[each.url for each in page.follow_all('a', read='item')]", ["https://h.example/birds/a"]),
    "status": ("page.status", 200),
    "header": ("page.header('x-A')", "1"),
    "headers": ("page.headers[0]", ("X-A", "1")),
    "body": ("page.body[:6]", b"<html>"),
    "depth": ("page.depth", 2),
    "data": ("page.data", {"id": 7}),
    "args": ("page.args['town']", "Kiel"),
    "request": ("page.request.method", "GET"),
}


def make(kind: type[Reply] = Page, body: str | bytes = HTML, **headers: str) -> Any:
    request = Request("https://h.example/x/y", data={"id": 7})
    said = (("X-A", "1"), *((name.replace("_", "-"), value) for name, value in headers.items()))
    raw = body if isinstance(body, bytes) else body.encode()
    return kind("https://h.example/x/y", 200, said, raw, request=request, args={"town": "Kiel"}, depth=2)


@pytest.mark.parametrize("case", CASES)
def test_page(case: str) -> None:
    expression, expected = CASES[case]

    assert eval(expression, {"page": make()}) == expected


def test_markdown_is_the_main_text() -> None:
    page = make(body=f"<nav>menu</nav><main><h1>Title</h1><p>{'A sentence of some length. ' * 20}</p></main>")

    assert "A sentence" in page.markdown()


@pytest.mark.parametrize("head", ['<meta name="robots" content="nofollow">', '<META NAME="Sanderling" content="none">'])
def test_a_page_that_asks_not_to_be_followed_leads_nowhere(head: str) -> None:
    page = make(body=f"{head}<a href=/b>b</a>")

    assert (page.follow_all("a"), page.links()) == ([], ())
    assert page.follow("/b").url == "https://h.example/b"


def test_so_does_a_header() -> None:
    assert make(body="<a href=/b>b</a>", X_Robots_Tag="otherbot: nofollow").follow_all("a")
    assert not make(body="<a href=/b>b</a>", X_Robots_Tag="nofollow").follow_all("a")


@pytest.mark.parametrize(
    "wrong",
    [
        "page.css('a[')",
        "page.xpath('//[')",
        "page.css('a')[0].xpath('b')",
        "page.xpath('//a')[0].css('b')",
        "page.follow(page.css('h1')[0])",
        "page.follow('http://[')",
    ],
)
def test_what_is_no_selector_and_no_link_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"expected|use page|no XPath"):
        eval(wrong, {"page": make()})


@pytest.mark.parametrize("wrong", ["page.follow(None)", "page.follow(page.css('a'))", "page.follow_all(page.css('a'))"])
def test_what_was_not_found_is_not_followed(wrong: str) -> None:
    with pytest.raises(TypeError):
        eval(wrong, {"page": make()})


def test_xpath_without_lxml_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "lxml", None)

    with pytest.raises(MissingExtraError, match="xpath"):
        make().xpath("//a")


def test_a_nested_page_is_read_without_recursion() -> None:
    assert make(body=f"{'<b>' * 3000}deep").css("b").text == "deep"


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b'{"a": [1, 18446744073709551615, 1e3]}', "application/json", {"a": [1, 2**64 - 1, 1000.0]}),
        (b"\xef\xbb\xbf[1]", "", [1]),
        ('"ł"'.encode("iso-8859-2"), "application/json; charset=iso-8859-2", "ł"),
    ],
)
def test_json(body: bytes, kind: str, expected: object) -> None:
    assert make(Reply, body, Content_Type=kind).json() == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1", b"1e999", b'"\\ud800"', b"[" * 5000, b'{"a":1}x'])
def test_what_is_no_json_is_said_with_the_place(body: bytes) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        make(Reply, body).json()


def test_a_reply_follows_from_its_own_url() -> None:
    assert make(Reply).follow("/b?c=1", read="x").url == "https://h.example/b?c=1"
    assert make(Reply, "é".encode("latin-1"), Content_Type="text/plain; charset=latin-1").text() == "é"
    assert make(Reply, b"a", Content_Type="text/plain; charset=nonsense").text() == "a"
