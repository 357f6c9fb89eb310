"""The documents: found by their path alone, and sent as whoever asks can take them."""

import gzip
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.worlds.site import World
from sanderling.worlds.site_documents import HUGE, bottomless, sitemap_part
from sanderling.worlds.site_pages import PACKED, VALIDATED, SitePage, Tree, html, negotiate


def tree(size: int = 200, *, bare: bool = False) -> Tree:
    return Tree(seed=1, name="a.example", size=size, origin="http://a.example", bare=bare)


def links(page: SitePage) -> list[str]:
    return re.findall(r'<li><a href="([^"]*)"', page.body.decode())


@given(st.integers(0, 10**7 - 1))
@example(0)
def test_a_page_is_found_by_its_path(number: int) -> None:
    pages = tree(10**7)

    assert pages.number(pages.path(number)) == number


@given(
    st.text("/-abcoast0123456789?#é", max_size=30)
    | st.from_regex(r"/[a-z]{1,9}/[a-z]{1,9}-[0-9]{1,40}", fullmatch=True)
)
@example("/birds/marsh-1?x=1")
@example("/birds/marsh-01")
@example("/birds/marsh-\u0661")
@example("/coast/beach-0")
@example("-1")
def test_what_is_no_page_is_not_taken_for_one(path: str) -> None:
    number = tree().number(path)

    assert number is None or tree().path(number) == path


@given(st.integers(0, 199))
def test_a_page_leads_to_its_children_and_back_to_its_parent(number: int) -> None:
    pages = tree()

    found = links(pages.page(number))

    assert all(pages.path(child) in found for child in range(6 * number + 1, min(6 * number + 7, 200)))
    assert number == 0 or pages.path((number - 1) // 6) in found


def test_pages_differ_by_number_host_and_seed() -> None:
    base = Tree(seed=1, name="a.example", size=9, origin="http://a.example")
    others = [Tree(seed=2, name="a.example", size=9, origin=""), Tree(seed=1, name="b.example", size=9, origin="")]

    words = {re.sub(r"<[^>]*>", "", each.page(3).body.decode())[:300] for each in [base, *others]}

    assert len(words) == 3
    assert base.page(3) == base.page(3) != base.page(4)


def test_a_bare_tree_links_to_its_front_page_alone() -> None:
    assert links(tree(bare=True).page(0)) == []
    assert links(tree(bare=True).page(7)) == ["/"]


def test_there_are_tables_and_code_among_the_pages() -> None:
    bodies = [tree().page(number).body for number in range(35)]

    assert sum(b"<table>" in body for body in bodies) == 7
    assert sum(b"<code>" in body for body in bodies) == 5


PAGE = SitePage(
    200,
    (("ETag", 'W/"abc"'), ("Last-Modified", "Sun, 01 Mar 2026 12:00:00 GMT"), ("Vary", "Accept-Encoding")),
    b"body" * 100,
)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"if-none-match": 'W/"abc"'}, 304),
        ({"if-none-match": '"x", W/"abc"'}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"x"'}, 200),
        ({"if-modified-since": "Sun, 01 Mar 2026 12:00:00 GMT"}, 304),
        ({"if-modified-since": "Sun, 01 Mar 2026 12:00:01 GMT"}, 304),
        ({"if-modified-since": "Sun, 01 Mar 2026 11:59:59 GMT"}, 200),
        ({"if-modified-since": "yesterday"}, 200),
        ({"if-modified-since": "Sun, 01 Mar 2026 12:00:00 -0000"}, 200),
        ({"if-none-match": '"x"', "if-modified-since": "Sun, 01 Mar 2026 12:00:00 GMT"}, 200),
    ],
)
def test_what_is_unchanged_is_not_sent_again(headers: dict[str, str], status: int) -> None:
    answer = negotiate(PAGE, headers)

    assert answer.status == status
    assert answer.body == (PAGE.body if status == 200 else b"")


def test_only_what_was_served_can_be_unchanged() -> None:
    assert negotiate(SitePage(404, PAGE.headers), {"if-none-match": "*"}).status == 404
    assert negotiate(SitePage(200), {"if-none-match": "*"}).status == 200


