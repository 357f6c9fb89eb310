"""A dashboard in a thread of its own, and a page of it in a real browser."""

import asyncio
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from dashboard_house import Quick
from known_reports import ALL, changed, put
from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

from sanderling.web.access import Token
from sanderling.web.dashboard import DashboardOptions, dashboard
from sanderling.web.house_reach import Reach

T = TypeVar("T")
# Without the moving waves, which cost more than all the rest where there is no graphics card.
USUAL: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
SECONDS = 120.0  # that anything may take, on a machine that is busy with something else


@contextmanager
def beside(opening: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """What a context gives, held open in a thread of its own: the browser's library has the loop of this one."""
    told: queue.Queue[T | BaseException] = queue.Queue()
    ends: list[Callable[[], object]] = []

    async def hold() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(end.set))
        async with opening() as given:
            told.put(given)
            await end.wait()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:  # whoever waits has to know
            told.put(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        given = told.get(timeout=SECONDS)
        if isinstance(given, BaseException):
            raise given
        yield given
    finally:
        for end in ends:
            end()
        thread.join(SECONDS)


class Brisk(Quick):
    """Quick, but slow enough for a browser to draw."""

    SPEED = 5.0


@contextmanager
def served(home: Path, port: int = 0, token: str | None = None) -> Iterator[str]:
    """The real dashboard of a home, which looks at it five times a second; gives its address."""
    opening = DashboardOptions(home, port=port, token=Token(token) if token else None)
    with beside(lambda: dashboard(opening, Reach(), Brisk())) as address:
        yield address.url


@dataclass
class Watched:
    """A page, and what went wrong in it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # the addresses of all requests

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        self.asked.append(request.url)

    def foreign(self) -> list[str]:
        """Requests to anybody but our own server."""
        own = self.page.url.split("/")[2]
        return [url for url in self.asked if not url.startswith(("data:", f"http://{own}/"))]


Opened = Callable[..., Page]  # opens an address in a browser of its own


def a_home(folder: Path) -> Path:
    """With one system of each sort, all of which said something just now."""
    for name, status in ALL.items():
        put(folder / name, changed(status, wall=time.time()))
    return folder


def panel(page: Page) -> Locator:
    return page.get_by_role("tabpanel")


def choose(page: Page, name: str) -> None:
    page.get_by_role("tab", name=re.compile(rf"^{name}")).click()
    expect(panel(page).get_by_role("heading", level=2)).to_have_text(name)


def mark(page: Page) -> None:
    """Leave something that would be gone if the page were loaded again."""
    page.evaluate("window.marked = true")


def is_marked(page: Page) -> bool:
    return page.evaluate("window.marked === true") is True
