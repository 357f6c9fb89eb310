"""What the cookie cases of the IETF's http-state working group ask, with names and values of our own.

All 222 of them with their 70 dates were replayed: docs/why/extract.md counts them. Here is one of each kind.
"""

import pytest

from sanderling.fetch.cookies import CookieJar
from sanderling.ids import normalise_url

NOW = 1_800_000_000.0  # 15 January 2027
SHOP = "http://www.shop.example/set"
GET = "/get"
BESIDE, BELOW = "//sibling.shop.example/", "//a.www.shop.example/"


def sent(lines: str, to: str = GET, at: float = NOW) -> str:
    """The Cookie header for `to`, after a response with these Set-Cookie lines."""
    jar = CookieJar()
    jar.learn(SHOP, tuple(("Set-Cookie", line) for line in lines.split("\n")), NOW)
    return jar.header(normalise_url(to, SHOP), at)


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        # Names and values are what stands around the first equals sign, trimmed, and nothing is unquoted.
        ("a=1", "a=1"), ("a=1\na=2", "a=2"), ("a=1\nb=2", "a=1; b=2"), ("z=1\na=2", "z=1; a=2"),
        ("  a=1  ", "a=1"), ("a =1", "a=1"), ("a= 1", "a=1"), ("\ta\t=\t1\t \t;\tx", "a=1"), ("a b=1 2", "a b=1 2"),
        ("a=1=2", "a=1=2"), ("a=== 1", "a=== 1"), ("a=", "a="), ('a="1"', 'a="1"'), ('a=" 1 "', 'a=" 1 "'),
        ('a="1;2"', 'a="1'), ('a="1', 'a="1'), ('a=1"2', 'a=1"2'), ('"a=1"=2', '"a=1"=2'),
        ('a="1"  "2" ;', 'a="1"  "2"'),
        ("a=1, b=2", "a=1, b=2"), ("a=1; b=2, c=3", "a=1"), ("a=1; b,c=2", "a=1"), ("$Version=1; a=2", "$Version=1"),
        ("春节=回家·春运; 完", "春节=回家·春运"), *((f"{sign}a=1", f"{sign}a=1") for sign in "1$!@#%^&*()-_+~|'"),
        ("a=" + "1" * 4095, "a=" + "1" * 4095), ("a=" + "1" * 4096, ""),
        # 6265bis, 5.6: what has no equals sign is a value without a name. RFC 6265 left it out.
        ("a", "a"), ("a\nb", "b"), ("=a", "a"), ("a\n=b", "b"), ("a\nb=1", "a; b=1"), ("a;b=1", "a"), ('"a;b"=1', '"a'),
        ("=a=1", ""), ("===a=1", ""), ("=", ""), ("", ""), (" ; b", ""), ("a=1\n=\nb=2", "a=1; b=2"), ("a\n\t ", "a"),
        # And a control character ends the whole cookie. RFC 6265 read what stands before it.
        ("a=1\x00b", ""), ("a=1\rb", ""), ("a=1\x7f", ""), ("a=1; Path=/\x0bx", ""), ("a=1\tb", "a=1\tb"),
        # Unknown attributes are passed over, Secure is one without a value, and spaces around it do not count.
        ("a=1; version=1; x; ;;", "a=1"), ('a=1; x="y z"', "a=1"), ("a=1; Secure", ""), ("a=1; seCURe", ""),
        ("a=1; Secure=", ""), ("a=1; Secure =x", ""), ("a=1;   Secure   ;", ""), ("a=1; x; Secure", ""),
        ('a=1; x="y;z"; Secure', ""), ('a=1; "Secure"', "a=1"), ("a=1; Secure x", "a=1"),
        # Max-Age is digits or is passed over.
        ("a=1; max-age=9000;", "a=1"), ("a=1; max-age=0", ""), ("a=1; max-age=-20", ""), ("a=1; max-age=0,5", "a=1"),
        ("a=1; max-age=0.5", "a=1"), ("a=1;max-age=0, c=d;path=/", "a=1"), ("a=1\na=2; max-age=0", ""),
        ("a=1\nb=2; max-age=60\na=3; max-age=0", "b=2"), ("a=1\nA=2; max-age=0", "a=1"),
        # A year of two digits is of this century below 70.
        ("a=1; expires=1-Jan-69 0:00:00", "a=1"), ("a=1; expires=1-Jan-70 0:00:00", ""),
    ],
)  # fmt: skip
def test_a_line_sets_a_cookie_or_none(lines: str, header: str) -> None:
    assert sent(lines) == header


