"""Hosts that many machines crawl at once: a server on many addresses, which records who asked for what, and when.

`python fleet_hosts.py WEB LOG` serves the web described by the JSON file WEB until it is killed, and appends one line
of JSON to LOG for each request, once it was answered or its connection was lost.
"""

import asyncio
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TextIO

import msgspec

CALENDAR = 16  # days of the trap that a crawl reaches: as deep as it follows links by default
PROSE = (
    "The tide leaves a line of foam and shells along the beach and small birds run after each wave to see what it "
    "brought while the wind turns and the light goes over the water grey green silver and slowly the harbour wakes"
)


class Manners(msgspec.Struct, frozen=True):
    """How a host treats who asks. Numbers of requests do not count robots.txt."""

    crawl_delay: float = 0  # seconds, in robots.txt
    quota: int = 0  # requests that are served; the next is refused with a Retry-After, and the count begins anew
    retry_after: int = 0  # seconds
    slow: float = 0  # seconds that each answer takes
    failing: tuple[int, int] = (0, 0)  # from and to which request it answers 500
    trap: bool = False  # an endless calendar


class Web(msgspec.Struct, frozen=True):
    """All hosts, their pages, and what links to what.

    Of each host `pages` hang together as a tree below its first. A quarter as many (`far`) are linked by pages of the
    next host only, and an eighth (`behind`) are reached by redirects from the next host only. `/closed` is forbidden by
    robots.txt where there is one, and linked by every page.
    """

    manners: tuple[Manners, ...]  # of each host
    pages: int
    net: str = "127.77"  # the first half of every address
    port: int = 0

    def address(self, host: int) -> str:
        """The address of a host."""
        number = host % len(self.manners)
        return f"{self.net}.{number // 250}.{number % 250 + 1}"

    def url(self, host: int, path: str) -> str:
        """The URL of a path at a host."""
        return f"http://{self.address(host)}:{self.port}{path}"

    def seeds(self) -> list[str]:
        """Where a crawl begins: one page of each host."""
        return [self.url(host, "/tree/0") for host in range(len(self.manners))]

    def paths(self, host: int) -> Iterator[str]:
        """Every path of a host that a crawl must keep a row of."""
        yield from (f"/tree/{number}" for number in range(self.pages))
        yield from (f"/far/{number}" for number in range(self.pages // 4))
        for number in range(self.pages // 8):
            yield from (f"/moved/{number}", f"/behind/{number}")
        if self.manners[host].trap:
            yield from (f"/calendar/{day}" for day in range(1, CALENDAR + 1))

    def known(self) -> set[str]:
        """Every URL that a crawl of the seeds must keep a row of, once."""
        return {self.url(host, path) for host in range(len(self.manners)) for path in self.paths(host)}

    def links(self, host: int, path: str) -> list[str]:
        """Where a page leads to."""
        kind, _, text = path[1:].partition("/")
        number = int(text)
        if kind == "calendar":
            return [f"/calendar/{number + 1}"]
        if kind != "tree":
            return ["/tree/0"]
        found = [f"/tree/{each}" for each in range(number * 3 + 1, min(number * 3 + 4, self.pages))]
        found.append(self.url(host + 1, f"/tree/{number}"))
        if number < self.pages // 4:
            found.append(self.url(host - 1, f"/far/{number}"))
        if number < self.pages // 8:
            found.append(f"/moved/{number}")
        if number == 0 and self.manners[host].trap:
            found.append("/calendar/1")
        if self.manners[host].crawl_delay:
            found.append("/closed")
        return found

    def page(self, host: int, path: str) -> bytes:
        """A page of prose that no other page has, and its links."""
        words = Random(f"{host}{path}").choices(PROSE.split(), k=120)
        links = "".join(f'<li><a href="{to}">on</a></li>' for to in self.links(host, path))
        text = f"<main><h1>{host} {path}</h1><p>{' '.join(words)}</p></main><ul>{links}</ul>"
        return f"<!doctype html><html lang=en><title>{host} {path}</title><body>{text}</body></html>".encode()


class Entry(msgspec.Struct, frozen=True):
    """A request, as its host saw it. Times are of the machine's monotonic clock, which all its processes share."""

    asked: float
    done: float  # when it was answered, or its connection was lost
    sender: str  # the name before the @ in the contact, or the address it came from
    host: str
    path: str
    status: int  # 0: the connection was lost before the answer
    retry_after: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What a host says."""

    status: int
    body: bytes = b""
    location: str = ""
    retry_after: int = 0
    kind: str = "text/html; charset=utf-8"

    def encoded(self) -> bytes:
        """Head and body."""
        lines = [f"HTTP/1.1 {self.status} Said", f"Content-Type: {self.kind}", f"Content-Length: {len(self.body)}"]
        if self.location:
            lines.append(f"Location: {self.location}")
        if self.retry_after:
            lines.append(f"Retry-After: {self.retry_after}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@dataclass(slots=True)
class Host:
    """What one host remembers between requests."""

    web: Web
    number: int
    asked: int = 0
    served: int = 0  # since it last refused
    closed_until: float = 0.0
    paths: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.paths = frozenset(self.web.paths(self.number))

    @property
    def manners(self) -> Manners:
        """How it behaves."""
        return self.web.manners[self.number]

    def answer(self, path: str, now: float) -> Answer:
        """Say something to a request that came now."""
        if path == "/robots.txt":
            return self._robots()
        self.asked += 1
        first, last = self.manners.failing
        if first <= self.asked < last:
            return Answer(500, b"broken", kind="text/plain")
        if self.manners.quota and (refusal := self._refusal(now)):
            return refusal
        return self._found(path)

    def _robots(self) -> Answer:
        if not self.manners.crawl_delay:
            return Answer(404, b"not here", kind="text/plain")
        rules = f"User-agent: *\nCrawl-delay: {self.manners.crawl_delay:g}\nDisallow: /closed\n"
        return Answer(200, rules.encode(), kind="text/plain")

    def _refusal(self, now: float) -> Answer | None:
        if now >= self.closed_until and self.served < self.manners.quota:
            self.served += 1
            return None
        if now >= self.closed_until:
            self.served, self.closed_until = 0, now + self.manners.retry_after
        return Answer(429, b"later", retry_after=max(1, round(self.closed_until - now)), kind="text/plain")

    def _found(self, path: str) -> Answer:
        kind, _, number = path[1:].partition("/")
        if kind == "moved" and path in self.paths:
            return Answer(302, location=self.web.url(self.number - 1, f"/behind/{number}"))
        if path in self.paths or (kind == "calendar" and self.manners.trap):
            return Answer(200, self.web.page(self.number, path))
        return Answer(404, b"not here", kind="text/plain")


class Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each."""

    def __init__(self, hosts: dict[str, Host], log: TextIO) -> None:
        self._hosts, self._log, self._unread = hosts, log, b""
        self._lost = asyncio.Event()
        self._answering = set[asyncio.Task[None]]()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = transport.get_extra_info("sockname")[0]
        self._peer = transport.get_extra_info("peername")[0]
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        """Begin to answer what is complete; when it came is noted here, whatever is answered before."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            head, self._unread = self._unread[:end].decode("latin-1"), self._unread[end + 4 :]
            task = self._loop.create_task(self._reply(head, self._loop.time()))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Whoever came is gone."""
        self._lost.set()

    async def _reply(self, head: str, now: float) -> None:
        path, host = head.split(" ", 2)[1], self._hosts[self._address]
        answer = host.answer(path, now)
        if host.manners.slow and path != "/robots.txt":
            with suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), host.manners.slow)
        status = 0 if self._lost.is_set() else answer.status
        if status:
            self._transport.write(answer.encoded())
        retry_after = answer.retry_after if status else 0
        entry = Entry(now, self._loop.time(), sender(head, self._peer), self._address, path, status, retry_after)
        self._log.write(msgspec.json.encode(entry).decode() + "\n")
        self._log.flush()


def sender(head: str, peer: str) -> str:
    """Who asks: by the contact in the User-Agent where there is one, as several share an address."""
    contact = re.search(r"^user-agent:.*mailto:([^@\r\n]+)@", head, re.IGNORECASE | re.MULTILINE)
    return contact[1] if contact else peer


async def serve(web: Web, log: TextIO) -> None:
    """Print the port, which is the same at each address, and answer until killed."""
    listeners: list[socket.socket] = []
    for number in range(len(web.manners)):
        listener = socket.create_server((web.address(number), web.port), backlog=1024)
        web = msgspec.structs.replace(web, port=listener.getsockname()[1])
        listeners.append(listener)
    hosts = {web.address(number): Host(web, number) for number in range(len(web.manners))}
    loop = asyncio.get_running_loop()
    for listener in listeners:
        await loop.create_server(lambda: Connection(hosts, log), sock=listener)
    print(web.port, flush=True)  # noqa: T201 - this is how its starter hears of it
    await asyncio.Event().wait()


def read_log(path: Path) -> list[Entry]:
    """All requests so far, by when they came."""
    lines = path.read_bytes().splitlines(keepends=True)
    entries = [msgspec.json.decode(line, type=Entry) for line in lines if line.endswith(b"\n")]
    return sorted(entries, key=lambda entry: entry.asked)


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a") as opened:
        asyncio.run(serve(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Web), opened))
