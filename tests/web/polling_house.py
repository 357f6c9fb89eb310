"""Something that can be controlled like polling, in memory; and a house around it, on a real socket."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import msgspec
from known_reports import polling
from yarl import URL

from sanderling.apis.polled import PolledKind
from sanderling.clock import Clock, SystemClock
from sanderling.observe.report import Report
from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.control import Ingested
from sanderling.polling.report import PollingFacts
from sanderling.polling.settings import Keys, PollingSetting
from sanderling.stores.documents import SourceRow, Value
from sanderling.stores.polling import ChangeSpan, Field, Op, PollingStoreError, PollingTarget, Query, RowChange
from sanderling.web.access import Token
from sanderling.web.app import AppRules
from sanderling.web.polling_api import polling_app
from sanderling.web.serve import Address, ServeRules, serving
from sanderling.web.stream import StreamRules, Streams

WALL = 1_800_000_000.0
TOKEN = "a-token-of-enough-characters"  # noqa: S105 - it opens nothing
KINDS = (PolledKind("event", 10.0), PolledKind("results", 10.0), PolledKind("race", 10.0, active_seconds=0.2))
SNAPSHOT = ("event", "results")


class FakeChanges:
    """Numbered changes; `trim` forgets."""

    def __init__(self) -> None:
        self.all: list[RowChange] = []
        self.newest = 0

    def add(self, table: str = "laps", op: Op = Op.INSERT, kind: str = "race", **values: Value) -> RowChange:
        self.newest += 1
        key = "" if op is Op.PURGE else f"k{self.newest}"
        self.all.append(
            RowChange(seq=self.newest, at=WALL, op=op, table=table, key=key, values=values, kind=kind, source_id="r1")
        )
        return self.all[-1]

    async def changes(self, after: int, most: int) -> list[RowChange]:
        return [change for change in self.all if change.seq > after][:most]

    async def span(self) -> ChangeSpan:
        return ChangeSpan(self.all[0].seq if self.all else 0, self.newest)

    async def trim(self, keep: int) -> int:
        gone = max(0, len(self.all) - keep)
        del self.all[:gone]
        return gone


def a_target(number: int, kind: str = "race", source_id: str = "", **columns: object) -> PollingTarget:
    made = PollingTarget(
        id=number,
        kind=kind,
        source_id=source_id or f"r{number}",
        event="e1",
        seconds=10.0,
        next_due=WALL + number,
    )
    return msgspec.structs.replace(made, **columns)


class FakeControl:
    """Polling, as far as the web is concerned. Set `trouble` and everything that asks the database raises it."""

    def __init__(self, targets: Sequence[PollingTarget] = (), clock: Clock | None = None) -> None:
        self.store = FakeChanges()
        self.feed = ChangeFeed(self.store, clock or SystemClock())
        self.known = {(target.kind, target.source_id): target for target in targets}
        self.tables: dict[str, list[SourceRow]] = {"laps": []}
        self.texts: dict[str, str] = {}
        self.keys = Keys(KINDS)
        self.trouble: Exception | None = None
        self.store_trouble = ""
        self.running = True
        self.promotions: list[tuple[Query, float]] = []
        self.ingestions: list[object] = []
        self.purged = 0
        self.begun = asyncio.Event()  # set when `full` is asked for
        self.hold: asyncio.Event | None = None  # what it waits for

    def tell(self, *changes: RowChange) -> None:
        self.feed.note(changes)

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    async def targets(self, query: Query) -> list[PollingTarget]:
        self._check()
        found = sorted((each for each in self.known.values() if _matches(each, query)), key=_place)
        return found[: query.most]

    async def target(self, kind: str, source_id: str) -> PollingTarget | None:
        self._check()
        return self.known.get((kind, source_id))

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        self._check()
        if (kind, source_id) not in self.known:
            return False
        columns: dict[str, Any] = {str(name): value for name, value in fields.items()}
        self.known[kind, source_id] = msgspec.structs.replace(self.known[kind, source_id], **columns)
        return True

    async def promote(self, query: Query, seconds: float) -> int:
        self._check()
        self.promotions.append((query, seconds))
        return sum(target.enabled for target in self.known.values() if _matches(target, query))

    async def settings(self) -> tuple[PollingSetting, ...]:
        self._check()
        return self.keys.listed(self.texts)

    async def set(self, key: str, text: str | None) -> PollingSetting:
        self._check()
        if text is None:
            self.texts.pop(self.keys.spellings(key)[0], None)
            canonical = self.keys.spellings(key)[0]
        else:
            canonical, written = self.keys.checked(key, text)
            self.texts[canonical] = written
        return next(each for each in self.keys.listed(self.texts) if each.key == canonical)

    async def ingest(self, kind: str, source_id: str) -> Ingested | None:
        self._check()
        self.ingestions.append((kind, source_id))
        return _ingested(self.known[kind, source_id]) if (kind, source_id) in self.known else None

    async def ingest_event(self, event: str, kinds: Sequence[str] | None = None) -> list[Ingested]:
        self._check()
        self.ingestions.append((event, kinds))
        return [
            _ingested(target)
            for target in self.known.values()
            if target.event == event and (kinds is None or target.kind in kinds)
        ]

    async def full(self) -> list[Ingested]:
        self._check()
        self.ingestions.append("full")
        self.begun.set()
        if self.hold is not None:
            await self.hold.wait()
        return [_ingested(target) for target in self.known.values()]

    async def purge(self) -> dict[str, int]:
        self._check()
        self.purged += 1
        return {"laps": 3, "targets": len(self.known)}

    async def rows(self, table: str, *, event: str | None, after: str, most: int) -> list[SourceRow]:
        self._check()
        found = [row for row in self.tables[table] if row.key > after]
        return [row for row in found if event is None or row.values.get("event") == event][:most]

    async def changes(self, after: int, most: int) -> list[RowChange]:
        self._check()
        return await self.store.changes(after, most)

    def status(self) -> Report[PollingFacts]:
        return polling(running=self.running, store_trouble=self.store_trouble, newest=self.feed.newest)


def _place(target: PollingTarget) -> tuple[float, int]:
    return target.next_due, target.id


def _matches(target: PollingTarget, query: Query) -> bool:
    wanted = {
        "kind": query.kind,
        "source_id": query.source_id,
        "event": query.event,
        "enabled": query.enabled,
    }
    same = all(getattr(target, name) == value for name, value in wanted.items() if value is not None)
    gone = query.gone is None or query.gone == (target.gone is not None)
    due = query.due_before is None or target.next_due <= query.due_before
    live = query.accelerated_at is None or (target.until is not None and target.until > query.accelerated_at)
    return same and gone and due and live and (query.after is None or _place(target) > query.after)


def _ingested(target: PollingTarget) -> Ingested:
    ok = target.status != "error"
    return Ingested(kind=target.kind, source_id=target.source_id, status="ok" if ok else "error", ok=ok, changes=1)


TROUBLE = PollingStoreError("polling.db: disk I/O error")


@dataclass(slots=True)
class House:
    """A house that is open."""

    address: Address
    control: FakeControl
    streams: Streams
    session: aiohttp.ClientSession
    clock: Clock

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> "Answer":
        """Ask; the path is sent as it is written."""
        url = URL(self.address.url + path, encoded=True)
        async with self.session.request(method, url, json=body, headers=headers, allow_redirects=False) as answer:
            return Answer(answer.status, await answer.read(), dict(answer.headers))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        """What it says."""
        return cast("dict[str, Any]", msgspec.json.decode(self.body))


@asynccontextmanager
async def house(
    control: FakeControl | None = None,
    *,
    token: str | None = TOKEN,
    streams: StreamRules | None = None,
    app: AppRules | None = None,
    serve: ServeRules | None = None,
) -> AsyncIterator[House]:
    """Open one on this machine, and a client that has the token."""
    clock = SystemClock()
    control = control or FakeControl([a_target(1), a_target(2), a_target(3, "results", "e1")])
    opened = Streams(clock, streams)
    made = polling_app(cast("Any", control), clock, opened, SNAPSHOT, app)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        asyncio.timeout(300),
        serving(made, "127.0.0.1", 0, Token(token) if token else None, serve) as address,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        yield House(address, control, opened, session, clock)


async def raw(address: Address, data: bytes, *more: bytes) -> bytes:
    """Send bytes as they are, and read until the server closes the connection."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        for piece in (data, *more):
            writer.write(piece)
            await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""  # cut while we were still sending
    finally:
        writer.transport.abort()


def head(line: str, *headers: str) -> bytes:
    """The head of a request with the token, after which the connection is closed."""
    lines = [line, "Host: localhost", f"Authorization: Bearer {TOKEN}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def parsed(data: bytes) -> Answer:
    """The first answer in what a connection said."""
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split(" ")[1]), body, headers)
