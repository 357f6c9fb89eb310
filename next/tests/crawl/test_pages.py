"""Pages: what becomes of each address of a site, in which row."""

from pathlib import Path

import pytest
from crawl.sites import Site, crawl, page, pages_options, rows, served

from sanderling.crawl.system import verify
from sanderling.files import Exit

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