def test_a_page_is_packed_for_who_can_unpack_it() -> None:
    packed = negotiate(PAGE, {"accept-encoding": "br, gzip"})

    assert packed.header("Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == PAGE.body
    assert negotiate(PAGE, {"accept-encoding": "br"}) == PAGE
    assert negotiate(SitePage(200, (), b"plain"), {"accept-encoding": "gzip"}) == SitePage(200, (), b"plain")


def test_some_pages_are_packed_and_some_cannot_be_compared() -> None:
    pages = [tree().page(number) for number in range(VALIDATED * PACKED)]

    assert sum(page.header("ETag") is None for page in pages) == PACKED
    assert sum(page.header("Vary") is not None for page in pages) == VALIDATED


def test_a_page_is_well_formed_enough_to_be_read() -> None:
    text = html("Tide", "<p>Low.</p>", ["/a/b-1", "http://b.example/"], home="a.example").decode()

    assert "<title>Tide</title>" in text
    assert '<a href="/a/b-1">B 1</a>' in text
    assert '<a href="http://b.example/">B.example</a>' in text


@given(st.integers(0, 10**6))
def test_the_calendar_has_no_last_month(months: int) -> None:
    here = f"/calendar/{2030 + months // 12}-{months % 12 + 1:02}"
    there = f"/calendar/{2030 + (months + 1) // 12}-{(months + 1) % 12 + 1:02}"

    page = bottomless(tree(), here)

    assert page is not None
    assert links(page) == [there]


@pytest.mark.parametrize(("path", "leads_to"), [("/a/", "b/"), ("/a/b/", "a/"), ("/a/b/a/", "b/"), ("/a/b/a/b/", "a/")])
def test_the_path_repeats_itself(path: str, leads_to: str) -> None:
    page = bottomless(tree(), path)

    assert page is not None
    assert links(page) == [leads_to]


def test_the_redirect_leads_on() -> None:
    page = bottomless(tree(), "/on/9")

    assert page is not None
    assert (page.status, page.header("Location")) == (302, "/on/10")


@pytest.mark.parametrize(
    "path", ["/", "/b/", "/a", "/a/a/", "/calendar/2030-13", "/calendar/2030-00", "/on/0", "/on/-1"]
)
def test_beside_the_traps_there_is_nothing(path: str) -> None:
    assert bottomless(tree(), path) is None


@pytest.mark.parametrize(
    "path", ["/sitemap-0.xml", "/sitemap-1.xml", "/sitemap-2.xml.gz", "/sitemap-4.xml", "/sitemap-.xml"]
)
def test_a_sitemap_that_is_not_in_the_index_is_not_there(path: str) -> None:
    assert sitemap_part(tree(250), path) is None


def test_the_parts_of_a_sitemap_list_every_page_once() -> None:
    pages = tree(250)
    first, second, third = (sitemap_part(pages, f"/sitemap-{name}") for name in ("1.xml.gz", "2.xml", "3.xml.gz"))
    assert first
    assert second
    assert third

    text = gzip.decompress(first.body) + second.body + gzip.decompress(third.body)

    assert re.findall(r"<loc>(.*?)</loc>", text.decode()) == [f"http://a.example{pages.path(n)}" for n in range(250)]


def page(word: str, path: str) -> SitePage:
    return World.make(1, ordinary=1).host(f"{word}.example").page(path, {})


def test_the_huge_robots_txt_begins_with_its_rules() -> None:
    body = page("robots-huge", "/robots.txt").body

    assert body.startswith(b"User-agent: *\nDisallow: /private/\n")
    assert 0.99 * HUGE < len(body) <= HUGE


def test_the_binary_robots_txt_is_no_text() -> None:
    with pytest.raises(UnicodeDecodeError):
        page("robots-binary", "/robots.txt").body.decode()


def test_some_documents_are_not_what_they_say() -> None:
    with pytest.raises(UnicodeDecodeError):
        page("documents", "/latin.html").body.decode("utf-8")
    assert "marée" in page("documents", "/utf16.html").body.decode("utf-16")
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(page("documents", "/garbled.html").body)
