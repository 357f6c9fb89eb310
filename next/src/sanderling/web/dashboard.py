"""What the page of the dashboard requests: reports as a stream, ten minutes of history, tasks, and actions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from sanderling.clock import Clock
from sanderling.ids import HostError, normalise_host
from sanderling.observe.control import control_run, read_control
from sanderling.observe.report import Report
from sanderling.records.answers import Task, retry_tasks
from sanderling.serving import Access, Input, Needs, Problem, Route, Streams, serve
from sanderling.systems import System
from sanderling.web.folders import Home, Watched

MOST_TASKS = 200
TASK_SECONDS = 5.0  # for a list or a count of tasks
_PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Nothing runs but our own files, nothing comes from elsewhere, and no frame shows the page.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


class PageFile(Input, frozen=True, kw_only=True):
    """A file of the page."""

    name: str


class OfFolder(Input, frozen=True, kw_only=True):
    """Which folder."""

    folder: str


class OfTasks(Input, frozen=True, kw_only=True):
    """Which tasks: without a state, how many there are of each."""

    folder: str
    state: str = ""
    host: str = ""
    code: str = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 100


class ListedTasks(msgspec.Struct, frozen=True):
    """Tasks of one state, or their counts as [state, code, count]."""

    states: tuple[str, ...]
    counts: list[tuple[str, str, int]] = []
    tasks: list[Task] = []
    more: bool = False


class Action(Input, frozen=True, kw_only=True):
    """What is to be done in a folder. Words are the hosts to block or allow, or a state, a host and a code to retry."""

    folder: str
    action: Literal["pause", "resume", "stop", "drain", "block", "allow", "retry"]
    words: tuple[str, ...] = ()


class ActionDone(msgspec.Struct, frozen=True):
    """What was done, in a sentence."""

    said: str


class Wanted(msgspec.Struct, frozen=True):
    """What holds in a folder."""

    paused: bool
    blocked: list[str]


class FolderFacts(msgspec.Struct, frozen=True):
    """What a folder has besides its report."""

    path: str
    wanted: Wanted
    states: tuple[str, ...]
    history: dict[str, list[float | None]]


class Dashboard:
    """The functions of its routes."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.streams = Streams(100)
        self._files = {path.name: _read(path) for path in _PAGE.iterdir() if path.suffix in _TYPES}

    async def index(self, request: web.Request) -> web.Response:
        """The page."""
        return await self.file(PageFile(name="index.html"), request)

    async def file(self, path: PageFile, request: web.Request) -> web.Response:
        """A file of the page."""
        if path.name not in self._files:
            raise Problem(404, "there is no such file")
        kind, body, tag = self._files[path.name]
        headers = _PAGE_HEADERS | {"ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    async def reports(self) -> dict[str, Report]:
        """The reports of all folders, by name."""
        return self.home.reports()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """The same as a stream: all reports, then each that has changed; null for a folder that is gone."""
        return await self.streams.send(request, self.home.changes())

    async def folder(self, query: OfFolder) -> FolderFacts:
        """A folder: what holds in it, and its last ten minutes."""
        watched = self._find(query.folder)
        wanted = read_control(watched.folder)
        return FolderFacts(
            str(watched.folder.resolve()),
            Wanted(wanted.paused, sorted(wanted.blocked)),
            watched.system.load().TASK_STATES,
            watched.history(),
        )

    async def tasks(self, query: OfTasks) -> ListedTasks:
        """Tasks of a folder, or how many there are."""
        watched = self._find(query.folder)
        module = watched.system.load()
        if query.state and query.state not in module.TASK_STATES:
            raise Problem(400, f"state: found {query.state[:100]!a}, expected one of {', '.join(module.TASK_STATES)}")
        try:
            async with asyncio.timeout(TASK_SECONDS):
                if not query.state:
                    counts = await module.count_tasks(watched.folder)
                    listed = sorted((state, code, count) for (state, code), count in counts.items())
                    return ListedTasks(module.TASK_STATES, listed)
                found = module.tasks(watched.folder, query.state, query.host or None, query.code or None)
                tasks: list[Task] = []
                async for task in found:
                    tasks.append(task)
                    if len(tasks) > query.limit:
                        break
        except TimeoutError:
            raise Problem(503, f"listing them takes more than {TASK_SECONDS:g} s; use the command `tasks`") from None
        return ListedTasks(module.TASK_STATES, [], tasks[: query.limit], len(tasks) > query.limit)

    async def act(self, body: Action) -> ActionDone:
        """Pause, resume, stop or drain a run; block or allow hosts; retry tasks."""
        watched = self._find(body.folder)
        if body.action == "retry":
            state, host, code = (*body.words, "", "", "")[:3]
            module = watched.system.load()
            if state not in module.TASK_STATES:
                raise Problem(400, f"state: found {state[:100]!a}, expected one of {', '.join(module.TASK_STATES)}")
            return ActionDone(await retry_tasks(module, watched.folder, state, host or None, code or None))
        try:
            hosts = tuple(normalise_host(host) for host in body.words)
        except HostError as error:
            raise Problem(400, f"words: {error}") from None
        return ActionDone(await control_run(watched.folder, body.action, hosts))

    def _find(self, name: str) -> Watched:
        watched = self.home.find(name)
        if watched is None:
            raise Problem(404, f"there is no folder {name[:100]!a} here")
        return watched

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        return (
            Route("GET", "/", self.index, Needs.NOTHING),
            Route("GET", "/page/{name}", self.file, Needs.NOTHING),
            Route("GET", "/api/reports", self.reports),
            Route("GET", "/api/stream", self.stream),
            Route("GET", "/api/folder", self.folder, problems=(404,)),
            Route("GET", "/api/tasks", self.tasks, problems=(404,)),
            Route("POST", "/api/actions", self.act, Needs.CHANGE, problems=(404,)),
        )


def _read(path: Path) -> tuple[str, bytes, str]:
    """The type of a file, its content, and the tag by which a browser knows that it has it."""
    body = path.read_bytes()
    return _TYPES[path.suffix], body, f'"{sha256(body).hexdigest()[:32]}"'


@asynccontextmanager
async def dashboard(home: Path, systems: tuple[System, ...], port: int, clock: Clock) -> AsyncIterator[str]:
    """Serve the dashboard of a home at this machine's own address while the block runs; its URL."""
    board = Dashboard(Home(home, systems, clock))
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(board.home.watch())
        async with serve(
            "Sanderling's dashboard", board.routes(), Access(clock), board.streams, bind="127.0.0.1", port=port
        ) as url:
            yield url
        watching.cancel()
