"""`sanderling sequence` as processes between a simulated game and real servers: how to start, watch and cut them."""

import asyncio
import json
import os
import re
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import msgspec
from forked import with_settings
from raids import players_of

from sanderling.apis.bungie import Bungie
from sanderling.clock import SystemClock
from sanderling.formats.instance import decode
from sanderling.observe.report import Report
from sanderling.outcome import Code, Outcome
from sanderling.sequence.report import SequenceFacts
from sanderling.sequence.rows import rows_of
from sanderling.stores.instances import CharacterRow, InstancePlayerRow, InstanceRow, InstanceRows, PlayerRow, WeaponRow
from sanderling.stores.rabbitmq import DELAYS
from sanderling.stores.status_file import read_status
from sanderling.task import Reply
from sanderling.worlds.game import REPORT, Game, GameRules, GameServer
from sanderling.worlds.game_schedule import Hole, Piece, ScheduleRules
from sanderling.worlds.game_weather import WeatherRules

FIRST = 16_000_000_000
HOUR = 3600.0
FAR = 10**9  # ids ahead: the crawl goes on until it is killed
# The limiter begins with a few requests a second, so games are small; answers take long enough to be about the same.
CALM = WeatherRules(latency=0.03, jitter=0.1)
T = TypeVar("T")


def rules(*, raids: float = 0.25, hole_every: int = 0, holes: tuple[Hole, ...] = ()) -> GameRules:
    """An hour of history and no surprises: an id that does not exist holds up the cursor for half a minute."""
    schedule = ScheduleRules(FIRST, (Piece(-HOUR, inf, 20.0),), holes=holes, hole_every=hole_every)
    return GameRules(schedule, CALM, raids=raids)


@asynccontextmanager
async def playing(rules: GameRules, kind: type[Game] = Game) -> AsyncIterator[GameServer]:
    """A game over HTTP, served by the test's own loop."""
    clock = SystemClock()
    async with GameServer(kind(rules, seed=1, began=clock.wall()), clock) as server:
        yield server


# Processes.


class Done(NamedTuple):
    """What came of a process."""

    code: int
    said: dict[str, Any]  # its JSON
    err: str


@asynccontextmanager
async def running(*arguments: str, environment: dict[str, str] | None = None) -> AsyncIterator[Process]:
    """`sanderling sequence` with these arguments, for as long as it is wanted."""
    words, settings = with_settings(("sequence", *arguments, "--json"))
    command = (sys.executable, "-W", "error", "-m", "sanderling", *words)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, env=os.environ | settings | (environment or {})
    )
    try:
        yield process
    except BaseException as error:
        error.add_note(f"sanderling sequence {arguments[0]} said: {await _last_words(process)}")
        raise
    finally:
        await _last_words(process)


async def _last_words(process: Process) -> str:
    """End it, if it has not; what it said that nobody has read."""
    if process.returncode is None:
        process.kill()
    out, err = await process.communicate()
    return (err + out).decode() or f"nothing, and ended with {process.returncode}"


async def finished(process: Process, seconds: float = 300.0) -> Done:
    """What comes of it."""
    async with asyncio.timeout(seconds):
        out, err = await process.communicate()
    return Done(process.returncode or 0, json.loads(out or b"{}"), err.decode())


async def killed(process: Process) -> None:
    """Kill -9, wherever it is."""
    assert process.returncode is None, (await finished(process)).err
    process.kill()
    await process.wait()


def crawl_flags(server: GameServer, out: Path, until: int, *more: str) -> list[str]:
    """A crawl up to `until`; from the game's first id, or from where it was."""
    begin = [] if (out / "sequence.db").exists() else ["--target", str(server.game.first), "@buffer", "0"]
    return ["crawl", "--base", server.url(), "--private", "--out", str(out), "--until", str(until), *begin, *more]


async def eventually(look: Callable[[], T | None], seconds: float = 300.0) -> T:
    """What `look` finds, as soon as it finds something; other processes tell us nothing by themselves."""
    async with asyncio.timeout(seconds):
        while not (found := look()):  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.05)
    return found


