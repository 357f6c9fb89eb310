"""Which hosts belong to a crawl, and the lists that people write of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.ids import normalise as spell
from sanderling.pages.urls import CrawlScope, UrlError, read_seeds


def scope(*allow: str) -> CrawlScope:
    return CrawlScope.of(["https://a.test/x"], allow, 3)


def test_a_crawl_stays_on_the_hosts_it_began_on() -> None:
    seeds = ["https://A.test/x", "http://b.test:8080/", "http://c.test:80/"]

    assert CrawlScope.of(seeds, [], 3) == CrawlScope(frozenset({"a.test", "b.test:8080", "c.test"}), 3)


@pytest.mark.parametrize("host", ["www.a.test", "a.test:8443", "test", "ba.test", "b.test", ""])
def test_other_hosts_are_not_allowed(host: str) -> None:
    assert scope().allows("a.test")
    assert not scope().allows(host)


def test_more_hosts_can_be_allowed_by_name() -> None:
    assert scope("B.test", "c.test:8080", " bücher.test ").hosts == {
        "a.test",
        "b.test",
        "c.test:8080",
        "xn--bcher-kva.test",
    }


def test_a_star_stands_for_the_host_and_all_below_it() -> None:
    starred = scope("*.B.test")

    assert all(map(starred.allows, ["b.test", "x.b.test", "x.y.b.test"]))
    assert not any(map(starred.allows, ["xb.test", "b.test.evil", "b.test:8080", "x.b.test:8080", "test"]))


def test_a_star_minds_the_port() -> None:
    assert scope("*.b.test:8080").allows("x.b.test:8080")
    assert not scope("*.b.test:8080").allows("x.b.test")


def test_a_port_that_one_scheme_implies_is_allowed_with_and_without() -> None:
    """In http://b.test:80/ it is not part of the host, in https://b.test:80/ it is."""
    assert scope("b.test:80").hosts == {"a.test", "b.test", "b.test:80"}


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("", "allowed host ''; expected a host like"),
        (" ", "allowed host ''; expected a host like"),
        ("*", "allowed host '\\*'; expected a host like"),
        ("*.", "host '' is empty"),
        ("*.*.b.test", "expected a host like"),
        ("b.*", "expected a host like"),
        ("*b.test", "expected a host like"),
        ("https://b.test", "is a URL; expected a bare host"),
        ("b.test/x", "is a URL; expected a bare host"),
        ("anna:secret@b.test", "has user info"),
        ("b.test:x", "expected its port"),
        ("b test", "has a space"),
    ],
)
def test_an_entry_that_is_no_host_is_refused(entry: str, fault: str) -> None:
    with pytest.raises(UrlError, match=fault) as refusal:
        scope(entry)

    assert "secret" not in str(refusal.value)


def test_a_seed_that_is_no_url_is_refused() -> None:
    with pytest.raises(UrlError, match="has no scheme; expected"):
        CrawlScope.of(["b.test"], [], 3)


def test_a_depth_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="depth is -1, expected 0 or more"):
        CrawlScope(frozenset(), -1)


def test_a_host_can_be_added_later() -> None:
    first = scope()

    assert first.with_host("www.a.test").allows("www.a.test")
    assert not first.allows("www.a.test")
    assert first.with_host("www.a.test").depth == 3


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda labels: ".".join([*labels, "test"]))


@given(NAMES, st.lists(st.tuples(st.booleans(), NAMES), max_size=4))
def test_allowed_is_what_is_listed_or_below_a_star(host: str, listed: list[tuple[bool, str]]) -> None:
    asked = CrawlScope.of([], [f"*.{name}" if star else name for star, name in listed], 0)

    expected = any(host == name or (star and f".{host}".endswith(f".{name}")) for star, name in listed)
    assert asked.allows(spell(host)) == expected


def test_seeds_are_read_line_by_line() -> None:
    text = "\ufeff# where to begin\n\nhttps://A.test\r\n  https://b.test/x#part  # a note\n\t#https://c.test\n"

    assert read_seeds(text, "urls.txt") == ["https://a.test/", "https://b.test/x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.test/x", "URL 'a.test/x' has no scheme; expected it to begin with https:// or http://"),
        ("a.test:81/x", "URL 'a.test:81/x' has another scheme; expected https or http"),
    ],
)
def test_a_seed_without_a_scheme_is_told_which_it_may_lack(line: str, message: str) -> None:
    with pytest.raises(UrlError) as refusal:
        read_seeds(f"https://a.test/\n\n{line}\n", "urls.txt")

    assert str(refusal.value) == f"urls.txt, line 3: {message}. Did you mean https://{line}?"


@pytest.mark.parametrize("line", ["ftp://a.test/", "//a.test/", "https://", "anna:secret@a.test", "a b"])
def test_a_seed_beyond_repair_is_named_with_its_line(line: str) -> None:
    with pytest.raises(UrlError, match=r"^urls\.txt, line 2: URL ") as refusal:
        read_seeds(f"\n{line}", "urls.txt")

    assert "Did you mean" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


@given(st.text())
def test_any_list_is_read_or_refused(text: str) -> None:
    try:
        seeds = read_seeds(text, "urls.txt")
    except UrlError as error:
        assert str(error).startswith("urls.txt, line ")  # noqa: PT017 - any other error is what this test is about
    else:
        assert all(seed.startswith("http") for seed in seeds)
