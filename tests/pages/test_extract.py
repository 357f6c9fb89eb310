import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.pages.extract import (
    LONGEST_TITLE,
    LONGEST_VALUE,
    MOST_METADATA,
    READ_RULES,
    ExtractedPage,
    ReadRules,
    extract,
)

URL = "https://e.example/a/b"
LONGEST_HTML = READ_RULES.html_bytes

PAGE = """<!doctype html>
<html lang="en-GB">
<head>
  <meta charset="utf-8">
  <title>Waders &amp;
    other birds</title>
  <meta name="Description" content="Birds  of the shore">
  <meta property="og:title" content="Waders">
  <meta name="viewport" content="width=device-width">
  <link rel="canonical" href="/waders">
</head>
<body>
  <nav><a href="/">Home</a> <a href="/about" rel="nofollow">About</a></nav>
  <main>
    <h1>Waders</h1>
    <p>The <em>sanderling</em> runs along <a href="wave">the wave</a>.</p>
  </main>
  <footer>Printed on paper</footer>
</body>
</html>"""


def read(html: str, language: str | None = None) -> ExtractedPage:
    return extract(html.encode(), content_type="text/html; charset=utf-8", url=URL, language=language)


def test_a_page() -> None:
    assert read(PAGE) == ExtractedPage(
        title="Waders & other birds",
        description="Birds of the shore",
        metadata={
            "canonical": "https://e.example/waders",
            "description": "Birds of the shore",
            "og:title": "Waders",
        },
        language="en-gb",
        text="# Waders\n\nThe *sanderling* runs along [the wave](https://e.example/a/wave).",
        links=("https://e.example/waders", "https://e.example/", "https://e.example/a/wave"),
        charset="utf-8",
    )


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> a\n b </title><h1>c</h1>", "a b"),
        ("<svg><title>icon</title></svg><title>a</title>", "a"),
        ("<title></title><h1>a <b>b</b></h1><h1>c</h1>", "a b"),
        ("<meta property=og:title content=a><p>b", "a"),
        ("<meta property=og:title content=a><h1>b</h1>", "b"),
        ("<title>a<body><p>b", "a"),
        ("<p>a", None),
        (f"<title>{'a' * 9999}</title>", "a" * LONGEST_TITLE),
    ],
)
def test_titles(html: str, title: str | None) -> None:
    assert read(html).title == title


def test_a_title_left_open_does_not_swallow_the_page() -> None:
    assert read("<title>a<body><p>b").text == "b"


def test_the_description_may_be_for_social_networks() -> None:
    assert read("<meta property=og:description content=a>").description == "a"
    assert read("<p>a").description is None


def test_of_two_values_the_first_counts_and_names_are_in_lower_case() -> None:
    assert read("<meta name=AUTHOR content=a><meta name=author content=b>").metadata == {"author": "a"}


def test_there_is_an_end_to_metadata() -> None:
    many = read("".join(f"<meta name=og:{number} content={'x' * 20_000}>" for number in range(500))).metadata

    assert len(many) == MOST_METADATA
    assert {len(value) for value in many.values()} == {LONGEST_VALUE}


@pytest.mark.parametrize(
    ("robots", "followed"),
    [("nofollow", 0), ("noindex, NOFOLLOW", 0), ("none", 0), ("noindex", 1), ("max-image-preview:none", 1), ("all", 1)],
)
def test_a_page_may_ask_not_to_be_followed(robots: str, followed: int) -> None:
    assert len(read(f"<meta name=robots content='{robots}'><a href=/x>").links) == followed


ENGLISH = "<p>The boat was late again, and nobody at the harbour could say when it would be back with the fish."


@pytest.mark.parametrize(
    ("html", "header", "language"),
    [
        ("<html lang=fr><meta name=language content=de>", "it", "fr"),
        ("<html lang='{{lang}}'><meta name=language content=de>", "it", "it"),
        ("<meta http-equiv=content-language content=de>", "de, en", "de"),
        ("<meta property=og:locale content=pt_BR>", "", "pt-br"),
        (ENGLISH, "", "en"),
        ("<p>Fish", "", None),
    ],
)
def test_the_language_is_what_the_page_says_then_the_server_then_the_text(
    html: str, header: str, language: str | None
) -> None:
    assert read(html, language=header).language == language


def test_text_and_json_are_kept_as_they_are() -> None:
    text = "# not *Markdown*\n\n\n\nbut text\n"
    assert extract(text.encode(), content_type="text/plain", url=URL).text == text
    data = '{"a": "<p>"}'
    assert extract(data.encode(), content_type="application/json", url=URL).text == data


