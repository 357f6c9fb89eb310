"""A job can what `pages crawl` can, and the other way round."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, job_options, lines, page, pages_options, rows, served

from sanderling.crawl import system
from sanderling.files import Exit, FolderError
from sanderling.records.selection import Selection

pytestmark = pytest.mark.real

JOB = """
from sanderling import Job

job = Job("parity", start="BASE/", sitemaps=True, conditional=True)


@job.page("/", status=(301,))
def front(page):
    yield {"at": page.url}
    yield from page.links()


@job.page("/**", status=(301,))
def other(page):
    yield {"at": page.url, "status": page.status, "to": page.header("Location")}
    yield from page.follow_all("a")
"""


def tagged(text: str) -> Callable[[web.Request], Answer]:
    def answer(request: web.Request) -> Answer:
        if request.headers.get("If-None-Match") == '"1"':
            return 304, {}, ""
        return 200, {**HTML, "ETag": '"1"'}, text

    return answer


async def test_a_job_reads_sitemaps_and_redirects_and_what_has_changed(tmp_path: Path) -> None:
    listed = "<urlset><url><loc>BASE/listed</loc></url><url><loc>BASE/blog/no</loc></url></urlset>"
    site, out, file = Site({}), tmp_path / "out", tmp_path / "job.py"
    async with served(site):
        site.robots = (200, {}, f"Sitemap: {site.base}/map.xml\nUser-agent: *\nDisallow: /closed\n")
        site.pages = {
            "/": tagged(page("Front", links=["/a", "/moved", "/closed", "/blog/1"])),
            "/a": tagged(page("A", links=["/b"])),
            "/b": page("B"),
            "/moved": (301, {"Location": "/new"}, ""),
            "/new": page("New"),
            "/listed": page("Listed"),
            "/map.xml": (200, {"Content-Type": "text/xml"}, listed.replace("BASE", site.base)),
        }
        file.write_text(JOB.replace("BASE", site.base))
        for _ in range(2):
            code, _ = await crawl(job_options(out, file, skip=("/blog/**",)))
            assert not (await system.verify(out)).faults
        with pytest.raises(FolderError, match="skip"):
            await crawl(job_options(out, file, skip=("/b",)))

    assert code == Exit.DONE  # what robots.txt refuses has not failed
    once = ["/", "/a", "/b", "/listed", "/map.xml", "/moved", "/new"]
    assert sorted(site.requests) == sorted(2 * once)
    found = [(each["at"].removeprefix(site.base), each["run"]) for each in lines(out / "records.jsonl")]
    changing = ["/b", "/listed", "/moved", "/new"]
    assert sorted(found) == sorted([("/", 1), ("/a", 1)] + [(url, run) for url in changing for run in (1, 2)])
    moved = next(each for each in lines(out / "records.jsonl") if each["at"] == site.base + "/moved")
    assert (moved["status"], moved["to"]) == (301, "/new")
    assert [row["end"] for row in rows(out, "failed.jsonl").values()] == ["refused"]
    with system.records(out) as reader:  # what has not changed is the latest of its page, though of run 1
        latest = [each["at"].removeprefix(site.base) for each in Selection(latest=True).records(reader)]
        new = [each["at"].removeprefix(site.base) for each in Selection(since=2).records(reader)]
    assert sorted(latest) == ["/", "/a", *changing]
    assert sorted(new) == changing


async def test_pages_that_did_not_change_are_among_the_latest(tmp_path: Path) -> None:
    site = Site({"/": tagged(page("Front"))})
    async with served(site):
        for _ in range(2):
            await crawl(pages_options(tmp_path, site.base + "/"))
    with system.records(tmp_path) as reader:
        (latest,) = Selection(latest=True).records(reader)
    assert (latest["outcome"], latest["title"]) == ("OK", "Front")


async def test_what_matches_first_is_requested_before_the_rest(tmp_path: Path) -> None:
    links = [f"/shop/{n}" for n in range(20)] + [f"/blog/{n}" for n in range(5)]
    site = Site({"/": page("Front", links=links), "*": page("Page")})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/", first=("/blog/**",), rps=200, policy="governor"))
    assert sorted(site.requests[1:6]) == [f"/blog/{n}" for n in range(5)]


async def test_a_domain_is_bounded_over_its_hosts_and_over_runs(tmp_path: Path) -> None:
    sites = Site({"*": page("Page")}), Site({"*": page("Page")})
    async with served(*sites):
        for site in sites:
            site.base = site.base.replace("127.0.0.1", "localhost")
        links = [f"{site.base}/{n}" for site in sites for n in range(20)]
        sites[0].pages = {"/": page("Front", links=links), "*": page("Page")}
        given: dict[str, Any] = {"allow": (sites[1].base.partition("//")[2],), "max_same_text": 0, "max_per_domain": 15}
        code, _ = await crawl(pages_options(tmp_path, sites[0].base + "/", **given, max_pages=8))
        assert code == Exit.DONE
        code, run = await crawl(pages_options(tmp_path, max_pages=1000))

    assert code == Exit.WAITING
    assert len(rows(tmp_path)) == 15
    assert any("--max-per-domain 15" in each for each in run.report().troubles)
    assert not (await system.verify(tmp_path)).faults
