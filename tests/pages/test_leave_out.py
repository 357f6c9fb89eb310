"""What is listed is never asked for, counted, and said to be left out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_web import crawl, page, reply, web

from sanderling.formats.list_file import ListError
from sanderling.ids import host_of
from sanderling.outcome import Code
from sanderling.pages.leave_out import ExcludedUrls
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import UrlError, normalise
from sanderling.stores.frontier_rows import End

A, B = "http://a.example", "http://b.example"


def out(line: str, url: str) -> str:
    spelled = normalise(url)
    return ExcludedUrls.of(line).why(spelled, host_of(spelled))


@pytest.mark.parametrize(
    ("line", "url", "why"),
    [
        ("https://a.example/ann", "https://a.example/ann", "a.example/ann"),
        ("https://A.example:443/%61nn?utm_source=x", "https://a.example/ann", "a.example/ann"),
        ("https://a.example/ann", "http://a.example/ann", "a.example/ann"),  # nobody means one of them
        ("https://a.example/ann", "https://a.example/anna", ""),
        ("https://a.example/ann", "https://a.example/ann?x=1", ""),
        ("https://a.example/ann", "https://www.a.example/ann", ""),
        ("https://a.example/ann*", "https://a.example/anna", "a.example/ann*"),
        ("https://a.example/people/*", "https://a.example/people/ann/1", "a.example/people/*"),
        ("https://a.example/people/*", "https://a.example/people", ""),
        ("https://a.example/find?q=*", "https://a.example/find?q=ann", "a.example/find?q=*"),
        ("https://a.example/*", "https://a.example/", "a.example/*"),
        ("a.example", "https://a.example/x", "a.example"),
        ("a.example", "https://b.a.example/x", ""),
        ("a.example", "http://a.example:8080/x", ""),
        ("a.example:8080", "http://a.example:8080/x", "a.example:8080"),
        ("*.a.example", "https://b.a.example/x", "b.a.example"),
        ("*.a.example", "https://a.example/x", "a.example"),
    ],
)
def test_a_line_means_a_url_or_all_that_begin_so_or_a_host(line: str, url: str, why: str) -> None:
    assert out(line, url) == why


@pytest.mark.parametrize(
    "line",
    [
        "a.example/people",
        "https://a.example*",
        "https://a.example/?*",
        "ftp://a.example/",
        "https://",
        "a example",
        "*",
        "https://user:secret@a.example/",
    ],
)
def test_what_is_no_line_is_said_with_what_was_expected(tmp_path: Path, line: str) -> None:
    (tmp_path / "out.txt").write_text(f"# who wrote to us\nhttps://a.example/ann\n{line}\n")

    with pytest.raises(ListError, match=r"out\.txt, line 3: .*expected a URL like") as caught:
        ExcludedUrls.read(tmp_path / "out.txt")
    assert "secret" not in str(caught.value)
    with pytest.raises(UrlError):
        ExcludedUrls.of(line)


@given(st.lists(st.text("ab/", max_size=4), max_size=8), st.text("ab/", max_size=6))
def test_a_url_is_left_out_if_it_begins_with_any_of_the_beginnings(beginnings: list[str], path: str) -> None:
    lines = [f"https://a.example/x{each}*" for each in beginnings]
    url = f"https://a.example/x{path}"

    assert bool(ExcludedUrls.of(*lines).why(url, "a.example")) == any(path.startswith(each) for each in beginnings)


def test_what_is_listed_is_not_asked_for_and_counted(tmp_path: Path) -> None:
    """Neither as a link, nor where a redirect leads; a host that is left out is not even asked for its robots.txt."""
    site = web(
        **{
            f"{A}/": page("/ann", "/bob", "/moved", f"{B}/"),
            f"{A}/ann": page(),
            f"{A}/bob": page(),
            f"{A}/moved": reply(301, Location="/people/ann"),
            f"{A}/people/ann": page(),
            f"{B}/": page(),
        }
    )
    listed = ExcludedUrls.of(f"{A}/ann", f"{A}/people/*", "b.example")

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], rules=CrawlRules(leave_out=listed))

    assert [url for _, url in site.asked] == [f"{A}/robots.txt", f"{A}/", f"{A}/bob", f"{A}/moved"]
    assert (done.complete, done.counts[End.LEFT_OUT], done.counts[End.FETCHED]) == (True, 3, 2)
    row = done.row(f"{A}/people/ann")
    assert (row["end"], row["outcome"], row["detail"]) == ("left_out", Code.REFUSED, "left out: a.example/people/*")


def test_a_robots_txt_that_has_moved_to_what_is_listed_is_not_asked_for(tmp_path: Path) -> None:
    """Its redirects are followed at once, and no list is looked at on the way but by the client."""
    site = web(
        **{f"{A}/robots.txt": reply(301, Location=f"{B}/robots.txt"), f"{A}/": page(), f"{B}/robots.txt": page()}
    )

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(leave_out=ExcludedUrls.of("b.example")))

    assert [url for _, url in site.asked] == [f"{A}/robots.txt"]
    assert done.row(f"{A}/")["detail"] == "robots.txt: left out: b.example"


def test_each_run_goes_by_its_own_list(tmp_path: Path) -> None:
    """What is listed no more is asked for. Without a list what was left out stays so: a flag is soon forgotten."""
    links = [f"/{number}" for number in range(60)]
    site = web(**{f"{A}/": page("/ann", "/bob", *links), f"{A}/ann": page(), f"{A}/bob": page()})
    both, bob = ExcludedUrls.of(f"{A}/ann", f"{A}/bob"), ExcludedUrls.of(f"{A}/bob")

    first = crawl(tmp_path / "out", site, f"{A}/", stop_after=1, rules=CrawlRules(leave_out=both))
    second = crawl(tmp_path / "out", site, resume=True, stop_after=1)
    third = crawl(tmp_path / "out", site, resume=True, rules=CrawlRules(leave_out=bob))

    assert [each.counts[End.LEFT_OUT] for each in (first, second, third)] == [2, 2, 1]
    assert (site.times(f"{A}/ann") != [], site.times(f"{A}/bob")) == (True, [])


def test_a_page_that_was_kept_is_left_out_of_the_next_crawl(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/ann", ETag='"1"'), f"{A}/ann": page()})

    crawl(tmp_path / "out", site, f"{A}/")
    again = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(leave_out=ExcludedUrls.of(f"{A}/ann")))

    assert again.fetched == [f"{A}/"]
    assert len(site.times(f"{A}/ann")) == 1
