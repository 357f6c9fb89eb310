"""A simulated race day at a real address, `sanderling polling` against it, and what must be true afterwards."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from command_line import Done, called, running
from forked import Forked as Process

from sanderling.apis.polled import Wanted
from sanderling.apis.trackside import Trackside
from sanderling.clock import SystemClock
from sanderling.executor import in_threads
from sanderling.stores.polling import Op, Query, RowChange
from sanderling.stores.polling_store import PollingStore, open_polling
from sanderling.task import Reply
from sanderling.worlds.race import RaceDay, RaceRules, RaceServer, RaceWeather
from sanderling.worlds.race_day import DayRules

Tables = dict[str, dict[str, dict[str, object]]]

# A race that is under way before anyone can look, and for longer than any test takes.
LONG = DayRules(pilots=6, late=0, removed=0, rounds=1, aborted=0, first=0.0, heat=600.0, pause=5.0, lap=1.0)
# One that is over after some twenty looks at it, see `served`.
SHORT = DayRules(pilots=6, late=0, removed=0, rounds=1, aborted=0, first=0.5, heat=5.0, pause=5.0, lap=0.6)
STEP = 0.25
# Nothing happens.
QUIET = DayRules(pilots=6, late=0, removed=0, rounds=1, aborted=0, first=3600.0, pause=5.0)
# Everything is looked for and looked at again soon.
OFTEN = ("--set", "fullIntervalMs=500ms", "--set", "raceIdleMs=200ms", "--set", "resultsMs=200ms")
SECONDS = 300  # for whatever is waited for: the machine may be busy


class DayClock(SystemClock):
    """A clock on whose wall a day passes by a step with each look at a race: a busy machine makes it no shorter."""

    def __init__(self, day: RaceDay) -> None:
        super().__init__()
        self._day = day

    def wall(self) -> float:
        """Seconds since 1970, as far as the day is concerned."""
        looks = sum(number for path, number in self._day.tally.paths.items() if path.endswith("/Race.json"))
        return self._day.began + STEP * looks


class Server(RaceServer):
    """A day that passes like that."""

    def __init__(self, day: RaceDay) -> None:
        self._at = DayClock(day)
        super().__init__(day, self._at)

    @property
    def now(self) -> float:
        """How far the day is, in seconds."""
        return self._at.wall() - self.day.began


@asynccontextmanager
async def served(
    day: DayRules = LONG, weather: RaceWeather | None = None, make: type[RaceDay] = RaceDay
) -> AsyncIterator[Server]:
    """A race day that begins now."""
    async with Server(make(1, RaceRules(day, weather or RaceWeather()))) as server:
        yield server


def flags(folder: Path, server: Server) -> list[str]:
    """What to poll it with."""
    return ["--out", str(folder / "out"), "--trackside", server.url(), "--private"]


async def command(*arguments: str) -> Done:
    """What comes of a command that does not stay: called here, in a thread, while servers go on."""
    return await asyncio.to_thread(called, "polling", *arguments)


async def until(true: Callable[[], bool]) -> None:
    """Return when that is so."""
    async with asyncio.timeout(SECONDS):
        while not true():  # noqa: ASYNC110 - whatever it is
            await asyncio.sleep(0.02)


async def asked(server: Server, path: str, more: int = 1) -> None:
    """Return when a path was asked for so many times more."""
    before = server.tally.paths[path]
    await until(lambda: server.tally.paths[path] >= before + more)


class Admin:
    """The admin API of a process that polls."""

    def __init__(self, url: str, session: ClientSession, process: Process) -> None:
        self.process = process
        self._url = url
        self._session = session

    async def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """What a GET says."""
        async with self._session.get(self._url + path) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def post(self, path: str, **body: object) -> Any:  # noqa: ANN401 - JSON
        """What a POST says."""
        async with self._session.post(self._url + path, json=body or None) as response:
            assert response.status < 300, await response.text()
            return await response.json()

    async def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """How it stands, as soon as that is so."""
        async with asyncio.timeout(SECONDS):
            while not true(status := (await self.get("/status"))["facts"]):  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.05)
        found: dict[str, Any] = status
        return found


@asynccontextmanager
async def administered(folder: Path, server: Server, *more: str) -> AsyncIterator[Admin]:
    """A process that polls the day, and its admin API."""
    async with running("polling", "run", *flags(folder, server), "--port", "0", *more) as process:
        assert process.stderr is not None
        said = ""
        async with asyncio.timeout(SECONDS):
            while "API: " not in said:
                said = (await process.stderr.readline()).decode()
                assert said, "it ended by itself"
        async with ClientSession() as session:
            yield Admin(said.partition("API: ")[2].strip(), session, process)


# What is stored.


@asynccontextmanager
async def database(folder: Path, url: str = "") -> AsyncIterator[PollingStore]:
    """The database of a process that polls, or has polled."""
    with ThreadPoolExecutor(1) as threads:
        store = await open_polling(url or f"sqlite:{folder / 'out' / 'polling.db'}", None, "", in_threads(threads))
        try:
            yield store
        finally:
            await store.close()


async def everything(store: PollingStore) -> list[RowChange]:
    """All changes there are."""
    found: list[RowChange] = []
    while page := await store.changes(found[-1].seq if found else 0, 1000):
        found += page
    return found


async def stored(store: PollingStore) -> Tables:
    """All rows there are, by table and key."""
    tables: Tables = {}
    for table in Trackside("http://race.example").schema.tables:
        rows: dict[str, dict[str, object]] = {}
        while page := await store.rows(table.name, after=max(rows, default="")):
            rows |= {row.key: dict(row.values) for row in page}
        tables[table.name] = rows
    return {name: rows for name, rows in tables.items() if rows}


def replayed(changes: list[RowChange]) -> Tables:
    """The rows that changes add up to."""
    tables: Tables = {}
    for change in changes:
        table = tables.setdefault(change.table, {})
        if change.op is Op.PURGE:
            tables.clear()
        elif change.op is Op.DELETE:
            del table[change.key]
        else:
            assert (change.op is Op.INSERT) == (change.key not in table), change
            table[change.key] = dict(change.values)
    return {name: rows for name, rows in tables.items() if rows}


async def proven(store: PollingStore, server: Server) -> list[RowChange]:
    """Every document is stored as it is now, and the changes, numbered without a hole, add up to the rows."""
    day, rows, changes = server.day, await stored(store), await everything(store)
    source = Trackside(server.url())
    for target in await store.list(Query(most=1000)):
        wanted = Wanted(target.kind, target.source_id, target.event, target.only)
        url = source.task(wanted).url
        body = day.document(url.removeprefix(server.url()), server.now)
        assert body is not None, url
        document = source.read(wanted, Reply(200, (), body, url, 0.0))
        for row in document.rows:
            assert rows[row.table][row.key] == dict(row.values), (target.kind, row)
        for whole in document.whole:
            found = {key for key, values in rows.get(whole.table, {}).items() if values[whole.column] == whole.parent}
            assert found <= whole.keys, (target.kind, whole.table)
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    assert replayed(changes) == rows
    return changes


async def over(server: Server) -> None:
    """Return when nothing changes any more, and everything was asked for since."""
    day = server.day
    await until(lambda: server.now > day.over)
    paths = [day.path("Event"), day.path("Results"), *(day.race_path(heat.id) for heat in day.heats)]
    before = {path: server.tally.paths[path] for path in paths}
    # Twice, for the first of these may have been under way.
    await until(lambda: all(server.tally.paths[path] >= before[path] + 2 for path in paths))
