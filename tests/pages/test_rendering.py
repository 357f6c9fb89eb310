"""Which pages are rendered, and what becomes of them in a crawl. The browser is a fake; `test_browser.py` has one."""

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_line import called
from fake_browser import EMPTY, FakeBrowser, rendered
from small_web import Web, page, reply, web

from sanderling import extras
from sanderling.crawls.run import FrontierRun
from sanderling.fetch import render
from sanderling.fetch.render import PageNetwork, RenderedPage, RenderError, RenderRules, find_browser
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.pages.crawl import Crawl
from sanderling.pages.crawling import crawl_pages
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rendering import needs_scripts
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

A, B = "http://a.example", "http://b.example"


def shell() -> Reply:
    return reply(200, EMPTY, Content_Type="text/html")


def crawl(folder: Path, site: Web, browser: FakeBrowser) -> tuple[list[dict[str, Any]], Crawl]:
    """A crawl of A under virtual time; its rows, those of failures included."""

    async def main() -> Crawl:
        clock = LoopClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=10, max_rps=10)), clock=clock)
        transport = Transport(site, limiter, Memory(2**30), renderer=browser)
        with CrawlFolder.open(folder, CrawlPlan((f"{A}/",), (), 5), resume=False, wall=0.0) as held:

            async def at_once(work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401 - any function
                return work(*given)

            run = Crawl(held, transport, at_once, rules=CrawlRules(), clock=clock)
            held.finish(0.0, await run.run())
        return run

    run: FrontierRun[Any, Any] = run_virtual(main())
    assert isinstance(run, Crawl)
    lines = [line for name in ("pages", "failed") for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    return [json.loads(line) for line in lines], run


def test_a_page_that_is_empty_without_scripts_is_rendered_and_its_row_says_so(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del network
        return rendered(source, b"<title>Made</title><p>Words of a script. <a href=/next>next</a>")

    browser = FakeBrowser(make, RenderRules(auto=True))
    site = web(**{f"{A}/": shell(), f"{A}/next": page(title="A page of words " + "and more " * 10)})

    rows, run = crawl(tmp_path / "out", site, browser)

    assert browser.rendered == [f"{A}/"]
    first, second = rows
    assert (first["title"], first["rendered"]) == ("Made", {"requests": 2, "blocked": 3})
    assert "Words of a script" in first["text"]
    assert (second["url"], "rendered" in second) == (f"{A}/next", False)
    assert [url for url in site.urls if url == f"{A}/"] == [f"{A}/"]  # the page itself was asked for once
    assert run.counts[End.FETCHED] == 2


def test_pages_are_chosen_by_pattern_and_documents_never_are(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del network
        return rendered(source, source.body)

    browser = FakeBrowser(make, RenderRules.of([f"{A}/app/*"]) or RenderRules())
    site = web(
        **{
            f"{A}/": page("/app/x", "/app/y.json", "/plain"),
            f"{A}/app/x": page(),
            f"{A}/app/y.json": reply(200, b"{}", Content_Type="application/json"),
            f"{A}/plain": shell(),
        }
    )

    crawl(tmp_path / "out", site, browser)

    assert browser.rendered == [f"{A}/app/x"]


def test_what_a_page_asks_for_has_leave_of_its_host_and_of_robots_txt(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        got = []
        for number, url in enumerate([f"{A}/api/1", f"{A}/private", f"{B}/1", f"{B}/2", f"{A}/api/2"]):
            task = Task(url, holder=f"x {number}")
            permit = await network.admit(task)
            answer = None if permit is None else await network.send(task, permit)
            got.append(b"-" if answer is None else answer.body)
        return rendered(source, b" ".join(got))

    answers = {url: reply(200, url[-1:].encode()) for url in (f"{A}/api/1", f"{A}/api/2", f"{B}/1", f"{B}/2")}
    site = web(**{f"{A}/": shell(), f"{A}/robots.txt": reply(200, b"User-agent: *\nDisallow: /private"), **answers})

    rows, _ = crawl(tmp_path / "out", site, FakeBrowser(make, RenderRules(auto=True)))

    assert rows[0]["text"].strip() == "1 - 1 2 2"
    assert f"{A}/private" not in site.urls
    for host in (A, B):
        times = [when for when, url in site.asked if url.startswith(host)]
        assert all(later - earlier >= 0.0999 for earlier, later in pairwise(times)), times


def test_a_browser_that_dies_costs_a_retry_and_not_the_host(tmp_path: Path) -> None:
    died = [RenderError("rendering: the browser has died")] * 2

    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del network
        if died:
            raise died.pop()
        return rendered(source, b"<p>there")

    rows, run = crawl(tmp_path / "out", web(**{f"{A}/": shell()}), FakeBrowser(make, RenderRules(auto=True)))

    assert rows[0]["text"].strip() == "there"
    assert not run.limiter.is_down("a.example")


def test_a_page_that_is_never_rendered_fails_with_the_reason(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del source, network
        raise RenderError("rendering: its scripts never end")

    browser = FakeBrowser(make, RenderRules(auto=True))
    rows, run = crawl(tmp_path / "out", web(**{f"{A}/": shell()}), browser)

    assert rows[0]["detail"] == "rendering: its scripts never end"
    assert (run.counts[End.FAILED], len(browser.rendered)) == (1, 4)


def test_a_screenshot_lies_beside_the_row_and_moves_with_it(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del network
        return rendered(
            source, b"<p>seen", screenshot=b"\x89PNG" + bytes(len(browser.rendered)), cut="cut after 5 requests"
        )

    browser = FakeBrowser(make, RenderRules(auto=True, screenshots=True))
    out = tmp_path / "out"
    rows, _ = crawl(out, web(**{f"{A}/": shell()}), browser)

    assert (rows[0]["screenshot"], rows[0]["detail"]) == ("screenshots/1.png", "cut after 5 requests")
    assert (out / "screenshots/1.png").read_bytes() == b"\x89PNG\0"
    assert verify(out).problems == []

    crawl(out, web(**{f"{A}/": shell()}), browser)

    assert (out / "earlier/0001/screenshots/1.png").read_bytes() == b"\x89PNG\0"
    assert (out / "screenshots/1.png").read_bytes() == b"\x89PNG\0\0"


def test_where_a_script_goes_on_to_is_a_link_like_any(tmp_path: Path) -> None:
    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        del network
        return rendered(source, b"<p>going", onward=f"{A}/there" if source.url == f"{A}/" else "http://10.0.0.1/x")

    site = web(**{f"{A}/": shell(), f"{A}/there": shell()})
    rows, _ = crawl(tmp_path / "out", site, FakeBrowser(make, RenderRules(auto=True)))

    assert rows[0]["links"] == [f"{A}/there"]
    assert rows[0]["detail"] == f"a script goes on to {A}/there"
    assert {row["url"] for row in rows} == {f"{A}/", f"{A}/there"}
    assert not any("10.0.0.1" in url for url in site.urls)


@pytest.mark.parametrize(
    ("body", "text", "needs"),
    [
        (EMPTY, "Please enable JavaScript.", True),
        (b"<div id=app></div><script type=module src=/a.js></script>", "", True),
        (b"<app-root></app-root><script src=main.js></script>", "Loading the shop, please wait a moment.....", True),
        (b"<script>document.write('x')</script>", "", True),
        (b"<div id=app></div>", "", False),  # nothing would fill it
        (b"<p>A short page.</p><script src=/count.js></script>", "A short page, and it is all there is to say.", False),
        (b"<div id=__next>words</div><script src=a.js></script>", "words " * 100, False),  # made by the server
        (b"", "", False),
    ],
)
def test_a_page_is_empty_without_scripts_if_it_says_little_and_has_a_place_to_draw_in(
    body: bytes, text: str, *, needs: bool
) -> None:
    assert needs_scripts(text, body) is needs


def test_hosts_are_blocked_with_all_below_them() -> None:
    rules = RenderRules()

    assert rules.tracks("www.googletagmanager.com:443")
    assert rules.tracks("doubleclick.net")
    assert not rules.tracks("notdoubleclick.net")
    assert not rules.tracks("example.org")


def test_a_pattern_is_an_address_with_stars_and_nothing_else() -> None:
    rules = RenderRules.of(["https://app.example/*?q=*", "auto", "auto"])

    assert rules is not None
    assert rules.auto
    assert rules.chooses("https://app.example/x?q=1")
    assert not rules.chooses("https://app.example/xq=1")
    assert not rules.chooses("https://app2example/x?q=1")
    assert RenderRules.of([]) is None
    with pytest.raises(ValueError, match=r"'app' is no pattern; expected auto, or one like https://app\.example/\*"):
        RenderRules.of(["app"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--render", "auto"), "--render needs playwright, which is not installed: pip install 'sanderling[render]'"),
        (("--render", "app"), "--render: 'app' is no pattern"),
        (("--screenshots",), "--screenshots and --browser are of use with --render only; try: --render auto"),
    ],
)
def test_what_is_missing_is_said_before_anything_begins(
    given: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "have", lambda library: library != "playwright")

    done = called("pages", "crawl", "http://127.0.0.1:1/", "--private", "--out", f"{tmp_path / 'x'}", *given)

    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert not (tmp_path / "x").exists()
    assert "playwright" in extras.EXTRAS


def test_the_function_says_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "have", lambda library: library != "playwright")

    with pytest.raises(RenderError, match="--render needs playwright"):
        asyncio.run(crawl_pages(["http://127.0.0.1:1/"], tmp_path / "x", render=["auto"]))
    assert not (tmp_path / "x").exists()


def test_without_a_browser_the_command_that_installs_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(render, "APPLICATIONS", ())

    with pytest.raises(RenderError, match="none is on the PATH: apt install chromium"):
        find_browser()
    with pytest.raises(RenderError, match="--browser: there is no program nowhere"):
        find_browser("nowhere")