@pytest.mark.parametrize(
    ("attributes", "to", "comes"),
    [
        ("Path", GET, True), ("Path=", GET, True), ("Path=/", GET, True), ("Path= /", GET, True),
        ("Path=get", GET, True),
        ("Path=/other", GET, False), ("Path  =/other", GET, False), ("Path=  /other", GET, False),
        ("Path=/other   ; x", GET, False), ("\tPath\t=\t/get\t", GET, True), ("Path=/GET", GET, False),
        ("Path=/other; Path=/", GET, True), ("Path=/; Path=/other", GET, False), ("Path=/other; Path=", GET, True),
        ("Path=; Path=/other", GET, False), ("Path=/get/a", GET, False), ("Path=/get/a", "/get/a", True),
        ("Path=/get/a", "/get/b", False), ("Path=/get/a/b", "/get/a", False), ("Path=/get/a/b/", "/get/a/b", False),
        ("Path=/get/a/b/", "/get/a/b/", True), ("Path=/get/a/", "/get/a/b", True), ("Path=/get/a/", "/get/a//b", True),
        ("Path=/get/a/", "/get/ab", False), ("Path=/get/a", "/get/ab", False), ("Path=/get/a?", "/get/a", False),
        ("Path=/get/a#", "/get/a", False), ("Path=/get/a;", "/get/a", True), ('Path="/get/a"', "/get/a", True),
        ("Path=/get/%61", "/get/a", False), ("Path=/get/a", "/get/a?x=/b", True),
        # No path: the folder of the page that set it, here the root.
        ("x", "/elsewhere/deep", True),
        # Domains: the host and those below it; one that names another is not for us, and the last one counts.
        ("x", "//www.shop.example/", True), ("x", "//shop.example/", False), ("x", BELOW, False),
        ("x", "//WWW.sHop.example/", True), ("x", "//www.shop.example:8888/", True),
        *((f"Domain={domain}", f"//{host}www.shop.example/", True)
          for domain in ("www.shop.example", ".www.shop.example", "  .www.shop.example", "WWW.shOp.example",
                         "www.other.example; Domain=www.shop.example", "shop.example; Domain=shop.example")
          for host in ("", "a.")),
        *((f"Domain={domain}", "//www.shop.example/", False)
          for domain in ("..www.shop.example", "www..shop.example", ". www.shop.example", "www.shop.example.",
                         "www.shop.example..", "www.shop.example .", '"www.shop.example"', "www.shop.example:80",
                         "example", ".example", ".example.", "a.www.shop.example", "sibling.shop.example",
                         "www.shop.example; Domain=www.other.example", "hop.example", "elsewhere.example")),
        ("Domain=shop.example", BESIDE, True), ("Domain=www.shop.example", BESIDE, False),
        ("Domain=.shop.example; Domain=www.shop.example", BESIDE, False),
        ("Domain=www.shop.example; Domain=.shop.example", BESIDE, True),
        ("Domain=a.www.shop.example", BELOW, False), ("Domain=sibling.shop.example", BESIDE, False),
        # 6265bis, 5.6.3: an empty domain counts too, and means this host alone. RFC 6265 left it open.
        ("Domain=", "/", True), ("Domain=", BELOW, False), ("Domain=shop.example; Domain=", "/", True),
        ("Domain=elsewhere.example; Domain=", "/", True), ("Domain=shop.example; Domain=", BESIDE, False),
    ],
)  # fmt: skip
def test_a_cookie_is_for_a_path_and_a_domain(attributes: str, to: str, comes: bool) -> None:
    assert sent(f"a=1; {attributes}", to) == ("a=1" if comes else "")


