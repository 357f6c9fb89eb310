"""Cookies: taken and sent as RFC 6265 and 6265bis say, and bounded whatever a host sets."""

from time import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.fetch.cookies import IN_ALL, LARGEST, LARGEST_HEADER, LONGEST_LIFE, PER_DOMAIN, Cookie, CookieJar
from sanderling.task import Task

NOW = 1_800_000_000.0


def jar_with(*lines: str, url: str = "https://a.example.org/dir/page", wall: float = NOW) -> CookieJar:
    jar = CookieJar()
    learn(jar, *lines, url=url, wall=wall)
    return jar


def learn(jar: CookieJar, *lines: str, url: str = "https://a.example.org/dir/page", wall: float = NOW) -> None:
    jar.learn(Task(url), tuple(("Set-Cookie", line) for line in lines), wall)


def sent(jar: CookieJar, url: str = "https://a.example.org/dir/page", wall: float = NOW) -> str:
    return jar.header(Task(url), wall)


@pytest.mark.parametrize(
    ("line", "to", "found"),
    [
        ("a=1", "https://a.example.org/dir/x", "a=1"),
        ("a=1", "https://b.a.example.org/dir/x", ""),  # host-only
        ("a=1", "http://a.example.org:8080/dir/x", "a=1"),  # neither port nor scheme sets it apart
        ("a=1", "https://a.example.org/", ""),  # its path is /dir
        ("a=1", "https://a.example.org/dirt", ""),
        ("a=1; Path=/", "https://a.example.org/", "a=1"),
        ("a=1; Path=dir", "https://a.example.org/dir", "a=1"),
        ("a=1; Domain=example.org; Path=/", "https://b.example.org/", "a=1"),
        ("a=1; Domain=.EXAMPLE.org; Path=/", "https://example.org/", "a=1"),
        ("a=1; Domain=example.org; Path=/", "https://notexample.org/", ""),
        ("a=1; Domain=b.example.org; Path=/", "https://b.example.org/", ""),  # which is not ours to set
        ("a=1; Domain=org; Path=/", "https://a.example.org/", ""),  # a public suffix
        ("a=1; Domain=; Path=/", "https://a.example.org/", "a=1"),
        ("a=1; Domain=example.org:443; Path=/", "https://a.example.org/", ""),
        ("a=1; Domain=example.org.; Path=/", "https://a.example.org/", ""),
        ("a=1; Domain=. example.org; Path=/", "https://a.example.org/", ""),
        ("=a=1; Path=/", "https://a.example.org/", ""),  # not to be told from one with a name
        ("a=1; Secure; Path=/", "https://a.example.org/", "a=1"),
        ("a=1; Secure; Path=/", "http://a.example.org/", ""),
        ("__Host-a=1; Secure; Path=/", "https://a.example.org/", "__Host-a=1"),
        ("__host-a=1; Secure; Path=/; Domain=example.org", "https://a.example.org/", ""),
        ("__Host-a=1; Secure", "https://a.example.org/dir/", ""),
        ("__SECURE-a=1; Path=/", "https://a.example.org/", ""),
        ("=__Secure-a; Path=/", "https://a.example.org/", ""),
        ("nameless", "https://a.example.org/dir/", "nameless"),
        ("=", "https://a.example.org/dir/", ""),
        ('a={"b":"c, d"}', "https://a.example.org/dir/", 'a={"b":"c, d"}'),  # as it is
        ("a=b=c", "https://a.example.org/dir/", "a=b=c"),
        ("a=1\x01", "https://a.example.org/dir/", ""),
        ("a=\udcff", "https://a.example.org/dir/", ""),
        (f"a={'x' * LARGEST}", "https://a.example.org/dir/", ""),
        ("a=1; Max-Age=0", "https://a.example.org/dir/", ""),
        ("a=1; Max-Age=-5", "https://a.example.org/dir/", ""),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "https://a.example.org/dir/", "a=1"),
        ("a=1; Max-Age=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "https://a.example.org/dir/", ""),
        ("a=1; Expires=nonsense", "https://a.example.org/dir/", "a=1"),
        ("a=1; Expires=Sun Nov  6 08:49:37 1994", "https://a.example.org/dir/", ""),
        ("a=1; Expires=Sunday, 06-Nov-94 08:49:37 GMT", "https://a.example.org/dir/", ""),
        ("a=1; Expires=Sun, 31 Feb 1994 08:49:37 GMT", "https://a.example.org/dir/", "a=1"),
    ],
)
def test_a_cookie_goes_where_the_rules_say(line: str, to: str, found: str) -> None:
    assert sent(jar_with(line), to) == found


def test_a_public_suffix_that_is_a_host_has_cookies_of_its_own() -> None:
    jar = jar_with("a=1; Domain=github.io; Path=/", url="https://github.io/")

    assert (sent(jar, "https://github.io/"), sent(jar, "https://alice.github.io/")) == ("a=1", "")


def test_addresses_have_cookies_and_none_below_them() -> None:
    jar = jar_with("a=1; Domain=127.0.0.1; Path=/", "b=2; Domain=0.0.1; Path=/", url="http://127.0.0.1:8000/")

    assert (sent(jar, "http://127.0.0.1:9000/"), sent(jar, "http://1.127.0.0.1.example/")) == ("a=1", "")