async def status_with(out: Path, holds: Callable[[SequenceFacts], object], seconds: float = 300.0) -> SequenceFacts:
    """The first status.json of which that holds."""

    def look() -> SequenceFacts | None:
        report = read_status(out, Report[SequenceFacts])
        return report.facts if report is not None and holds(report.facts) else None

    return await eventually(look, seconds)


# What should be stored, and what is.


class Totals(NamedTuple):
    """What a player has done in an activity, as far as it is a sum: twice the same raid would show."""

    membership_id: int
    activity_hash: int
    clears: int
    fresh_clears: int
    seconds_played: int


class Tables(NamedTuple):
    """All rows, in the order of keys; when something was crawled is left out."""

    instance: list[InstanceRow]
    player: list[PlayerRow]
    instance_player: list[InstancePlayerRow]
    instance_character: list[CharacterRow]
    instance_character_weapon: list[WeaponRow]
    player_stats: list[Totals]


class _Envelope(msgspec.Struct):
    Response: msgspec.Raw


KINDS = Tables(InstanceRow, PlayerRow, InstancePlayerRow, CharacterRow, WeaponRow, Totals)  # type: ignore[arg-type] # one for each


def raids_in(game: Game, low: int, end: int) -> list[int]:
    """The ids of raids from `low` to below `end`."""
    return [number for number in game.ids(low, end) if game.raid(number)]


def report(game: Game, number: int) -> bytes:
    """What the API says of an id, without what is around it."""
    body = game.ask(f"{REPORT}{number}/", SystemClock.wall()).body
    return bytes(msgspec.json.decode(body, type=_Envelope).Response)


def expected(game: Game, numbers: Iterable[int]) -> Tables:
    """What these raids make of the tables."""
    kept = [_rows(game, number) for number in sorted(numbers)]
    return Tables(
        [each.instance for each in kept],
        players_of(kept),
        sorted(row for each in kept for row in each.taken_part),
        sorted(row for each in kept for row in each.characters),
        sorted(row for each in kept for row in each.weapons),
        _totals(kept),
    )


def _totals(kept: Iterable[InstanceRows]) -> list[Totals]:
    totals: dict[tuple[int, int], Totals] = {}
    for instance, part in ((rows.instance, part) for rows in kept for part in rows.taken_part):
        key = (part.membership_id, instance.activity_hash or 0)
        *_, clears, fresh, seconds = totals.get(key, Totals(*key, 0, 0, 0))
        cleared, freshly = part.finished, part.finished and bool(instance.fresh)
        totals[key] = Totals(*key, clears + cleared, fresh + freshly, seconds + part.time_played_seconds)
    return sorted(totals.values())


def _rows(game: Game, number: int) -> InstanceRows:
    url, wall = f"{REPORT}{number}/", SystemClock.wall()
    reply = Reply(200, (), game.ask(url, wall).body, url, 0.0)
    message = decode(Bungie("http://game.example").read(number, reply, Outcome(Code.OK, 200), wall).message)
    rows = rows_of(message.id, message)
    return rows._replace(instance=rows.instance._replace(crawled=0.0))


