"""What robots.txt and sitemaps do to a crawl."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from small_web import Web, crawl, page, reply, web

from sanderling.fetch.guard import Refused
from sanderling.outcome import Code
from sanderling.pages.extract import ReadRules
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.rules import CrawlRules
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task

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


def listing(kind: str, *urls: str) -> Reply:
    entries = "".join(f"<{kind}><loc>{url}</loc></{kind}>" for url in urls)
    root = "sitemapindex" if kind == "sitemap" else "urlset"
    return reply(200, f"<{root}>{entries}</{root}>".encode(), Content_Type="application/xml", ETag='"1"')


def unchanging(**answers: Any) -> Web:  # noqa: ANN401 - answers, as for `web`
    """A web that says of all it has given an ETag that it has not changed."""

    class Unchanging(Web):
        async def send(self, task: Task) -> Reply:
            answer = await super().send(task)
            return replace(answer, status=304, body=b"") if dict(task.headers).get("If-None-Match") else answer

    return Unchanging({url: [answer] for url, answer in answers.items()})


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("named", ["in robots.txt", "by a redirect", "as the first address"])
def test_sitemaps_are_no_links_on_the_way_to_what_they_list(tmp_path: Path, depth: int, named: str) -> None:
    """A listed page is one link from the beginning, by however many indexes; also when all is crawled once more."""
    first = f"{A}/old.xml" if named == "by a redirect" else f"{A}/map.xml"
    seed = first if named == "as the first address" else f"{A}/"
    parts = [f"{A}/part{number}.xml" for number in range(3)]
    pages = [f"{A}/{number}" for number in range(9)]
    site = unchanging(
        **robots("" if seed == first else f"Sitemap: {first}\n"),
        **{f"{A}/": page(), f"{A}/old.xml": reply(301, Location="/map.xml")},
        **{
            f"{A}/map.xml": listing("sitemap", f"{A}/inner.xml"),
            f"{A}/inner.xml": listing("sitemap", *parts, f"{A}/l.txt"),
        },
        **{part: listing("url", *pages[2 * number : 2 * number + 2]) for number, part in enumerate(parts)},
        **{f"{A}/l.txt": reply(200, "\n".join(pages[6:]).encode(), Content_Type="text/plain")},
        **{url: page(f"{url}-deeper") for url in pages},
        **{f"{url}-deeper": page() for url in pages},
    )

    for _ in range(2):
        done = crawl(tmp_path / "out", site, seed, depth=depth)

        assert {row["url"]: row["depth"] for row in done.rows if row["url"] in pages} == dict.fromkeys(pages, 1)
        assert sum("deeper" in url for url in done.fetched) == 9 * (depth - 1)


def test_sitemaps_that_list_ever_more_sitemaps_come_to_an_end(tmp_path: Path) -> None:
    class Endless(Web):
        async def send(self, task: Task) -> Reply:
            number = len(self.asked)
            self.answers[task.url] = self.answers.get(task.url) or [listing("sitemap", f"{A}/{number}.xml")]
            return await super().send(task)

    site = Endless({f"{A}/robots.txt": [reply(200, f"Sitemap: {A}/map.xml\n".encode())], f"{A}/": [page()]})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.complete, len(site.urls)) == (True, 6)


def test_sitemaps_are_not_read_when_no_links_are_to_be_followed(tmp_path: Path) -> None:
    site = web(**robots(f"Sitemap: {A}/map.xml\n"), **{f"{A}/": page()})

    crawl(tmp_path / "out", site, f"{A}/", depth=0)

    assert site.urls == [f"{A}/"]


def mapped(seed: Reply, **more: Reply) -> Web:
    pages = [f"{A}/{number}" for number in range(6)]
    listed = {f"{A}/sitemap.xml": listing("sitemap", f"{A}/one.xml", f"{A}/two.xml")}
    listed |= {f"{A}/one.xml": listing("url", *pages[:3]), f"{A}/two.xml": listing("url", *pages[3:])}
    return web(**{f"{A}/": seed}, **listed, **{url: page() for url in pages}, **more)


def test_a_sitemap_costs_no_depth_on_the_deepest_page_either(tmp_path: Path) -> None:
    site = mapped(page("/deep"), **{f"{A}/deep": page("/sitemap.xml", "/deeper", "/about-sitemap")})

    done = crawl(tmp_path / "out", site, f"{A}/", depth=1)

    assert {row["depth"] for row in done.rows if row["url"][-1].isdigit()} == {1}
    assert len(done.fetched) == 2 + 3 + 6


def test_sitemaps_count_as_no_page(tmp_path: Path) -> None:
    """Neither in one run, nor in all runs together."""
    site = mapped(page("/sitemap.xml"))

    first = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(max_pages=3))
    assert first.counts[End.FETCHED] == 3 + 3

    with CrawlFolder.open(tmp_path / "out", None, resume=True, wall=0) as folder:
        folder.ledger.reopen(End.LEFT)
    second = crawl(tmp_path / "out", site, resume=True, rules=CrawlRules(max_pages=5))
    assert second.counts[End.FETCHED] == 5 + 3


def test_what_the_server_asks_of_robots_is_heeded(tmp_path: Path) -> None:
    answers = {
        f"{A}/": page("/n", "/i", "/j", "/p", X_Robots_Tag="otherbot: none"),
        f"{A}/n": page("/hidden", X_Robots_Tag="nofollow"),
        f"{A}/i": page("/shown", X_Robots_Tag="noindex"),
        f"{A}/j": reply(200, b'{"a": 1}', Content_Type="application/json", X_Robots_Tag="sanderling: none"),
        f"{A}/p": reply(200, b"%PDF-1.7", Content_Type="application/pdf", X_Robots_Tag="noindex"),
        f"{A}/shown": page(),
        f"{A}/hidden": page(),
    }

    done = crawl(tmp_path / "out", web(**answers), f"{A}/")

    assert set(done.fetched) == {f"{A}/", f"{A}/n", f"{A}/i", f"{A}/j", f"{A}/p", f"{A}/shown"}
    for path in "ijp":
        row = done.row(f"{A}/{path}")
        assert row["detail"] == "noindex: what it says is not kept"
        assert not row.keys() & {"title", "json", "body_path"}
        assert not row.get("text")


def test_a_row_says_what_was_cut_and_by_which_limit(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/1", "/2", "/3"), f"{A}/1": page()})

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(reading=ReadRules(links=1)))

    assert done.row(f"{A}/")["detail"] == "cut: 2 links behind the first 1 (max-links)"
    assert set(done.fetched) == {f"{A}/", f"{A}/1"}
