"""The run shell that every system has."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from known_reports import host, pages

from sanderling.cli.options import Options
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.screen import Silent
from sanderling.fetch.http import HttpRules
from sanderling.fetch.transport import make_transport
from sanderling.limit import Limiter
from sanderling.observe.report import AnyReport, Report
from sanderling.pages.report import PagesFacts
from sanderling.stores import limiter_file
from sanderling.stores.control_file import Control
from sanderling.stores.status_file import read_status

T = TypeVar("T")


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    return work(*args)


class Screen(Silent[AnyReport, object]):
    """A screen that remembers what it was told and shown."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.shown: list[tuple[int, bool]] = []

    def show(self, shown: AnyReport, /) -> None:
        self.shown.append((len(shown.hosts), shown.process.running))

    def note(self, text: str) -> None:
        self.notes.append(text)


class Counting:
    """A system that runs until it is stopped, or for as long as it is told."""

    inflight = 3

    def __init__(self, *, ends: bool = False) -> None:
        self.ended = asyncio.Event()
        self.wanted: list[Control] = []
        if ends:
            self.ended.set()

    async def run(self) -> bool:
        await asyncio.sleep(0)  # so that all that runs beside it begins
        await self.ended.wait()
        return not self.wanted

    def stop(self) -> None:
        self.ended.set()

    def control(self, wanted: Control, /) -> None:
        self.wanted.append(wanted)


def run_in(
    folder: Path, screen: Screen, *, ends: bool, meanwhile: Callable[[], object] = lambda: None
) -> Ran[Report[PagesFacts]]:
    opened: list[str] = []

    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        opened.append("open")
        yield
        opened.append("closed")

    async def main() -> Ran[Report[PagesFacts]]:
        system, limiter = Counting(ends=ends), Limiter()
        shell = Shell(
            folder=folder,
            options=Options(),
            screen=screen,
            executor=inline,
            report=lambda *, running=True: pages(host(), host("b.example"), running=running),
            brief=lambda *, running=True: pages(host(), running=running),
            transport=make_transport(HttpRules(), limiter, 1000, private=False),
            contexts=(context(),),
        )
        asyncio.get_running_loop().call_later(0.05, meanwhile)
        async with asyncio.timeout(60):
            ran = await run_system(system, shell)
        assert opened == ["open", "closed"]
        return ran

    return asyncio.run(main())


def test_a_run_is_shown_published_and_leaves_its_last_status_and_its_limiter(tmp_path: Path) -> None:
    screen = Screen()

    ran = run_in(tmp_path, screen, ends=True)

    assert (ran.complete, ran.last.process.running, len(ran.last.hosts)) == (True, False, 2)
    assert screen.shown == [(1, True), (2, False)]
    assert read_status(tmp_path, Report[PagesFacts]) == ran.last
    assert (tmp_path / limiter_file.FILE).is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_system_and_is_in_what_came_of_it(tmp_path: Path, number: signal.Signals) -> None:
    screen = Screen()

    ran = run_in(tmp_path, screen, ends=False, meanwhile=lambda: signal.raise_signal(number))

    assert ran.signals == (number,)
    assert (ran.stopped, ran.interrupted) == (True, number is signal.SIGINT)
    assert screen.notes == ["finishing 3 requests in flight; once more stops at once"]
