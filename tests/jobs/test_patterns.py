"""Which addresses a pattern fits, and what it captures of them."""

import pytest

from sanderling.jobs.patterns import UrlPattern

HERE = "https://shop.example"


@pytest.mark.parametrize(
    ("pattern", "url", "captures"),
    [
        ("/", "/", {}),
        ("/", "/a", None),
        ("/list/*", "/list/1", {}),
        ("/list/*", "/list/1?sort=price", {}),
        ("/list/*", "/list/", {}),
        ("/list/*", "/list/1/2", None),
        ("/list/**", "/list/1/2", {}),
        ("/list/*", "/other/list/1", None),
        ("/item/{number}", "/item/7", {"number": "7"}),
        ("/item/{number}", "/item/", None),
        ("/{kind}/{number}.html", "/item/7.html", {"kind": "item", "number": "7"}),
        ("/{kind}/{number}.html", "/item/7xhtml", None),
        ("/list?page={page}", "/list?page=3", {"page": "3"}),
        ("/list?page={page}", "/list?page=3&sort=1", None),
        ("/list?page={page}*", "/list?page=3&sort=1", {"page": "3"}),
        ("/list?page={page}", "/list", None),
        ("//shop.example/{page}", "/a", {"page": "a"}),
        ("//other.example/{page}", "/a", None),
        ("//*.example/**", "/a/b", {}),
        ("/a.b", "/axb", None),
    ],
)
def test_what_fits(pattern: str, url: str, captures: dict[str, str] | None) -> None:
    assert UrlPattern(pattern).match(f"{HERE}{url}") == captures
