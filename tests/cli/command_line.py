"""Commands as people run them: in a process of their own, or called here where that makes no difference."""

import asyncio
import json
import shlex
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import pytest
from forked import Forked as Process
from forked import fork, with_settings
from scripted_server import Step, answer

from sanderling import cli
from sanderling.cli.everywhere import taken
from sanderling.limit import PaceRules

T = TypeVar("T")
Script = dict[str, list[bytes | list[Step]]]
# A process of ours begins with two requests a second, so the sites are small; Parquet takes a second of its own.
QUICK = ("--private", "--no-parquet")
# Commands for the first thread to call; None when nobody will ask for more.
WAITING: SimpleQueue[Callable[[], None] | None] = SimpleQueue()


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


def page(*links: str) -> bytes:
    """An HTML page with these links."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = f"<html><head><title>A page</title></head><body><p>{anchors}</p></body></html>".encode()
    return answer(200, body, Content_Type="text/html")


def site(pages: int = 1) -> Script:
    """A front page that links to `pages` others."""
    names = [f"/{number}" for number in range(pages)]
    return {"/": [page(*names)], **{name: [page("/")] for name in names}}


async def start(*arguments: str) -> Process:
    """The process of a command."""
    return await fork(*arguments)


async def finish(process: Process | asyncio.subprocess.Process) -> Done:
    """What comes of it, within a minute."""
    async with asyncio.timeout(300):
        out, err = await process.communicate()
    return Done(process.returncode or 0, out.decode(), err.decode())


async def sanderling(*arguments: str) -> Done:
    """What comes of a command."""
    return await finish(await start(*arguments))


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Process]:
    """A command, for as long as it is wanted."""
    process = await start(*arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def called(*arguments: str) -> Done:
    """What comes of a command that is called in this process."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
        words, settings = with_settings(arguments)
        patch.setattr(sys, "argv", ["sanderling", *words])
        for name, value in settings.items():
            patch.setenv(name, value)
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exits:
            cli.main()
    assert isinstance(exits.value.code, int)
    return Done(exits.value.code, out.getvalue(), err.getvalue())


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the async half of a test, in another thread: the first one is for the commands that are called by `here`."""
    with ThreadPoolExecutor(1, "beside") as beside:
        test = beside.submit(lambda: asyncio.run(main()))
        test.add_done_callback(lambda _: WAITING.put(None))
        while command := WAITING.get():
            command()
        return test.result()


async def here(*arguments: str) -> Done:
    """What comes of a command that ends by itself: without a process, which takes half a second, and less politely."""
    done: Future[Done] = Future()

    def command() -> None:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(PaceRules, "up_to", lambda rps: PaceRules(initial_rps=min(rps, 50.0), max_rps=rps))
                done.set_result(called(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)

    WAITING.put(command)
    return await asyncio.wrap_future(done)


def rows(folder: Path, name: str = "pages.jsonl") -> list[dict[str, Any]]:
    """What was kept."""
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def paths(folder: Path) -> list[str]:
    """What there are rows of, in order."""
    return sorted(f"/{row['url'].split('/', 3)[3]}" for row in rows(folder))


class Arrival(asyncio.Event):
    """A step of a script, that can be waited for."""

    async def __call__(self, _writer: asyncio.StreamWriter) -> None:
        """The script has come this far."""
        self.set()

    async def came(self) -> None:
        """Return when it has."""
        async with asyncio.timeout(300):
            await self.wait()


def commands(said: str) -> list[list[str]]:
    """The commands that were shown, to be run as they stand."""
    return [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("    sanderling ")]


def meant(*words: str) -> tuple[Callable[..., object], dict[str, object]]:
    """What the command line makes of a command: what it would call, and with what. Raises CycloptsError."""
    command, bound, _ = cli.app.parse_args(taken(words)[0], print_error=False, exit_on_error=False)
    return command, bound.arguments