def test_other_things_have_no_text() -> None:
    other = extract(b"%PDF-1.7 words", content_type="application/pdf", url=URL, language="de")

    assert other == ExtractedPage(None, None, {}, "de", "", (), "binary")


def test_a_page_in_its_own_charset() -> None:
    body = "<meta charset=windows-1251><p>Привет".encode("cp1251")

    page = extract(body, content_type="text/html", url=URL)

    assert (page.text, page.charset) == ("Привет", "windows-1251")


@pytest.mark.parametrize("letter", ["é", "x", "海", "😀"])
def test_a_page_that_is_too_long_is_cut_between_characters(letter: str) -> None:
    size = len(letter.encode())
    body = b"<p>" + letter.encode() * (LONGEST_HTML // size + 1000)

    page = extract(body, content_type="text/html", url=URL)

    assert page.charset == "utf-8"
    assert set(page.text) == {letter}
    assert LONGEST_HTML - 9 <= len(page.text) * size <= LONGEST_HTML


FEW = ReadRules(html_bytes=1000, tags=8, links=3)


@pytest.mark.parametrize(
    ("html", "cut"),
    [
        ("<p>x", ""),
        ("<a href=/1><a href=/2><a href=/3><a href=/2>", ""),
        ("<a href=/1><a href=/2><a href=/3><a href=/4><a href=/5>", "cut: 2 links behind the first 3 (max-links)"),
        ("<br>" * 8, ""),
        ("<br>" * 9, "cut: what is behind the first 8 tags (max-tags)"),
        ("x" * 1010, "cut: 10 bytes behind the first 1,000 (max-html-bytes)"),
    ],
)
def test_what_is_cut_is_said_with_the_limit_that_did_it(html: str, cut: str) -> None:
    page = extract(html.encode(), content_type="text/html", url=URL, rules=FEW)

    assert page.cut == cut
    assert len(page.links) <= FEW.links


LEADS = """<link rel=alternate hreflang=de href=/de><link rel="alternate" hreflang="PT-br" href="/pt">
<link rel=alternate type=application/rss+xml href=/feed><meta http-equiv=Refresh content="5; URL='/next'">
<link rel=alternate hreflang=x href=mailto:a@b><link rel=sitemap href=/map>"""


def test_a_page_leads_to_other_languages_and_by_a_refresh() -> None:
    page = read(LEADS)

    assert set(page.links) == {f"https://e.example/{path}" for path in ("map", "de", "pt", "next")}
    assert page.metadata == {
        "refresh": "https://e.example/next",
        "hreflang:de": "https://e.example/de",
        "hreflang:pt-br": "https://e.example/pt",
    }


@pytest.mark.parametrize(
    ("content", "leads"),
    [
        ("0;url=/x", "https://e.example/x"),
        ("0; /x", "https://e.example/x"),
        ('0, URL = "/x" y', "https://e.example/x"),
        ("0.5 url=/x", "https://e.example/x"),
        ("0;url='/x", "https://e.example/x"),
        ("30", None),
        ("url=/x", None),
        ("0;url=javascript:x", None),
        ("0;" + "x" * 5000, "https://e.example/a/" + "x" * 1_998),
    ],
)
def test_where_a_refresh_leads(content: str, leads: str | None) -> None:
    page = extract(b"<p>x", content_type="text/html", url=URL, headers=[("Refresh", content)])

    assert page.metadata.get("refresh") == leads
    assert list(page.links) == ([] if leads is None else [leads])


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ('<https://e.example/c>; rel="canonical"', "https://e.example/c"),
        ("</p>; rel=preload, </c>; rel=canonical", "https://e.example/c"),
        ('</c>; title="x"; rel="x canonical"', "https://e.example/c"),
        ("</c>; rel=next", None),
        ("</c>; rel=canonicals", None),
    ],
)
def test_the_server_may_say_which_address_is_the_right_one(value: str, canonical: str | None) -> None:
    page = extract(b"<p>x", content_type="text/html", url=URL, headers=[("Link", value)])

    assert page.metadata.get("canonical") == canonical


ASKS = [
    ("robots", "NOINDEX", (True, False)),
    ("robots", "noindex,nofollow", (True, True)),
    ("robots", "none", (True, True)),
    ("Sanderling", "nofollow", (False, True)),
    ("otherbot", "none", (False, False)),
    ("robots", "index, follow, max-snippet:20", (False, False)),
    ("robots", "nofollowing", (False, False)),
]


