"""What robots.txt allows: the cases of Google's own tests, of RFC 9309, and those that its authors did not think of."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.extract.robots import MAX_ROBOTS, MAX_WILDCARDS, Robots, directives, read_robots
from sanderling.ids import normalise_url

GROUPS = (
    "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\nuser-agent: BarBot\ndisallow: /\nallow: /y/\n\n\n"
    "allow: /w/\nuser-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n"
)
FISH = "user-agent: FooBot\ndisallow: /\nallow: "
GLOBAL = "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n"
# File, agent, paths that may be requested, paths that may not.
GOOGLE = [
    ("user-agent: FooBot\ndisallow: /\n", "FooBot", "", "/x/y"),
    ("foo: FooBot\nbar: /\n", "FooBot", "/x/y", ""),
    ("user-agent FooBot\ndisallow /\n", "FooBot", "", "/x/y"),
    (GROUPS, "FooBot", "/x/b /z/d", "/y/c /foo/bar/"),
    (GROUPS, "BarBot", "/y/c /w/a", "/z/d /foo/bar/"),
    (GROUPS, "BazBot", "/z/d", "/foo/bar/"),
    ("User-agent: BarBot\nSitemap: https://foo.bar/sitemap\nUser-agent: *\nDisallow: /\n", "FooBot", "", "/"),
    ("User-agent: BarBot\nSitemap: https://foo.bar/sitemap\nUser-agent: *\nDisallow: /\n", "BarBot", "", "/"),
    ("User-agent: FooBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n", "FooBot", "", "/"),
    ("User-agent: FooBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n", "BarBot", "", "/"),
    ("USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /\n", "FooBot", "/x/y", "/a/b"),
    ("uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /\n", "FooBot", "/x/y", "/a/b"),
    ("User-Agent: FOO BAR\nAllow: /x/\nDisallow: /\n", "Foo", "/x/y", "/a/b"),
    ("User-Agent: FoO bAr\nAllow: /x/\nDisallow: /\n", "foo", "/x/y", "/a/b"),
    ("User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n", "Foo", "/x/y", "/a"),
    ("", "FooBot", "/x/y", ""),
    (GLOBAL, "FooBot", "", "/x/y"),
    (GLOBAL, "BarBot", "/x/y", ""),
    ("user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\n", "QuxBot", "/x/y", ""),
    ("user-agent: FooBot\ndisallow: /x/\n", "FooBot", "/X/y", "/x/y"),
    ("user-agent: FooBot\ndisallow: /x/page.html\nallow: /x/\n", "FooBot", "/x/", "/x/page.html"),
    ("user-agent: FooBot\nallow: /x/page.html\ndisallow: /x/\n", "FooBot", "/x/page.html", "/x/"),
    ("user-agent: FooBot\ndisallow: \nallow: \n", "FooBot", "/x/page.html", ""),
    ("user-agent: FooBot\ndisallow: /\nallow: /\n", "FooBot", "/x/page.html", ""),
    ("user-agent: FooBot\ndisallow: /x\nallow: /x/\n", "FooBot", "/x/", "/x"),
    ("user-agent: FooBot\ndisallow: /x/page.html\nallow: /x/page.html\n", "FooBot", "/x/page.html", ""),
    ("user-agent: FooBot\nallow: /page\ndisallow: /*.html\n", "FooBot", "/page", "/page.html"),
    ("user-agent: FooBot\nallow: /x/page.\ndisallow: /*.html\n", "FooBot", "/x/page.html", "/x/y.html"),
    ("User-agent: *\nDisallow: /x/\nUser-agent: FooBot\nDisallow: /y/\n", "FooBot", "/x/page", "/y/page"),
    (
        FISH + "/foo/bar?qux=taz&baz=http://foo.bar?tar&par\n", "FooBot",
        "/foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        "/",
    ),
    (FISH + "/foo/bar/ツ\n", "FooBot", "/foo/bar/%E3%83%84", "/foo/bar/"),
    (FISH + "/foo/bar/%E3%83%84\n", "FooBot", "/foo/bar/%E3%83%84", "/foo/bar/"),
    (
        "User-agent: FooBot\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux\n", "FooBot",
        "/foo/quz /foo//quz /foo/bax/quz",
        "/foo/bar/quz",
    ),
    (
        "User-agent: FooBot\nDisallow: /foo/bar$\nAllow: /foo/bar/qux\n", "FooBot",
        "/foo/bar/qux /foo/bar/ /foo/bar/baz",
        "/foo/bar",
    ),
    ("User-agent: FooBot\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /\n", "FooBot", "/foo/bar", "/foo/quz"),
    (
        "User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /\n", "foobot",
        "/allowed-slash/ /allowed-slash/index.html",
        "/allowed-slash/index.htm /anyother-url",
    ),
    (
        FISH + "/fish\n", "FooBot",
        "/fish /fish.html /fish/salmon.html /fishheads /fish.html?id=anything",
        "/bar /Fish.asp /catfish /?id=fish",
    ),
    (
        FISH + "/fish*\n", "FooBot",
        "/fish /fish.html /fish/salmon.html /fishheads /fish.html?id=anything",
        "/bar /Fish.bar /catfish /?id=fish",
    ),
    (
        FISH + "/fish/\n", "FooBot",
        "/fish/ /fish/salmon /fish/?salmon /fish/salmon.html",
        "/bar /fish /fish.html /Fish/Salmon.html",
    ),
    (
        FISH + "/*.php\n", "FooBot",
        "/filename.php /folder/filename.php?p //folder/any.php.file.html /filename.php/ /index?f=filename.php/",
        "/bar /php/ /index?php /windows.PHP",
    ),
    (
        FISH + "/*.php$\n", "FooBot",
        "/filename.php /folder/filename.php",
        "/bar /filename.php?p /filename.php/ /filename.php5 /php/ /filename?php /aaaphpaaa //windows.PHP",
    ),
    (FISH + "/fish*.php\n", "FooBot", "/fish.php /fishheads/catfish.php?parameters", "/bar /Fish.PHP"),
    ("user-agent: FooBot\nallow: /p\ndisallow: /\n", "FooBot", "/page", "/"),
    ("user-agent: FooBot\nallow: /folder\ndisallow: /folder\n", "FooBot", "/folder/page", ""),
    ("user-agent: FooBot\nallow: /page\ndisallow: /*.htm\n", "FooBot", "/page", "/page.htm"),
    ("user-agent: FooBot\nallow: /$\ndisallow: /\n", "FooBot", "/", "/page.html"),
]  # fmt: skip
OTHERS = [
    # RFC 9309, 2.2.2: escapes of what needs none are opened before comparison. (Google does not.)
    (FISH + "/foo/bar/%62%61%7A\n", "FooBot", "/foo/bar/baz /foo/bar/%62%61%7a", "/foo/bar"),
    (FISH + "/foo/bar?baz=https://foo.bar\n", "FooBot", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar"),
    (FISH + "/a%2Fb\n", "FooBot", "/a%2fb", "/a/b"),
    (FISH + "/a b{c}?d={e}\n", "FooBot", "/a%20b%7Bc%7D?d={e}", "/a"),
    # A star or dollar of the URL is an ordinary character, which a rule writes as %2A or %24.
    (FISH + "/a%2Ab\n", "FooBot", "/a*b", "/ab"),
    (FISH + "/a$b\n", "FooBot", "/a$b", "/a"),
    ("User-agent: *\nDisallow: /a\nUser-agent: FooBot/2.1\nDisallow: /b\n", "FooBot", "/a", "/b"),
    ("User-agent: * (all of you)\nDisallow: /\n", "FooBot", "", "/"),
    ("\ufeffUser-agent: FooBot\nDisallow: /\n", "FooBot", "", "/"),
    ("User-agent: FooBot\rDisallow: /a\r\nDisalow: /b\n", "FooBot", "/c", "/a /b"),
    ("User-agent: FooBot\nDisallow: private\nDisallow: *secret$\n", "FooBot", "/private /secret/", "/a/secret"),
    ("User-agent: FooBot\nDisallow: /\n", "FooBot", "/robots.txt", "/robots.txt?a"),
    ("User-agent: FooBot\nCrawl-delay: 2\nUser-agent: BarBot\nDisallow: /\n", "FooBot", "/", ""),
    ("User-agent: FooBot\nDisallow: /*a*b*c$\n", "FooBot", "/abd /cba", "/abc /xaxbxc"),
    ("User-agent: FooBot\nDisallow: /ab*ba$\n", "FooBot", "/aba", "/abba"),
]  # fmt: skip


def of(text: str, agent: str = "sanderling", status: int = 200) -> Robots:
    return read_robots(status, text.encode(), agent)


@pytest.mark.parametrize(("text", "agent", "allowed", "refused"), GOOGLE + OTHERS)
def test_each_path_is_judged_as_google_and_the_rfc_say(text: str, agent: str, allowed: str, refused: str) -> None:
    robots = msgspec.msgpack.decode(msgspec.msgpack.encode(of(text, agent)), type=Robots)
    judged = {
        path: robots.decide(normalise_url(f"http://foo.bar{path}")).allowed
        for path in (allowed + " " + refused).split()
    }

    assert judged == dict.fromkeys(allowed.split(), True) | dict.fromkeys(refused.split(), False)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_a_byte_order_mark_may_be_cut(mark: bytes) -> None:
    robots = read_robots(200, mark + b"User-agent: *\nDisallow: /\n")
    assert not robots.decide("https://a.example/").allowed


def test_the_decision_names_the_line() -> None:
    robots = of("# ours\r\n\r\nUser-agent: *\r\nDisallow: /private/*\nDisallow: /private/*\nAllow: /private/open\r\n")

    assert robots.decide("https://a.example/private/x")[:3] == (False, 4, "/private/*")
    assert robots.decide("https://a.example/private/open")[:3] == (True, 6, "/private/open")
    assert robots.decide("https://a.example/private/x").why == "robots.txt line 4 disallows /private/*"
    assert robots.decide("https://a.example/other").why == ""


@pytest.mark.parametrize(
    ("status", "known", "allowed"),
    [(200, True, False), (204, True, False), (301, True, True), (401, True, True), (403, True, True), (404, True, True)]
    + [(status, False, False) for status in (0, 408, 425, 429, 500, 503)],
)
def test_a_status_means_rules_no_rules_or_not_now(status: int, known: bool, allowed: bool) -> None:
    robots = of("User-agent: *\nDisallow: /\n", status=status)
    assert (robots.known, robots.decide("https://a.example/x").allowed) == (known, allowed)
    assert robots.decide("https://a.example/robots.txt").allowed


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Crawl-delay: 10", 10),
        ("crawl-delay: .5", 0.5),
        ("Crawl-delay: 3600", 300),
        ("Crawl-delay: 1\nCrawl-delay: 3", 3),
        ("Crawl-delay: soon", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: 1e9", None),
        ("Allow: /\nUser-agent: other\nCrawl-delay: 9", None),
    ],
)
def test_the_longest_delay_for_us_counts(lines: str, delay: float | None) -> None:
    assert of(f"User-agent: *\n{lines}\n").delay == delay


def test_sitemaps_are_for_all_and_absolute() -> None:
    robots = of("Sitemap: HTTPS://A.example/s.xml#x\nUser-agent: b\nSite-map: http://b.example/\nSitemap: /c\n")
    assert robots.sitemaps == ("https://a.example/s.xml", "http://b.example/")


def test_a_line_that_the_bound_cuts_is_not_read() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    text = head + "#" * (MAX_ROBOTS - len(head) - 12) + "\nAllow: /open\n"
    robots = read_robots(200, text.encode())

    assert not robots.decide("https://a.example/a").allowed
    assert robots.prefixes.keys() == {"/a"}
    assert robots.cut


def test_rules_with_stars_beyond_the_bound_are_read_more_strictly() -> None:
    allows = "".join(f"Allow: /open/{number}/*.x\n" for number in range(MAX_WILDCARDS))
    refusals = "".join(f"Disallow: /{number}/*.x\n" for number in range(MAX_WILDCARDS + 5))
    robots = of(f"User-agent: *\nDisallow: /open\n{allows}{refusals}")

    assert len(robots.wildcards) == MAX_WILDCARDS
    assert f"{MAX_WILDCARDS + 5} rules" in robots.cut.replace(",", "")
    assert not robots.decide(f"https://a.example/{MAX_WILDCARDS + 4}/y").allowed
    assert robots.decide("https://a.example/3/y").allowed
    assert not robots.decide("https://a.example/open/3/a.x").allowed


@given(st.lists(st.tuples(st.booleans(), st.text("ab/*$", max_size=6)), max_size=8), st.text("ab/", max_size=8))
def test_a_slow_obvious_twin_decides_alike(rules: list[tuple[bool, str]], rest: str) -> None:
    """The twin tries every way to stretch the stars."""

    def matches(pattern: str, path: str) -> bool:
        if pattern in ("", "$"):
            return pattern == "" or path == ""
        if pattern[0] == "*":
            return any(matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
        return path[:1] == pattern[0] and matches(pattern[1:], path[1:])

    text = "User-agent: *\n" + "".join(f"{'Allow' if allow else 'Disallow'}: {rule}\n" for allow, rule in rules)
    found = [(len(rule), allow) for allow, rule in rules if rule and matches(rule, "/" + rest)]

    assert of(text).decide("https://a.example/" + rest).allowed == max(found, default=(0, True))[1]


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["noindex, NoFollow"], {"noindex", "nofollow"}),
        (["none"], {"none", "noindex", "nofollow"}),
        (["googlebot: noindex, nofollow", "sanderling: noarchive"], {"noarchive"}),
        (["otherbot: noindex, sanderling: nofollow"], {"nofollow"}),
        (["*: noindex"], {"noindex"}),
        (["max-snippet: 20, noindex"], {"max-snippet: 20", "noindex"}),
        (["unavailable_after: 2026-01-01"], {"unavailable_after: 2026-01-01"}),
        (["noindex;nofollow"], {"noindex", "nofollow"}),
        (["", ",,"], set()),
    ],
)
def test_directives_for_all_and_for_us_count(values: list[str], asked: set[str]) -> None:
    assert directives(values) == asked
