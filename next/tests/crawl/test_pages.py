"""Pages: what becomes of each address of a site, in which row."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, lines, page, pages_options, rows, served

from sanderling.clock import SystemClock
from sanderling.crawl.system import open_run, retry, verify
from sanderling.files import Exit, FolderError
from sanderling.observe.control import ControlRequest
from sanderling.options import OptionError

pytestmark = pytest.mark.real


async def test_each_address_ends_once_with_its_row(tmp_path: Path) -> None:
    site = Site(
        {
            "/": page(
                "Front", links=["/a", "/b?utm_source=x", "/gone", "/old", "http://elsewhere.invalid/", "/closed/x"]
            ),
            "/a": page("A", links=["/", "/b"]),
            "/b": page("B"),
            "/old": (301, {"Location": "/new"}, ""),
            "/new": page("New"),
        },
        robots=(200, {}, "User-agent: *\nDisallow: /closed/\n"),
    )
    async with served(site):
        code, _ = await crawl(pages_options(tmp_path, site.base + "/"))
        found, failed = rows(tmp_path), rows(tmp_path, "failed.jsonl")

    assert code == Exit.FAILED
    assert {url.removeprefix(site.base): row.get("title") for url, row in found.items()} == {
        "/": "Front", "/a": "A", "/b": "B", "/old": None, "/new": "New",
    }  # fmt: skip
    assert found[site.base + "/old"]["moved_to"] == site.base + "/new"
    assert all(row["run"] == 1 and row["stored"].endswith("Z") for row in found.values())
    assert {(row["end"], row["outcome"]) for row in failed.values()} == {
        ("failed", "CONTENT_NOT_FOUND"), ("refused", "REFUSED"),
    }  # fmt: skip
    assert sorted(site.requests) == ["/", "/a", "/b", "/gone", "/new", "/old"]
    assert site.robots_requests == 1
    assert not (await verify(tmp_path)).faults


async def test_a_crawl_that_was_stopped_goes_on(tmp_path: Path) -> None:
    site = Site({f"/{n}": page(f"Page {n}", links=[f"/{n + 1}", f"/{n + 2}"]) for n in range(40)})
    async with served(site):
        options = pages_options(tmp_path, site.base + "/0", depth=100, max_pages=15)
        code, _ = await crawl(options)
        assert (code, len(rows(tmp_path))) == (Exit.DONE, 15)
        await crawl(pages_options(tmp_path, max_pages=100))
        found = rows(tmp_path)

    assert len(found) == 40
    assert len(site.requests) == len(set(site.requests)) == 42
    assert not (await verify(tmp_path)).faults


async def test_what_has_not_changed_says_so_and_leads_on(tmp_path: Path) -> None:
    def versioned(request: web.Request) -> Answer:
        if request.headers.get("If-None-Match") == '"1"':
            return 304, {}, ""
        links = ['/b" rel="nofollow', "/c"]
        return 200, {**HTML, "ETag": '"1"'}, page("A", links=links)

    site = Site({"/": versioned, "/b": page("B"), "/c": page("C")})
    async with served(site):
        for _ in range(3):
            await crawl(pages_options(tmp_path, site.base + "/"))
            assert not (await verify(tmp_path)).faults

    assert [target for target in site.requests if target != "/b"] == ["/", "/c"] * 3
    assert "/b" not in site.requests
    found = [
        (row["url"].removeprefix(site.base), row["run"], row["outcome"]) for row in lines(tmp_path / "pages.jsonl")
    ]
    assert found == [
        ("/", 1, "OK"), ("/c", 1, "OK"), ("/", 2, "NOT_MODIFIED"), ("/c", 2, "OK"), ("/", 3, "NOT_MODIFIED"),
        ("/c", 3, "OK"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "headers", "shown", "followed"),
    [
        ("", {}, True, True),
        ('<meta name="robots" content="noindex">', {}, False, True),
        ('<meta name="sanderling" content="nofollow">', {}, True, False),
        ("", {"X-Robots-Tag": "none"}, False, False),
        ("", {"X-Robots-Tag": "otherbot: none"}, True, True),
        ("", {"X-Robots-Tag": "unavailable_after: 25 Jun 2010 15:00:00 GMT"}, False, True),
    ],
)
async def test_what_a_page_says_to_robots(
    tmp_path: Path, head: str, headers: dict[str, str], shown: bool, followed: bool
) -> None:
    first = page("Front", "These are some words of the English language, so that it is known.", ["/a"], head)
    site = Site({"/": (200, {**HTML, **headers}, first), "/a": page("A")})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/"))

    row = rows(tmp_path)[site.base + "/"]
    assert ("title" in row, "text" in row, "language" in row, "links" in row) == (shown, shown, shown, shown)
    assert ("/a" in site.requests) == followed


async def test_walls_that_lead_back_and_redirects_that_do_not(tmp_path: Path) -> None:
    def wall(request: web.Request) -> Answer:
        if "consent=yes" in request.headers.get("Cookie", ""):
            return 200, HTML, page("Behind the wall")
        return 302, {"Location": "/consent?back=/wall"}, ""

    def gate(request: web.Request) -> Answer:
        if "gate=open" in request.headers.get("Cookie", ""):
            return 200, HTML, page("Behind the gate")
        return 302, {"Location": "/gate", "Set-Cookie": "gate=open"}, ""

    site = Site(
        {
            "/": page("Front", links=["/wall", "/gate", "/itself", "/moved"]),
            "/wall": wall,
            "/consent?back=/wall": (302, {"Location": "/wall", "Set-Cookie": "consent=yes"}, ""),
            "/gate": gate,
            "/itself": (302, {"Location": "/itself"}, ""),
            "/moved": (302, {"Location": "/new?from=/moved"}, ""),
            "/new?from=/moved": page("New"),
        }
    )
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/"))

    found, failed = rows(tmp_path), rows(tmp_path, "failed.jsonl")
    assert found[site.base + "/wall"]["title"] == "Behind the wall"
    assert found[site.base + "/gate"]["title"] == "Behind the gate"
    assert failed[site.base + "/itself"]["outcome"] == "REDIRECT_LOOP"
    assert found[site.base + "/moved"]["moved_to"] == site.base + "/new?from=/moved"
    assert found[site.base + "/new?from=/moved"]["title"] == "New"


async def test_what_is_in_scope_and_what_is_left_out(tmp_path: Path) -> None:
    site, other = Site({"*": (200, HTML, page("Other"))}), Site({"*": (200, HTML, page("Other"))})
    async with served(site, other):
        links = ["/blog/1", "/blog/login", "/shop/1", "/people/ann", "/people/bob/cv", f"{other.base}/blog/2"]
        site.pages = {"/": page("Front", links=links), "*": (200, HTML, page("Page"))}
        out = tmp_path / "out.txt"
        out.write_text(f"# who wrote to us\n{site.base}/people/ann\n{site.base}/people/bob/*\n")
        await crawl(
            pages_options(
                tmp_path / "a", site.base + "/", only=("/blog/**", "/people/**"), skip=("/**/login",), leave_out=out
            )
        )
        assert sorted(site.requests) == ["/", "/blog/1"]
        ends = rows(tmp_path / "a", "failed.jsonl").values()
        assert {row["end"] for row in ends} == {"left_out"}
        assert not other.requests
        assert not other.robots_requests

        await crawl(pages_options(tmp_path / "b", site.base + "/", allow=(other.base.partition("//")[2],)))
        assert other.requests == ["/blog/2"]

        with pytest.raises(FolderError, match="only"):
            await crawl(pages_options(tmp_path / "a", only=("/shop/**",)))
        out.write_text("http://[broken")
        with pytest.raises(FolderError, match="line 1"):
            await crawl(pages_options(tmp_path / "a", leave_out=out))


async def test_bounds_say_what_they_cut_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    site = Site({"/": page("Front", links=[f"/{n}" for n in range(9)]), "*": (200, HTML, page("Page"))})
    async with served(site):
        code, run = await crawl(pages_options(tmp_path, site.base + "/", max_per_host=4))
        report = run.report(running=False)

        assert (code, len(site.requests)) == (Exit.WAITING, 4)
        assert any("--max-per-host 4" in each for each in report.troubles)
        assert report.hints[-1].words == ("pages", "crawl", "--out", str(tmp_path), "--max-per-host", "16")
        assert not (await verify(tmp_path)).faults

        code, _ = await crawl(pages_options(tmp_path, max_per_host=100))

    assert (code, len(site.requests), len(set(site.requests))) == (Exit.DONE, 10, 10)


async def test_a_depth_is_kept_and_counted(tmp_path: Path) -> None:
    site = Site({f"/{n}": page(f"Page {n}", links=[f"/{n + 1}"]) for n in range(9)})
    async with served(site):
        code, run = await crawl(pages_options(tmp_path, site.base + "/0", depth=2))

    assert (code, site.requests) == (Exit.DONE, ["/0", "/1", "/2"])
    assert next(fact.value for fact in run.report().facts if fact.name == "at_depth") == 1


async def test_sitemaps_are_read_whoever_names_them(tmp_path: Path) -> None:
    def listed(*urls: str, kind: str = "urlset", item: str = "url") -> Answer:
        inner = "".join(f"<{item}><loc>{site.base}{url}</loc></{item}>" for url in urls)
        return 200, {"Content-Type": "application/xml"}, f"<{kind}>{inner}</{kind}>"

    site = Site({"/": page("Front", links=["/sitemap-2.xml"]), "*": (200, HTML, page("Page"))})
    async with served(site):
        site.robots = (200, {}, f"Sitemap: {site.base}/index.xml\n")
        site.pages |= {
            "/index.xml": listed("/map.xml", "/lost.xml", kind="sitemapindex", item="sitemap"),
            "/map.xml": listed("/a", "/b"),
            "/sitemap-2.xml": listed("/c"),
            "/lost.xml": (404, HTML, "no"),
        }
        await crawl(pages_options(tmp_path, site.base + "/", depth=1))

    assert {url.removeprefix(site.base): row["depth"] for url, row in rows(tmp_path).items()} == {
        "/": 0, "/a": 1, "/b": 1, "/c": 1,
    }  # fmt: skip


async def test_a_crawl_that_goes_on_keeps_its_pace(tmp_path: Path) -> None:
    site = Site({"/": page("Front", links=["/a"]), "/a": page("A")})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/", rps=3.0, max_pages=1))
        async with open_run(pages_options(tmp_path), SystemClock()) as run:
            assert run.parts.limiter.limits.max_rps == 3.0
        async with open_run(pages_options(tmp_path, rps=5.0), SystemClock()) as run:
            assert run.parts.limiter.limits.max_rps == 5.0
        with pytest.raises(FolderError, match="depth=100, not 3"):
            await crawl(pages_options(tmp_path, depth=3))


async def test_a_report_says_what_was_sent_and_a_run_why(tmp_path: Path) -> None:
    site = Site({"/": page("Front", links=["/a"]), "/a": page("A")})
    site.robots = (200, {}, "Disallow: /no\n" * 3000)  # which is read in a thread
    async with served(site):
        _, run = await crawl(pages_options(tmp_path, site.base + "/"))

    (host,) = run.report().hosts
    assert host.rate > 0
    assert host.allowed is None  # by the policy none
    assert await run.carry_out(ControlRequest("1", "why", (host.host,))) == "policy none: requests are not paced"
    assert "not requested" in await run.carry_out(ControlRequest("2", "why", ("elsewhere.invalid",)))


async def test_failures_that_are_retried_fail_again_by_their_own_fault(tmp_path: Path) -> None:
    def cut(request: web.Request) -> Answer:
        return 200, {**HTML, "Content-Encoding": "gzip"}, b"no gzip"

    pages = {f"/bad/{n}": cut for n in range(12)} | {f"/{n}": page(f"Page {n}") for n in range(20)}
    site = Site({"/": page("Front", links=list(pages)), **pages})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/"))
        before = len(site.requests)
        assert await retry(tmp_path, "failed", None, None) == 12
        code, _ = await crawl(pages_options(tmp_path))

    assert code == Exit.FAILED
    assert len(site.requests) == before + 12
    assert {row["outcome"] for row in rows(tmp_path, "failed.jsonl").values()} == {"BAD_ENCODING"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "URL is missing"),
        ({"urls": ("http://127.0.0.1:1/",), "only": ("blog",)}, "begins with a slash"),
        ({"urls": ("http://127.0.0.1:1/",), "allow": ("*",)}, r"allow: '\*' is not a host"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_is_requested(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        await crawl(pages_options(tmp_path, **given))


def test_a_host_to_allow_has_one_spelling(tmp_path: Path) -> None:
    assert pages_options(tmp_path, allow=("*.EXAMPLE.org", "b.Example:80")).allow == ("*.example.org", "b.example:80")
