from urllib.parse import urljoin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.pages.links import LONGEST_URL, Links, found_links
from sanderling.pages.reader_python import read

PAGE = "https://e.example/a/b?c=d#e"


def found(html: str, url: str = PAGE) -> list[str]:
    links = Links(url)
    return list(found_links(read(html, links.starting_at).links, (), links))


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/x", "https://e.example/x"),
        ("x", "https://e.example/a/x"),
        ("x/y?z=1&amp;w", "https://e.example/a/x/y?z=1&w"),
        ("x//y", "https://e.example/a/x//y"),
        ("../x", "https://e.example/x"),
        ("/x/../y", "https://e.example/y"),
        ("./x/./y", "https://e.example/a/x/y"),
        ("?x", "https://e.example/a/b?x"),
        ("#x", "https://e.example/a/b?c=d#x"),
        ("//f.example/x", "https://f.example/x"),
        ("http://f.example", "http://f.example"),
        ("HTTP://f.example/x", "HTTP://f.example/x"),
        (" \n/x\t/y\n ", "https://e.example/x/y"),
        ("a:b", None),
        ("mailto:a@e.example", None),
        ("tel:1", None),
        ("data:text/html,x", None),
        ("JavaScript:void(0)", None),
        ("java\nscript:void(0)", None),
        ("http://[x", "http://[x"),
        ("//[x", None),
        ("", None),
        ("/" * (LONGEST_URL + 1), None),
    ],
)
def test_what_an_href_means(href: str, url: str | None) -> None:
    urls = found(f'<a href="{href}">')

    assert [each.lower() for each in urls] == ([url.lower()] if url else [])


# Without `//`: the library makes one of two, which browsers and the standard do not.
HREFS = st.text(st.sampled_from("ab/.?#=&%@-_~"), min_size=1, max_size=12).filter(lambda href: "//" not in href)


@given(HREFS, st.sampled_from([PAGE, "http://e.example", "http://e.example/x/", "http://e.example:80/x?y/z"]))
@example("..", PAGE)
@example("a/..", PAGE)
def test_the_quick_way_says_what_the_standard_library_says(href: str, base: str) -> None:
    url = Links(base).absolute(href)

    # The library drops a `?` or `#` that nothing follows.
    assert (url or "").replace("?#", "#").rstrip("?#") == urljoin(base, href).replace("?#", "#").rstrip("?#")


@given(st.text(), st.text())
def test_links_are_absolute_whatever_the_page_says(base: str, href: str) -> None:
    url = Links(base if base.startswith("http") else PAGE).absolute(href)

    assert url is None or url.lower().startswith(("http://", "https://"))


def test_a_page_may_say_where_its_links_start() -> None:
    assert found("<base href=/x/><base href=/y/><a href=z>") == ["https://e.example/x/z"]
    assert found("<base target=_blank><base href=/x/><a href=z>") == ["https://e.example/x/z"]
    assert found("<base href='javascript:x'><a href=z>") == ["https://e.example/a/z"]
    assert found("<base href='http://[x'><a href=z>") == ["https://e.example/a/z"]


def test_links_come_once_and_in_order_from_all_that_leads_somewhere() -> None:
    html = "<link rel=next href=/1><a href=/2><map><area href=/3></map><iframe src=/4></iframe><a href=/2><a href=/5>"

    assert found(html) == [f"https://e.example/{number}" for number in range(1, 6)]


@pytest.mark.parametrize(
    "html",
    [
        "<a rel='noopener NoFollow' href=/x>",
        "<link rel=stylesheet href=/x>",
        "<link rel=alternate href=/x>",
        "<template><a href=/x></template>",
        "<!-- <a href=/x> -->",
        "<script>'<a href=/x>'</script>",
        "<a name=/x>",
    ],
)
def test_what_is_no_link_to_follow(html: str) -> None:
    assert found(f"{html}<a href=/y>") == ["https://e.example/y"]


def test_links_in_furniture_and_hidden_parts_count() -> None:
    assert len(found("<nav><a href=/1></nav><p hidden><a href=/2></p><noscript><a href=/3></noscript>")) == 3


def test_where_a_page_leads_in_other_ways_comes_behind_its_links() -> None:
    assert found_links([("a", "/x", "")], ["https://e.example/y", "https://e.example/x"], Links(PAGE)) == (
        "https://e.example/x",
        "https://e.example/y",
    )


@pytest.mark.parametrize(
    ("href", "url"),
    [
        (r"\one", "https://e.example/one"),
        (r"\\f.example\two", "https://f.example/two"),
        (r"http:\\f.example\three?a\b#c\d", r"http://f.example/three?a\b#c\d"),
        ("///f.example/four", "https://f.example/four"),
        ("https:////f.example/five", "https://f.example/five"),
        (r"six\..\seven", "https://e.example/a/seven"),
        ("/x///y?u=///z", "https://e.example/x///y?u=///z"),
    ],
)
def test_a_backslash_is_a_slash_and_two_are_enough_before_a_host(href: str, url: str) -> None:
    assert Links(PAGE).absolute(href) == url


@pytest.mark.parametrize(
    ("charset", "href", "url"),
    [
        ("windows-1251", "/find?q=слово#слово", "https://e.example/find?q=%F1%EB%EE%E2%EE#слово"),
        ("windows-1251", "/слово?q=ß", "https://e.example/слово?q=%26%23223%3B"),
        ("shift_jis", "?q=表", "https://e.example/a/b?q=%95%5C"),
        ("utf-16le", "?q=é", "https://e.example/a/b?q=%C3%A9"),
        ("utf-8", "?q=é", "https://e.example/a/b?q=é"),
    ],
)
def test_a_query_is_sent_in_the_encoding_of_its_page(charset: str, href: str, url: str) -> None:
    links = Links(PAGE)
    links.charset = charset

    assert links.absolute(href) == url
