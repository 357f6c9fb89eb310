"""`pages crawl --every`: the real command, against the server that Python has; days pass in the ledger and not here."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from command_line import QUICK, called, rows, run, running

from sanderling.pages.verify import verify

OLD, NEW = 1_700_000_000, 1_710_000_000  # Unix seconds, long ago


class Handler(SimpleHTTPRequestHandler):
    """As it is; what was asked and answered is remembered."""

    def __init__(self, seen: list[tuple[str, int, str | None]], *given: Any, **more: Any) -> None:  # noqa: ANN401 - its own
        self._seen = seen
        super().__init__(*given, **more)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:  # noqa: ANN401, ARG002 - its own
        """Called once for each answer."""
        self._seen.append((self.path, int(code), self.headers.get("If-Modified-Since")))

    def log_message(self, *given: Any) -> None:  # noqa: ANN401 - its own
        """Nothing is printed."""


Seen = list[tuple[str, int, str | None]]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, Seen]]:
    """The files of a folder, at an address; and what was asked for."""
    seen: Seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, seen, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", seen
        finally:
            server.shutdown()
            thread.join()


def put(path: Path, title: str, *links: str, at: int = OLD) -> None:
    """A page that was last changed then."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    path.write_text(f"<html><head><title>{title}</title></head><body><p>{title} {anchors}</p></body></html>")
    os.utime(path, (at, at))


async def crawl_until(asked: int, seen: Seen, *words: str) -> None:
    """Run the command until so many answers were given, and end it as a service manager does."""
    async with asyncio.timeout(120), running("pages", "crawl", *words, *QUICK) as process:
        while len(seen) < asked and process.returncode is None:  # noqa: ASYNC110 - a number, by what the server sees
            await asyncio.sleep(0.02)
        process.terminate()
        _, err = await process.communicate()
    assert len(seen) >= asked, err.decode()


def pass_time(folder: Path) -> None:
    """All pages are due now."""
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE visit SET due = 1")


@pytest.mark.parametrize("every", [("1d",), ("6h-14d", "--visits=8640000")], ids=["1d", "6h-14d"])
def test_a_second_visit_asks_with_the_date_and_adds_what_changed(tmp_path: Path, every: tuple[str, ...]) -> None:
    site, out = tmp_path / "site", tmp_path / "out"
    site.mkdir()
    put(site / "index.html", "Start", "/same.html", "/news.html")
    put(site / "same.html", "Same")
    put(site / "news.html", "News of yesterday")

    with serving(site) as (url, seen):
        words = (url, "--out", str(out), "--every", *every)
        run(lambda: crawl_until(4, seen, *words))  # robots.txt too
        first = list(seen)
        put(site / "news.html", "News of today", at=NEW)
        pass_time(out)
        seen.clear()
        run(lambda: crawl_until(3, seen, *words))

    assert [code for path, code, since in first if path != "/robots.txt"] == [200] * 3
    assert all(since is None for _, _, since in first)
    second = {path: (code, since is not None) for path, code, since in seen if path != "/robots.txt"}
    assert second == {"/": (304, True), "/same.html": (304, True), "/news.html": (200, True)}
    assert sorted(row["title"] for row in rows(out)) == ["News of today", "News of yesterday", "Same", "Start"]
    assert verify(out).problems == []
    shown = called("show", str(out), f"{url}news.html")
    assert shown.code == 0
    assert "News of today" in shown.out
    assert "News of yesterday" in shown.out
    assert "Visited 2 times, 1 with a change" in shown.out
    assert "Visited 2 times, 0 with a change" in called("show", str(out), f"{url}same.html").out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--every=14d-6h",), "the shorter first"),
        (("--every=soon",), "expected auto, an age such as"),
        (("--every=1s",), "from 60s"),
        (("--every=1d", "--max-pages=5"), "--max-pages"),
        (("--visits=5",), "needs --every"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, given: tuple[str, ...], words: str) -> None:
    done = called("pages", "crawl", "http://a.example/", f"--out={tmp_path / 'out'}", *given)

    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "out").exists()
