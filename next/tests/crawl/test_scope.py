"""Each row of the table of patterns."""

import pytest

from sanderling.clock import cpu_seconds
from sanderling.crawl.scope import UrlPattern

CASES: list[tuple[str, str, dict[str, str] | None]] = [
    ("/list/*", "https://h.example/list/1", {}),
    ("/list/*", "https://h.example/list/1?page=2", {}),
    ("/list/*", "https://h.example/list/1/2", None),
    ("/list/*", "https://h.example/list/", {}),
    ("/list/**", "https://h.example/list/1/2", {}),
    ("/**/b-*/c", "https://h.example/a/b-1/x/b-2/c", {}),
    ("/**/c", "https://h.example/c", None),
    ("/item/{number}", "https://h.example/item/9", {"number": "9"}),
    ("/item/{number}", "https://h.example/item/", None),
    ("/item/{number}", "https://h.example/item/9/x", None),
    ("/{a}-{b}.html", "https://h.example/x-y-z.html", {"a": "x", "b": "y-z"}),
    ("/find?q={word}", "https://h.example/find?q=bird", {"word": "bird"}),
    ("/find?q={word}", "https://h.example/find?q=bird&p=2", None),
    ("/find?q={word}&**", "https://h.example/find?q=bird&p=2", {"word": "bird"}),
    ("/find?*", "https://h.example/find", {}),
    ("//*.example/blog/**", "https://h.example/blog/a/b", {}),
    ("//h.example/blog/**", "https://i.example/blog/a", None),
    ("/a.b", "https://h.example/axb", None),
    ("/", "https://h.example/", {}),
    ("/**", "https://h.example/", {}),
    ("/*x", "https://h.example/axbx", {}),
]


@pytest.mark.parametrize(("pattern", "url", "expected"), CASES)
def test_pattern(pattern: str, url: str, expected: dict[str, str] | None) -> None:
    assert UrlPattern(pattern).match(url) == expected


@pytest.mark.parametrize("wrong", ["list/*", "", "/{}", "/{a b}", "/{a}/{a}", "/{a"])
def test_a_wrong_pattern_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        UrlPattern(wrong)


@pytest.mark.parametrize(
    "pattern", ["/*-*-*.html", "/**-*-*-*.html", "/**-**-*.html", "/{a}-{b}-{c}.x", "/**/*/**/*.x"]
)
@pytest.mark.parametrize("url", ["-" * 2000, "/-" * 1000])
def test_no_url_makes_a_pattern_slow(pattern: str, url: str) -> None:
    before = cpu_seconds()

    assert UrlPattern(pattern).match(f"https://h.example/{url}") is None
    assert cpu_seconds() - before < 0.5
