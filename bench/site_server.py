"""A site on loopback that costs next to nothing to ask, so that what is measured is the client.

`/doc/7` is a JSON document of about 1 KB, `/page/7` an HTML page of about 1.5 KB with ten links, `/real/7` one of the
size of those of the web with as many (`real_pages.py`), `/blob` 2 KB of nothing, whatever its query. `/count` says how
often one of these was asked for. All else, also robots.txt, is a 404.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from urllib.request import urlopen

from real_pages import pool

LINKS = 10
OWN = 4  # paragraphs of a page of the size of real ones that begin with words of its own
PROSE = (
    "The tide leaves a line of foam and shells along the beach, and small birds run after each wave to see what it "
    "brought. They are gone before the next one breaks, and back before it has drained away. "
)
Answers = dict[bytes, bytes]


def answer(status: str, kind: str, body: bytes) -> bytes:
    """Head and body, ready to be sent."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


MISSING = answer("404 Not Found", "text/plain", b"not here")


def document(number: int) -> bytes:
    """About 1 KB of JSON."""
    record = {"id": number, "name": f"record {number}", "tags": ["shore", "bird", "wave"], "text": PROSE * 5}
    return json.dumps(record).encode()


def linked(number: int, pages: int) -> list[int]:
    """The pages that a page links to: ten children of a tree, so that from page 0 every page is found."""
    return [(number * LINKS + step) % pages for step in range(1, LINKS + 1)]


def prose(number: int) -> str:
    """The words of the prose in an order of their own: pages with one text are taken for a trap."""
    words = PROSE.split()
    Random(number).shuffle(words)
    return " ".join(words)


def page(number: int, pages: int) -> bytes:
    """About 1.5 KB of HTML with ten links."""
    links = "".join(f'<li><a href="/page/{to}">page {to}</a></li>' for to in linked(number, pages))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {number}</title>'
        f'<meta name="description" content="The page of the number {number}"></head><body>'
        f"<main><h1>Page {number}</h1><p>{prose(number)}</p><p>{PROSE}{PROSE}</p><p>{PROSE}</p></main>"
        f"<ul>{links}</ul></body></html>"
    ).encode()


def beginning(number: int, pages: int) -> bytes:
    """What tells a page of the size of real ones from others: its name and its links."""
    links = "".join(f'<li><a href="/real/{to}">page {to}</a></li>' for to in linked(number, pages))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {number}</title></head><body>'
        f"<nav><ul>{links}</ul></nav>"
    ).encode()


def site(pages: int) -> Answers:
    """Every answer, by its path."""
    answers = {b"/blob": answer("200 OK", "text/plain", b"x" * 2048)}
    for number in range(pages):
        answers[b"/doc/%d" % number] = answer("200 OK", "application/json", document(number))
        answers[b"/page/%d" % number] = answer("200 OK", "text/html; charset=utf-8", page(number, pages))
    return answers


@dataclass(slots=True)
class Content:
    """What there is to be asked for, how many seconds an answer takes, and how often one was given."""

    answers: Answers
    delay: float
    pages: int
    real: list[bytes]
    count: int = 0

    def find(self, path: bytes) -> bytes:
        """The answer to a path."""
        found = self.answers.get(path)
        if found is None and path.startswith(b"/real/") and int(path[6:]) < self.pages:
            number = int(path[6:])  # made when it is asked for: all of them at once would not fit
            own = b"<p>" + prose(number).encode()
            body = beginning(number, self.pages) + self.real[number % len(self.real)].replace(b"<p>", own, OWN)
            found = answer("200 OK", "text/html; charset=utf-8", body)
        if found is not None:
            self.count += 1
            return found
        return answer("200 OK", "text/plain", b"%d" % self.count) if path == b"/count" else MISSING


class Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            path = self._unread.split(b" ", 2)[1].partition(b"?")[0]
            self._unread = self._unread[end + 4 :]
            found = self._content.find(path)
            if self._content.delay:
                asyncio.get_running_loop().call_later(self._content.delay, self._transport.write, found)
            else:
                self._transport.write(found)


async def serve(pages: int, delay: float) -> None:
    """Print the port, and answer until killed."""
    content = Content(site(pages), delay, pages, pool())
    server = await asyncio.get_running_loop().create_server(lambda: Connection(content), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Caller(asyncio.Protocol):
    """Asks for one path over and over, reading no more of an answer than that it came."""

    def __init__(self, path: str, times: int, done: asyncio.Future[None]) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode()
        self._left = times
        self._end = b""  # of what came, in which the end of a head may begin
        self._done = done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Ask again when the next answer begins; no body of ours has an empty line with CR in it."""
        begun = (self._end + data).count(b"\r\n\r\n")
        self._end = data[-3:]
        self._left -= begun
        if self._left > 0:
            self._transport.write(self._request * begun)
        elif not self._done.done():
            self._transport.close()
            self._done.set_result(None)


async def ask(port: int, path: str, connections: int, times: int) -> None:
    """Ask for `path` so many times on each connection."""
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in range(connections)]
    for end in ends:
        await loop.create_connection(partial(Caller, path, times, end), "127.0.0.1", port)
    async with asyncio.timeout(60):
        for end in ends:
            await end


@dataclass(frozen=True, slots=True)
class Site:
    """A running server."""

    port: int
    pid: int

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu(self) -> float:
        """Seconds of CPU it has used."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def count(self) -> int:
        """How many requests it has answered with something."""
        with urlopen(self.url("/count"), timeout=10) as reply:  # noqa: S310 - our own server
            return int(reply.read())

    def ceiling(self, path: str) -> float:
        """How many requests for `path` it could answer in a second of its CPU."""
        connections, times = (32, 20) if path.startswith("/real/") else (256, 100)
        asyncio.run(ask(self.port, path, connections, 2))
        before = self.cpu()
        asyncio.run(ask(self.port, path, connections, times))
        return connections * times / (self.cpu() - before)


@contextmanager
def running(pages: int = 1, delay: float = 0.0) -> Iterator[Site]:
    """The server in a process of its own, on a core of its own where there are two."""
    command = [sys.executable, __file__, "--pages", str(pages), "--delay", str(delay)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - this very file
    assert process.stdout is not None
    try:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})  # the client has the last one
        yield Site(int(process.stdout.readline()), process.pid)
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def main() -> None:
    """Serve, as the process that `running` starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1, help="how many documents and pages there are")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    asyncio.run(serve(options.pages, options.delay))


if __name__ == "__main__":
    main()
