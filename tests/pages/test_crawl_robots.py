"""What robots.txt and sitemaps do to a crawl."""

from itertools import pairwise
from pathlib import Path

from small_web import Web, crawl, page, reply, web

from sanderling.fetch.guard import Refused
from sanderling.outcome import Code
from sanderling.pages.ends import End
from sanderling.pages.rules import CrawlRules

A = "http://a.example"


def robots(text: str) -> dict[str, object]:
    return {f"{A}/robots.txt": reply(200, text.encode(), Content_Type="text/plain")}


def test_what_it_refuses_is_not_asked_for(tmp_path: Path) -> None:
    site = web(**robots("User-agent: *\nDisallow: /private"), **{f"{A}/": page("/private/x", "/x"), f"{A}/x": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert site.urls == [f"{A}/", f"{A}/x"]
    assert (done.row(f"{A}/private/x")["outcome"], done.counts[End.REFUSED]) == (Code.REFUSED, 1)


def test_it_is_asked_for_once_and_first(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", "/y"), f"{A}/x": page(), f"{A}/y": page()})

    crawl(tmp_path / "out", site, f"{A}/")

    assert site.asked[0][1] == f"{A}/robots.txt"
    assert len(site.times(f"{A}/robots.txt")) == 1


def test_its_crawl_delay_is_kept(tmp_path: Path) -> None:
    site = web(
        **robots("User-agent: *\nCrawl-delay: 20"), **{f"{A}/": page("/x", "/y"), f"{A}/x": page(), f"{A}/y": page()}
    )

    crawl(tmp_path / "out", site, f"{A}/")

    times = [when for when, _ in site.asked]
    assert all(later - earlier >= 19.99 for earlier, later in pairwise(times))


def test_while_it_is_not_to_be_had_nothing_is_asked(tmp_path: Path) -> None:
    broken = [reply(503)] * 6
    site = Web({f"{A}/robots.txt": [*broken, reply(404)], f"{A}/": [page()]})

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(first_patience=600))

    assert site.urls == [f"{A}/"]
    assert done.counts[End.FETCHED] == 1
    assert site.times(f"{A}/")[0] > max(site.times(f"{A}/robots.txt"))


def test_if_it_is_never_to_be_had_the_host_is_given_up(tmp_path: Path) -> None:
    site = Web({f"{A}/robots.txt": [reply(500)], f"{A}/": [page()]})

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(patience=60))

    assert site.urls == []
    assert (done.complete, done.reasons) == (False, {"a.example": Code.HOST_UNAVAILABLE})


def test_a_host_that_our_own_guard_refuses_is_not_waited_for(tmp_path: Path) -> None:
    site = Web({f"{A}/robots.txt": [Refused("address 127.0.0.1 is loopback")]})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.row(f"{A}/")["outcome"], len(site.asked)) == (Code.REFUSED, 1)
    assert done.seconds < 2


def test_ten_megabytes_of_it_are_read_as_far_as_is_right(tmp_path: Path) -> None:
    long = "User-agent: *\nDisallow: /private\n" + "# filler\n" * 10**6
    site = web(**robots(long), **{f"{A}/": page("/private/x")})

    assert crawl(tmp_path / "out", site, f"{A}/").counts[End.REFUSED] == 1


def test_a_resumed_crawl_remembers_it(tmp_path: Path) -> None:
    numbers = range(60)
    site = web(
        **robots("User-agent: *\nDisallow: /private"),
        **{f"{A}/": page("/private/x", *(f"/{n}" for n in numbers)), **{f"{A}/{n}": page() for n in numbers}},
    )

    crawl(tmp_path / "out", site, f"{A}/", stop_after=3)
    crawl(tmp_path / "out", site, resume=True)

    assert len(site.times(f"{A}/robots.txt")) == 1


def test_sitemaps_it_names_are_read(tmp_path: Path) -> None:
    parts = "".join(f"<sitemap><loc>{A}/{name}.xml</loc></sitemap>" for name in ("one", "map"))  # itself, too
    index = f"<sitemapindex>{parts}</sitemapindex>"
    one = f"<urlset><url><loc>{A}/hidden</loc></url></urlset>"
    site = web(
        **robots(f"Sitemap: {A}/map.xml\n"),
        **{
            f"{A}/": page(),
            f"{A}/map.xml": reply(200, index.encode(), Content_Type="application/xml"),
            f"{A}/one.xml": reply(200, one.encode(), Content_Type="application/xml"),
            f"{A}/hidden": page(),
        },
    )

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/hidden")["outcome"] == Code.OK


def test_sitemaps_are_not_read_when_no_links_are_to_be_followed(tmp_path: Path) -> None:
    site = web(**robots(f"Sitemap: {A}/map.xml\n"), **{f"{A}/": page()})

    crawl(tmp_path / "out", site, f"{A}/", depth=0)

    assert site.urls == [f"{A}/"]
