import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import structlog
from aiohttp import ClientSession
from command_line import called, start

from sanderling.cli.command_error import CommandError
from sanderling.cli.options import Options, Watched, expose_limiter, observe
from sanderling.limit import Limiter


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    handlers = logging.root.handlers
    yield
    logging.root.handlers = handlers
    structlog.reset_defaults()


def everything(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_scrape_that_is_under_way_at_the_end_is_still_answered() -> None:
    """It waits for the event loop, which must therefore not wait for it."""

    async def scrape() -> bytes:
        async with observe(Options(metrics_port=0), expose_limiter(Limiter())) as url:
            assert url is not None
            address = urlsplit(url)
            half = socket.create_connection((address.hostname, address.port))
            half.sendall(b"GET /metrics HTTP/1.0\r\n")
            # Connections are taken in turn, so once this one is answered the other has its thread.
            await asyncio.to_thread(lambda: urlopen(url, timeout=300).close())  # noqa: S310 - our own server
            half.sendall(b"\r\n")
        return everything(half)

    assert b"sanderling_limiter_permits_total 0.0" in asyncio.run(scrape())


def test_a_command_that_fails_frees_the_port() -> None:
    async def fail() -> None:
        async with observe(Options(metrics_port=0), expose_limiter(Limiter())) as url:
            raise KeyError(url)

    with pytest.raises(KeyError) as caught:
        asyncio.run(fail())
    with pytest.raises(OSError, match="refused"):
        urlopen(caught.value.args[0], timeout=300)  # noqa: S310 - our own server


def test_metrics_are_served_where_they_are_wanted_and_it_is_said() -> None:
    said: list[str] = []

    async def address() -> str | None:
        options = Options(metrics_port=0, metrics_bind="::1")
        async with observe(options, expose_limiter(Limiter()), say=said.append) as url:
            return url

    url = asyncio.run(address())
    assert str(url).startswith("http://[::1]:")
    assert said == [f"metrics: {url}"]


@pytest.mark.parametrize(
    ("bind", "flag", "code"), [("192.0.2.1", "metrics-bind", 2), ("127.0.0.1", "--metrics-port", 1)]
)
def test_what_cannot_be_served_is_said_with_its_flag(bind: str, flag: str, code: int) -> None:
    async def fail(port: int) -> None:
        async with observe(Options(metrics_port=port, metrics_bind=bind)):
            pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CommandError, match=f"^{flag}: ") as caught:
            asyncio.run(fail(taken.getsockname()[1]))

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("given", "level"),
    [
        (Options(), "error"),
        (Options(log_level="debug"), "debug"),
        (Options(log_format="json"), "info"),
        (Watched(dashboard=0), "error"),
    ],
)
def test_behind_a_screen_only_who_asked_for_a_log_gets_one(given: Options, level: str) -> None:
    quieter = given.quieter("error")

    assert (quieter.log_level, type(quieter)) == (level, type(given))


def test_without_a_port_there_is_no_address() -> None:
    async def address() -> str | None:
        async with observe(Options(), expose_limiter(Limiter())) as url:
            return url

    assert asyncio.run(address()) is None


LONG = ("pages crawl", "repos crawl", "sequence crawl", "sequence store", "polling run", "events consume")


@pytest.mark.parametrize("command", LONG)
def test_every_command_that_runs_a_system_serves_the_dashboard(command: str) -> None:
    assert "--dashboard" in called(*command.split(), "--help").out


def test_the_dashboard_is_served_while_a_system_runs_and_sees_its_folder(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        said: list[str] = []
        out = tmp_path / "events"
        process = await start("events", "consume", "--out", str(out), "--dashboard", "0", "--metrics-port", "0")
        try:
            assert process.stderr is not None
            async with asyncio.timeout(300):
                while not (said and said[-1].startswith("dashboard: ")):
                    said.append((await process.stderr.readline()).decode().strip())
                    assert said[-1], "it ended by itself"
                async with ClientSession() as session:
                    while not (house := await _house(session, said[-1].partition(" ")[2]))["systems"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
        finally:
            process.terminate()
            await process.wait()
        return house

    (system,) = asyncio.run(main())["systems"]
    assert (system["name"], system["system"], system["running"]) == ("events", "events", True)


async def _house(session: ClientSession, url: str) -> dict[str, Any]:
    async with session.get(f"{url}/api/house") as answer:
        assert answer.status == 200
        found: dict[str, Any] = await answer.json()
        return found
