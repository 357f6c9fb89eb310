"""A real server that is killed and started again: crawls notice, wait, and go on, and nothing is lost for it."""

import asyncio
import json
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest
from command_line import QUICK, finish, page, rows, run, running
from known_reports import published
from scripted_server import ScriptedServer, Step, answer

IDS = 40


class FileServer:
    """Python's own web server, in a process of its own, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self._port}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Until it is killed."""
        flags = ("--bind", "127.0.0.1", "--directory", str(self._folder))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "http.server", str(self._port), *flags),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await until(self._listens)
            yield
        finally:
            process.kill()
            await process.wait()

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self._port)) == 0


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not true():  # noqa: ASYNC110 - what other processes have come to
            await asyncio.sleep(0.05)


async def outlives_an_outage(server: FileServer, state: Callable[[], tuple[int, str]], *crawl: str) -> None:
    """Run a crawl to its end. Its server is killed when some of it is done, and started again when that is noticed.

    `state` is how often the host was asked, and what the limiter says of it.
    """
    async with AsyncExitStack() as stack:
        async with server.serving():
            crawling = await stack.enter_async_context(running(*crawl))
            await until(lambda: state()[0] >= 15)
        await until(lambda: "circuit open" in state()[1])
        async with server.serving():
            done = await finish(crawling)
        assert done.code == 0, done.err


def test_pages_go_on_when_their_host_is_back(tmp_path: Path) -> None:
    files, out = tmp_path / "files", tmp_path / "out"
    files.mkdir()
    names = [f"{number}.html" for number in range(IDS)]
    for name in ("index.html", *names):
        (files / name).write_text("".join(f'<a href="{each}">{each}</a>' for each in names if name == "index.html"))

    def state() -> tuple[int, str]:
        now = published(out)
        return (now.hosts[0].requests, now.hosts[0].why) if now is not None and now.hosts else (0, "")

    server = FileServer(files)
    run(lambda: outlives_an_outage(server, state, "pages", "crawl", f"{server.origin}/", "--out", str(out), *QUICK))

    assert len(rows(out)) == IDS + 1
    assert rows(out, "failed.jsonl") == []


def test_a_sequence_goes_on_when_its_host_is_back(tmp_path: Path) -> None:
    files, out = tmp_path / "files", tmp_path / "out"
    files.mkdir()
    for number in range(1, 2 * IDS):
        (files / str(number)).write_text(json.dumps({"id": number}))

    def state() -> tuple[int, str]:
        now = published(out)
        return (0, "") if now is None else (now.hosts[0].requests, now.hosts[0].why)

    server = FileServer(files)
    api = ("--url", f"{server.origin}/{{id}}", "--id-path", "id", "--begin", "1", "--until", str(IDS), "--private")
    run(lambda: outlives_an_outage(server, state, "sequence", "crawl", *api, "--out", str(out)))

    with closing(sqlite3.connect(out / "sequence.db")) as db:
        assert db.execute("SELECT count(*) FROM missed WHERE low <= ?", (IDS,)).fetchone() == (0,)


@pytest.mark.parametrize("trickles", [True, False], ids=["a byte a second", "nothing at all"])
def test_the_first_ctrl_c_does_not_wait_for_a_page_that_never_comes(tmp_path: Path, *, trickles: bool) -> None:
    """It is asked for by the next run."""
    drops: list[Step] = [b"x", 1.0]
    never: list[Step] = [answer(Content_Length="1000"), *(drops * 1000)] if trickles else [1000.0]

    async def main() -> float:
        script: dict[str, list[bytes | list[Step]]] = {"/": [page("/slow")], "/slow": [never]}
        async with (
            ScriptedServer(script) as server,
            running("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK) as crawling,
        ):
            await until(lambda: any(request.path == "/slow" for request in server.requests))
            crawling.send_signal(signal.SIGINT)
            began = time.monotonic()
            done = await finish(crawling)
            assert done.code == 130, done.err
            return time.monotonic() - began

    assert run(main) < 200, "the answer would take 1,000"
    assert [row["url"].endswith("/") for row in rows(tmp_path / "out")] == [True]
    assert rows(tmp_path / "out", "failed.jsonl") == []
