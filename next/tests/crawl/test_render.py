"""Crawls whose pages a browser renders."""

from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from crawl.sites import Site, crawl, job_options, lines, page, pages_options, rows, served

from sanderling.crawl import system
from sanderling.crawl.render import needs_scripts
from sanderling.files import Exit

APP = '<html><head><title>App</title></head><body><div id="root"></div><script src="/app.js"></script></body></html>'
SCRIPT = """fetch('/api').then(r => r.json()).then(items => root.innerHTML = items.map(
    each => `<p>Item ${each} was made by a script.</p><a class=item href=/item/${each}>item ${each}</a>`).join(''))"""
JOB = """
from sanderling import Job

job = Job("app", start="BASE/")


@job.page("/", render=True)
def front(page):
    yield {"items": page.css("a.item").texts, "shot": page.screenshot}
"""


def app() -> Site:
    script = 200, {"Content-Type": "text/javascript"}, SCRIPT
    front = 200, {"Content-Type": "text/html", "ETag": '"1"'}, APP
    plain = page("Plain", "This is a page like any other. " * 20, ["/item/3"]) + "<script></script>"
    return Site({"/": front, "/app.js": script, "/api": (200, {}, "[1,2]"), "/item/1": plain, "*": page("Item")})


def more(**given: Any) -> dict[str, Any]:
    return {"sandbox": False, "browser": Path(chromium()), **given}


@pytest.mark.real
async def test_pages_that_are_empty_without_scripts_are_rendered(tmp_path: Path) -> None:
    site = app()
    async with served(site):
        options = pages_options(tmp_path, site.base + "/", **more(render=("auto",), screenshots=True, keep="html"))
        code, _ = await crawl(options)
        found = {url.removeprefix(site.base): row for url, row in rows(tmp_path).items()}
        again, _ = await crawl(pages_options(tmp_path, **more()))

    assert (code, again) == (Exit.DONE, Exit.DONE)
    assert sorted(found) == ["/", "/item/1", "/item/2", "/item/3"]
    assert "Item 2 was made by a script." in found["/"]["text"]
    assert found["/"]["rendered"]["requests"] == 2
    assert "rendered" not in found["/item/1"]
    # A page that scripts make is made anew by each run: that its address says 304 would mean nothing.
    assert site.requests.count("/") == site.requests.count("/app.js") == 2
    assert not any("If-None-Match" in head for head in site.heads)
    assert (tmp_path / found["/"]["screenshot"]).read_bytes().startswith(b"\x89PNG")
    assert b"made by a script" in (tmp_path / found["/"]["body_path"]).read_bytes()
    assert not (await system.verify(tmp_path)).faults
    await system.forget(tmp_path, (site.base + "/",))
    assert not (tmp_path / found["/"]["screenshot"]).exists()


@pytest.mark.real
async def test_what_a_job_had_rendered_is_read_again_without_a_browser(tmp_path: Path) -> None:
    site, file = app(), tmp_path / "app.py"
    async with served(site):
        file.write_text(JOB.replace("BASE", site.base))
        await crawl(job_options(tmp_path / "a", file, **more(keep="warc", screenshots=True)))
        number = len(site.requests)
        await crawl(job_options(tmp_path / "b", file, from_=tmp_path / "a"))

    (record,), (again,) = lines(tmp_path / "a" / "records.jsonl"), lines(tmp_path / "b" / "records.jsonl")
    assert record["items"] == again["items"] == ["item 1", "item 2"]
    assert (tmp_path / "a" / record["shot"]).exists()
    assert len(site.requests) == number == 3


@pytest.mark.parametrize(
    ("text", "body", "needs"),
    [
        ("", b"<div id=root></div><script src=a.js></script>", True),
        ("Loading", b"<SCRIPT>1</SCRIPT>", True),
        ("Please wait while this is being loaded for you", b'<div id="__next"></div><script>', True),
        ("Please wait while this is being loaded for you", b"<div id=rooted></div><script>", False),
        ("x" * 400, b"<div id=root></div><script>", False),
        ("", b"<div id=root></div>", False),
    ],
)
def test_which_pages_are_empty_without_scripts(text: str, body: bytes, *, needs: bool) -> None:
    assert needs_scripts(text, body) is needs
