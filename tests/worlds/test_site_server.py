"""The simulated web over real sockets, asked by the real client; its hosts' time stands still unless it is moved."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world_networks import SiteNetwork

from sanderling.fetch.attempts import EXPECTED, Fetcher
from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.outcome import Code
from sanderling.task import Headers, Reply, Task
from sanderling.testing import FakeClock
from sanderling.worlds.server import LARGEST_HEAD, WorldPortError
from sanderling.worlds.site import SiteServer, World
from sanderling.worlds.site_documents import HUGE

OWN = GuardRules(private=True, raw_addresses=True)
T = TypeVar("T")


class Still(FakeClock):
    """Stands still; who sleeps is woken at once, and who sleeps longer than any client waits is never woken."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0 if seconds < 15 else 1000)


def visit(act: Callable[[SiteServer, Http], Awaitable[T]], clock: FakeClock | None = None, patience: float = 30.0) -> T:
    async def main() -> T:
        world = World.make(1, ordinary=2, pages=20)
        server = SiteServer(world, clock or Still(), patience=patience)
        async with asyncio.timeout(300), server, Http(HttpRules(idle=0.3), OWN) as http:
            return await act(server, http)

    return asyncio.run(main())


async def ask(server: SiteServer, http: Http, word: str, path: str = "/") -> Reply:
    return await http.send(Task(server.url(f"{word}.example", path)))


async def codes(server: SiteServer, http: Http, word: str, times: int) -> list[Code]:
    found = []
    for _ in range(times):
        try:
            await ask(server, http, word)
            found.append(Code.OK)
        except EXPECTED as error:
            found.append(of_error(error).code)
    return found


def test_each_host_has_an_address_and_links_lead_to_the_right_ones() -> None:
    async def act(server: SiteServer, http: Http) -> None:
        front = (await ask(server, http, "ordinary-1")).body.decode()

        hosts = server.world.hosts
        assert len({urlsplit(server.url(host.name)).port for host in hosts}) == len(hosts)
        assert all(f'href="{server.url(host.name)}"' in front for host in hosts[1:])
        assert (await ask(server, http, "redirecting", "/away")).header("Location") == server.url("trap.example")

    visit(act)


def test_nobody_listens_where_the_dead_host_is_and_nobody_else_can() -> None:
    async def act(server: SiteServer, http: Http) -> list[Code]:
        port = urlsplit(server.url("dead.example")).port
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        return await codes(server, http, "dead", 2)

    assert visit(act) == [Code.CONNECTION_REFUSED] * 2


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("resets", {Code.OK, Code.CONNECTION_RESET, Code.TRUNCATED}),
        ("truncating", {Code.OK, Code.TRUNCATED}),
    ],
)
def test_connections_are_cut_where_the_host_is_said_to_do_that(word: str, found: set[Code]) -> None:
    assert set(visit(lambda server, http: codes(server, http, word, 60))) == found


def test_a_fetch_follows_a_chain_and_gives_up_a_loop() -> None:
    async def act(server: SiteServer, http: Http) -> list[Code]:
        fetcher = Fetcher(http, Limiter(LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))))
        paths = ("/chain/4", "/loop/a", "/itself", "/guide")
        tasks = [Task(server.url("redirecting.example", path)) for path in paths]
        return [(await fetcher.fetch(task)).outcome.code for task in tasks]

    assert visit(act) == [Code.OK, Code.REDIRECT_LOOP, Code.REDIRECT_LOOP, Code.OK]


def test_what_was_asked_is_tallied() -> None:
    async def act(server: SiteServer, http: Http) -> SiteServer:
        await ask(server, http, "robots")
        await ask(server, http, "robots", "/private/page")
        return server

    tally = visit(act).tallies["robots.example"]

    assert (tally.asked, tally.forbidden, tally.inflight, tally.answered[200]) == (2, 1, 0, 2)


# Hosts whose answers do not depend on when, how often or with what luck they are asked.
STEADY = ("ordinary-1", "ordinary-2", "redirecting", "trap", "robots", "robots-failing", "sitemap", "documents")


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, str, Headers]:
    host = draw(st.sampled_from(WORLD.hosts).filter(lambda host: host.name.removesuffix(".example") in STEADY))
    path = draw(
        st.sampled_from(["/robots.txt", "/no", "/a/b/a/", "/on/3", "/calendar/2031-12"])
        | st.sampled_from([path for path, _ in host.ends()])
        | st.from_regex(r"/[!$-;=?-~]{0,40}", fullmatch=True)
    )
    etag = dict(host.page(path, {}).headers).get("ETag", '"x"')
    headers = draw(st.sampled_from([(), (("If-None-Match", etag),), (("Accept-Encoding", "identity"),)]))
    return host.name, path, headers


