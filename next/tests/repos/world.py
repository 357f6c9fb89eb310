"""Hosts of repos on virtual time: accounts, what becomes of each, and archives of them without a socket or a thread."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import msgspec
from atproto_repos import cid_of, encode, make_car, varint

from sanderling.clock import Clock, LoopClock, run_virtual
from sanderling.fetch.classify import of_error, of_response
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.files import Exit
from sanderling.limit import Limiter, Permit
from sanderling.repos import opening
from sanderling.repos.options import ReposOptions
from sanderling.repos.run import ReposRun
from sanderling.stores.sqlite_file import SqliteFile

Answer = tuple[int, dict[str, str], bytes]
CAR = {"Content-Type": "application/vnd.ipld.car"}
JSON = {"Content-Type": "application/json"}


def did_of(name: str) -> str:
    """A DID that one can read."""
    return f"did:plc:{name.ljust(24, '2')}"


def error(name: str, status: int = 400, message: str = "") -> Answer:
    """An error by its name."""
    return status, JSON, msgspec.json.encode({"error": name, "message": message})


@dataclass
class Person:
    """An account: its records and their revision, or what its host says instead."""

    did: str
    records: dict[str, dict[str, Any]]
    rev: str = "3kaaaaaaaaa2a"
    says: Callable[[int], Answer | Exception | None] = lambda _: None  # by the number of the request; None: the repo
    asked: int = 0

    def car(self) -> bytes:
        blocks = {key: encode(record) for key, record in self.records.items()}
        return make_car(Random(1), self.did, blocks, rev=self.rev)

    def car_without(self, key: str) -> bytes:
        """The repo without the block of a record."""
        block = encode(self.records[key])
        frame = varint(36 + len(block)) + cid_of(block) + block
        assert frame in self.car()
        return self.car().replace(frame, b"")


@dataclass
class Pds:
    """A host."""

    name: str
    people: dict[str, Person] = field(default_factory=dict)
    seconds: float = 0.05  # a response takes
    says: Callable[[float], Answer | Exception | None] = lambda _: None  # by the time, whatever is requested

    def add(self, count: int, prefix: str = "", **more: Any) -> "Pds":
        for number in range(count):
            did = did_of(f"{prefix or self.name.partition('.')[0]}{letters(number)}")
            records = {f"app.bsky.feed.post/3k{letters(each)}": {"text": f"{number}"} for each in range(number % 4)}
            self.people[did] = Person(did, records, **more)
        return self


def letters(number: int) -> str:
    """A number in letters that DIDs and keys have."""
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = chr(97 + digit) + text
        if not number:
            return text.rjust(3, "a")


class Net:
    """All hosts, and what was requested of them."""

    def __init__(self, *hosts: Pds) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.sent: dict[str, list[float]] = defaultdict(list)  # times, by host
        self.good = Counter[str]()  # repos that were given, by DID
        self.elapsed = 0.0  # seconds, of the runs so far

    def accounts(self, folder: Path) -> Path:
        """A file of all accounts."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "accounts.txt"
        lines = [f"{did} https://{host.name}\n" for host in self.hosts.values() for did in host.people]
        path.write_text("".join(lines))
        return path

    def answer(self, url: str, now: float) -> Answer | Exception:
        parts = urlsplit(url)
        host = self.hosts.get(parts.netloc)
        if host is None:
            return OSError("no such host")
        self.sent[host.name].append(now)
        if (said := host.says(now)) is not None:
            return said
        did = parse_qs(parts.query)["did"][0]
        person = host.people.get(did)
        if person is None:
            return error("RepoNotFound", message=f"Could not find repo for DID: {did}")
        person.asked += 1
        if (said := person.says(person.asked)) is not None:
            return said
        if parts.path.endswith("getLatestCommit"):
            return 200, JSON, msgspec.json.encode({"cid": "x", "rev": person.rev})
        self.good[did] += 1
        return 200, CAR, person.car()


@dataclass
class NetClient:
    """Sends to a net, in place of the client."""

    net: Net
    limiter: Limiter
    clock: Clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(
        self, request: HttpRequest, permit: Permit | None = None, *, follow: Any = True, read: Any = None, **_: Any
    ) -> HttpResponse:
        name = urlsplit(request.url).netloc
        if permit is None or not permit.live:
            permit = await self.limiter.acquire(name)
        host = self.net.hosts.get(name)
        said = self.net.answer(request.url, self.clock.now())
        latency = host.seconds if host is not None else 0.0
        await self.clock.sleep(latency)
        if isinstance(said, Exception):
            response = HttpResponse(of_error(said), request.url, 1, latency=latency)
        else:
            status, headers, body = said
            pairs = tuple(headers.items())
            outcome = of_response(status, pairs, self.clock.wall())
            location = headers.get("Location")
            response = HttpResponse(
                outcome, request.url, 1, status, pairs, body, latency, location, at=self.clock.wall()
            )
            if read is not None and location is None:
                response = replace(response, outcome=read(response))
        permit.report(response.outcome, latency=latency)
        return response


async def _inline(self: SqliteFile, function: Callable[[], Any]) -> Any:
    return self._guarded(function)


async def _close(self: SqliteFile) -> None:
    self.db.close()


async def inline(function: Callable[..., Any], *values: Any) -> Any:
    return function(*values)


def _post(self: SqliteFile, function: Callable[[], object]) -> None:
    function()


@contextmanager
def played(net: Net) -> Iterator[None]:
    """No thread, no socket: virtual time would not wait for them."""
    with (
        patch.object(SqliteFile, "call", _inline),
        patch.object(SqliteFile, "close", _close),
        patch.object(SqliteFile, "post", _post),
        patch.object(asyncio, "to_thread", inline),
        patch.object(opening, "Client", lambda _options, limiter, clock: NetClient(net, limiter, clock)),
    ):
        yield


@dataclass
class Played:
    """What a run came to."""

    exit: Exit | None
    run: ReposRun
    seconds: float

    @property
    def ends(self) -> dict[str, int]:
        return {f"{end} {code}": number for (end, code), number in self.run.counts.ends.items() if number}


def play(
    net: Net,
    out: Path,
    *,
    until: float | None = None,
    act: Callable[[ReposRun], Coroutine[Any, Any, None]] | None = None,
    **given: Any,
) -> Played:
    """Archive a net; killed at `until`, or to its end."""
    given = {"readers": 0, "did_file": net.accounts(out.parent), "patience": 30.0, "workers": 200, **given}
    if given["did_file"] is None:
        del given["did_file"]

    async def main() -> Played:
        clock = LoopClock(1_800_000_000.0 + net.elapsed)
        async with opening.open_run(ReposOptions(out=out, **given), clock) as run:
            work = asyncio.create_task(run.run())
            acting = asyncio.create_task(act(run)) if act is not None else None
            done, _ = await asyncio.wait([work], timeout=until)
            if acting is not None:
                acting.cancel()
            net.elapsed += clock.now() + 60
            if not done:
                work.cancel()
                await asyncio.wait([work])
                return Played(None, run, clock.now())
            return Played(work.result(), run, clock.now())

    with played(net):
        return run_virtual(main())
