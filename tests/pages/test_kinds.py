import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.kinds import Kind, kind_of


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", Kind.HTML),
        ("Text/HTML; charset=utf-8", Kind.HTML),
        ("application/xhtml+xml", Kind.HTML),
        ("application/json", Kind.JSON),
        ("application/ld+json;x=y", Kind.JSON),
        ("application/vnd.api+json", Kind.JSON),
        ("application/x-ndjson", Kind.JSON),
        ("text/plain", Kind.TEXT),
        ("text/csv", Kind.TEXT),
        ("application/xml", Kind.TEXT),
        ("application/rss+xml", Kind.TEXT),
        ("image/svg+xml", Kind.OTHER),
        ("image/png", Kind.OTHER),
        ("application/pdf", Kind.OTHER),
        ("font/woff2", Kind.OTHER),
    ],
)
def test_the_media_type_says_it(content_type: str, kind: Kind) -> None:
    assert kind_of(content_type, b"anything") is kind


@pytest.mark.parametrize("content_type", [None, "", "application/octet-stream", "html", ";charset=utf-8"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\n <!DOCTYPE html><p>", Kind.HTML),
        (b"<!-- x --> <html lang=en>", Kind.HTML),
        (b"<?xml version='1.0'?><html xmlns='x'>", Kind.HTML),
        (b"<div class=x>", Kind.HTML),
        (b' {"a": 1}', Kind.JSON),
        (b"[1, 2]", Kind.JSON),
        (b"[]", Kind.JSON),
        (b"{}", Kind.JSON),
        (b"[sic] is what they said", Kind.TEXT),
        (b"{{ template }}", Kind.TEXT),
        (b"<?xml version='1.0'?><rss>", Kind.TEXT),
        (b"words", Kind.TEXT),
        (b"", Kind.TEXT),
        (b"\xff\xfea\0b\0", Kind.TEXT),
        (b"a\0b", Kind.OTHER),
        (b"%PDF-1.7", Kind.OTHER),
        (b"\x89PNG\r\n\x1a\n", Kind.OTHER),
    ],
)
def test_without_one_the_first_bytes_do(content_type: str | None, body: bytes, kind: Kind) -> None:
    assert kind_of(content_type, body) is kind


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", b'{"a": 1}', Kind.JSON),
        ("application/json", b"<!doctype html><title>502", Kind.HTML),
        ("text/html", b"%PDF-1.7", Kind.OTHER),
        ("text/plain", b"<!doctype html>", Kind.TEXT),
        ("text/html", b"plain words", Kind.HTML),
    ],
)
def test_one_that_is_plainly_wrong_is_not_believed(content_type: str, body: bytes, kind: Kind) -> None:
    assert kind_of(content_type, body) is kind


@given(st.none() | st.text(), st.binary())
def test_everything_is_something(content_type: str | None, body: bytes) -> None:
    assert kind_of(content_type, body) in Kind
