import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.kinds import ContentKind, kind_of


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", ContentKind.HTML),
        ("Text/HTML; charset=utf-8", ContentKind.HTML),
        ("application/xhtml+xml", ContentKind.HTML),
        ("application/json", ContentKind.JSON),
        ("application/ld+json;x=y", ContentKind.JSON),
        ("application/vnd.api+json", ContentKind.JSON),
        ("application/x-ndjson", ContentKind.JSON),
        ("text/plain", ContentKind.TEXT),
        ("text/csv", ContentKind.TEXT),
        ("application/xml", ContentKind.TEXT),
        ("application/rss+xml", ContentKind.TEXT),
        ("image/svg+xml", ContentKind.OTHER),
        ("image/png", ContentKind.OTHER),
        ("application/pdf", ContentKind.OTHER),
        ("font/woff2", ContentKind.OTHER),
    ],
)
def test_the_media_type_says_it(content_type: str, kind: ContentKind) -> None:
    assert kind_of(content_type, b"anything") is kind


@pytest.mark.parametrize("content_type", [None, "", "application/octet-stream", "html", ";charset=utf-8"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\n <!DOCTYPE html><p>", ContentKind.HTML),
        (b"<!-- x --> <html lang=en>", ContentKind.HTML),
        (b"<?xml version='1.0'?><html xmlns='x'>", ContentKind.HTML),
        (b"<div class=x>", ContentKind.HTML),
        (b' {"a": 1}', ContentKind.JSON),
        (b"[1, 2]", ContentKind.JSON),
        (b"[]", ContentKind.JSON),
        (b"{}", ContentKind.JSON),
        (b"[sic] is what they said", ContentKind.TEXT),
        (b"{{ template }}", ContentKind.TEXT),
        (b"<?xml version='1.0'?><rss>", ContentKind.TEXT),
        (b"words", ContentKind.TEXT),
        (b"", ContentKind.TEXT),
        (b"\xff\xfea\0b\0", ContentKind.TEXT),
        (b"a\0b", ContentKind.OTHER),
        (b"%PDF-1.7", ContentKind.OTHER),
        (b"\x89PNG\r\n\x1a\n", ContentKind.OTHER),
    ],
)
def test_without_one_the_first_bytes_do(content_type: str | None, body: bytes, kind: ContentKind) -> None:
    assert kind_of(content_type, body) is kind


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", b'{"a": 1}', ContentKind.JSON),
        ("application/json", b"<!doctype html><title>502", ContentKind.HTML),
        ("text/html", b"%PDF-1.7", ContentKind.OTHER),
        ("text/plain", b"<!doctype html>", ContentKind.TEXT),
        ("text/html", b"plain words", ContentKind.HTML),
    ],
)
def test_one_that_is_plainly_wrong_is_not_believed(content_type: str, body: bytes, kind: ContentKind) -> None:
    assert kind_of(content_type, body) is kind


@given(st.none() | st.text(), st.binary())
def test_everything_is_something(content_type: str | None, body: bytes) -> None:
    assert kind_of(content_type, body) in ContentKind
