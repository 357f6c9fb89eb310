"""How a link is resolved against the page it was found on."""

import pytest

from sanderling.pages.urls import UrlError, normalise

# RFC 3986, 5.4, in one spelling: without fragments, and `http:g` read as browsers do.
RFC_3986 = {
    "g": "/b/c/g",
    "./g": "/b/c/g",
    "g/": "/b/c/g/",
    "/g": "/g",
    "?y": "/b/c/d;p?y",
    "g?y": "/b/c/g?y",
    "#s": "/b/c/d;p?q",
    "g#s": "/b/c/g",
    "g?y#s": "/b/c/g?y",
    ";x": "/b/c/;x",
    "g;x": "/b/c/g;x",
    "g;x?y#s": "/b/c/g;x?y",
    "": "/b/c/d;p?q",
    ".": "/b/c/",
    "./": "/b/c/",
    "..": "/b/",
    "../": "/b/",
    "../g": "/b/g",
    "../..": "/",
    "../../": "/",
    "../../g": "/g",
    "../../../g": "/g",
    "../../../../g": "/g",
    "/./g": "/g",
    "/../g": "/g",
    "g.": "/b/c/g.",
    ".g": "/b/c/.g",
    "g..": "/b/c/g..",
    "..g": "/b/c/..g",
    "./../g": "/b/g",
    "./g/.": "/b/c/g/",
    "g/./h": "/b/c/g/h",
    "g/../h": "/b/c/h",
    "g;x=1/./y": "/b/c/g;x=1/y",
    "g;x=1/../y": "/b/c/y",
    "g?y/./x": "/b/c/g?y/./x",
    "g?y/../x": "/b/c/g?y/../x",
    "http:g": "/b/c/g",
    "http:/g": "/g",
    "http:": "/b/c/d;p?q",
    "?": "/b/c/d;p",
    "g h": "/b/c/g%20h",
    "g:h/i": None,
}


@pytest.mark.parametrize(("link", "path"), RFC_3986.items())
def test_links_are_resolved_as_the_rfc_says(link: str, path: str | None) -> None:
    if path is None:
        with pytest.raises(UrlError):
            normalise(link, "http://a.test/b/c/d;p?q")
    else:
        assert normalise(link, "http://a.test/b/c/d;p?q") == f"http://a.test{path}"


@pytest.mark.parametrize(
    ("link", "base", "normal"),
    [
        ("//b.test/x", "http://a.test/", "http://b.test/x"),
        ("\\\\b.test\\x", "http://a.test/", "http://b.test/x"),
        ("///b.test/x", "https://a.test/", "https://b.test/x"),
        ("https:b.test/x", "http://a.test/", "https://b.test/x"),
        ("https:b.test/x", None, "https://b.test/x"),
        ("https:///b.test", "https://a.test/", "https://b.test/"),
        ("x", "https://a.test", "https://a.test/x"),
        ("x", " HTTPS://A.test/d/e?utm_x=1#f", "https://a.test/d/x"),
        ("", "https://a.test/?gclid=1", "https://a.test/"),
        ("a%20b/c?d", "https://a.test/d/e", "https://a.test/d/a%20b/c?d"),
        ("https://b.test/", "nonsense", "https://b.test/"),
    ],
)
def test_links_are_resolved_as_browsers_do(link: str, base: str | None, normal: str) -> None:
    assert normalise(link, base) == normal
