"""The dashboard: what its server gives, and the page in a browser with runs of the toy system."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import toy_program
from aiohttp import ClientSession
from browser import chromium
from playwright.async_api import Page, async_playwright, expect
from toy_system import TOYS

from sanderling.clock import FakeClock, SystemClock
from sanderling.files import write_file
from sanderling.observe.control import read_control
from sanderling.observe.report import Report, RunState, count
from sanderling.web.dashboard import dashboard
from sanderling.web.folders import Home

pytestmark = pytest.mark.real


def toys(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    typed = [toy_program.__file__, "toys", "count", "https://example.org/", "--out", str(folder), *words]
    return subprocess.Popen([sys.executable, *typed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Page]:
    """The page, in a browser that says each error of it."""
    async with dashboard(home, (TOYS,), 0, SystemClock()) as url, async_playwright() as library:
        browser = await library.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(f"{url}/#going")
        yield page
        await browser.close()
    assert said == []


async def test_a_run_is_seen_and_controlled(tmp_path: Path) -> None:
    going = toys(tmp_path / "going", "--items", "1000")
    (tmp_path / "ended").mkdir()
    (tmp_path / "ended" / "toys.jsonl").touch()
    write(tmp_path / "ended", 1)
    async with opened(tmp_path) as page:
        await expect(page.locator("#folders .folder")).to_have_count(2, timeout=20_000)
        await expect(page.locator(".badge")).to_have_text("running")
        await expect(page.locator(".figure", has_text="waiting")).to_be_visible()
        await expect(page.locator(".hosts tbody tr")).to_have_count(2)
        await page.get_by_role("button", name="Pause").click()
        await expect(page.locator(".badge")).to_have_text("paused", timeout=20_000)
        await page.get_by_role("button", name="Resume").click()
        await expect(page.locator(".badge")).to_have_text("running", timeout=20_000)
        await page.locator(".hosts tbody tr", has_text="b.example").get_by_role("button", name="Block").click()
        await expect(page.locator(".hosts tbody tr", has_text="b.example")).to_contain_text("blocked", timeout=20_000)
        await page.get_by_role("button", name="failed TIMEOUT").click()
        await page.get_by_role("button", name="Try these again").click()
        await expect(page.locator(".note", has_text="failed")).to_be_visible(timeout=20_000)
        await page.set_viewport_size({"width": 360, "height": 740})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.get_by_role("button", name="Stop").click()
        await page.get_by_role("button", name="Stop it").click()
        await expect(page.locator(".badge")).to_contain_text("ended", timeout=20_000)
    going.wait(20)
    assert read_control(tmp_path / "going").blocked == {"b.example"}


async def test_an_empty_home_says_what_to_type_and_strangers_names_are_text(tmp_path: Path) -> None:
    async with opened(tmp_path) as page:
        await expect(page.locator(".empty")).to_contain_text("sanderling pages crawl")
        folder = tmp_path / "<img src=x onerror=alert(1)>"
        folder.mkdir()
        (folder / "toys.jsonl").touch()
        trouble = "<script>alert(1)</script>"
        write_file(folder / "status.json", Report(system="toys", doing=trouble, troubles=(trouble,)).to_json())
        await expect(page.locator(".troubles li")).to_have_text(trouble, timeout=20_000)
        assert await page.locator("img").count() == 0


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 200),
        ("GET", "/page/app.js", None, 200),
        ("GET", "/page/..%2Fdashboard.py", None, 404),
        ("GET", "/page/none.js", None, 404),
        ("GET", "/api/reports", None, 200),
        ("GET", "/api/folder?folder=ended", None, 200),
        ("GET", "/api/folder?folder=..", None, 404),
        ("GET", "/api/tasks?folder=ended", None, 200),
        ("GET", "/api/tasks?folder=ended&state=failed&limit=1", None, 200),
        ("GET", "/api/tasks?folder=ended&state=odd", None, 400),
        ("POST", "/api/actions", {"folder": "ended", "action": "pause"}, 200),
        ("POST", "/api/actions", {"folder": "ended", "action": "stop"}, 409),
        ("POST", "/api/actions", {"folder": "ended", "action": "delete"}, 400),
        ("POST", "/api/actions", {"folder": "ended", "action": "block", "words": ["no host"]}, 400),
        ("POST", "/api/actions", {"folder": "ended", "action": "retry", "words": ["odd"]}, 400),
        ("POST", "/api/actions", {"folder": "ended", "action": "retry", "words": ["failed"]}, 200),
        ("POST", "/api/actions", {"folder": "nowhere", "action": "pause"}, 404),
    ],
)
async def test_what_the_server_answers(
    tmp_path: Path, method: str, path: str, body: dict[str, object] | None, status: int
) -> None:
    (tmp_path / "ended").mkdir()
    (tmp_path / "ended" / "toys.jsonl").touch()
    write(tmp_path / "ended", 1)
    async with dashboard(tmp_path, (TOYS,), 0, SystemClock()) as url, ClientSession() as client:
        while not await (await client.get(f"{url}/api/reports")).json():
            await asyncio.sleep(0.01)
        async with client.request(method, url + path, json=body) as response:
            assert response.status == status, await response.text()


async def test_the_stream_says_what_has_changed(tmp_path: Path) -> None:
    home = Home(tmp_path, (TOYS,), FakeClock())
    for name in ("a", "b/c", ".hidden", "x/y/z"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "toys.jsonl").touch()
        write(tmp_path / name, 1)
    home.look()
    changes = home.changes()
    first = await anext(changes)
    assert set(msgspec.json.decode(first.data)) == {"a", "b/c"}
    write(tmp_path / "a", 2)
    (tmp_path / "b" / "c" / "status.json").unlink()
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    home.look()
    changed = msgspec.json.decode((await waiting).data)
    assert changed["a"]["facts"][0]["value"] == 2
    assert changed["b/c"] is None
    home.look()  # nothing new
    (tmp_path / "a" / "status.json").write_text("{torn")
    home.look()
    assert "is damaged" in msgspec.json.decode((await anext(changes)).data)["a"]["troubles"][0]


def write(folder: Path, stored: int) -> None:
    facts = (count("stored", stored, "Stored."),)
    report = Report(system="toys", doing="", facts=facts, state=RunState.ENDED, exit=0, wall=float(stored))
    write_file(folder / "status.json", report.to_json())