@pytest.mark.parametrize(("name", "content", "asked"), ASKS)
def test_what_a_page_asks_of_robots_is_heeded(name: str, content: str, asked: tuple[bool, bool]) -> None:
    page = read(f"<title>t</title><meta name={name} content='{content}'><a href=/x>words</a>")

    assert (page.noindex, not page.links) == asked
    assert (page.title, page.text) == ((None, "") if asked[0] else ("t", "[words](https://e.example/x)"))


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["noindex"], (True, False)),
        (["otherbot: none"], (False, False)),
        (["otherbot: noindex, nofollow", "nofollow"], (False, True)),
        (["sanderling: none, otherbot: noarchive"], (True, True)),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow"], (False, True)),
        (["max-image-preview: large"], (False, False)),
    ],
)
def test_what_the_server_asks_of_robots_is_heeded(values: list[str], asked: tuple[bool, bool]) -> None:
    sent = [("X-Robots-Tag", value) for value in values]
    page = extract(b"<a href=/x>words", content_type="text/html", url=URL, headers=sent)

    assert (page.noindex, not page.links) == asked


def test_what_asks_not_to_be_indexed_can_be_kept_all_the_same() -> None:
    body = b"<meta name=robots content=noindex><p>words"

    page = extract(body, content_type="text/html", url=URL, rules=ReadRules(keep_noindex=True))

    assert (page.text, page.noindex) == ("words", False)


def test_nul_is_not_a_line_break() -> None:
    assert read("<p>a\0b&#0;c").text == "ab\ufffdc"


HOSTILE = {
    "fifty megabytes of signs": b"<" * 50_000_000,
    "nested": b"<div>" * 100_000 + b"x",
    "many tags": b"<b>x</b>" * 400_000,
    "cells": b"<table>" + b"<td>x" * 100_000,
    "titles in drawings": b"<svg><title>x</title></svg>" * 30_000 + b"y",
    "templates": b"<template></template><a href=x>y</a>" * 30_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pages_take_no_longer_than_others(body: bytes) -> None:
    page = extract(body, content_type="text/html", url=URL)

    assert 0 < len(page.text) < 2 * LONGEST_HTML


TAGS = """
<p> </p> <table> <tr> <td> </table> <ul> <li> <a|href=x> <b> </b> <pre> </pre> <code> </code> <main> <nav> </nav>
<title> <svg> <template> <base|href=//[> <meta|charset=utf-16> <meta|name=robots|content> <html|lang=x> <h1> &amp
<blockquote> <img|src=/i|alt=a> <br> <dl> <dt> <dd> <caption> <th|colspan=9> <script> <!-- --> &#xD800; <div|hidden>
<section|class=content> <iframe|src=y> < word *x* \0 \ufffe
"""
TAG = st.sampled_from(TAGS.split()).map(lambda tag: tag.replace("|", " ").encode())
BODIES = st.binary() | st.lists(TAG | st.binary(max_size=4), max_size=60).map(b"".join)
TYPES = st.sampled_from(["text/html", "text/html; charset=shift_jis", "application/json", "", "x"]) | st.text()


@given(BODIES, TYPES, st.sampled_from([URL, "http://e.example", "", "x", "http://["]), st.none() | st.text())
@example(b"<base href='http://['><a href=x>", "text/html", URL, None)
def test_anything_is_a_document(body: bytes, content_type: str, url: str, language: str | None) -> None:
    page = extract(body, content_type=content_type, url=url, language=language)

    assert page == extract(body, content_type=content_type, url=url, language=language)
    assert all(link.lower().startswith(("http://", "https://")) for link in page.links) or not url.startswith("http")
    assert len(set(page.links)) == len(page.links)
    for value in dataclasses.astuple(page):
        str(value).encode()  # no lone surrogates


def test_what_is_cut_of_a_title_or_a_description_is_said() -> None:
    page = read(f"<title>{'t' * 501}</title><meta name=description content={'d' * 20_000}>")

    assert page.cut == (
        "cut: 1 characters of the title behind the first 500; description behind the first 10,000 characters"
    )
    assert not read(f"<title>{'t' * 500}</title><meta name=description content={'d' * 9_000}>").cut


@pytest.mark.parametrize("state", ["j" * 70_000, "' b='".join("xy" * 5000)])
def test_a_link_is_found_whatever_its_tag_says_beside(state: str) -> None:
    assert read(f"<a data-state='{state}' href=/after>x</a>").links == ("https://e.example/after",)
