"""Hosts that do harm: some of their pages, or all of them, are cut, late or never there. For `poisoned`.

A world says what each URL gets at a time, and remembers who asked when. `Wire` answers in process, as the real client
would see it, under virtual time; `Listener` answers over real sockets on loopback.
"""

import asyncio
import errno
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from random import Random
from typing import Protocol, Self
from urllib.parse import urlsplit

import aiohttp

from sanderling.fetch.http import HttpRules
from sanderling.limit.memory import Memory
from sanderling.task import Reply, Task

LEAVES = 120  # pages of a site, without those that list them
NEVER = 1e9  # seconds


class Fault(StrEnum):
    """What is wrong with an answer."""

    NONE = "none"
    CUT = "cut short"  # half of the body, then the end of the connection
    ERROR = "500"
    RESET = "reset"  # before the first byte
    DRIP = "one byte a second"
    SILENT = "never answers"
    LENGTH = "wrong length"  # announces more than it sends, and keeps the connection open
    REFUSED = "connection refused"


# The outcomes that fit a fault. Who drips or announces too much may be cut by us as well as by a timer.
FITTING = {
    Fault.CUT: {"TRUNCATED"},
    Fault.ERROR: {"HOST_UNAVAILABLE"},
    Fault.RESET: {"CONNECTION_RESET"},
    Fault.DRIP: {"TIMEOUT", "TRUNCATED"},
    Fault.SILENT: {"TIMEOUT"},
    Fault.LENGTH: {"TIMEOUT", "TRUNCATED"},
}
FAULTS = tuple(FITTING)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request gets."""

    status: int
    body: bytes = b""
    latency: float = 0.0
    fault: Fault = Fault.NONE
    speed: float = inf  # bytes a second
    kind: str = "text/html; charset=utf-8"

    @property
    def good(self) -> bool:
        """Whether a client that is patient gets a record."""
        return self.status == 200 and self.fault is Fault.NONE


@dataclass(slots=True)
class Asked:
    """The requests of a world: seconds, and what for; and when each first got a good answer, whole."""

    requests: list[tuple[float, str]] = field(default_factory=list)
    served: dict[str, float] = field(default_factory=dict)

    def counts(self) -> Counter[str]:
        """How often each was asked for."""
        return Counter(url for _, url in self.requests)

    def last(self, urls: Sequence[str]) -> float:
        """When the last of these was served; infinity if one never was."""
        return max((self.served.get(url, inf) for url in urls), default=0.0)


class World(Protocol):
    """What a client can be sent to."""

    asked: Asked

    def answer(self, url: str, now: float) -> Answer:
        """What a request that is sent now gets."""


@dataclass(slots=True)
class Site:
    """One host: its pages by path, and which of them are bad. `trouble` is that of the whole host at a time."""

    origin: str
    pages: dict[str, bytes]
    bad: dict[str, Fault] = field(default_factory=dict)
    trouble: Callable[[float], Fault] = lambda _now: Fault.NONE
    speed: float = inf

    def url(self, path: str) -> str:
        """Where a path is."""
        return self.origin + path

    def urls(self) -> list[str]:
        """All of its pages."""
        return [self.url(path) for path in self.pages]

    def good(self) -> list[str]:
        """Those that anybody can have."""
        return [self.url(path) for path in self.pages if path not in self.bad]

    def poison(self, fault: Fault, position: str, number: int) -> Self:
        """Make so many of its leaves bad: the first that a crawl comes to, those in the middle, or the last."""
        leaves = [path for path in self.pages if path.startswith("/leaf/")]
        start = {"first": 0, "middle": (len(leaves) - number) // 2, "last": len(leaves) - number}[position]
        self.bad = dict.fromkeys(leaves[start : start + number], fault)
        return self


class Web:
    """Some sites. Latencies go by the seed, the URL and how often it was asked for, so they do not depend on others."""

    def __init__(self, sites: Sequence[Site], seed: int) -> None:
        self.sites = {site.origin: site for site in sites}
        self.asked = Asked()
        self._seed = seed
        self._times: Counter[str] = Counter()

    def answer(self, url: str, now: float) -> Answer:
        """What a request that is sent now gets."""
        parts = urlsplit(url)
        site = self.sites[f"{parts.scheme}://{parts.netloc}"]
        self._times[url] += 1
        latency = Random(f"{self._seed} {url} {self._times[url]}").uniform(0.05, 0.15)
        trouble = site.trouble(now)
        if parts.path == "/robots.txt" and trouble is Fault.NONE:
            return Answer(404, b"no rules", latency)
        fault = trouble if trouble is not Fault.NONE else site.bad.get(parts.path, Fault.NONE)
        if fault is Fault.ERROR:
            return Answer(500, b"sorry", latency)
        body = site.pages.get(parts.path)
        if body is None:
            return Answer(404 if fault is Fault.NONE else 200, b"not here", latency, fault)
        return Answer(200, body, latency, fault, site.speed)


class Numbers:
    """An API of ever-growing ids, `rate` new ones a second from `first` on; of those below, every `every`th exists.

    An id can be fetched `delay` to twice `delay` seconds after it was made. One in 500 never exists.
    """

    def __init__(self, seed: int, first: int, began: float, rate: float, every: int) -> None:
        self.asked = Asked()
        self.first, self.began, self.rate, self.every = first, began, rate, every
        self.delay = 1.0
        self.latency = 0.1  # seconds, the mean; half as much more or less
        self._seed = seed
        self._rng = Random(f"numbers {seed}")
        self.lags: list[tuple[float, float]] = []  # of new ids: when served first, and how late that was
        self.sent = {True: 0, False: 0}  # requests, by whether the id is new

    def made(self, number: int) -> float:
        """When an id came to be."""
        return self.began + (number - self.first) / self.rate

    def visible(self, number: int) -> float:
        """When it can be fetched, on the wall clock."""
        luck = (number + self._seed) * 2_654_435_761 % 2**32 / 2**32  # by Knuth: cheap, and spread evenly
        return self.made(number) + self.delay * (1 + luck)

    def exists(self, number: int) -> bool:
        """Whether it is there some time or other."""
        if number >= self.first:
            return number % 500 != 250
        return self.every > 0 and number % self.every == 0

    def answer(self, url: str, now: float) -> Answer:
        """What a request that is sent now gets; `now` is on the wall clock."""
        number = int(url.rsplit("/", 1)[1])
        new, latency = number >= self.first, self.latency * self._rng.uniform(0.5, 1.5)
        self.sent[new] += 1
        if not self.exists(number) or (new and now < self.visible(number)):
            return Answer(404, b"null", latency, kind="application/json")
        if new and url not in self.asked.served:
            self.asked.served[url] = now + latency
            self.lags.append((now + latency, now + latency - self.visible(number)))
        body = f'{{"id": {number}, "made": {self.made(number):.6f}, "type": "sale"}}'.encode()
        return Answer(200, body, latency, kind="application/json")


class Wire:
    """Stands where `fetch.http.Http` would, under virtual time: the same replies, errors, limits of time and bytes."""

    def __init__(self, world: World, memory: Memory | None, wall: float = 0.0, rules: HttpRules | None = None) -> None:
        self._world = world
        self._memory = memory
        self._wall = wall  # what the loop's time is counted from
        self._rules = rules or HttpRules()

    async def send(self, task: Task) -> Reply:
        """The reply. Raises what the real client raises."""
        if self._memory is not None:
            self._memory.release(task.url)
        now = asyncio.get_running_loop().time()
        self._world.asked.requests.append((now, task.url))
        answer = self._world.answer(task.url, self._wall + now)
        try:
            async with asyncio.timeout_at(now + self._rules.total):
                await self._headers(answer, task.wait)
                await self._body(task.url, answer)
        except TimeoutError as error:
            raise TimeoutError(str(error) or "total") from None
        if answer.good:
            self._world.asked.served.setdefault(task.url, asyncio.get_running_loop().time())
        headers = (("Content-Type", answer.kind), ("Content-Length", str(len(answer.body))))
        return Reply(answer.status, headers, answer.body[: task.most], task.url, answer.latency)

    async def _headers(self, answer: Answer, wait: float | None) -> None:
        if answer.fault is Fault.SILENT:
            await asyncio.sleep(min(self._rules.connect + self._rules.first_byte, wait or inf))
            raise TimeoutError("first byte")
        if answer.fault is Fault.REFUSED:
            await asyncio.sleep(0.001)
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        await asyncio.sleep(answer.latency)
        if answer.fault is Fault.RESET:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")

    async def _body(self, url: str, answer: Answer) -> None:
        try:
            await self._pieces(url, answer)
        except BaseException:
            if self._memory is not None:
                self._memory.release(url)
            raise

    async def _pieces(self, url: str, answer: Answer) -> None:
        if answer.fault in (Fault.CUT, Fault.LENGTH):
            await self._hold(url, len(answer.body) // 2)
        if answer.fault is Fault.CUT:
            await asyncio.sleep(answer.latency)
            raise aiohttp.ClientPayloadError("the body ended early")
        if answer.fault is Fault.LENGTH:
            await asyncio.sleep(self._rules.idle)
            raise TimeoutError("idle")
        speed = 1.0 if answer.fault is Fault.DRIP else answer.speed
        for came in range(1, int(len(answer.body) / speed) + 1):
            await asyncio.sleep(1.0)
            await self._hold(url, int(came * speed))
        await self._hold(url, len(answer.body))

    async def _hold(self, url: str, size: int) -> None:
        if self._memory is not None:
            await self._memory.hold(url, size)


class Listener:
    """Answers over loopback: `async with Listener(port) as listener: listener.world = …`. One world, one address."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.world: World | None = None
        self._clock = clock
        self._waiting: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._waiting:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            while (line := await reader.readline()) and await self._one(line, reader, writer):
                pass
        except (OSError, asyncio.CancelledError):
            pass  # the client has gone, or we are done
        finally:
            self._waiting.discard(task)
            writer.close()

    async def _one(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection can be used again."""
        while (await reader.readline()).strip():
            pass
        assert self.world is not None
        url, now = self.origin + line.split()[1].decode(), self._clock()
        self.world.asked.requests.append((now, url))
        answer = self.world.answer(url, now)
        await asyncio.sleep(answer.latency)
        if answer.fault is Fault.SILENT:
            await asyncio.sleep(NEVER)
        if answer.fault is Fault.RESET:
            writer.transport.abort()
            return False
        writer.write(
            f"HTTP/1.1 {answer.status} Said\r\nContent-Type: {answer.kind}\r\n"
            f"Content-Length: {len(answer.body)}\r\n\r\n".encode()
        )
        if answer.fault in (Fault.CUT, Fault.LENGTH):
            writer.write(answer.body[: len(answer.body) // 2])
            await asyncio.sleep(NEVER if answer.fault is Fault.LENGTH else 0)
            return False
        for byte in answer.body if answer.fault is Fault.DRIP else b"":
            writer.write(bytes([byte]))
            await asyncio.sleep(1.0)
        writer.write(answer.body if answer.fault is Fault.NONE else b"")
        await writer.drain()
        if answer.good:
            self.world.asked.served.setdefault(url, self._clock())
        return True


def page(title: str, links: Sequence[str], rng: Random) -> bytes:
    """An HTML page of some KB with these links."""
    words = " ".join(f"{rng.choice(WORDS)}{rng.randrange(100)}" for _ in range(rng.randrange(200, 900)))
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    text = f"<main><h1>{title}</h1><p>{words}</p><ul>{anchors}</ul></main>"
    return f"<html><head><title>{title}</title></head><body>{text}</body></html>".encode()


WORDS = ("tide", "flat", "wader", "shore", "sand", "wave", "north", "flock")


def make_site(origin: str, seed: int, leaves: int = LEAVES) -> Site:
    """A home page and so many others: a flat list, or behind a few pages that list them. The seed decides."""
    rng = Random(f"site {origin} {seed}")
    paths = [f"/leaf/{number}" for number in range(leaves)]
    lists = 0 if seed % 2 == 0 else 2 + seed // 2 % 4
    parts = {f"/list/{each}": paths[each::lists] for each in range(lists)}
    # The order of the dictionary is the order of the queue: a crawl asks for what was found first.
    order = [path for part in parts.values() for path in part] if parts else paths
    pages = {"/": page("home", list(parts) or paths, rng)}
    pages |= {path: page(path, part, rng) for path, part in parts.items()}
    pages |= {path: page(path, ["/"], rng) for path in order}
    return Site(origin, pages)


def make_branching_site(origin: str, seed: int) -> Site:
    """60 pages by the home page, the last 20 of which list 3 more each."""
    rng = Random(f"branching {seed}")
    first = [f"/leaf/{number}" for number in range(60)]
    more = {path: [f"{path}/{each}" for each in range(3)] for path in first[40:]}
    pages = {"/": page("home", first, rng)} | {path: page(path, more.get(path, []), rng) for path in first}
    return Site(origin, pages | {path: page(path, [], rng) for part in more.values() for path in part})


def make_slow_site(origin: str, seconds: float, speed: float, pages: int) -> Site:
    """Pages that link to one another in a row, each of which takes so many seconds at so many bytes a second."""
    made = {}
    for number in range(pages):
        links = [f"/slow/{number + 1}"] if number + 1 < pages else []
        body = page(f"slow {number}", links, Random(number))
        made[f"/slow/{number}"] = body + b"<!--" + b" " * int(seconds * speed - len(body)) + b"-->"
    return Site(origin, made, speed=speed)
