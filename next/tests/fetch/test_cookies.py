"""Which cookies are taken, kept and sent: RFC 6265 and 6265bis, row by row."""

import pytest

from sanderling.fetch.cookies import CookieJar

NOW = 1_800_000_000.0
PAGE = "https://www.example.co.uk/shop/cart"


def jar(*lines: str, url: str = PAGE) -> CookieJar:
    found = CookieJar()
    found.learn(url, tuple(("Set-Cookie", line) for line in lines), NOW)
    return found


@pytest.mark.parametrize(
    ("line", "url", "sent"),
    [
        ("a=1", PAGE, "a=1"),
        ("a=1", "https://www.example.co.uk/shop/", "a=1"),
        ("a=1", "https://www.example.co.uk/shopping", ""),
        ("a=1", "https://www.example.co.uk/", ""),
        ("a=1", "http://www.example.co.uk/shop/x", "a=1"),
        ("a=1", "https://www.example.co.uk:8443/shop/x", "a=1"),
        ("a=1; Path=/", "https://www.example.co.uk/", "a=1"),
        ("a=1; Path=shop", "https://www.example.co.uk/shop", "a=1"),
        ("a=1; Path=/", "https://example.co.uk/", ""),
        ("a=1; Path=/", "https://sub.www.example.co.uk/", ""),
        ("a=1; Path=/; Domain=example.co.uk", "https://other.example.co.uk/", "a=1"),
        ("a=1; Path=/; Domain=.EXAMPLE.co.uk", "https://example.co.uk/", "a=1"),
        ("a=1; Path=/; Domain=co.uk", "https://other.co.uk/", ""),
        ("a=1; Path=/; Domain=example.co.uk.", "https://www.example.co.uk/", ""),
        ("a=1; Path=/; Domain=other.org", "https://other.org/", ""),
        ("a=1; Path=/; Domain=a.www.example.co.uk", "https://a.www.example.co.uk/", ""),
        ("a=1; Path=/; Domain=uk", "https://other.uk/", ""),
        ("a=1; Path=/; Secure", "https://www.example.co.uk/", "a=1"),
        ("a=1; Path=/; Secure", "http://www.example.co.uk/", ""),
        ("__Host-a=1; Path=/; Secure", "https://www.example.co.uk/", "__Host-a=1"),
        ("__Host-a=1; Path=/", "https://www.example.co.uk/", ""),
        ("__host-a=1; Path=/; Secure; Domain=example.co.uk", "https://www.example.co.uk/", ""),
        ("__Secure-a=1; Path=/", "https://www.example.co.uk/", ""),
        ("a=1; Max-Age=0", PAGE, ""),
        ("a=1; Max-Age=-5", PAGE, ""),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", PAGE, "a=1"),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", PAGE, ""),
        ("a=1; Expires=never", PAGE, "a=1"),
        ("a=1; expires=Wed, 09-Jun-2038 10:18:14 GMT", PAGE, "a=1"),
        ("lonely", PAGE, "lonely"),
        ('a="1 2"', PAGE, 'a="1 2"'),
        ("=b=c", PAGE, ""),
        ("a=\x01", PAGE, ""),
        ("a=" + "x" * 5000, PAGE, ""),
        ("a=1;" + ";" * 9000, PAGE, ""),
        ("", PAGE, ""),
    ],
)
def test_what_is_taken_and_what_is_sent(line: str, url: str, sent: str) -> None:
    assert jar(line).header(url, NOW) == sent


def test_an_address_has_no_domain_above_it() -> None:
    at = "http://127.0.0.1:8000/"

    assert jar("a=1; Domain=127.0.0.1", url=at).header(at, NOW) == "a=1"
    assert jar("a=1; Domain=0.0.1", url=at).header(at, NOW) == ""


def test_longer_paths_come_first_and_then_what_is_older() -> None:
    it = jar("b=2; Path=/", "a=1; Path=/", "c=3; Path=/shop")

    assert it.header(PAGE, NOW) == "c=3; b=2; a=1"


def test_http_does_not_replace_a_secure_cookie() -> None:
    it = jar("a=1; Path=/; Secure")
    it.learn("http://www.example.co.uk/", (("Set-Cookie", "a=evil; Path=/; Domain=example.co.uk"),), NOW)

    assert it.header(PAGE, NOW) == "a=1"


def test_a_secure_cookie_stays_safe_when_another_of_its_name_ends() -> None:
    it = jar("a=1; Path=/; Secure")
    it.learn("https://x.example/", (("Set-Cookie", "a=2; Path=/; Secure"),), NOW)
    it.learn("https://x.example/", (("Set-Cookie", "a=2; Path=/; Secure; Max-Age=0"),), NOW)
    it.learn("http://www.example.co.uk/", (("Set-Cookie", "a=evil; Path=/"),), NOW)

    assert it.header(PAGE, NOW) == "a=1"


def test_a_cookie_ends_when_it_says_and_after_400_days_at_the_latest() -> None:
    it = jar("a=1; Max-Age=100", "b=2; Max-Age=99999999999")

    assert it.header(PAGE, NOW + 99) == "a=1; b=2"
    assert it.header(PAGE, NOW + 101) == "b=2"
    assert it.header(PAGE, NOW + 401 * 86_400) == ""


def test_one_host_has_fifty_and_strangers_push_out_nobody() -> None:
    it = CookieJar(most=200)
    it.learn(PAGE, (("Set-Cookie", "session=mine; Secure"),), NOW)
    for number in range(400):
        it.learn(f"https://evil.example/{number}", (("Set-Cookie", f"n{number}=1; Path=/"),), NOW)
    for number in range(120):
        it.learn(f"https://h{number}.example/", (("Set-Cookie", "a=1"), ("Set-Cookie", "b=1")), NOW)

    assert len(it) <= 200
    assert it.header("https://evil.example/", NOW).count("=") <= 50
    assert it.header(PAGE, NOW) == "session=mine"


def test_a_header_is_never_so_long_that_servers_refuse_it() -> None:
    it = jar(*(f"big{number}={'x' * 4000}" for number in range(5)), "session=short")

    assert len(it.header(PAGE, NOW)) < 8192
    assert "session=short" in it.header(PAGE, NOW)


def test_what_is_saved_of_a_host_comes_back() -> None:
    it = jar("a=1; Path=/", "b=2; Path=/; Domain=example.co.uk; Max-Age=50")
    host = "www.example.co.uk"
    assert it.changed() == {host}
    assert it.changed() == set()
    saved = it.saved(host, NOW)
    assert saved is not None

    later, ended = CookieJar(), CookieJar()
    later.restore(saved, NOW)
    ended.restore(saved, NOW + 60)

    assert later.header(PAGE, NOW) == "a=1; b=2"
    assert later.saved(host, NOW) is not None
    assert ended.header(PAGE, NOW) == "a=1"
    assert it.saved("other.example", NOW) is None
    for damaged in (b"", b"\x00", saved[:-1]):
        with pytest.raises(ValueError, match=r".*"):
            later.restore(damaged, NOW)


def test_only_what_matters_is_saved_anew() -> None:
    it = jar("a=1; Max-Age=5000")
    it.changed()
    it.learn(PAGE, (("Set-Cookie", "a=1; Max-Age=5000"),), NOW + 100)
    assert it.changed() == set()
    it.learn(PAGE, (("Set-Cookie", "a=2; Max-Age=5000"),), NOW + 100)
    assert it.changed() == {"www.example.co.uk"}
    it.learn(PAGE, (("Set-Cookie", "a=2; Max-Age=0"),), NOW + 100)
    assert it.changed() == {"www.example.co.uk"}