@dataclass(frozen=True, slots=True)
class Own:
    """A queue and a schema of our own, at servers that may be somebody's."""

    rabbitmq: str
    postgres: str
    name: str

    def queue(self, url: str | None = None) -> list[str]:
        """The flags for the queue, perhaps by another way."""
        return ["--queue", url or self.rabbitmq, "@queue-name", self.name]

    def rows(self, url: str | None = None) -> list[str]:
        """The flags for the rows, perhaps by another way."""
        url = url or self.postgres
        return ["--rows", f"{url}{'&' if urlsplit(url).query else '?'}schema={self.name}"]

    async def tables(self) -> Tables:
        """All that is stored."""
        db = await asyncpg.connect(self.postgres)
        try:
            found = {
                name: await db.fetch(f"SELECT {', '.join(kind._fields)} FROM {self.name}.{name}")  # noqa: S608 - ours
                for name, kind in KINDS._asdict().items()
            }
        finally:
            await db.close()
        return Tables(*(_as_rows(kind, found[name]) for name, kind in KINDS._asdict().items()))

    async def count(self) -> int:
        """How many instances are stored; 0 also before there is a table."""
        db = await asyncpg.connect(self.postgres)
        try:
            return int(await db.fetchval(f"SELECT count(*) FROM {self.name}.instance"))  # noqa: S608 - ours
        except asyncpg.UndefinedTableError:
            return 0
        finally:
            await db.close()

    async def stores_at_least(self, instances: int, seconds: float = 300.0) -> None:
        """Return when so many are stored."""
        until = SystemClock.now() + seconds
        while (stored := await self.count()) < instances:
            assert SystemClock.now() < until, f"{stored} of {instances} were stored in {seconds} s"
            await asyncio.sleep(0.05)

    @asynccontextmanager
    async def batch_in_the_middle(self) -> AsyncIterator[None]:
        """While somebody has rows of a batch in, and cannot put in the rest."""
        db = await asyncpg.connect(self.postgres)
        table = f"{self.name}.player_stats"
        waiting = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass"  # noqa: S608 - ours
        try:
            async with db.transaction(), asyncio.timeout(300):
                await db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
                while not await db.fetchval(waiting):  # noqa: ASYNC110 - the same
                    await asyncio.sleep(0.02)
                yield
        finally:
            await db.close()

    async def remove(self) -> None:
        """Leave nothing behind."""
        db = await asyncpg.connect(self.postgres)
        await db.execute(f"DROP SCHEMA IF EXISTS {self.name} CASCADE")
        await db.close()
        later = (f"{self.name}.later.{seconds:g}s" for seconds in DELAYS)
        async with asyncio.timeout(300), await aio_pika.connect(self.rabbitmq) as connection:
            channel = await connection.channel()
            for each in (self.name, f"{self.name}.dead", *later):
                await channel.queue_delete(each, if_unused=False, if_empty=False)


@contextmanager
def own_names(rabbitmq: str, postgres: str) -> Iterator[Own]:
    """Names of our own, until the end of the test."""
    own = Own(rabbitmq, postgres, f"sanderling_{uuid.uuid4().hex}")
    try:
        yield own
    finally:
        asyncio.run(own.remove())


def _as_rows(kind: Any, found: Iterable[Iterable[Any]]) -> list[Any]:  # noqa: ANN401 - any of the rows
    rows = (kind(*map(_plain, row)) for row in found)
    return sorted(row._replace(crawled=0.0) if "crawled" in kind._fields else row for row in rows)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.timestamp()
        case list():
            return tuple(value)
    return value


# Between a process and a server.


class Wire:
    """Carries bytes to a server and back, until it is cut; then it lets nobody through until it is mended."""

    def __init__(self, url: str, usual_port: int) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port or usual_port)
        self._ends: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._last_words = b""
        self.turned_away = 0  # who came while it was cut

    @asynccontextmanager
    async def laid(self, url: str) -> AsyncIterator[str]:
        """The URL by which the server is reached through it."""
        async with await asyncio.start_server(self._carry, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            yield re.sub(r"(?<=[@/])[^@/]*(?=/[^/]*$)", f"127.0.0.1:{port}", url)
            self.cut()

    def cut(self) -> None:
        """End all connections, and take no new ones."""
        self._is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        """Let them through again."""
        self._is_cut = False

    async def cut_at(self, last_words: bytes) -> None:
        """Have it cut instead of carrying these, in whichever direction; return when somebody has come in vain."""
        self._last_words, turned_away = last_words, self.turned_away
        await eventually(lambda: self.turned_away > turned_away)
        self._last_words = b""

    def _cut_meanwhile(self) -> bool:
        return self._is_cut

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            self.turned_away += 1
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._server)
        self._ends |= {writer, far_writer}
        if self._cut_meanwhile():
            self.cut()
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._pump(reader, far_writer))
                both_ways.create_task(self._pump(far_reader, writer))
        finally:
            self._ends -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self._last_words and self._last_words in data:
                    self.cut()
                writer.write(data)  # of what was cut nothing arrives
                await writer.drain()
        writer.close()