@pytest.mark.parametrize(
    ("lines", "to", "header"),
    [
        ("a=1; path=/\nb=2; path=/get", GET, "b=2; a=1"), ("a=1; path=/get\nb=2; path=/", GET, "a=1; b=2"),
        ("a=1\na=2; path=/get/deeper", GET, "a=1"), ("a=1; path=/get\na=2; path=/get/", "/get/x", "a=2; a=1"),
        ("a=1; domain=www.shop.example\nb=2; domain=.shop.example", GET, "a=1; b=2"),
        ("b=2; domain=.shop.example\na=1; domain=www.shop.example", GET, "b=2; a=1"),
        ("a=1; domain=www.shop.example\na=2", GET, "a=1; a=2"),
        ("k=0;\nk=1; path=/get\nk=2; path=/\nk=3; path=/x\nk=4; domain=.shop.example", "/get/b", "k=1; k=2; k=4"),
    ],
)  # fmt: skip
def test_the_longest_path_comes_first_and_then_the_oldest(lines: str, to: str, header: str) -> None:
    assert sent(lines, to) == header


END = 1_808_088_612.0


@pytest.mark.parametrize(
    "date",
    [
        "Sun, 18 Apr 2027 22:50:12 GMT", "Sunday, 18-Apr-2027 22:50:12 GMT", "Sun, 18-Apr-27 22:50:12 GMT",
        "Sun, 18/Apr\\2027 22:50:12", ", 18-Apr-2027 22:50:12", "Noday  ,  18-apr-27   22:50:12",
        "Noday, 18 - Aprilish-27 22:50:12", '"Sun, 18-Apr-27"22:50:12"GMT"', "Sun Apr 18 22:50:12 2027 GMT",
        "22:50:12 Sun Apr 18 2027", "Sun 22:50:12 Apr 18 2027", "Sun Apr 18 2027 GMT 22:50:12",
        "18-Sun, Apr 22:50:12 27",
        "18 27 Apr 22:50:12", "Apr 18 27 22:50:12", "2027 April 18 22:50:12", "18 April 2027 22:50:12",
        # The first time of day counts, and no time zone does.
        "Sun, 18-Apr-27 22:50:12 11:22:33", "Sun, 18-Apr-27 ::00 22:50:12", "Sun, 18-Apr-27 b:z 22:50:12",
        "Sun, 18-Apr-27 22:50:12 GMT-2", "Sun, 18-Apr-27 22:50:12 -0400 (EDT)", "Sun, 18-Apr-27 22:50:12 DST (hello)",
    ],
)  # fmt: skip
def test_a_date_in_any_spelling_ends_a_cookie(date: str) -> None:
    assert sent(f"a=1; Expires={date}", at=END - 1) == "a=1"
    assert sent(f"a=1; Expires={date}", at=END) == ""


@pytest.mark.parametrize(
    "date",
    [
        "never", "", "Sat, 15-Apr-17 91:22:33 21:01:22", "98 April 17 21:01:22", "Thu, 012-Aug-2008 20:49:07 GMT",
        "Thu, 12-Aug-31841 20:49:07 GMT", "Thu, 12-Aug-9999999999 20:49:07 GMT", "Thu, 99999-Aug-2007 20:49:07 GMT",
        "Thu, 12-Aug-2007 20:61:00 GMT", "Thu, 12-Aug-2007 20:00:99999 GMT", "31-Feb-2007 20:00:00", "1 Jan 1600 0:0:0",
    ],
)  # fmt: skip
def test_what_is_no_date_ends_nothing(date: str) -> None:
    assert sent(f"a=1; Expires={date}", at=END) == "a=1"
