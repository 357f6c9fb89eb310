"""What a page says of itself, and where it leads."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.extract.charset import charset_of, decode
from sanderling.extract.html import (
    MAX_HTML,
    MAX_JSON_LD,
    MAX_LINKS,
    MAX_METADATA,
    MAX_TITLE,
    Link,
    PageFacts,
    read_page,
)

URL = "https://a.example/x/"


def of(html: str, charset: str = "utf-8") -> PageFacts:
    facts = read_page(html.encode(charset), f"text/html; charset={charset}", URL)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=PageFacts)


FACTS = [
    # field, HTML, value
    ("title", "<title> A \n B </title>", "A B"),
    ("title", "<svg><title>No</title></svg><p>x", None),
    ("title", "<meta property=og:title content='From og'>", "From og"),
    ("description", "<meta name=Description content=' d  e '>", "d e"),
    ("description", "<meta property=og:description content=f>", "f"),
    ("canonical", "<link rel='Canonical other' href=../y?utm_source=z#f>", "https://a.example/y"),
    ("canonical", "<base href=https://b.example/b/><link rel=canonical href=c>", "https://b.example/b/c"),
    ("alternates", "<link rel=alternate hreflang=DE href=/d><link rel=alternate href=/f>", {"de": "https://a.example/d"}),
    ("refresh", "<meta http-equiv=Refresh content=' 5 ; URL = \"/next\" '>", "https://a.example/next"),
    ("refresh", "<meta http-equiv=refresh content='0,/next'>", "https://a.example/next"),
    ("refresh", "<meta http-equiv=refresh content=30>", None),
    ("robots", "<meta name=robots content='NoIndex, follow'><meta name=googlebot content=none>", ("follow", "noindex")),
    ("robots", "<meta name=Sanderling content=none>", ("nofollow", "noindex", "none")),
    ("language", "<html lang=pt_BR>", "pt-br"),
    ("language", "<html lang='en, de'><meta property=og:locale content=de_DE>", "de-de"),
    ("language", "<html lang=x>", None),
    ("language", "<p>Der Strandläufer läuft am Saum der Wellen und wird doch nie von ihnen eingeholt.", "de"),
    ("published", "<meta property=article:published_time content=2026-02-03T04:05:06Z>", "2026-02-03T04:05:06+00:00"),
    ("published", "<meta name=date content=yesterday><meta name=dc.date content=2026-02-03>", "2026-02-03"),
    ("published", '<script type=application/ld+json>[{"a":{"datePublished":"2026-01-02"}}]</script>', "2026-01-02"),
    ("metadata", "<meta name=author content=A><meta name=author content=B><meta name=a content=c>", {"author": "A"}),
    ("metadata", "<meta property=og:type content=a><meta itemprop=date content=b>", {"og:type": "a", "date": "b"}),
    ("json_ld", '<script type="Application/LD+JSON"> {"@type":"Article"} </script>', ({"@type": "Article"},)),
]  # fmt: skip


@pytest.mark.parametrize(("field", "html", "value"), FACTS)
def test_what_a_page_says_of_itself(field: str, html: str, value: object) -> None:
    assert getattr(of(html), field) == value


LINKS = [
    # HTML, where it leads: paths, with `rel` behind a space
    ("<a href=y>1</a><a href='/z#a'>2</a><area href=?q=1><iframe src=/f></iframe>", ["/x/y", "/z", "/x/?q=1", "/f"]),
    ("<a href=y>1</a><a href=./y#2>2</a>", ["/x/y"]),
    ("<a href=mailto:a@b>1</a><a href=javascript:x()>2</a><a href='http://[bad'>3</a><a href=''>4</a><a>5</a>", []),
    ("<a href=/a rel='NoFollow  ugc'>1</a>", ["/a nofollow ugc"]),
    ("<a href=/a rel=nofollow>1</a><a href=/a>2</a>", ["/a"]),
    ("<link rel=next href=/2><link rel=stylesheet href=/s.css><link rel=alternate href=/feed>", ["/2 next"]),
    ("<base href=/b/><base href=/c/><a href=1>1</a>", ["/b/1"]),
    ("<a href=' \n/a\n '>1</a><a href='/a b'>2</a><a href='\\c'>3</a>", ["/a", "/a%20b", "/c"]),
    ("<a href=/a?x=1&amp;y=2&copy=3>1</a>", ["/a?x=1&y=2&copy=3"]),
]


@pytest.mark.parametrize(("html", "expected"), LINKS)
def test_where_a_page_leads(html: str, expected: list[str]) -> None:
    links = [each.partition(" ") for each in expected]
    assert of(html).links == tuple(Link("https://a.example" + path, rel) for path, _, rel in links)


@pytest.mark.parametrize(
    ("charset", "query"), [("utf-8", "%D0%B6"), ("windows-1251", "%E6"), ("windows-1252", "%26%231078%3B")]
)
def test_a_query_is_sent_in_the_charset_of_its_page(charset: str, query: str) -> None:
    html = "<a href='/ж?q=ж'>1</a>" if charset != "windows-1252" else "<a href='/&#1078;?q=&#1078;'>1</a>"
    assert of(html, charset).links == (Link(f"https://a.example/%D0%B6?q={query}"),)


CHARSETS = [
    # bytes, charset of Content-Type, text, charset
    ("é".encode(), None, "é", "utf-8"),
    ("é".encode("cp1252"), None, "é", "windows-1252"),
    ("é".encode(), "iso-8859-1", "é", "utf-8"),
    ("é".encode("cp1252"), "utf-8", "\ufffd", "utf-8"),
    (b"<meta charset=windows-1251>" + "ж".encode("cp1251"), None, "ж", "windows-1251"),
    (b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>" + "ж".encode("koi8-r"), None, "ж", "koi8-r"),
    (b"<meta charset=utf-16>" + "ж".encode(), None, "ж", "utf-8"),
    ("\ufeffж".encode("utf-16-le"), "utf-8", "ж", "utf-16le"),
    ("\ufeffж".encode(), "cp1252", "ж", "utf-8"),
    ("日本".encode("shift_jis"), "Shift_JIS", "日本", "shift_jis"),
    ("中文".encode("gb18030"), "gb2312", "中文", "gbk"),
    ("서울은 오늘도 맑지만 내일은 비가 온다".encode("euc-kr"), None, "서울은 오늘도 맑지만 내일은 비가 온다", "euc-kr"),
    (b"x" + bytes([0x80]), "made-up", "x€", "windows-1252"),
]


@pytest.mark.parametrize(("body", "label", "text", "charset"), CHARSETS)
def test_bytes_become_text_as_in_browsers(body: bytes, label: str | None, text: str, charset: str) -> None:
    found = decode(body, charset_of(label and f"text/html; a=b; Charset={label}"))
    assert (found[0].removeprefix(body.rpartition(b">")[0].decode() + ">"), found[1]) == (text, charset)


def test_what_a_bound_cut_is_named() -> None:
    html = (
        f"<title>{'t' * (MAX_TITLE + 1)}</title>"
        + "".join(f"<meta name=og:{number} content=x>" for number in range(MAX_METADATA + 1))
        + f"<script type=application/ld+json>{'[' * 40}1{']' * 40}</script><script type=application/ld+json>no</script>"
        + "".join(f"<a href={number}>" for number in range(MAX_LINKS + 2))
    )
    facts = of(html)
    assert (len(facts.title or ""), len(facts.metadata), len(facts.links)) == (MAX_TITLE, MAX_METADATA, MAX_LINKS)
    assert len(facts.cut) == 5

    facts = of("<p>" + "é" * MAX_HTML)
    assert (len(facts.cut), facts.charset) == (1, "utf-8")


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"<a href=", b"<meta charset=", b"<table><td>", b"\xff\xfe", b"<base href="]),
)
def test_any_bytes_are_a_page(body: bytes, head: bytes) -> None:
    facts = read_page(head + body, None, URL)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=PageFacts) == facts


def test_json_ld_beyond_its_bound_is_named() -> None:
    long = f'<script type=application/ld+json>["{"a" * (MAX_JSON_LD // 2)}"]</script>'
    facts = of(long * 2)
    assert (len(facts.json_ld), len(facts.cut)) == (1, 1)
