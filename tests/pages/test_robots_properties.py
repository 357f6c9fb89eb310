"""What holds for every robots.txt, hostile ones too."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.robots import LONGEST_DELAY, Rules, read
from sanderling.pages.urls import normalise

PATTERNS = st.lists(st.sampled_from(["/", "a", "b", "*", "$", "?", "%2F", "%61"]), min_size=1, max_size=7).map("".join)
PATHS = st.lists(st.sampled_from(["/", "a", "b", "?", "%2F"]), max_size=8).map("".join)


def obvious(rules: list[tuple[bool, str]], path: str) -> bool:
    """Try every rule, by a regular expression; slow for long ones, and plainly right."""
    found = [(0, True)]
    for allow, written in rules:
        pattern = written.replace("%61", "a")
        body, end = (pattern[:-1], r"\Z") if pattern.endswith("$") else (pattern, "")
        length = len(pattern) + 2 * body.count("$")
        if re.match(".*".join(map(re.escape, body.replace("$", "%24").split("*"))) + end, path):
            found.append((length, allow))
    return max(found)[1]


@given(st.lists(st.tuples(st.booleans(), PATTERNS), max_size=6), PATHS)
def test_the_rule_that_counts_is_the_one_an_obvious_search_finds(rules: list[tuple[bool, str]], path: str) -> None:
    front, mark, query = f"/{path}".partition("?")
    plain = front + mark + query.replace("%2F", "/")
    spelled = [
        (allow, re.sub(r"(?<=\?)(.*)", lambda found: found[0].replace("%2F", "/"), text)) for allow, text in rules
    ]

    assert Rules.of(rules).deciding(plain)[1] == obvious(spelled, plain)


PIECES = [
    "User-agent",
    "Disallow",
    "Allow",
    "Crawl-delay",
    "Sitemap",
    ":",
    "*",
    "sanderling",
    "/",
    "%",
    "$",
    "#",
    "\r",
    "\n",
]
LINES = st.lists(st.sampled_from([*PIECES, " ", "\0", "\ufeff", "ü", "1", "https://a.test"]), max_size=60).map("".join)


@given(st.binary() | LINES.map(str.encode), st.integers(0, 999))
def test_any_bytes_are_a_robots_txt(body: bytes, status: int) -> None:
    read_so = read(status, body)

    assert read_so.allows("https://a.test/x?y=%2F") in (True, False)
    assert read_so.delay is None or 0 <= read_so.delay <= LONGEST_DELAY
    assert all(normalise(sitemap) == sitemap for sitemap in read_so.sitemaps)


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: *\nDisallow: /" + "x" * 10_000_000,
        "User-agent: *\nDisallow: /" + "*a" * 200_000 + "*b",
        "".join(f"User-agent:a{n}\n" for n in range(16_000)) + "Disallow:/a\n" * 16_000,
        "User-agent:*\nDisallow:/x\n" * 20_000,
        "User-agent: *\n" + "".join(f"Disallow:/*{n}\n" for n in range(20_000)),
        "User-agent: *\n" + ("Disallow: /*" + "a" * 100 + "ba\n") * 4000,
        "User-agent: *\n" + "".join(f"Disallow: /{'a' * n}b\n" for n in range(900)),
        "User-agent: *\nCrawl-delay: " + "9" * 400_000,
        "Sitemap: https:/\n" * 30_000,
        "\0" * 500_000,
        ":\n" * 250_000,
    ],
    ids=range(11),
)
def test_a_hostile_file_takes_no_time_beyond_its_length(text: str) -> None:
    """Work that grows with the square of it, or faster, would meet the time limit of the suite."""
    assert read(200, text.encode()).allows("https://a.test/" + "a" * 1900)
