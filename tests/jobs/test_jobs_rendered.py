"""Pages of jobs in a browser: a fake one under virtual time, and Chromium, which is killed in the middle."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_browser import EMPTY, FakeBrowser, below, is_browser, rendered
from small_api import answer, api, run
from small_shop import SHOP, html

from sanderling import Job, Page, run_job
from sanderling.fetch.render import PageNetwork, RenderedPage, RenderError, RenderRules, find_browser
from sanderling.jobs.job import JobError
from sanderling.jobs.verify import verify_job
from sanderling.task import Reply, Task

PLAIN = "<h1>plain</h1><p>" + "A page of words, and of more words. " * 10
MADE = b"<h1>made</h1><a href=/next>next</a>"


def titles(render: Any = True, **pages: Any) -> tuple[Job, dict[str, Any]]:  # noqa: ANN401, FBT002 - of a page function
    job = Job("app", start=[f"{SHOP}/{path}" for path in pages])

    @job.page("/*", render=render)
    def read(page: Page) -> Any:  # noqa: ANN401 - a record
        how = page.rendered
        shot = None if how is None else (how.requests, how.blocked, how.screenshot)
        return {"path": page.url.removeprefix(SHOP), "title": page.css("h1").text, "how": shot}

    return job, {f"{SHOP}/{path}": page for path, page in pages.items()}


def empty() -> Reply:
    return answer(body=EMPTY, Content_Type="text/html")


async def make(source: Reply, network: PageNetwork) -> RenderedPage:
    del network
    return rendered(source, MADE, screenshot=b"\x89PNG picture")


@pytest.mark.parametrize(
    ("render", "made"),
    [(True, {"/shell", "/words"}), ("empty", {"/shell"}), (False, set[str]())],
    ids=["all", "empty", "none"],
)
def test_a_function_says_which_of_its_pages_are_rendered(tmp_path: Path, render: Any, made: set[str]) -> None:  # noqa: ANN401
    data = answer({"a": 1}, Content_Type="application/json")
    job, pages = titles(render, shell=empty(), words=html(PLAIN), data=data)

    @job.each
    def drop_data(record: Any) -> Any:  # noqa: ANN401 - a record
        return job.drop if record["path"] == "/data" else None

    ran = run(job, tmp_path / "out", api(pages), renderer=FakeBrowser(make, RenderRules()))

    found = {each["path"]: (each["title"], each["how"]) for each in ran.records}
    assert found.keys() >= {"/shell", "/words"}
    assert {path for path, (title, _) in found.items() if title == "made"} == made
    for path in made:
        requests, blocked, shot = found[path][1]
        assert (requests, blocked, (tmp_path / "out" / shot).read_bytes()) == (2, 3, b"\x89PNG picture")
    assert verify_job(tmp_path / "out").problems == []


def test_what_a_page_asks_for_has_leave_of_its_host_and_of_robots_txt(tmp_path: Path) -> None:
    async def ask(source: Reply, network: PageNetwork) -> RenderedPage:
        got = []
        for number, path in enumerate(["api/1", "private", "api/2"]):
            task = Task(f"{SHOP}/{path}", holder=f"x {number}")
            permit = await network.admit(task)
            reply = None if permit is None else await network.send(task, permit)
            got.append(b"-" if reply is None else reply.body)
        return rendered(source, b"<h1>%b</h1>" % b" ".join(got))

    job, pages = titles(shell=empty())
    robots = answer(body=b"User-agent: *\nDisallow: /private", Content_Type="text/plain")
    numbers = {f"{SHOP}/api/{each}": answer(each) for each in (1, 2)}
    world, times = api({**pages, f"{SHOP}/robots.txt": robots, **numbers}), list[float]()
    find = world.answers

    def noted(task: Task) -> Any:  # noqa: ANN401 - an answer
        times.append(asyncio.get_running_loop().time())
        return find(task)

    world.answers = noted
    ran = run(job, tmp_path / "out", world, rps=10, renderer=FakeBrowser(ask, RenderRules()))

    assert ran.records[0]["title"] == "1 - 2"
    assert f"{SHOP}/private" not in world.urls
    assert all(later - earlier >= 0.0999 for earlier, later in pairwise(times)), times


def test_a_page_that_is_never_rendered_fails_with_the_reason_and_the_others_go_on(tmp_path: Path) -> None:
    async def die(source: Reply, network: PageNetwork) -> RenderedPage:
        if source.url.endswith("/bad"):
            raise RenderError("rendering: the browser has died")
        return await make(source, network)

    job, pages = titles(bad=empty(), good=empty(), fine=empty())
    browser = FakeBrowser(die, RenderRules())

    ran = run(job, tmp_path / "out", api(pages), renderer=browser)

    assert sorted(each["path"] for each in ran.records) == ["/fine", "/good"]
    (failed,) = ran.failed
    assert (failed["url"], failed["detail"], failed["fault"]) == (
        f"{SHOP}/bad",
        "rendering: the browser has died",
        "item",
    )
    assert browser.rendered.count(f"{SHOP}/bad") == 4


def test_render_is_one_of_three() -> None:
    with pytest.raises(JobError, match="render of /a is 'auto', expected True, False or \"empty\""):
        Job("a", start=SHOP).page("/a", render="auto")  # type: ignore[arg-type]


class App(BaseHTTPRequestHandler):
    """Pages that a script fills with what it fetches."""

    protocol_version = "HTTP/1.1"
    on_data: Callable[[], None] = staticmethod(lambda: None)

    def do_GET(self) -> None:
        """Answer."""
        name = self.path.rpartition("/")[2]
        kind, body = "text/html", f"<div id=root></div><script>{SCRIPT % name}</script>".encode()
        if self.path == "/robots.txt":
            kind, body = "text/plain", b""
        elif self.path.startswith("/data/"):
            kind, body = "text/plain", f"made {name}".encode()
            type(self).on_data()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


SCRIPT = "fetch('/data/%s').then(r => r.text()).then(t => {root.innerHTML = '<h1>' + t + '</h1>'})"


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), App) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.timeout(300)
def test_chromium_renders_pages_of_a_job_and_may_be_killed_meanwhile(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        find_browser()
    except RenderError as error:
        pytest.skip(str(error))
    killed: list[int] = []

    def kill() -> None:
        if not killed:
            killed.extend(filter(is_browser, below(os.getpid())))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(App, "on_data", staticmethod(kill))
    job = Job("app", start=[f"http://127.0.0.1:{port}/page/{number}" for number in range(6)], rps=50)

    @job.page("/page/{number}", render=True)
    def read(page: Page, number: str) -> Any:  # noqa: ANN401 - a record
        shot = page.rendered.screenshot if page.rendered else None
        return {"number": int(number), "title": page.css("h1").text, "shot": shot}

    result = asyncio.run(run_job(job, tmp_path / "out", private=True, screenshots=True, keep="warc"))

    assert len(killed) == 1
    assert (result.complete, result.kept, result.failed) == (True, 6, 0)
    records = sorted(map(json.loads, result.records.read_text().splitlines()), key=lambda r: r["number"])
    assert [each["title"] for each in records] == [f"made {number}" for number in range(6)]
    assert all((tmp_path / "out" / each["shot"]).read_bytes().startswith(b"\x89PNG") for each in records)
    assert verify_job(tmp_path / "out").problems == []
