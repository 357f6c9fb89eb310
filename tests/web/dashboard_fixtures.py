"""Fixtures of the tests that look at the dashboard in a browser: the browser, and houses that it shows."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_browser import SECONDS, USUAL, Opened, Watched, beside, served
from dashboard_fake import FakeHouse, fake_dashboard
from known_reports import changed, many_hosts, put
from playwright.sync_api import Browser, Page, expect, sync_playwright

HOSTS = 10_000

expect.set_options(timeout=SECONDS * 1000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as library:
        yield library.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Open an address in a browser of its own. Afterwards nothing must have gone wrong there."""
    watched: list[Watched] = []

    def open_page(url: str, **options: Any) -> Page:  # noqa: ANN401 - those of the library
        one = Watched(browser.new_context(**{**USUAL, **options}).new_page())
        watched.append(one)
        one.page.goto(url)
        return one.page

    yield open_page
    foreign = [url for each in watched for url in each.foreign()]
    errors = [error for each in watched for error in each.errors]
    for each in watched:
        each.page.context.close()
    assert foreign == []
    # A server that is away, or says no, is for the page to tell; the browser notes it all the same.
    assert [error for error in errors if "Failed to load resource" not in error] == []


@pytest.fixture(scope="module")
def fake() -> Iterator[tuple[FakeHouse, str]]:
    house = FakeHouse(every=0.3)
    with beside(lambda: fake_dashboard(house)) as url:
        yield house, url


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    home = tmp_path_factory.mktemp("many")
    put(home / "pages", changed(many_hosts(HOSTS), wall=time.time()))
    with served(home) as url:
        yield home, url
