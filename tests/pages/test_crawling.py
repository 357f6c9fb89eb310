"""Pages as a function: as the command does it, and in the same folder."""

import asyncio
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from looping import in_loop
from scripted_server import ScriptedServer, answer

from sanderling.pages.crawling import crawl_pages
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError


def page(*links: str) -> bytes:
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return answer(200, f"<html><body><p>{anchors}</p></body></html>".encode(), Content_Type="text/html", ETag='"1"')


@in_loop
async def test_every_page_is_a_row_and_every_url_accounted_for(tmp_path: Path) -> None:
    async with ScriptedServer({"/": [page("/a", "/lost")], "/a": [page("/")]}) as server:
        url = server.url()
        crawled = await crawl_pages([url], tmp_path / "site", rps=50, private=True)

    rows = [json.loads(line) for line in crawled.rows.read_text().splitlines()]
    assert (crawled.complete, crawled.fetched, crawled.failed) == (True, 2, 1)
    assert {row["url"] for row in rows if row["outcome"] == "OK"} == {url, f"{url}a"}
    assert verify(tmp_path / "site").ok


@in_loop
async def test_called_again_it_fetches_what_changed(tmp_path: Path) -> None:
    async with ScriptedServer({"/": [page(), answer(304)]}) as server:
        await crawl_pages([server.url()], tmp_path / "site", rps=50, private=True)
        again = await crawl_pages([server.url()], tmp_path / "site", rps=50, private=True)

    assert (again.complete, again.fetched, again.failed) == (True, 1, 0)
    assert server.requests[-1].headers["if-none-match"] == '"1"'


@in_loop
async def test_with_every_it_goes_on_until_it_is_cancelled(tmp_path: Path) -> None:
    async with ScriptedServer({"/": [page(), answer(304)]}) as server:
        with suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as both:
                crawling = both.create_task(
                    crawl_pages([server.url()], tmp_path / "site", rps=50, private=True, every="1d", visits=9)
                )
                while len(server.requests) < 2:  # noqa: ASYNC110 - robots.txt, and the page
                    await asyncio.sleep(0.01)
                crawling.cancel()

    with closing(sqlite3.connect(tmp_path / "site" / "ledger.db")) as ledger:
        assert ledger.execute("SELECT value FROM meta WHERE name = 'visited'").fetchone() == (1,)


@in_loop
async def test_ones_own_machine_is_refused_unless_allowed(tmp_path: Path) -> None:
    async with ScriptedServer({"/": [page()]}) as server:
        crawled = await crawl_pages([server.url()], tmp_path / "site")

    assert (crawled.fetched, server.requests) == (0, [])


@in_loop
async def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(ValueError, match="no addresses"):
        await crawl_pages([], tmp_path / "site")
    with pytest.raises(ValueError, match="ftp"):
        await crawl_pages(["ftp://a.example/"], tmp_path / "site")
    with pytest.raises(ValueError, match="the shorter first"):
        await crawl_pages(["https://a.example/"], tmp_path / "site", every="14d-6h")
    with pytest.raises(ValueError, match="without end"):
        await crawl_pages(["https://a.example/"], tmp_path / "site", every="1d", max_pages=3)
    with pytest.raises(ValueError, match="expected every"):
        await crawl_pages(["https://a.example/"], tmp_path / "site", visits=3)
    with pytest.raises(FolderError):
        await crawl_pages(["https://a.example/"], tmp_path)
