"""A dashboard on a real socket, and a client of it; and real stores in the folders of its home."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from known_reports import EVENTS, POLLING, changed, put
from multidict import CIMultiDictProxy
from yarl import URL

from sanderling.apis.polled import PolledKind
from sanderling.clock import Clock, SystemClock
from sanderling.executor import in_threads
from sanderling.stores.documents import Schema
from sanderling.stores.polling import Reconciliation, WantedTarget
from sanderling.stores.polling_store import PollingStore, open_polling
from sanderling.stores.queue import Letter, WholeQueue, open_queue
from sanderling.web.access import Access, Token
from sanderling.web.assets import Assets
from sanderling.web.dashboard import Dependencies, dashboard_app
from sanderling.web.house_actions import Actions
from sanderling.web.house_asking import KINDS, Asking
from sanderling.web.house_audit import Audit, AuditEntry
from sanderling.web.house_items import Items
from sanderling.web.house_live import Live
from sanderling.web.house_reach import DATABASE, QUEUE, Reach
from sanderling.web.serve import Address, serving
from sanderling.web.sessions import Door
from sanderling.web.stream import Streams

TOKEN = "a-token-of-enough-characters"  # noqa: S105 - it opens nothing
NAME = "the token in ops.token"
PID = 4711


class Quick(SystemClock):
    """Time goes by quickly, but not on the wall: a test need not wait for seconds that are seconds."""

    SPEED = 20.0

    def now(self) -> float:
        return SystemClock.now() * self.SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.SPEED)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: CIMultiDictProxy[str]

    @property
    def data(self) -> Any:  # noqa: ANN401 - JSON
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class Dashboard:
    """One that is open."""

    address: Address
    home: Path
    live: Live
    door: Door
    streams: Streams
    client: aiohttp.ClientSession

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask; the path is sent as it is written."""
        url = URL(self.address.url + path, encoded=True)
        async with self.client.request(method, url, json=body, headers=headers, allow_redirects=False) as answer:
            return Answer(answer.status, await answer.read(), answer.headers)

    @property
    def own(self) -> dict[str, str]:
        """What the browser says of a request of our own page."""
        return {"Origin": self.address.url, "Sec-Fetch-Site": "same-origin"}

    async def page(self) -> dict[str, str]:
        """What our own page sends along with an action, without a token."""
        return {"X-CSRF-Token": (await self.ask("GET", "/api/session")).data["csrf"], **self.own}

    async def act(self, action: str, system: str, **more: object) -> Answer:
        """Do something, as the page does it without a token, or a program with it."""
        body = {"action": action, "system": system, **more}
        return await self.ask("POST", "/api/actions", body, await self.page() if not self.door.secured else None)

    def audited(self) -> list[AuditEntry]:
        return Audit(self.home).newest(1000)


@asynccontextmanager
async def dashboard(
    home: Path,
    *,
    token: str | None = None,
    bearer: bool = True,
    reach: Reach | None = None,
    clock: Clock | None = None,
    assets: Assets | None = None,
) -> AsyncIterator[Dashboard]:
    """Open one on this machine, and a client: with the token, if there is one, or without anything."""
    clock, reach = clock or Quick(), reach or Reach()
    known = Token(token) if token else None
    asking, door, streams = Asking(reach, clock), Door(Access(known, clock), clock, NAME), Streams(SystemClock())
    headers = {"Authorization": f"Bearer {token}"} if token and bearer else {}
    jar = aiohttp.CookieJar(unsafe=True)  # of an address
    async with asyncio.timeout(300), Live(home, asking, clock, "1.2.3", secured=token is not None) as live:
        actions = Actions(live, reach, Audit(home), clock)
        behind = Dependencies(live, actions, Items(reach, SystemClock()), door, streams, assets or Assets())
        async with (
            serving(dashboard_app(behind, SystemClock()), "127.0.0.1", 0, known) as address,
            aiohttp.ClientSession(headers=headers, cookie_jar=jar) as client,
        ):
            yield Dashboard(address, home, live, door, streams, client)


@asynccontextmanager
async def polled(folder: Path) -> AsyncIterator[PollingStore]:
    """Polling into a database in that folder: targets `race r1`, and `race r2`, which is paused."""
    put(folder, changed(POLLING, pid=PID))
    with ThreadPoolExecutor(1) as threads:
        store = await open_polling(f"sqlite:{folder / DATABASE}", Schema(()), "test", in_threads(threads))
        try:
            await store.claim(0.0)
            (folder / f"{DATABASE}-polls").write_text(f"{PID}\n")
            await store.set(KINDS, msgspec.json.encode([PolledKind("race", 10.0, active_seconds=0.2)]).decode())
            race = [WantedTarget("race", each, "e1", None, 10.0, 0) for each in ("r1", "r2")]
            await store.apply(Reconciliation(insert=tuple(race)), 0.0)
            await store.change("race", "r2", {"enabled": False})
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def queued(folder: Path, *dead: str) -> AsyncIterator[WholeQueue]:
    """Events from a queue in that folder, with messages that were given up."""
    put(folder, EVENTS)
    queue = open_queue(f"sqlite:{folder}", QUEUE, SystemClock())
    try:
        await queue.publish([Letter(key, b"{}") for key in dead])
        for delivery in await queue.take(100, 0.0) if dead else ():
            await queue.bury(delivery, "it makes no sense")
        yield queue
    finally:
        await queue.close()


@asynccontextmanager
async def watching(house: Dashboard) -> AsyncIterator[asyncio.Task[None]]:
    """Somebody whose stream has begun; the task ends with it."""
    begun = asyncio.Event()

    async def follow() -> None:
        async with house.client.get(f"{house.address.url}/api/stream") as answer:
            async for _ in answer.content:
                begun.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(follow())
        await begun.wait()
        yield task
