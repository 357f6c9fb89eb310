"""Hosts and URLs: one spelling each. `docs/why/extract.md` counts the WHATWG's own cases; here is one of each kind."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.ids import (
    MAX_INPUT,
    MAX_URL,
    HostError,
    UrlError,
    domain_of,
    host_of,
    is_public_suffix,
    normalise_host,
    normalise_url,
    origin_of,
    partition_of,
    url_key,
)

BASE = "http://a.example/dir/page?x#y"

AS_BROWSERS = [
    # as the page has it, what is requested
    ("../up", "http://a.example/up"),
    ("\t\n//B.example:80\\dir\\ ", "http://b.example/dir/"),
    ("https:other", "https://other/"),
    ("http:same", "http://a.example/dir/same"),
    ("?q", "http://a.example/dir/page?q"),
    ("http://b.example:0443/", "http://b.example:443/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
    ("http://STRASSE.example/ä?ö", "http://strasse.example/%C3%A4?%C3%B6"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://%61.example/", "http://a.example/"),
    ("/a/./b/%2e%2E/c", "http://a.example/a/c"),
    ("/a b`{}|^", "http://a.example/a%20b%60%7B%7D|%5E"),
]
OTHERWISE = [
    # What the standard keeps and we do not, so that one page has one URL.
    ("#part", "http://a.example/dir/page?x"),
    ("//user:secret@b.example/", "http://b.example/"),
    ("/?", "http://a.example/"),
    ("/%7e%41%2f", "http://a.example/~A%2F"),
    ("/100%", "http://a.example/100%25"),
    ("/%2e./b", "http://a.example/b"),
    ("//b.example./", "http://b.example/"),
    ("/?utm_source=x&a=1&GCLID=2&gclidx=3", "http://a.example/?a=1&gclidx=3"),
    ("/a;jsessionid=1/b;v=2?phpsessid=3", "http://a.example/a/b;v=2"),
]


@pytest.mark.parametrize(("text", "url"), AS_BROWSERS + OTHERWISE)
def test_a_link_has_one_spelling(text: str, url: str) -> None:
    assert normalise_url(text, BASE) == url
    assert normalise_url(url) == url


REFUSED = [
    "mailto:a@b.example", "javascript:x()", "ftp://b.example/", "http://", "http://b.example:65536/", "http://[::1",
    "http://a b/", "http://b..example/", "http://b.example../", "http://../", "http://1.2.3.400/",
    "http://" + "a" * 300 + "/", "/" + "a" * MAX_URL, " " * (MAX_INPUT + 1),
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_requested_is_refused(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        normalise_url(text, BASE)
    assert len(str(caught.value)) < 400
    assert "None" not in str(caught.value)


def test_the_longest_url_is_accepted() -> None:
    assert len(normalise_url("/" + "a" * (MAX_URL - len("http://a.example/")), BASE)) == MAX_URL


@pytest.mark.parametrize("text", ["http://me:secret@b.example/", "http://me:secret@b c/", "secret@@"])
def test_a_typed_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        normalise_url(text)
    assert "secret" not in str(caught.value)


def test_a_missing_scheme_is_proposed() -> None:
    with pytest.raises(UrlError, match=r"did you mean https://b\.example/x\?"):
        normalise_url("b.example/x")


@given(st.text("aA%2e./\\?&#;:=@ éutm_", max_size=30))
@example("//foo.09..")
@example("/%252e%2")
@example("?utm_a=&&")
def test_normalising_again_changes_nothing(text: str) -> None:
    try:
        url = normalise_url(text, BASE)
    except UrlError:
        return
    assert normalise_url(url) == url
    assert normalise_host(host_of(url), "http") == host_of(url)
    assert origin_of(url) == f"http://{host_of(url)}"


HOSTS = [
    ("Example.ORG.", "https", "example.org"),
    ("example.org:443", "https", "example.org"),
    ("example.org:443", "http", "example.org:443"),
    ("::1", "https", "[::1]"),
    ("[::1]:8080", "https", "[::1]:8080"),
    ("bücher.example", "https", "xn--bcher-kva.example"),
    (" 127.1 ", "https", "127.0.0.1"),
]


@pytest.mark.parametrize(("text", "scheme", "host"), HOSTS)
def test_a_host_has_one_spelling(text: str, scheme: str, host: str) -> None:
    assert normalise_host(text, scheme) == host


@pytest.mark.parametrize("text", ["", " ", "a/b", "a@b", "a b", "a:b", "https://a", "..", "a..b", "%61", "a" * 600])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(HostError):
        normalise_host(text)


def test_a_host_and_a_key_are_those_of_the_request() -> None:
    assert host_of("https://A.example:443\\@b.example/") == "a.example"
    with pytest.raises(UrlError):
        host_of("https://me@a.example/")
    one, other = url_key("https://a.example/1"), url_key("https://a.example/2")
    assert (len(one), one[:5] == other[:5], one != other) == (16, True, True)
    assert url_key("https://b.example/1")[:5] != one[:5]
    # Written in every ledger: it never changes.
    assert (partition_of("a.example"), one.hex()) == (416, "99493a54376681a0a379cfe1673606d7")


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("shop.a.co.uk:8080", "a.co.uk"),
        ("alice.github.io", "alice.github.io"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:80", "[::1]"),
        ("db.internal", "db.internal"),
        ("co.uk", "co.uk"),
    ],
)
def test_the_domain_is_what_somebody_has_registered(host: str, domain: str) -> None:
    assert domain_of(host) == domain


@pytest.mark.parametrize(
    ("name", "is_suffix"), [("com", True), ("co.uk", True), ("github.io", True), ("a.co.uk", False)]
)
def test_below_a_public_suffix_anybody_may_register(name: str, is_suffix: bool) -> None:
    assert is_public_suffix(name) == is_suffix
