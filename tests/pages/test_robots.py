"""RFC 9309, rule by rule. Sections are named where the RFC gives the case."""

import pytest

from sanderling.pages.robots import ALLOW_ALL, LONGEST_DELAY, MOST, MOST_SITEMAPS, UNREACHABLE, Robots, directives, read
from sanderling.pages.urls import normalise


def robots(text: str, agent: str = "sanderling") -> Robots:
    return read(200, text.encode(), agent)


def allowed(rules: str, path: str) -> bool:
    """Whether `path` may be fetched under rules for everyone."""
    return robots(f"User-agent: *\n{rules}").allows(normalise(f"https://a.test{path}"))


# Section 5.1 and 5.2, as they are printed there, with our name for one of theirs.
SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: sanderling
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("anybot", "/x.gif", False),
        ("anybot", "/x.gif?y", True),
        ("anybot", "/example/", False),
        ("anybot", "/publications/x", True),
        ("anybot", "/", True),
        ("sanderling", "/", False),
        ("sanderling", "/publications/", False),
        ("sanderling", "/example/page.html", True),
        ("sanderling", "/example/allowed.gif", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_the_simple_example_of_section_5(agent: str, path: str, *, expected: bool) -> None:
    assert robots(SIMPLE, agent).allows(f"https://a.test{path}") is expected


def test_the_longest_match_of_section_5() -> None:
    rules = "Allow: /example/page/\nDisallow: /example/page/disallowed.gif"

    assert not allowed(rules, "/example/page/disallowed.gif")
    assert allowed(rules, "/example/page/x")


@pytest.mark.parametrize(
    "rules", ["Disallow: /a\nAllow: /a/b", "Allow: /a/b\nDisallow: /a", "Disallow: /a*\nAllow: /a/b"]
)
def test_the_longest_match_counts_in_any_order(rules: str) -> None:
    assert not allowed(rules, "/a/x")
    assert allowed(rules, "/a/b")


@pytest.mark.parametrize(
    "rules",
    [
        "Disallow: /a\nAllow: /a",
        "Allow: /a\nDisallow: /a",
        "Disallow: /*\nAllow: /a",
        "Disallow: /a\nAllow: /*",
        "Disallow: /*a\nAllow: /a*",
        "Disallow: /a$\nAllow: /*$",
        "Disallow: /*$\nAllow: /a$",
    ],
)
def test_allow_wins_a_tie(rules: str) -> None:
    assert allowed(rules, "/a")


@pytest.mark.parametrize(
    "rules", ["Disallow:", "Disallow: ", "Allow:", "Disallow: # nothing", "", "Disallow: a", "Disallow: $"]
)
def test_a_rule_without_a_path_forbids_nothing(rules: str) -> None:
    assert allowed(rules, "/")
    assert allowed(rules, "/a")


# Section 2.2.2, and what follows from it.
@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=http%3A%2F%2Ffoo.bar", "/foo/bar?baz=http://foo.bar"),
        ("/*baz=http://foo.bar", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/*baz=http%3A%2F%2F", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/a%2fb", "/a%2Fb"),
        ("/a b", "/a%20b"),
        ("/a[", "/a%5B"),
        ("/a?b&c", "/a?b&c"),
    ],
)
def test_paths_are_compared_by_their_octets(rule: str, path: str) -> None:
    assert not allowed(f"Disallow: {rule}", path)


@pytest.mark.parametrize(
    ("rule", "path"),
    [("/a%2Fb", "/a/b"), ("/a/b", "/a%2Fb"), ("/a?b", "/a%3Fb"), ("/a?b&c", "/a?b%26c"), ("/A", "/a"), ("//a", "/a")],
)
def test_what_is_reserved_means_something_else_when_it_is_escaped(rule: str, path: str) -> None:
    assert allowed(f"Disallow: {rule}", path)


# Section 2.2.3: the special characters, and how they are written to mean themselves.
@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("/a*b", "/ab", False),
        ("/a*b", "/axxbyy", False),
        ("/a*b", "/xab", True),
        ("/*.php$", "/x.php", False),
        ("/*.php$", "/x.php.txt", True),
        ("/*.php$", "/x.php?y", True),
        ("/*.php", "/x.php?y", False),
        ("/a$", "/a", False),
        ("/a$", "/ab", True),
        ("/a$b", "/a$bc", False),
        ("/a$", "/a$", True),
        ("/path/foo-%24", "/path/foo-$", False),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", True),
        ("/**a**", "/xa", False),
        ("*", "/", False),
        ("/a*$", "/ab", False),
        ("/*ab*abc$", "/ababc", False),
        ("/*ab*bc$", "/abc", True),
        ("/*?", "/a", True),
        ("/*?", "/a?b", False),
        ("/*?*b=", "/a?c&b=1", False),
    ],
)
def test_stars_and_ends(rule: str, path: str, *, expected: bool) -> None:
    assert allowed(f"Disallow: {rule}", path) is expected


@pytest.mark.parametrize(
    "line",
    [
        "User-agent: sanderling",
        "user-AGENT:SANDERLING",
        " User-agent : Sanderling/1.0 # us",
        "User-agent: sanderling x",
    ],
)
def test_our_token_is_known_in_any_case_and_with_a_version(line: str) -> None:
    text = f"User-agent: *\nDisallow: /\n{line}\nDisallow: /a"

    assert robots(text).allows("https://a.test/b")
    assert not robots(text).allows("https://a.test/a")


@pytest.mark.parametrize(
    "token", ["sand", "sanderlings", "sanderling2", "my-sanderling", "x sanderling", "", "/", "*bot"]
)
def test_another_token_is_not_ours(token: str) -> None:
    assert robots(f"User-agent: {token}\nDisallow: /").allows("https://a.test/a")


@pytest.mark.parametrize("agent", ["sanderling", "Sanderling/2.0 (+https://a.test/bot)"])
def test_we_may_come_with_our_version(agent: str) -> None:
    assert not robots("User-agent: sanderling\nDisallow: /", agent).allows("https://a.test/a")


def test_an_agent_without_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match="expected it to begin with a product token"):
        robots("", agent="(+https://a.test/bot)")


def test_all_our_groups_are_combined_and_the_others_do_not_count() -> None:
    """Section 2.2.1."""
    ours, all_others = "User-agent: x\nUser-agent: sanderling\nDisallow: /", "User-agent: *\nDisallow: /"
    text = f"{ours}a\n{all_others}b\n{ours}c"

    assert [robots(text).allows(f"https://a.test/{path}") for path in "abc"] == [False, True, False]
    assert [robots(text, "y").allows(f"https://a.test/{path}") for path in "abc"] == [True, False, True]


def test_being_named_without_rules_is_leave_for_everything() -> None:
    assert robots("User-agent: *\nDisallow: /\nUser-agent: sanderling").allows("https://a.test/a")


def test_rules_before_any_agent_are_nobodys() -> None:
    assert robots("Disallow: /\nUser-agent: *\nDisallow: /b").allows("https://a.test/a")


@pytest.mark.parametrize("line", ["", "Sitemap: https://a.test/s", "Foo: bar", "foo", "# foo", ":"])
def test_other_lines_end_no_group(line: str) -> None:
    """Section 2.2.4: they must not interfere with the lines that are defined."""
    text = f"User-agent: sanderling\n{line}\nUser-agent: other\n{line}\nDisallow: /a\n{line}\nDisallow: /b"

    assert [robots(text).allows(f"https://a.test/{path}") for path in "abc"] == [False, False, True]


@pytest.mark.parametrize("line", ["Crawl-delay: 1", "Request-rate: 1/1"])
def test_a_pace_is_said_to_those_above_it_and_to_nobody_below(line: str) -> None:
    found = robots(f"User-agent: sanderling\n{line}\n\nUser-agent: *\nCrawl-delay: 30\nDisallow: /b")

    assert (found.delay, found.allows("https://a.test/b")) == (1.0, True)


@pytest.mark.parametrize("separator", [", ", ";", " ; "])
def test_directives_are_told_apart_however_they_are_separated(separator: str) -> None:
    assert directives([f"noindex{separator}nofollow"]) == {"noindex", "nofollow"}


@pytest.mark.parametrize("name", ["DISALLOW", "dissallow", "disalow", " Disallow "])
def test_a_misspelled_refusal_is_one(name: str) -> None:
    assert not allowed(f"{name}: /a", "/a")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n"])
def test_any_line_end_will_do(end: str) -> None:
    assert not robots(f"User-agent: *{end}Disallow: /a{end}").allows("https://a.test/a")


def test_what_is_no_line_end_ends_no_line() -> None:
    assert allowed("Disallow: /a\u2028Disallow: /\x0bDisallow: /", "/b")


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert not robots("\ufeffUser-agent: *\nDisallow: /").allows("https://a.test/a")


def test_comments_are_cut_off() -> None:
    assert not robots("User-agent: * # all\nDisallow: /a# and below").allows("https://a.test/a/b")


def test_the_robots_txt_itself_is_always_allowed() -> None:
    assert allowed("Disallow: /", "/robots.txt")
    assert not allowed("Disallow: /", "/robots.txt.old")
    assert UNREACHABLE.allows("https://a.test/robots.txt")


@pytest.mark.parametrize("status", [300, 301, 304, 400, 401, 403, 404, 410, 418, 451, 499])
def test_no_robots_txt_forbids_nothing(status: int) -> None:
    assert read(status, b"User-agent: *\nDisallow: /") is ALLOW_ALL
    assert ALLOW_ALL.allows("https://a.test/a")
    assert ALLOW_ALL.known


@pytest.mark.parametrize("status", [0, 100, 408, 425, 429, 500, 503, 599, 600, 999])
def test_a_robots_txt_that_cannot_be_had_now_forbids_everything_for_now(status: int) -> None:
    assert read(status, b"User-agent: *\nAllow: /") is UNREACHABLE
    assert not UNREACHABLE.allows("https://a.test/a")
    assert not UNREACHABLE.known


def test_the_reason_can_be_told() -> None:
    told = robots("User-agent: *\nDisallow: /a\nDisallow: /*.pdf$\nAllow: /a/ü\nDisallow: /c$")

    assert told.why("https://a.test/a/b") == "Disallow: /a"
    assert told.why("https://a.test/x.pdf") == "Disallow: /*.pdf$"
    assert told.why("https://a.test/c") == "Disallow: /c$"
    assert told.why("https://a.test/a/%C3%BC") == "Allow: /a/%C3%BC"
    assert told.why("https://a.test/b") == ""
    assert UNREACHABLE.why("https://a.test/b") == "robots.txt could not be read"


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Crawl-delay: 2", 2),
        ("crawl-DELAY: 0.5", 0.5),
        ("Crawl-delay: .5", 0.5),
        ("Crawl-delay: 0", 0),
        ("Crawl-delay: 86400", LONGEST_DELAY),
        (f"Crawl-delay: {'9' * 300}", LONGEST_DELAY),
        ("Crawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2", 3),
        ("Request-rate: 1/5", 5),
        ("Request-rate: 30/1m", 2),
        ("Request-rate: 1/10s 0600-0845", 10),
        ("Request-rate: 1/1D", LONGEST_DELAY),
        ("Request-rate: 1/5\nCrawl-delay: 7", 7),
        *(
            (f"Crawl-delay: {value}", None)
            for value in ("", "-1", "inf", "nan", "x", "1_0", "\u0665", "1e3", "9" * 301)
        ),
        *((f"Request-rate: {value}", None) for value in ("", "0/5", "5", "/", "1/x", "-1/5", "1/5w")),
    ],
)
def test_the_delay_is_sane_or_none(line: str, seconds: float | None) -> None:
    assert robots(f"User-agent: *\n{line}").delay == seconds


def test_the_delay_is_that_of_our_group() -> None:
    text = "Crawl-delay: 9\nUser-agent: sanderling\nCrawl-delay: 1\nDisallow:\nUser-agent: *\nCrawl-delay: 5"

    assert robots(text).delay == 1
    assert robots(text, "other").delay == 5


def test_sitemaps_are_everyones_and_absolute() -> None:
    good = "Sitemap: HTTPS://A.test/s.xml\nsite-map: http://b.test/ü\n"
    bad = "Sitemap: /s\nSitemap: https:s\nSitemap: https://\nSitemap: ftp://a.test/\n"

    assert robots(good + bad + good).sitemaps == ("https://a.test/s.xml", "http://b.test/%C3%BC")


def test_sitemaps_are_counted() -> None:
    assert (
        len(robots("".join(f"Sitemap: https://a.test/{n}\n" for n in range(2 * MOST_SITEMAPS))).sitemaps)
        == MOST_SITEMAPS
    )


def test_what_lies_beyond_the_limit_is_not_read_and_the_line_on_it_neither() -> None:
    first, last = b"User-agent: *\nDisallow: /a\n#", b"\nDisallow: /"
    filled = first.ljust(MOST - len(last), b"#") + last + b"b\nDisallow: /c"

    for body in (filled, filled[:MOST]):
        assert [read(200, body).allows(f"https://a.test/{path}") for path in "abc"] == [False, True, True]


@pytest.mark.parametrize(
    ("line", "allowed"), [("Disallow /", False), ("disallow\t/a", False), ("Disallow / a", True), ("Disallow", True)]
)
def test_a_forgotten_colon_is_read_as_google_reads_it(line: str, allowed: bool) -> None:  # noqa: FBT001
    assert read(200, f"User-agent *\n{line}\n".encode()).allows("https://a.test/a") is allowed
