import gzip
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.pages import sitemaps
from sanderling.pages.sitemaps import MOST_BYTES, MOST_ENTRIES, Sitemap, read
from sanderling.pages.urls import normalise

URL = "https://a.test/sitemaps/main.xml"
DECLARED = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = ' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*locations: str, namespace: str = NAMESPACE) -> str:
    urls = "".join(f"<url><loc>{location}</loc><lastmod>2026-01-01</lastmod></url>\n" for location in locations)
    return f"{DECLARED}<urlset{namespace}>\n{urls}</urlset>\n"


def pages(text: str) -> tuple[str, ...]:
    """What is listed in a sitemap that has no problem."""
    found = read(text.encode(), URL)
    assert not found.problem
    assert not found.sitemaps
    return found.pages


@pytest.mark.parametrize("namespace", [NAMESPACE, "", ' xmlns="https://www.google.com/schemas/sitemap/0.84"'])
def test_the_pages_of_a_urlset_come_in_order_and_once(namespace: str) -> None:
    text = urlset("https://a.test/b", " HTTPS://A.test/a ", "https://a.test/b#c", namespace=namespace)

    assert pages(text) == ("https://a.test/b", "https://a.test/a")


def test_an_index_lists_sitemaps() -> None:
    text = "<sitemapindex><sitemap><loc>https://a.test/1.xml.gz</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"

    assert read(text.encode(), URL) == Sitemap((), ("https://a.test/1.xml.gz", "https://a.test/2.xml"), "")


def test_a_prefix_does_not_matter_even_undeclared_but_the_parent_does() -> None:
    image = "<image:image><image:loc>https://a.test/i.png</image:loc></image:image>"
    text = f"<s:urlset><s:url><s:loc>https://a.test/x</s:loc>{image}</s:url><loc>https://a.test/y</loc></s:urlset>"

    assert pages(text) == ("https://a.test/x",)


def test_text_may_come_in_pieces() -> None:
    text = "<![CDATA[https://a.test/?a=1&b=2]]>", "https://a.test/?a&amp;b&#61;1", "https://<!-- x -->a.test/<b>c</b>"

    assert pages(urlset(*text)) == ("https://a.test/?a=1&b=2", "https://a.test/?a&b=1", "https://a.test/c")


def test_relative_locations_are_seen_from_the_sitemap() -> None:
    assert pages(urlset("/x", "y", "//b.test/")) == ("https://a.test/x", "https://a.test/sitemaps/y", "https://b.test/")


def test_an_rss_feed_lists_its_items() -> None:
    item = '<item><title>x</title><link>https://a.test/1</link><a:link href="/no"/><enclosure url="/no"/></item>'
    text = f'<rss version="2.0"><channel><link>https://a.test/home</link>{item}</channel></rss>'

    assert pages(text) == ("https://a.test/1",)


def test_an_rdf_feed_lists_its_items() -> None:
    assert pages("<rdf:RDF><item><link>https://a.test/1</link></item></rdf:RDF>") == ("https://a.test/1",)


def test_an_atom_feed_lists_the_pages_of_its_entries() -> None:
    links = '<link href="/1"/><link rel="alternate" href="/2"/><link rel="self" href="/no"/><link/><link href=""/>'

    assert pages(f'<feed><link href="/no"/><entry>{links}</entry></feed>') == ("https://a.test/1", "https://a.test/2")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n  \n"])
def test_a_text_lists_a_page_on_each_line(end: str) -> None:
    assert pages(f"\ufeffhttps://a.test/1{end}https://a.test/ü{end}") == ("https://a.test/1", "https://a.test/%C3%BC")


def test_a_text_of_prose_lists_nothing() -> None:
    """Seen from the sitemap, each line would be a relative link."""
    found = read(b"Not found\nhttps://a.test/x\nsorry", URL)

    assert found.pages == ("https://a.test/x",)
    assert found.problem.startswith("entries skipped: 2, the first for this: URL 'Not found' has no scheme")


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: gzip.compress(data[:40]) + gzip.compress(data[40:]) + b"\0\0"]
)
def test_what_is_packed_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    listed = ("https://a.test/x",)

    assert read(pack(urlset(*listed).encode()), URL) == Sitemap(listed, (), "")
    assert read(pack(b"https://a.test/x"), URL) == Sitemap(listed, (), "")


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "windows-1252", "iso-8859-15"]
)
def test_the_usual_encodings_are_read(codec: str) -> None:
    declared = "utf-16" if codec == "utf-16-le" else codec.removesuffix("-sig")
    text = urlset("https://a.test/ü").replace("UTF-8", declared)

    assert read(text.encode(codec), URL) == Sitemap(("https://a.test/%C3%BC",), (), "")


