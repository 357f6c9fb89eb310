"""A browser that makes of pages what it is told to, and the processes of a real one."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sanderling.fetch.render import PageNetwork, RenderedPage, RenderRules
from sanderling.task import Reply

EMPTY = b'<html><body><noscript>Please enable JavaScript.</noscript><div id="root"></div><script src=/app.js></script>'
Make = Callable[[Reply, PageNetwork], Any]


class FakeBrowser:
    """Makes of each page what it is told to make of it."""

    def __init__(self, make: Make, rules: RenderRules) -> None:
        self.rules = rules
        self.rendered: list[str] = []
        self._make = make

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is open."""

    async def render(self, reply: Reply, network: PageNetwork) -> RenderedPage:
        self.rendered.append(reply.url)
        made: RenderedPage = await self._make(reply, network)
        return made


def rendered(source: Reply, body: bytes, **more: Any) -> RenderedPage:  # noqa: ANN401 - of RenderedPage
    made = Reply(source.status, (("Content-Type", "text/html; charset=utf-8"),), body, source.url, 0.1)
    return RenderedPage(made, **{"requests": 2, "blocked": 3, **more})


def below(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [each for child in map(int, children) for each in (child, *below(child))]


def _is(pid: int, *words: str) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return False
    return all((word in line) if not word.startswith("!") else (word[1:] not in line) for word in words)


def is_tab(pid: int) -> bool:
    return _is(pid, "--type=renderer")


def is_browser(pid: int) -> bool:
    return _is(pid, "--remote-debugging-pipe", "!--type=")


def is_driver(pid: int) -> bool:
    return _is(pid, "run-driver")
