"""The door: which addresses it opens at, how many it lets in, how long it waits, and how it closes."""

import asyncio
import logging
import socket
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from looping import in_loop
from polling_house import SNAPSHOT, TOKEN, Answer, FakeControl, a_target, head, house, parsed, raw
from structlog.testing import capture_logs

from sanderling.clock import SystemClock
from sanderling.web.access import SAFE_HEADERS, VARIABLE, AccessError, Token
from sanderling.web.app import AppRules
from sanderling.web.polling_api import polling_app
from sanderling.web.serve import Address, AddressError, ServeRules, serving
from sanderling.web.stream import Streams


def an_app() -> web.Application:
    clock = SystemClock()
    return polling_app(cast("Any", FakeControl([a_target(1)])), clock, Streams(clock), SNAPSHOT)


async def opened_at(host: str, port: int = 0, token: str | None = TOKEN) -> Address:
    async with serving(an_app(), host, port, Token(token) if token else None) as address:
        return address


def a_client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"})


@in_loop
async def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(AddressError, match=f"port {port} of 127.0.0.1: Address already in use; choose another"):
            await opened_at("127.0.0.1", port)


@in_loop
async def test_a_port_is_free_again_when_it_is_closed() -> None:
    first = await opened_at("127.0.0.1")

    assert await opened_at("127.0.0.1", first.port) == first


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 65_536), ("no such host", 0), ("", 0)])
@in_loop
async def test_an_address_that_is_none_is_an_error_in_words(host: str, port: int) -> None:
    with pytest.raises(AddressError, match=r"port is|host '"):
        await opened_at(host, port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - that is the test
@in_loop
async def test_without_a_token_it_opens_for_this_machine_only(host: str) -> None:
    with pytest.raises(AccessError, match=f"no token; set {VARIABLE}, or serve on 127.0.0.1"):
        await opened_at(host, token=None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
@in_loop
async def test_without_a_token_any_address_of_this_machine_will_do(host: str) -> None:
    assert (await opened_at(host, token=None)).host.startswith("127.0.0.")


@in_loop
async def test_what_is_served_at_an_address_can_be_asked_for_there() -> None:
    async with (
        serving(an_app(), "127.0.0.2", 0, None) as address,
        aiohttp.ClientSession() as session,
        session.get(f"{address.url}/health") as answer,
    ):
        assert answer.status == 200


@in_loop
async def test_with_a_token_it_opens_where_it_is_told_to() -> None:
    assert (await opened_at("0.0.0.0")).host == "0.0.0.0"  # noqa: S104 - that is the test


def test_an_address_of_the_newer_kind_has_brackets_in_a_url() -> None:
    assert Address("::1", 80).url == "http://[::1]:80"
    assert Address("127.0.0.1", 80).url == "http://127.0.0.1:80"


@in_loop
async def test_an_application_that_was_not_opened_by_serving_lets_nobody_in() -> None:
    runner = web.AppRunner(an_app())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        answer = parsed(await raw(Address(*runner.addresses[0]), head("GET /health HTTP/1.1")))
    finally:
        await runner.cleanup()

    assert answer.status == 500


@in_loop
async def test_a_request_that_is_under_way_comes_to_its_end_and_streams_end_before() -> None:
    control = FakeControl([a_target(1)])
    control.hold = asyncio.Event()
    order: list[str] = []

    async def ask(url: str) -> Answer:
        async with a_client() as session, session.post(f"{url}/ingest/full") as answer:
            return Answer(answer.status, await answer.read())

    async def follow(url: str) -> None:
        async with a_client() as session, session.get(f"{url}/events") as answer:
            following.set()
            await answer.read()
        order.append("stream")
        assert control.hold is not None
        control.hold.set()

    following = asyncio.Event()
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        async with house(control) as opened:
            asked = group.create_task(ask(opened.address.url))
            group.create_task(follow(opened.address.url))
            await following.wait()
            await control.begun.wait()
        order.append("closed")

    assert order == ["stream", "closed"]
    assert (asked.result().status, len(asked.result().data["ingested"])) == (200, 1)


@in_loop
async def test_a_request_that_does_not_end_is_cut() -> None:
    control = FakeControl()
    control.hold = asyncio.Event()

    async with (
        asyncio.timeout(300),
        asyncio.TaskGroup() as group,
        house(control, serve=ServeRules(closing=0.2)) as opened,
    ):
        asked = group.create_task(raw(opened.address, head("POST /ingest/full HTTP/1.1")))
        await control.begun.wait()

    assert asked.result() == b""


@in_loop
async def test_whoever_takes_too_long_for_the_head_of_a_request_is_cut() -> None:
    async def drip() -> bytes:
        reader, writer = await asyncio.open_connection(opened.address.host, opened.address.port)
        writer.write(b"GET /health HTTP/1.1\r\n")
        try:
            while not reader.at_eof() and reader.exception() is None:
                writer.write(b"X-More: 1\r\n")
                await asyncio.sleep(0.02)
        finally:
            writer.transport.abort()
        return b"cut"

    async with house(serve=ServeRules(idle=0.3)) as opened, asyncio.timeout(300):
        assert await drip() == b"cut"
        assert await raw(opened.address, b"") == b""
        assert (await opened.ask("GET", "/health")).status == 200


@in_loop
async def test_only_so_many_connections_are_let_in() -> None:
    async with house(serve=ServeRules(most=5, idle=1e6)) as opened, asyncio.timeout(300):
        places = [await asyncio.open_connection(opened.address.host, opened.address.port) for _ in range(5)]
        while True:
            # Those five have connected, and may not have been let in yet.
            reader, writer = await asyncio.open_connection(opened.address.host, opened.address.port)
            if await reader.read(1) == b"":
                break
        writer.transport.abort()
        for _, place in places:
            place.transport.abort()
        while not (await raw(opened.address, head("GET /health HTTP/1.1"))).startswith(b"HTTP/1.1 200"):
            pass  # it takes a moment until they have gone


@in_loop
async def test_a_connection_serves_several_requests() -> None:
    one = head("GET /health HTTP/1.1").replace(b"Connection: close\r\n", b"")
    async with house() as opened, asyncio.timeout(300):
        said = await raw(opened.address, one * 40 + head("GET /health HTTP/1.1"))

    assert said.count(b"HTTP/1.1 200 OK") == 41


@pytest.mark.parametrize("who", [f"Authorization: Bearer {TOKEN}", "Authorization: none"])
@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\ns3cret", id="no gzip"),
        pytest.param(b"Content-Encoding: br\r\nContent-Length: 6\r\n\r\ns3cret", id="no brotli"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\ns3cret\r\n", id="no chunk"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n6\r\ns3cretx\r\n", id="a chunk that is too long"),
        pytest.param(b"Content-Length: 60\r\n\r\ns3cret", id="half of it"),
    ],
)
@in_loop
async def test_a_body_that_cannot_be_read_fills_no_log(who: str, rest: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Also by who has no token: whoever can connect could fill the disk."""
    sent = f"POST /promote HTTP/1.1\r\nHost: localhost\r\n{who}\r\nContent-Type: application/json\r\n".encode() + rest
    app, serve = AppRules(body_seconds=0.05), ServeRules(lingering=0.05, idle=0.2)
    async with house(app=app, serve=serve) as opened, asyncio.timeout(300):
        with capture_logs() as lines:
            said = await raw(opened.address, sent)
        assert (await opened.ask("GET", "/health")).status == 200

    assert 400 <= parsed(said).status < 500
    assert {line["log_level"] for line in lines} <= {"debug", "warning"}  # the latter of a wrong token, in one for many
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []  # those of the library
    assert "s3cret" not in str(lines)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"s3cret" * 10,
        b"s3cret\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization s3cret\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00s3cret\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"s3cret" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"s3cret" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: s3cret\r\n" * 500 + b"\r\n",
        b"POST /promote HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /promote HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /promote HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
        b"GET /targets?cursor=\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
@in_loop
async def test_what_is_no_http_is_a_problem_like_any_other_and_nothing_of_it_is_logged(data: bytes) -> None:
    async with house() as opened, asyncio.timeout(300):
        with capture_logs() as lines:
            said = await raw(opened.address, data)
        assert (await opened.ask("GET", "/health")).status == 200

    answer = parsed(said)
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.data["detail"] == "this is no HTTP request that can be read"
    assert SAFE_HEADERS.items() <= answer.headers.items()
    assert {line["log_level"] for line in lines} == {"debug"}
    assert "s3cret" not in str(lines)