@pytest.mark.parametrize("before", ["\n \t\r\n", "\ufeff\n"])
def test_space_before_the_declaration_is_forgiven(before: str) -> None:
    assert pages(before + urlset("https://a.test/x")) == ("https://a.test/x",)


def test_utf8_without_its_hyphen_is_forgiven() -> None:
    assert pages(urlset("https://a.test/ü").replace("UTF-8", "utf8")) == ("https://a.test/%C3%BC",)


@pytest.mark.parametrize("encoding", ["unicode_escape", "rot13", "utf-7", "idna", "nonsense", "shift_jis", "utf-32"])
def test_other_encodings_are_named_and_not_tried(encoding: str) -> None:
    found = read(urlset("https://a.test/x").replace("UTF-8", encoding).encode(), URL)

    assert found == Sitemap((), (), f"encoding is {encoding!r}, expected utf-8")


def test_the_sitemap_itself_is_not_listed() -> None:
    text = f"<sitemapindex><sitemap><loc>{URL}#x</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"

    assert read(text.encode(), URL).sitemaps == ("https://a.test/2.xml",)
    assert read(urlset(URL, "/x").encode(), URL).pages == ("https://a.test/x",)


def test_bad_entries_are_skipped_and_counted() -> None:
    found = read(urlset("https://a.test/x", "mailto:x", "https://a.test:x/", "", "x" * 30_000).encode(), URL)

    assert found.pages == ("https://a.test/x",)
    assert found.problem == (
        "entries skipped: 3, the first for this: URL 'mailto:x' has another scheme; expected https or http"
    )


def test_what_was_read_before_the_end_is_kept() -> None:
    text = urlset("https://a.test/x", "https://a.test/y")

    found = read(text[: text.index("/y")].encode(), URL)

    assert found == Sitemap(("https://a.test/x",), (), "XML broken: no element found: line 4, column 24")


def test_an_ampersand_as_it_is_loses_nothing() -> None:
    said = (
        "https://a.test/?a=1&b=2",
        "https://a.test/?c&amp;d&nbsp;e&copy=1",
        "<![CDATA[https://a.test/?f&amp;g]] &h]]>",
    )
    packed = gzip.compress(urlset("https://a.test/x", *said, "https://a.test/y").encode())

    assert read(packed, URL).pages == (
        "https://a.test/x",
        "https://a.test/?a=1&b=2",
        "https://a.test/?c&d&nbsp;e&copy=1",
        "https://a.test/?f&amp;g%5D%5D%20&h",
        "https://a.test/y",
    )


@pytest.mark.parametrize("fault", ["<", "</x>", "\0", "\ufffe"])
def test_what_was_read_before_a_fault_is_kept(fault: str) -> None:
    found = read(urlset("https://a.test/x", fault, "https://a.test/y").encode(), URL)

    assert found.pages == ("https://a.test/x",)
    assert found.problem.startswith("XML broken: ")
    assert "line 4, column " in found.problem


def test_what_was_unpacked_before_the_end_or_a_fault_is_kept() -> None:
    packed = gzip.compress(urlset(*(f"https://a.test/{n * n}" for n in range(20_000))).encode())
    half = len(packed) // 2

    early, broken = read(packed[:half], URL), read(packed[:half] + b"\xff" * 100 + packed[half:], URL)

    assert early.problem.startswith("gzip ends early, after ")
    assert broken.problem.startswith("gzip broken after ")
    assert 1000 < len(early.pages) < 20_000
    assert 1000 < len(broken.pages) < 20_000


@pytest.mark.parametrize("body", [b"", b" \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_sitemap_is_a_problem(body: bytes) -> None:
    assert read(body, URL) == Sitemap((), (), "nothing in it")


@pytest.mark.parametrize("page", ["<html><url><loc>https://a.test/x</loc></url></html>", "<Error/>", "<loc>x</loc>"])
def test_another_kind_of_document_is_named(page: str) -> None:
    found = read(page.encode(), URL)

    assert not found.pages
    assert found.problem.startswith(f"root element is {page.partition('>')[0].removesuffix('/')}>, expected one of")


LAUGHS = "".join(f'<!ENTITY {name} "{f"&{of};" * 10}">' for of, name in zip("abcdefghi", "bcdefghij", strict=True))
ENTITIES = f'<!DOCTYPE urlset [<!ENTITY a "haha">{LAUGHS}]><urlset><url><loc>/&j;</loc></url></urlset>'
EXTERNAL = '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/hostname">]><urlset><url><loc>/&x;</loc></url></urlset>'


@pytest.mark.parametrize(
    "text", [ENTITIES, EXTERNAL, "<!DOCTYPE html><html></html>", '<!DOCTYPE rss SYSTEM "x"><rss/>']
)
def test_a_dtd_ends_the_reading(text: str) -> None:
    found = read(text.encode(), URL)

    assert not found.pages
    assert "has a DOCTYPE (" in found.problem


def test_a_full_sitemap_is_read_and_no_more() -> None:
    full = [f"https://a.test/{n}" for n in range(MOST_ENTRIES)]

    assert read(urlset(*full).encode(), URL) == Sitemap(tuple(full), (), "")
    assert read(urlset(*full, "/more").encode(), URL) == Sitemap(
        tuple(full), (), "more than 50,000 entries: the rest was left"
    )
    assert read("\n".join([*full, "https://a.test/more"]).encode(), URL).pages == tuple(full)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_bomb_is_unpacked_no_further_than_the_protocol_says(pack: Callable[[bytes], bytes]) -> None:
    text = urlset("https://a.test/x").replace("</urlset>", " " * MOST_BYTES)

    found = read(pack(text.encode()), URL)

    assert found == Sitemap(("https://a.test/x",), (), "more than 52,428,800 bytes: the rest was left")


MUCH = 1_200_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("<a>" * MUCH, "nested more than 200 deep", id="deep"),
        pytest.param(
            "".join(f"<a{n}/>" for n in range(100_000)), "more than 2,000 different names by line 1", id="names"
        ),
        pytest.param("<a " + "".join(f"a{n}='' " for n in range(50_000)) + "/>", "different names", id="attributes"),
        pytest.param("<a/>" * 30_000, "more than 30,000 elements: the rest was left", id="elements"),
        pytest.param("<!--" + "x" * MUCH, "a tag or comment of more than 1,048,576 bytes at line 1", id="comment"),
        pytest.param("<a b='" + "x" * MUCH, "a tag or comment of more than 1,048,576 bytes at line 1", id="tag"),
        pytest.param("<url><loc>" + "x\n" * MUCH, "no element found", id="location"),
        pytest.param("<url><loc><![CDATA[" + "]" * MUCH, "unclosed CDATA", id="cdata"),
        pytest.param("<url><loc>" + "&#65;" * MUCH, "no element found", id="references"),
    ],
)
def test_hostile_xml_takes_no_time_and_room_beyond_its_length(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "elements" in problem:
        monkeypatch.setattr(sitemaps, "MOST_ELEMENTS", 30_000)
    found = read(f"<urlset><url><loc>/x</loc></url>{text}".encode(), URL)

    assert found.pages == ("https://a.test/x",)
    assert problem in found.problem


def test_hostile_packing_and_text_take_no_time_beyond_their_length() -> None:
    assert read(gzip.compress(b"", mtime=0) * 50_000, URL).problem == "nothing in it"
    assert read(b"x\n" * MUCH, URL).problem.startswith(
        "more than 50,000 entries: the rest was left; entries skipped: 50,000"
    )
    assert read(b"x" * MUCH, URL).problem.startswith("entries skipped: 1")


def holds(body: bytes) -> None:
    found = read(body, URL)

    assert all(normalise(url) == url != URL for url in found.pages + found.sitemaps)
    assert len(found.problem) < 1000


@given(st.binary())
@example(b"\x1f\x8b")
@example(b"\xff\xfe<\0\0\xd8")
def test_any_bytes_are_read(body: bytes) -> None:
    holds(body)


VALID = [
    urlset("https://a.test/x", "/ü", "b?c&amp;d").encode(),
    urlset("https://a.test/ü").replace("UTF-8", "utf-16").encode("utf-16"),
    b"<sitemapindex><sitemap><loc><![CDATA[/1]]></loc></sitemap></sitemapindex>",
    b'<feed><entry><link href="/1"/></entry></feed><!-- end --><?end?>',
    ENTITIES.encode(),
    gzip.compress(urlset(*(f"/{n}" for n in range(50))).encode()),
    b"https://a.test/1\nhttps://a.test/2",
]
PIECES = st.binary(max_size=4) | st.sampled_from(
    [b"<", b">", b"</loc>", b"<loc>", b"&", b"]]>", b"<!--", b'"', b"\xff"]
)


@given(st.sampled_from(VALID), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 20), PIECES), max_size=4))
def test_any_damage_is_survived(body: bytes, changes: list[tuple[int, int, bytes]]) -> None:
    for at, cut, piece in changes:
        body = body[:at] + piece + body[at + cut :]

    holds(body)


@given(st.text(st.characters(codec="ascii", exclude_characters="\"'<&"), max_size=20))
def test_any_encoding_is_read_or_named(encoding: str) -> None:
    holds(urlset("https://a.test/x").replace("UTF-8", encoding).encode())
