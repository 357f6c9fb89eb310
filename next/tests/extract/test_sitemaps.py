"""Sitemaps in every form that sites use, broken ones, and those that want to cost more than their size."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.extract.sitemaps import MAX_ENTRIES, MAX_SITEMAP, is_sitemap, read_sitemap

URL = "https://a.example/maps/sitemap.xml"
OPEN = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
ONE = f"{OPEN}<url><loc>https://a.example/1</loc></url></urlset>"


def listing(*locations: str) -> str:
    return f"{OPEN}{''.join(f'<url><loc>{location}</loc></url>' for location in locations)}</urlset>"


PAGES = [
    # what, body, paths of its pages
    ("XML", ONE, "/1"),
    ("space before the declaration", "\n \ufeff" + ONE, "/1"),
    ("fragments, tracking, spaces", listing("\n HTTPS://A.example:443/2?utm_a=1&amp;b=2#x "), "/2?b=2"),
    ("relative", listing("/3", "4"), "/3 /maps/4"),
    ("twice, and itself", listing(URL, "/1", "/1"), "/1"),
    ("images", "<urlset><url><image:image><image:loc>/i</image:loc></image:image><loc>/1</loc></url></urlset>", "/1"),
    ("prefixes", "<s:urlset><s:url><s:loc>/1</s:loc></s:url></s:urlset>", "/1"),
    ("CDATA", listing("<![CDATA[/1?a&b]]>"), "/1?a&b"),
    ("bare ampersand", listing("/1?a=1&b=2&amp;c=&#51;"), "/1?a=1&b=2&c=3"),
    ("RSS", "<rss><channel><link>/</link><item><title>x</title><link>/1</link></item></channel></rss>", "/1"),
    ("Atom", '<feed><link href="/"/><entry><link href="/1"/><link rel="edit" href="/2"/></entry></feed>', "/1"),
    ("RDF", "<rdf:RDF><item><link>/1</link></item></rdf:RDF>", "/1"),
    ("text", "https://a.example/1\r\n\nhttps://a.example/2\nhttps://a.example/3", "/1 /2 /3"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "paths"), PAGES, ids=[each[0] for each in PAGES])
def test_each_form_is_read_and_so_is_its_gzip(what: str, body: str, paths: str) -> None:
    for sent in (
        body.encode(),
        gzip.compress(body.encode()),
        gzip.compress(body[:9].encode()) + gzip.compress(body[9:].encode()),
    ):
        found = read_sitemap(sent, URL)
        assert (found.pages, found.cut) == (tuple(f"https://a.example{path}" for path in paths.split()), ())


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_charsets(charset: str) -> None:
    body = ONE.replace("UTF-8", charset).replace("/1", "/é").encode(charset)
    assert read_sitemap(body, URL).pages == ("https://a.example/%C3%A9",)


def test_an_index_lists_sitemaps() -> None:
    found = read_sitemap(b"<sitemapindex><sitemap><loc>/s1.xml.gz</loc></sitemap></sitemapindex>", URL)
    assert (found.pages, found.sitemaps) == ((), ("https://a.example/s1.xml.gz",))


BROKEN = [
    # what, body, pages that are found all the same, a word of what is named
    ("page", b"<!DOCTYPE html><html><body>not found", 0, "DOCTYPE"),
    ("entities", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><urlset><url><loc>/&a;</loc></url></urlset>', 0, "DOCTYPE"),
    ("another root", b"<html><url><loc>/1</loc></url></html>", 0, "<html>"),
    ("cut off", ONE.encode()[:-12], 1, "broken XML"),
    ("cut within the URL", ONE.encode()[:-25], 0, "broken XML"),
    ("gzip cut off", gzip.compress(ONE.encode())[:-30], 0, "ends early"),
    ("no gzip", b"\x1f\x8b" + ONE.encode(), 0, "gzip"),
    ("too many", listing(*map(str, range(MAX_ENTRIES + 5))).encode(), MAX_ENTRIES, "50,000 entries"),
    ("bomb", gzip.compress(ONE.encode()[:-9] + b" " * (MAX_SITEMAP + 1) + b"</urlset>"), 1, f"{MAX_SITEMAP:,} bytes"),
    ("deep", OPEN.encode() + b"<a>" * 100_000, 0, "deep"),
    ("names", OPEN.encode() + b"".join(b"<n%d/>" % number for number in range(40_000)), 0, "names"),
    ("elements", OPEN.encode() + b"<a/>" * 2_000_000, 0, "elements"),
    ("prose", b"Nothing here.\nCome back.", 0, "2 entries"),
    ("mail", listing("mailto:a@b", "/1").encode(), 1, "1 entries"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "pages", "word"), BROKEN, ids=[each[0] for each in BROKEN])
def test_what_cannot_be_read_is_named_and_the_rest_is_read(what: str, body: bytes, pages: int, word: str) -> None:
    found = read_sitemap(body, URL)
    assert (len(found.pages), word in " ".join(found.cut)) == (pages, True), found.cut


def test_whatever_follows_a_gzip_file_is_padding() -> None:
    assert read_sitemap(gzip.compress(ONE.encode()) + bytes(9000), URL).cut == ()


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b\x08", b"<urlset>", b'<?xml encoding="utf-7"?>']))
def test_any_bytes_are_read_without_an_exception(body: bytes, head: bytes) -> None:
    read_sitemap(head + body, URL)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://a.example/sitemap.xml", True),
        ("https://a.example/x/News_Sitemap-2.XML.gz?page=1", True),
        ("https://a.example/sitemap.txt", True),
        ("https://a.example/sitemap/", False),
        ("https://a.example/sitemap.html", False),
        ("https://a.example/x?sitemap.xml", False),
    ],
)
def test_sitemaps_are_known_by_name(url: str, named: bool) -> None:
    assert is_sitemap(url) == named


def test_when_pages_changed() -> None:
    times = ["2026-01-31T10:00:00+02:00", "2026-01-31", "2026-01-31T08:00:00Z", "yesterday", "2026", "9999-12-31"]
    entries = "".join(f"<url><lastmod>{time}</lastmod><loc>/{n}</loc></url>" for n, time in enumerate(times))
    facts = read_sitemap(f"<urlset>{entries}<url><loc>/none</loc></url></urlset>".encode(), "https://example.org/s.xml")

    eight = 1_769_846_400.0
    assert len(facts.pages) == 7
    found = {url.rpartition("/")[2]: at for url, at in facts.modified.items() if at < 4e9}
    assert found == {"0": eight, "1": eight + 16 * 3600, "2": eight}
