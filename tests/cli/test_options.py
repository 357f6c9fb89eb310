import asyncio
import logging
import socket
from collections.abc import Iterator
from math import inf
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import structlog

from sanderling.cli.options import Options, observed, showing
from sanderling.observe.metrics import HostLike, LimiterMetrics


class Nothing:
    requests = throttled = denied = retries = rejected = hosts = open = half_open = 0
    waits = ((inf, 0),)
    waited = 0.0
    top: tuple[HostLike, ...] = ()


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
        async with observed(Options(metrics_port=0), showing(LimiterMetrics, Nothing)) as url:
            assert url is not None
            address = urlsplit(url)
            half = socket.create_connection((address.hostname, address.port))
            half.sendall(b"GET /metrics HTTP/1.0\r\n")
            # Connections are taken in turn, so once this one is answered the other has its thread.
            await asyncio.to_thread(lambda: urlopen(url, timeout=60).close())  # noqa: S310 - our own server
            half.sendall(b"\r\n")
        return everything(half)

    assert b"sanderling_limiter_permits_total 0.0" in asyncio.run(scrape())


def test_a_command_that_fails_frees_the_port() -> None:
    async def fail() -> None:
        async with observed(Options(metrics_port=0), showing(LimiterMetrics, Nothing)) as url:
            raise KeyError(url)

    with pytest.raises(KeyError) as caught:
        asyncio.run(fail())
    with pytest.raises(OSError, match="refused"):
        urlopen(caught.value.args[0], timeout=60)  # noqa: S310 - our own server


def test_without_a_port_there_is_no_address() -> None:
    async def address() -> str | None:
        async with observed(Options(), showing(LimiterMetrics, Nothing)) as url:
            return url

    assert asyncio.run(address()) is None
