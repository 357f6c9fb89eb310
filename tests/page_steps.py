"""Tutorials and how-tos as steps, and a reader who takes them all: writes files, runs commands, compares output.

Steps are the fenced blocks of a page. `sh` is run line by line. Any block with a title is a file of that name. `text`
is what the shell before it printed: lines in their order, with `…` for what is left out. Times, sizes, dates and ports
are not compared. Worlds, and whatever else goes on by itself, go on to the end of the page.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from markdown_it import MarkdownIt
from shell_examples import ROOT, Example, Running, called, end, joined, start

# Pages that are followed from top to bottom, by test_tutorials.py.
FOLLOWED = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.parent.name in ("tutorials", "how-to")
    or path.name in ("install.md", "faq.md", "from-scrapy.md", "from-cron.md")
]
# What installs, schedules or belongs to the reader's shell.
NOT_RUN = {".", "cd", "crontab", "docker", "git", "make", "pip", "pipx", "python3", "source", "sudo", "systemctl", "uv"}
TITLE = re.compile(r"(\w+) title=\"([\w./-]+)\"")
CODES = re.compile(r"# exit code (\d+)(?: or (\d+))?")
WORLD = re.compile(r"sanderling world .*--port (\d+)")
CONSECUTIVE = 20  # ports that a world takes at most
# In this order: what a date has is no time.
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.]*( UTC|Z)?"), "DATE"),
    (re.compile(r"127[.-]0[.-]0[.-]1[:-]\d+"), "HOST"),
    (re.compile(r"\d[\d.,]*(:\d\d)? ?(ms|s|min|B|kB|MB)\b"), "SIZE"),
    (re.compile(r"^\d:\d\d\b"), "TIME"),
    (re.compile(r"\s+"), " "),
]


@dataclass(frozen=True, slots=True)
class Step:
    """One block of a page."""

    page: str
    line: int
    kind: str  # sh, text, file, or the language of a block that is only shown
    text: str
    name: str = ""  # of a file

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def examples(self) -> list[Example]:
        """The lines of a block of shell."""
        return [Example(self.page, self.line + at, text) for at, text in joined(self.text)]


def steps(page: str) -> Iterator[Step]:
    """The fenced blocks of a page, in order."""
    for token in MarkdownIt().parse((ROOT / page).read_text()):
        if token.type == "fence" and token.map:
            titled = TITLE.fullmatch(token.info)
            kind, name = ("file", titled[2]) if titled else (token.info, "")
            yield Step(page, token.map[0] + 2, kind, token.content, name)


def missing(shown: str, printed: str) -> list[str]:
    """The lines of a page that a command did not print, or not in this order."""
    lines = iter([settled(line) for line in printed.splitlines()])
    wanted = [line for line in shown.splitlines() if line.strip() not in ("", "…")]
    return [line for line in wanted if not any(re.fullmatch(pattern(line), each) for each in lines)]


def pattern(line: str) -> str:
    """What a printed line must be to be this one."""
    return ".*".join(re.escape(part) for part in settled(line).split("…"))


def settled(line: str) -> str:
    """A line without what differs from run to run."""
    for varying, name in VARIES:
        line = varying.sub(name, line)
    return line.strip()


def free_ports() -> int:
    """The first of some consecutive ports that nobody has, below those that the system hands out by itself."""
    for _ in range(100):
        first = SystemRandom().randrange(15_000, 32_000)
        with ExitStack() as taken:
            try:
                for port in range(first, first + CONSECUTIVE):
                    taken.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError(f"no {CONSECUTIVE} consecutive ports are free")


@dataclass(slots=True)
class Reader:
    """Somebody who does all that a page says, in the folder where we are, and compares what happens."""

    shim: Path  # a folder on the path that has our command
    first_port: int = field(default_factory=free_ports)
    ran: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    _shift: int = 0

    def follow(self, page: str) -> None:
        """Do it, from top to bottom."""
        world = WORLD.search((ROOT / page).read_text())
        self._shift = self.first_port - int(world[1]) if world else 0
        printed, running = "", list[tuple[Example, Running]]()
        later = list[tuple[Step, Running]]()
        with ExitStack() as lasting:
            for step in map(self.moved, steps(page)):
                if step.kind == "file":
                    Path(step.name).write_text(step.text)
                elif step.kind == "sh":
                    running = []
                    printed = "".join(self.run(example, running, lasting) for example in step.examples)
                elif step.kind == "text" and running and "world" not in (running[-1][0].ours or ()):
                    later.append((step, running[-1][1]))
                elif step.kind == "text":
                    compare(step, printed)
                else:
                    self.shown.add(step.kind)
        for step, process in later:
            compare(step, process.said)

    def run(self, example: Example, running: list[tuple[Example, Running]], lasting: ExitStack) -> str:
        """Run one line, and return what it printed."""
        words = example.words
        if words[0] in NOT_RUN:
            self.not_run.append(example.text)
            return ""
        self.ran.append(example.text)
        ours = example.ours
        if words[0] == "sanderling" and ours and not set("|>&$") & set(example.text):
            if example.lasting:
                process = start(ours)
                lasting.callback(end, example, process)
                running.append((example, process))
                return process.said
            done = called(ours)
            code, said = done.code, done.err + done.out  # a summary comes last
        else:
            code, said = self.shell(example.text)
        wanted = CODES.search(example.text)
        codes = [int(each) for each in wanted.groups() if each] if wanted else [0]
        assert code in codes, f"{example} ended with {code}\n{said}"
        return said

    def shell(self, line: str) -> tuple[int, str]:
        """Have a shell run a line that is more than a command of ours."""
        path = f"{self.shim}{os.pathsep}{os.environ['PATH']}"
        command = ["bash", "-c", line]
        done = subprocess.run(  # noqa: S603 - what our own pages say
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PATH": path},
        )
        # A shell replaces itself by its last command; what it would have said of a signal:
        return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout

    def moved(self, step: Step) -> Step:
        """The same step with free ports instead of those of the page."""
        first = self.first_port - self._shift
        ports = "|".join(str(first + at) for at in range(CONSECUTIVE))
        text = re.sub(
            rf"(127\.0\.0\.1:|--port )({ports})\b", lambda found: f"{found[1]}{int(found[2]) + self._shift}", step.text
        )
        return Step(step.page, step.line, step.kind, text, step.name)


def compare(step: Step, printed: str) -> None:
    """See that what a page shows was printed."""
    assert not (lines := missing(step.text, printed)), f"{step}: not printed: {lines}\n{printed}"


def write_shim(folder: Path) -> Path:
    """Put our command, and the Python that runs it, into a folder for the path."""
    folder.mkdir()
    for name, words in (("sanderling", "-W error -m sanderling"), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        script.chmod(0o755)
    return folder
