"""The shell commands that documents show: found, read by our own parser, and run."""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from cyclopts import CycloptsError
from markdown_it import MarkdownIt

from sanderling import cli
from sanderling.cli.everywhere import taken

ROOT = Path(__file__).parents[1]
# What cannot be reached from here: other hosts, servers of other kinds, and the key that a document leaves out.
OUTSIDE = re.compile(r"https?://(?!127\.0\.0\.1)\w|(amqps?|postgresql|redis|clickhouse|s3(\+https?)?)://|…|/(var|opt)/")
CONTACT = re.compile(r"--contact \S+")  # is told, and not called
# What runs until somebody ends it.
LASTING = re.compile(r"demo |sequence crawl (?!.*--until)|polling run (?!.*--once)|dashboard|top|world (?!social)")
# What is ended by SIGTERM says so with 0, but pages and repos, which were not done, with 130; worlds do not hear it.
ENDED = {0, 130, -signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a document, as it is written there, in one line."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"

    @property
    def words(self) -> list[str]:
        """What the shell makes of it, without the comment."""
        return shlex.split(self.text, comments=True)

    @property
    def ours(self) -> list[str] | None:
        """What our own command is given; None if it is somebody else's."""
        words = self.words
        for at in reversed(range(len(words))):
            if (
                Path(words[at]).name == "sanderling"
                and words[at + 1 : at + 2]
                and words[at + 1] in (*cli.app, "--help")
            ):
                return words[at + 1 :]
        return None

    @property
    def outside(self) -> bool:
        """Whether it needs something that is not here."""
        return OUTSIDE.search(CONTACT.sub("", " ".join(self.words))) is not None

    @property
    def lasting(self) -> bool:
        """Whether it runs until somebody ends it."""
        said = " ".join(self.ours or ())
        return LASTING.match(f"{said} ") is not None or (said.startswith("events consume") and "--drain" not in said)

    def with_stand_ins(self, stand_ins: dict[str, str]) -> "Example":
        """The same with something that is here in the place of what is not."""
        text = self.text
        for real, stand_in in stand_ins.items():
            text = text.replace(real, stand_in)
        return replace(self, text=text)


@cache
def blocks(page: str) -> list[list[Example]]:
    """The blocks of shell in a document: fenced as sh, or indented and of our commands."""
    found = []
    for token in MarkdownIt().parse((ROOT / page).read_text()):
        fenced = token.type == "fence" and token.info == "sh"
        if token.map and (fenced or token.type == "code_block"):
            first = token.map[0] + (2 if fenced else 1)
            lines = [Example(page, first + at, text) for at, text in joined(token.content)]
            if fenced or all(each.text.startswith("sanderling ") for each in lines):
                found.append(lines)
    return found


def joined(content: str) -> Iterator[tuple[int, str]]:
    """Its lines, with those that end in a backslash made whole."""
    begun, first = "", 0
    for at, line in enumerate(content.splitlines()):
        first = first if begun else at
        begun = f"{begun} {line.strip()}".strip()
        if begun.endswith("\\"):
            begun = begun[:-1].rstrip()
        elif begun:
            yield first, begun
            begun = ""


def named(page: str) -> list[Example]:
    """The commands of ours that the prose of a document names."""
    tokens = [token for token in MarkdownIt().enable("table").parse((ROOT / page).read_text()) if token.children]
    return [
        Example(page, token.map[0] + 1 if token.map else 0, inline.content)
        for token in tokens
        for inline in token.children or ()
        if inline.type == "code_inline" and inline.content.startswith("sanderling ")
    ]


def unknown(words: list[str]) -> list[str]:
    """What our command does not know of these words: the first that is no command where one must be, and flags."""
    command = cli.app
    for word in words:
        if command.default_command is not None or word == "…" or word.startswith("-"):
            break
        if word not in command:
            return [word]
        command = command[word]
    arguments = command.assemble_argument_collection() if command.default_command is not None else ()
    known = {name for each in arguments for name in each.names} | {"--home", "--config", "--help", "--version"}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


def accepted(words: list[str]) -> str:
    """What our parser has against a command line; nothing is run."""
    rest, _ = taken(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli.app, "config", ())
        try:
            cli.app.parse_args(rest, print_error=False, exit_on_error=False)
        except CycloptsError as error:
            return str(error) or type(error).__name__
    return ""


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


def called(words: list[str]) -> Done:
    """Run a command of ours to its end, in this process and this folder."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "argv", ["sanderling", *words])
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exits:
            cli.main()
    assert isinstance(exits.value.code, int)
    return Done(exits.value.code, out.getvalue(), err.getvalue())


class Running:
    """A command of ours that goes on, in a process of its own, and all that it has said."""

    def __init__(self, words: list[str]) -> None:
        command = [sys.executable, "-W", "error", "-m", "sanderling", *words]
        # Both into one pipe: whichever it speaks to first, it has said something.
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.pid = self._process.pid
        self.said = ""
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._news:
                self.said += line
                self._news.notify_all()

    def until(self, pattern: str) -> None:
        """Wait until it has said something like that."""
        self.until_so(lambda: re.search(pattern, self.said) is not None)

    def until_so(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, for as long as it runs and no longer than a minute."""
        with self._news:
            for _ in range(1200):
                if holds():
                    return
                assert self._reader.is_alive(), f"it has ended\n{self.said}"
                self._news.wait(0.05)
        raise AssertionError(f"it was waited for in vain\n{self.said}")

    def stop(self) -> int:
        """Ask it to stop, and say with which code it ended."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(300)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()


def start(words: list[str]) -> Running:
    """Start it, and return when it is at work and can be asked to stop: then it says so, or writes how it stands."""
    if words[0] == "world":
        process = Running(words)
        process.until("Ctrl-C ends it")
        return process
    if words[0] in ("dashboard", "top"):
        process = Running([*words, *(["--port", "0"] if words[0] == "dashboard" else [])])
        process.until(r"\S.*\n")
        return process
    process = Running(words)
    process.until_so(lambda: any(f'"pid":{process.pid},' in path.read_text() for path in Path().rglob("status.json")))
    return process


def end(example: Example, process: Running) -> None:
    code = process.stop()

    assert "Traceback" not in process.said, f"{example}\n{process.said}"
    assert code in ENDED, f"{example} ended with {code}\n{process.said}"


@contextmanager
def served(world: AbstractAsyncContextManager[object]) -> Iterator[None]:
    """Serve a simulated world from another thread, since commands are run in this one."""
    loop, up, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with world:
            up.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert up.wait(300)
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@contextmanager
def inside(folder: Path, **variables: str) -> Iterator[None]:
    """Be in a folder, with these variables and no other of ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("SANDERLING_")]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield
