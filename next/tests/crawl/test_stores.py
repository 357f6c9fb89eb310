"""One crawl of several processes, by a ledger in PostgreSQL; two crawls beside each other."""

import asyncio
from pathlib import Path
from shutil import copy

import pytest
from crawl.sites import Site, crawl, page, pages_options, rows, served
from kit.postgres import new_name, shared_postgres

from sanderling.crawl.system import forget, show, verify
from sanderling.files import Exit, FolderError

pytestmark = pytest.mark.real


async def test_two_processes_share_a_crawl_and_each_page_is_there_once(tmp_path: Path) -> None:
    sites = [Site({f"/{n}": page(f"Page {n}", links=[f"/{n + 1}", f"/{n + 2}"]) for n in range(30)}) for _ in range(4)]
    async with served(*sites):
        starts = [f"{site.base}/0" for site in sites]
        given = {"store": shared_postgres().url, "name": new_name(), "depth": 100}
        outs = [tmp_path / "1" / "one", tmp_path / "2" / "two"]
        codes = await asyncio.gather(*(crawl(pages_options(out, *starts, **given)) for out in outs))

    found = [row for out in outs for row in rows(out, next(out.glob("pages*.jsonl")).name)]
    # The links behind the last page lead nowhere. Who ends first may see that the other still has something to do.
    assert Exit.FAILED in {code for code, _ in codes} <= {Exit.FAILED, Exit.WAITING}
    assert sorted(found) == sorted(f"{site.base}/{n}" for site in sites for n in range(30))
    assert all(len(site.requests) == len(set(site.requests)) for site in sites)
    if all(rows(out, next(out.glob("pages*.jsonl")).name) for out in outs):
        with pytest.raises(FolderError, match="copy the rows"):
            await verify(outs[0])
    for file in outs[1].glob("pages-*"):
        copy(file, outs[0])
    assert not (await verify(outs[0])).faults


async def test_a_host_is_forgotten_in_postgresql_too(tmp_path: Path) -> None:
    site, gone = Site({"*": page("Other")}), Site({"*": page("Gone")})
    given = {"store": shared_postgres().url, "name": new_name()}
    async with served(site, gone):
        host = gone.base.partition("//")[2]
        site.pages = {"/": page("Front", links=["/a", "/b?b=1&a=2"]), "*": page("Page")}
        await crawl(pages_options(tmp_path, site.base + "/", gone.base + "/people", **given))
        assert await forget(tmp_path, (host, f"{site.base}/b?b=1&a=2")) == "addresses forgotten: 2"
        assert not any(host.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert (await show(tmp_path, f"{gone.base}/people")).records == []
        assert not (await verify(tmp_path)).faults
        site.pages["/"] = page("Front", links=["/a", "/b?b=1&a=2", gone.base + "/new"])
        await crawl(pages_options(tmp_path, gone.base + "/again"))

    assert gone.requests == ["/people"]
    assert sorted(site.requests) == ["/", "/", "/a", "/a", "/b?b=1&a=2"]


async def test_a_crawl_beside_another_leaves_its_hosts_alone(tmp_path: Path) -> None:
    site = Site({"/": page("Front", links=["/a", "/b"]), "*": page("Other")})
    async with served(site):
        both = [pages_options(tmp_path / name, site.base + "/", policy="fixed", rps=5.0) for name in "ab"]
        (first, _), (second, _) = await asyncio.gather(*map(crawl, both))

    assert sorted([first, second]) == [Exit.DONE, Exit.WAITING] or first == second == Exit.DONE
    assert len(site.requests) in (3, 6)
