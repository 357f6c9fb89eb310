"""Several processes that poll one PostgreSQL, one at a time: who is killed, stopped or ended is followed by another."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from aiohttp import ClientSession
from command_line import finish, run, running
from forked import Forked as Process
from polling_commands import LONG, OFTEN, Server, command, flags, served, until
from services.process import free_ports

from sanderling.clock import SystemClock
from sanderling.stores.polling_lease import SECONDS
from sanderling.worlds.race import RaceAnswer, RaceDay, RaceRules

CLOSED = (("Retry-After", "3600"), ("Content-Length", "0"))
SLACK = 20.0  # seconds: the machine may be busy


class NotedDay(RaceDay):
    """A day that notes who asked when."""

    def __init__(self, seed: int, rules: RaceRules | None = None) -> None:
        super().__init__(seed, rules)
        self.askers: list[tuple[float, str]] = []
        self.closed = False

    def ask(self, path: str, headers: Mapping[str, str], now: float) -> RaceAnswer:
        who = re.search(r"(first|second|third)@", headers.get("user-agent", ""))
        self.askers.append((SystemClock.now(), who[1] if who else "?"))
        return super().ask(path, headers, now)

    def number(self, who: str) -> int:
        """How often that one has asked."""
        return sum(name == who for _, name in self.askers)


class ClosedDay(NotedDay):
    """A day that wants to be left alone, once it is closed."""

    def ask(self, path: str, headers: Mapping[str, str], now: float) -> RaceAnswer:
        answer = super().ask(path, headers, now)
        return replace(answer, status=429, headers=CLOSED, body=b"") if self.closed else answer


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    schema = f"polling_standby_{os.getpid()}"

    async def drop() -> None:
        db = await asyncpg.connect(postgres)
        await db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await db.close()

    asyncio.run(drop())
    yield f"{postgres}?schema={schema}"
    asyncio.run(drop())


@asynccontextmanager
async def polled(
    folder: Path, url: str, *names: str, make: type[NotedDay] = NotedDay
) -> AsyncIterator[tuple[NotedDay, dict[str, Process], Server]]:
    """So many processes, the first of which polls."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(served(LONG, make=make))
        day, processes = server.day, dict[str, Process]()
        assert isinstance(day, NotedDay)
        for name in names:
            place = folder / name
            place.mkdir()
            given = (
                *flags(place, server),
                *OFTEN,
                "--database",
                url,
                "--standby",
                "--contact",
                f"mailto:{name}@example.org",
            )
            processes[name] = await stack.enter_async_context(running("polling", "run", *given))
            await (asks(day, name) if len(processes) == 1 else says(processes[name], "this one waits"))
        yield day, processes, server


async def asks(day: NotedDay, name: str) -> None:
    """Return when that one asks from now on."""
    before = day.number(name)
    await until(lambda: day.number(name) > before + 2)


async def kept(url: str) -> None:
    """Return when the database has what the host asked for."""
    address, _, schema = url.rpartition("?schema=")
    db = await asyncpg.connect(address)
    async with asyncio.timeout(300):
        while not await db.fetchval(f"SELECT news FROM {schema}.polling_limiter"):  # noqa: ASYNC110, S608 - nobody tells
            await asyncio.sleep(0.02)
    await db.close()


async def says(process: Process, words: str) -> str:
    """The line in which it says so."""
    assert process.stderr is not None
    async with asyncio.timeout(300):
        while words not in (line := (await process.stderr.readline()).decode()):
            assert line, "it ended by itself"
    return line


def gaps(day: NotedDay) -> list[tuple[str, str, float]]:
    """Who followed whom, and after how many seconds."""
    pairs = zip(day.askers, day.askers[1:], strict=False)
    return [(one, other, later - earlier) for (earlier, one), (later, other) in pairs if one != other]


def test_who_is_killed_is_followed_within_two_leases(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        async with polled(tmp_path, url, "first", "second", "third") as (day, processes, _):
            assert {name for _, name in day.askers} == {"first"}
            processes["first"].kill()
            await until(lambda: bool(gaps(day)))
            ((_, heir, seconds),) = gaps(day)
            processes[heir].kill()
            await until(lambda: len(gaps(day)) == 2)
            assert [(one, other) for one, other, _ in gaps(day)] == [("first", heir), (heir, gaps(day)[1][1])]
            assert gaps(day)[1][1] not in ("first", heir)
            assert max(seconds, gaps(day)[1][2]) < 2 * SECONDS + SLACK

    run(main)


def test_who_was_stopped_past_its_lease_asks_nothing_more_and_waits(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        async with polled(tmp_path, url, "first", "second") as (day, processes, _):
            processes["first"].send_signal(signal.SIGSTOP)
            await asks(day, "second")
            before = day.number("first")
            processes["first"].send_signal(signal.SIGCONT)

            await says(processes["first"], "this one waits")
            await asks(day, "second")
            assert day.number("first") == before

            processes["second"].kill()  # and it has not ended
            await asks(day, "first")
            ended = max(at for at, name in day.askers if name == "second")
            back = next(at for at, name in day.askers[before:] if name == "first")
            assert back > ended

    run(main)


def test_who_is_told_to_stop_is_followed_at_once(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        async with polled(tmp_path, url, "first", "second") as (day, processes, _):
            processes["first"].send_signal(signal.SIGTERM)
            done = await finish(processes["first"])
            await asks(day, "second")
            processes["second"].send_signal(signal.SIGTERM)
            end = await finish(processes["second"])

        assert (done.code, end.code) == (0, 0), done.err + end.err
        assert "--standby" in done.out
        assert len(gaps(day)) == 1

    run(main)


def test_who_waits_answers_that_it_is_there_and_not_ready_and_can_be_stopped(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        (port,) = free_ports(1)
        async with polled(tmp_path, url, "first") as (day, _, server), ClientSession() as session:
            given = (*flags(tmp_path, server), "--database", url, "--standby", "--port", str(port), "--json")
            async with running("polling", "run", *given) as waiting:
                line = await says(waiting, "this one waits")
                seen = {}
                for path in ("/health", "/ready", "/status"):
                    async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                        seen[path] = response.status
                waiting.send_signal(signal.SIGINT)
                done = await finish(waiting)
            refused = await command("run", *flags(tmp_path, server), "--database", url)
            await asks(day, "first")

        assert seen == {"/health": 200, "/ready": 503, "/status": 503}
        assert "another process polls postgresql://" in line
        assert (done.code, json.loads(done.out)) == (130, {"standby": True})
        assert (refused.code, "another process polls" in refused.err) == (2, True)

    run(main)


def test_what_the_host_asked_of_one_is_known_to_the_next(tmp_path: Path, url: str) -> None:
    """A Retry-After of an hour, on another machine."""

    async def main() -> None:
        async with polled(tmp_path, url, "first", "second", make=ClosedDay) as (day, processes, _):
            day.closed = True
            await kept(url)
            processes["first"].kill()
            await says(processes["second"], "this process polls now")
            await asyncio.sleep(1.0)  # in which it would ask five times
            assert day.number("second") == 0

    run(main)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--standby",), "--standby is for a database that several machines reach"),
        (("--standby", "--once", "--database", "postgresql://nowhere/x"), "expected one of them"),
    ],
)
def test_what_cannot_take_turns_is_refused(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    async def main() -> None:
        done = await command("run", "--out", str(tmp_path), "--trackside", "http://127.0.0.1:1", *given)

        assert done.code == 2
        assert said in done.err

    run(main)
