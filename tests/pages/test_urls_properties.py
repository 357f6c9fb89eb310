"""What holds for every URL, and that the short way through `normalise` gives what the long way does."""

from contextlib import suppress
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from sanderling.pages.urls import _SPELLED_URL, LONGEST, LONGEST_INPUT, UrlError, _respelled, escape, normalise
from sanderling.task import Task

# Text made of what URLs are made of, so that hypothesis reaches the parts behind the first refusal.
MARKS = [
    "/",
    "//",
    "?",
    "#",
    ":",
    "@",
    "%",
    "&",
    ";",
    ".",
    "..",
    "/../",
    "\\",
    "[",
    "]",
    "=",
    "+",
    " ",
    "\t",
    "\n",
    "\0",
]
WORDS = [
    "http:",
    "https://",
    "HTTPS://",
    "a.test",
    "A.Test:443",
    "[::1]",
    "1.2.3.4",
    "bücher.test",
    "xn--",
    "x",
    "ü",
    "8",
]
ESCAPES = ["%2e", "%2F", "%41", "%c3%bc", "%zz", "%25", "%7e", "%"]
TRACKED = ["utm_source=1", "UTM_x", "gclid=2", "jsessionid=3", ";jsessionid=4", "gclidx", "\ud800", "\uff20"]
URLISH = st.lists(st.sampled_from([*MARKS, *WORDS, *ESCAPES, *TRACKED]), max_size=14).map("".join)
ANY = st.text() | URLISH | URLISH.map(lambda text: f"https://a.test/{text}")
BASES = st.none() | ANY | st.sampled_from(["https://a.test/", "http://b.test:8080/d/e.html?q=1", "https://[::1]/x/y/"])


@given(ANY, BASES)
@example("\ud800", "https://a.test/")
@example("https://a.test/?&utm_x", None)
def test_any_text_is_a_url_or_an_error(text: str, base: str | None) -> None:
    try:
        normal = normalise(text, base)
    except UrlError as error:
        assert len(str(error)) < 400  # noqa: PT017 - any other error is what this test is about
        return

    assert normal.isascii()
    assert normal.startswith(("https://", "http://"))
    assert "#" not in normal
    # What reads it further down the road reads the same host in it.
    assert normal.partition("//")[2].startswith(f"{Task(normal).host}/")


@given(ANY, BASES)
def test_a_normal_url_is_its_own_spelling(text: str, base: str | None) -> None:
    try:
        normal = normalise(text, base)
    except UrlError:
        assume(False)  # noqa: FBT003 - hypothesis has it so

    assert normalise(normal) == normal
    assert normalise(normal, "https://elsewhere.test/") == normal
    assert normalise("", normal) == normal


PLAIN = st.text("ab.-_~:%4/?&=;u", max_size=12) | st.sampled_from(["utm_x=1", "%41", "%2F", "gclid", "a/.b", "GCLID=1"])
LINKS = st.lists(PLAIN, max_size=5).map("".join)
HOSTS = st.sampled_from(
    [
        "a.test",
        "a.b-c.test",
        "localhost",
        "1.2.3.4",
        "1.2.3.256",
        "1.2.3",
        "a.0x1",
        "xn--a",
        "x" * 64,
        "a." * 127 + "test",
    ]
)
PORTS = st.sampled_from(["", ":", ":0", ":080", ":59999", ":65536", ":123456"]) | st.integers(1, 70_000).map(
    ":{}".format
)


def long_way(url: str, base: str | None) -> str | None:
    try:
        return _respelled(url, base)
    except UrlError:
        return None


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # most of what is drawn needs the long way
@given(st.sampled_from(["http", "https"]), HOSTS, PORTS | st.sampled_from(["", ":80", ":443"]), LINKS)
def test_the_short_way_is_the_long_way_for_urls(scheme: str, host: str, port: str, link: str) -> None:
    url = f"{scheme}://{host}{port}/{link}"
    assume(_SPELLED_URL(url))

    assert long_way(url, None) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.org/news/2024/a-b_c.html",
        "https://a.test/?id=12&page=3&x=%C3%BC/?",
        "http://de.example.org/wiki/K%C3%B6ln:%20(Stadt)",
        "https://localhost/a//b",
        "http://localhost:8080/",
        "http://10.0.255.1:49152/a?b",
    ],
)
def test_most_urls_go_the_short_way(url: str) -> None:
    assert _SPELLED_URL(url)


@pytest.mark.parametrize("form", ["https://a.test/x%{0:02X}", "https://a.test/?%{0:02x}", "https://a.test/x{0:c}y"])
def test_the_short_way_is_the_long_way_for_escapes(form: str) -> None:
    for url in map(form.format, range(256)):
        assert normalise(url) == long_way(url, None)


@given(LINKS, st.sampled_from(["https://a.test/d/e", "http://b.test:81/", "https://a.test/%2F/?x"]))
def test_the_short_way_is_the_long_way_for_links(link: str, base: str) -> None:
    expected = long_way(link, base)

    if expected is None:
        with pytest.raises(UrlError):
            normalise(link, base)
    else:
        assert normalise(link, base) == expected


@given(st.text(st.characters(exclude_characters="\\", exclude_categories=["Cs", "Cc"]), max_size=8))
def test_a_path_is_the_same_however_it_was_escaped(segment: str) -> None:
    assume(segment.strip(" ") not in (".", ".."))
    wholly = "".join(f"%{octet:02x}" for octet in segment.encode())

    assert escape(wholly) == escape(quote(segment, safe=""))
    spelled = quote(segment, safe="'")
    assert normalise(f"https://a.test/{wholly}/x") == f"https://a.test/{spelled}/x"


@pytest.mark.parametrize("piece", ["a", "a/", "a.", "%2F", "&a", "?", "..", ";", "/utm_", "\\", "%", "ü", ":"])
@pytest.mark.parametrize("start", ["https://a.test/", "https://", "https://a.test/?", ""])
def test_a_long_text_takes_no_time_beyond_its_length(start: str, piece: str) -> None:
    """Any work that grows with the square of it would meet the time limit of the suite."""
    for size in (LONGEST - 20, LONGEST_INPUT - 20, 1_000_000):
        text = start + piece * (size // len(piece)) + "\x7f"
        with suppress(UrlError):
            assert len(normalise(text, "https://b.test/")) <= LONGEST