WORLD = World.make(1, ordinary=2, pages=20)


async def told(network: Http | SiteNetwork, url: str, headers: Headers) -> tuple[object, ...]:
    """What a client makes of the answer."""
    try:
        reply = await network.send(Task(url, headers=headers))
    except EXPECTED as error:
        return (of_error(error).code,)
    return reply.status, [(name.lower(), value) for name, value in reply.headers], reply.body


@settings(max_examples=25)
@given(st.lists(questions(), min_size=1, max_size=20))
def test_both_fronts_say_the_same(asked: list[tuple[str, str, Headers]]) -> None:
    async def act(server: SiteServer, http: Http) -> None:
        # The same addresses in both, since they stand in the bodies.
        network = SiteNetwork(server.world, Still())
        for name, path, headers in asked:
            over_http = await told(http, server.url(name, path), headers)
            assert over_http == await told(network, f"http://{name}{path}", headers)

    visit(act)


async def raw(server: SiteServer, sent: bytes) -> bytes:
    port = urlsplit(server.url("ordinary-1.example")).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    received = await reader.read()
    writer.close()
    return received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET no-slash HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"DELETE / HTTP/1.0\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * LARGEST_HEAD + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.0\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
    ],
)
def test_what_is_no_request_gets_an_answer_all_the_same(sent: bytes, status: int) -> None:
    async def act(server: SiteServer, _http: Http) -> bytes:
        return await raw(server, sent)

    assert visit(act).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_connection_serves_one_request_after_another() -> None:
    async def act(server: SiteServer, _http: Http) -> bytes:
        return await raw(server, b"HEAD / HTTP/1.1\r\n\r\nGET /no HTTP/1.1\r\nConnection: close\r\n\r\n")

    received = visit(act)

    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert received.count(b"\r\n\r\nHTTP/1.1 404 Not Found\r\n") == 1  # right behind the head of the HEAD
    assert received.endswith(b"\r\n\r\nNot here.\n")


def test_who_sends_half_a_request_and_then_nothing_is_dropped() -> None:
    async def act(server: SiteServer, _http: Http) -> bytes:
        return await raw(server, b"GET / HT")

    assert visit(act, patience=0.05) == b""


def test_who_comes_when_all_is_full_is_not_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.worlds.server.MOST_CONNECTIONS", 1)

    async def act(server: SiteServer, http: Http) -> list[Code]:
        await ask(server, http, "ordinary-1")  # and the client keeps the connection
        return [*await codes(server, http, "ordinary-2", 1), *await codes(server, http, "ordinary-1", 1)]

    assert visit(act) == [Code.CONNECTION_RESET, Code.OK]


def test_who_does_not_read_is_dropped() -> None:
    async def act(server: SiteServer, _http: Http) -> int:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", urlsplit(server.url("robots-huge.example")).port))
        reader, writer = await asyncio.open_connection(sock=client, limit=1024)
        writer.write(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        await reader.readline()
        await asyncio.wait(set(server._busy.values()))
        received = 0
        with suppress(ConnectionError):
            while piece := await reader.read(2**16):
                received += len(piece)
        writer.close()
        return received

    assert visit(act, patience=0.05) < HUGE / 2


def consecutive(ports: int) -> int:
    """The first of so many free ports in a row."""
    for _ in range(100):
        with ExitStack() as held, suppress(OSError):
            first: int = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for port in range(first + 1, first + ports):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    pytest.skip("no free ports in a row")


def test_a_port_in_use_is_said_and_all_others_are_free_again() -> None:
    async def main() -> None:
        first = consecutive(2)
        with socket.create_server(("127.0.0.1", first + 1)):
            with pytest.raises(WorldPortError, match=f"port {first + 1} of 127.0.0.1: Address already in use"):
                await SiteServer(WORLD, Still(), first_port=first).__aenter__()
            with socket.create_server(("127.0.0.1", first)):
                pass

    asyncio.run(main())


def test_ports_are_consecutive_from_the_first() -> None:
    async def main() -> list[int | None]:
        world, first = World.make(1, ordinary=3, others=()), consecutive(3)
        async with SiteServer(world, Still(), first_port=first) as server:
            return [(urlsplit(server.url(host.name)).port or 0) - first for host in world.hosts]

    assert asyncio.run(main()) == [0, 1, 2]
