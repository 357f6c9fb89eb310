"""What documents show runs: each command is one that our parser takes, and those of the manuals are run as written.

A block is run from top to bottom; what goes on by itself goes on to the end of its block. Other hosts and servers have
stand-ins on this machine where that is cheap; a command that would need the real one is parsed, no more. Commands of
other programs are not run, but for a curl to ourselves. The drill of events has a test of its own: `test_drill.py`.
"""

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from page_steps import FOLLOWED
from shell_examples import ROOT, Done, Example, accepted, blocks, called, end, inside, named, served, start, unknown

from sanderling.clock import SystemClock
from sanderling.worlds.game import Game, GameServer
from sanderling.worlds.game_presets import PRESETS as GAMES
from sanderling.worlds.pds import Fleet, FleetServer
from sanderling.worlds.race import PRESETS as DAYS
from sanderling.worlds.race import RaceDay, RaceServer

PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
# Exit codes that are no failure: doctor may find that this machine lacks something.
WELL = {"doctor": {0, 1}}

StandIns = dict[str, str]


class Site(BaseHTTPRequestHandler):
    """Three pages, instead of example.org."""

    def do_GET(self) -> None:
        known = self.path in ("/", "/one", "/two")
        body = b"<title>A page</title><p>Some words <a href=/one>one</a> <a href=/two>two</a></p>" if known else b""
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site() -> Iterator[StandIns]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield {"https://example.org/": f"http://127.0.0.1:{server.server_port}/ --private --no-parquet"}
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def crawled() -> Iterator[StandIns]:
    """A crawl in `example`, and tables for events."""
    with site() as stand_ins:
        crawl("--out", "example", **stand_ins)
    assert called(["events", "migrate", "head"]).code == 0
    yield {}


@contextmanager
def home() -> Iterator[StandIns]:
    """A home in which something has run."""
    with site() as stand_ins:
        crawl("--home", "home", **stand_ins)
    yield {"/srv/sanderling": "home"}


def crawl(*where: str, **stand_ins: str) -> None:
    (address,) = stand_ins.values()
    done = called(["pages", "crawl", *address.split(), "--depth", "0", *where])
    assert done.code == 0, done.err


@contextmanager
def nothing() -> Iterator[StandIns]:
    Path("home").mkdir()
    yield {"/srv/sanderling": "home"}


@contextmanager
def game() -> Iterator[StandIns]:
    clock = SystemClock()
    server = GameServer(Game(GAMES["steady"](), 1, began=clock.wall()), clock)
    with served(server), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANDERLING_UPSTREAM", server.url())
        patch.setenv("SANDERLING_SEQUENCE_PRIVATE", "true")
        patch.setenv("BUNGIE_API_KEY", "any")
        yield {}


@contextmanager
def fleet() -> Iterator[StandIns]:
    server = FleetServer(Fleet.make(1, 1, 2, others=()), SystemClock())
    with served(server), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANDERLING_REPOS_PRIVATE", "true")
        yield {"https://plc.directory": server.fleet.plc.origin}


@contextmanager
def race() -> Iterator[StandIns]:
    clock = SystemClock()
    server = RaceServer(RaceDay(1, DAYS["demo"](), began=clock.wall()), clock)
    with served(server), ThreadingHTTPServer(("127.0.0.1", 0), Site) as free:
        port = str(free.server_port)
        free.server_close()
        yield {"http://192.168.1.7:8080": server.url(), "8090": port}


# The manuals, and what stands in for what they speak of.
MANUALS: dict[str, Callable[[], AbstractContextManager[StandIns]]] = {
    "README.md": site,
    "docs/configuration.md": nothing,
    "docs/dashboard.md": nothing,
    "docs/events.md": crawled,
    "docs/pages.md": site,
    "docs/politeness.md": crawled,
    "docs/polling.md": race,
    "docs/repos.md": fleet,
    "docs/sequence.md": game,
    "docs/terminal.md": home,
}


@pytest.mark.parametrize("page", PAGES)
def test_our_parser_takes_every_command_of_a_page(page: str) -> None:
    ours = [(example, example.ours) for block in blocks(page) for example in block]

    assert [f"{example}\n{accepted(words)}" for example, words in ours if words and accepted(words)] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_flags_that_the_prose_names_are_there(page: str) -> None:
    wrong = {str(example): unknown(example.words[1:]) for example in named(page)}

    assert {example: words for example, words in wrong.items() if words} == {}


def test_a_command_that_is_none_is_seen() -> None:
    assert unknown(["events", "devour"]) == ["devour"]
    assert unknown(["dead", "list", "events", "--limt", "3"]) == ["--limt"]
    assert unknown(["events", "…"]) == []
    assert accepted(["events", "consume", "--batchs", "3"])
    assert accepted(["events", "devour"])
    assert not accepted(["events", "consume", "--batches", "3"])


# Those of operating need a machine of their own, those of the reference are of every command there is.
ONLY_PARSED = {"docs/fleet.md", "docs/operating.md", "docs/reference/cli.md"}


def test_no_page_with_examples_is_forgotten() -> None:
    with_examples = {page for page in PAGES if any(example.ours for block in blocks(page) for example in block)}

    assert with_examples == MANUALS.keys() | ONLY_PARSED | {page for page in with_examples if page in FOLLOWED}


@pytest.mark.parametrize("page", MANUALS)
def test_the_examples_of_a_manual_run(page: str, tmp_path: Path) -> None:
    ran = []
    with inside(tmp_path), MANUALS[page]() as stand_ins:
        for block in blocks(page):
            if "drill" not in block[0].text:
                ran += perform([example.with_stand_ins(stand_ins) for example in block])

    assert ran


def perform(block: list[Example]) -> list[str]:
    """Run a block from top to bottom, and say what was run."""
    ran = []
    with ExitStack() as lasting:
        for example in block:
            words = example.ours
            if words is None and example.words[0] == "curl" and shutil.which("curl"):
                follow(example)
            elif words and not example.outside and example.lasting:
                lasting.callback(end, example, start(words))
            elif words and not example.outside:
                check(example, called(words))
            else:
                continue
            ran.append(example.text)
    return ran


def check(example: Example, done: Done) -> None:
    assert done.code in WELL.get((example.ours or [""])[0], {0}), f"{example} ended with {done.code}\n{done.err}"


def follow(example: Example) -> None:
    """A stream that goes on: it is enough that it begins."""
    command = [*example.words, "--silent", "--include", "--max-time", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603

    assert "text/event-stream" in done.stdout, f"{example}\n{done.stdout}{done.stderr}"