def test_plain_http_neither_sets_nor_covers_a_secure_cookie() -> None:
    jar = jar_with("a=1; Secure; Path=/; Domain=example.org", url="https://a.example.org/")

    learn(jar, "a=2; Path=/", "b=3; Secure", url="http://a.example.org/")
    learn(jar, "a=4; Path=/", url="http://example.org/")

    assert (sent(jar), sent(jar, "https://example.org/")) == ("a=1", "a=1")


def test_longer_paths_come_first_then_what_is_older() -> None:
    jar = jar_with("d=0; Path=/; Domain=example.org", "a=1; Path=/", "b=2; Path=/dir", wall=NOW)
    learn(jar, "c=3; Path=/", wall=NOW + 1)
    learn(jar, "a=4; Path=/", wall=NOW + 2)

    assert sent(jar) == "b=2; d=0; a=4; c=3"


def test_a_cookie_ends_and_none_lasts_for_more_than_400_days() -> None:
    jar = jar_with(
        "a=1; Max-Age=10", "b=2; Max-Age=999999999999999999999", "c=3; Expires=Fri, 01 Jan 2999 00:00:00 GMT"
    )

    assert sent(jar, wall=NOW + 9.9) == "a=1; b=2; c=3"
    assert sent(jar, wall=NOW + 10) == "b=2; c=3"
    assert sent(jar, wall=NOW + LONGEST_LIFE) == ""


def test_the_task_has_the_last_word_on_its_cookies() -> None:
    jar = jar_with("a=1; Path=/", "b=2; Path=/")

    put = jar.put(Task("https://a.example.org/", headers=(("cookie", "b=9"), ("Accept", "x"))), NOW)

    assert dict(put.headers) == {"Accept": "x", "Cookie": "b=9; a=1"}
    assert "a=1" not in repr(put)


def test_a_cookie_bomb_takes_neither_memory_nor_the_session() -> None:
    jar = jar_with("session=abc; Path=/")
    started = time()

    learn(jar, *(f"bomb{number}={'x' * 4000}; Path=/" for number in range(PER_DOMAIN - 1)))
    header = sent(jar)
    learn(jar, *(f"n{number}={number}" for number in range(5000)))

    assert "session=abc" in header
    assert len(header) <= LARGEST_HEADER
    assert len(jar) == PER_DOMAIN
    assert time() - started < 2


def test_many_hosts_of_a_stranger_do_not_push_out_a_log_in() -> None:
    jar = jar_with("session=abc; Path=/")

    for host in range(80):
        learn(jar, *(f"n{each}=x" for each in range(PER_DOMAIN)), url=f"https://h{host}.stranger.example/")

    assert len(jar) <= IN_ALL
    assert sent(jar) == "session=abc"


def test_a_host_that_may_set_none_sets_none() -> None:
    jar = CookieJar(lambda host: 0 if host == "a.example.org" else 1)

    learn(jar, "a=1")
    learn(jar, "a=1", "b=2", url="https://b.example.org/")

    assert (len(jar), sent(jar, "https://b.example.org/")) == (1, "b=2")


def test_what_is_saved_comes_back_and_only_what_changed_is_saved() -> None:
    jar = jar_with("a=1; Max-Age=1000", "b=2")

    saved = jar.changes(NOW)
    assert saved is not None
    learn(jar, "a=1; Max-Age=1100")  # only its end has moved
    assert jar.changes(NOW) is None
    copy, next_crawl = CookieJar(), CookieJar()
    copy.load(msgspec.json.decode(msgspec.json.encode(saved), type=list[Cookie]), NOW)
    next_crawl.load(saved, NOW, session=False)

    assert (sent(copy), sent(next_crawl), sent(copy, wall=NOW + 1001)) == ("a=1; b=2", "a=1", "b=2")
    assert copy.changes(NOW) is None
    assert "1" not in repr(saved[0]).replace("a.example.org", "")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["a", "b", "__Host-c", "", "Path"])
ATTRIBUTES = st.sampled_from(
    ["", "Secure", "Path=/", "Path=/dir", "Domain=example.org", "Domain=org", "Max-Age=5", "Max-Age=0", "HttpOnly"]
)
LINES = st.one_of(
    TEXT,
    st.builds(
        lambda name, value, more: "; ".join([f"{name}={value}", *more]), NAMES, TEXT, st.lists(ATTRIBUTES, max_size=4)
    ),
)
URLS = st.sampled_from(
    [
        "https://a.example.org/dir/x",
        "http://a.example.org/",
        "https://example.org/",
        "https://b.a.example.org/dir",
        "http://[::1]:80/",
    ]
)


@given(st.lists(st.tuples(URLS, st.lists(LINES, max_size=5), st.floats(0, 10)), max_size=12))
def test_no_reply_breaks_a_jar(replies: list[tuple[str, list[str], float]]) -> None:
    jar, wall = CookieJar(lambda _: 3, most=8), NOW
    for url, lines, later in replies:
        wall += later
        learn(jar, *lines, url=url, wall=wall)
        for to in ("https://a.example.org/dir/x", "http://other.example/", url):
            header = jar.header(Task(to), wall)
            Task(to, headers=(("Cookie", header),))  # raises for what cannot be sent
            assert not header or "other" not in to
        assert len(jar) <= 8
    saved = jar.changes(wall) or ()
    copy = CookieJar()
    copy.load(msgspec.json.decode(msgspec.json.encode(saved), type=list[Cookie]), wall)
    assert not saved or sent(copy, wall=wall) == sent(jar, wall=wall)
