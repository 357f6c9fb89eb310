"""The server from outside: who may do what, what is taken, streams, and its own description."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from sanderling.clock import FakeClock
from sanderling.files import FolderError
from sanderling.serving import Access, Input, Needs, Problem, Route, StreamEvent, Streams, own_token, serve, stream

pytestmark = pytest.mark.real

ADMIN, FOLLOWER = "admin-token-0123456789", "follower-token-0123456789"
PAGE = "https://page.example"


class Place(Input, frozen=True, kw_only=True):
    id: str


class Wanted(Input, frozen=True, kw_only=True):
    limit: int = 10


class Change(Input, frozen=True, kw_only=True):
    name: str
    seconds: float | None = None


class Done(Input, frozen=True, kw_only=True):
    what: str


async def read(path: Place, query: Wanted) -> Done:
    """An item."""
    return Done(what=f"{path.id} {query.limit}")


async def change(body: Change) -> Done:
    """Change an item."""
    if body.name == "busy":
        raise FolderError("it is held by another", "try later")
    if body.name == "gone":
        raise Problem(410, "it is gone")
    return Done(what=body.name)


async def broken() -> Done:
    """What has a bug."""
    raise ZeroDivisionError("secret")


class Server:
    """A server for one test, its client, and its stream of numbers."""

    def __init__(self, access: Access, streams: Streams | None = None) -> None:
        self.access, self.streams = access, streams or Streams()
        self.troubles: list[str] = []
        self.ended = asyncio.Event()

    async def numbers(self, request: web.Request) -> web.StreamResponse:
        """Numbers, from where the reader was."""
        return await self.streams.send(request, self._numbers(int(request.headers.get("Last-Event-ID", "0"))))

    async def _numbers(self, after: int) -> AsyncGenerator[StreamEvent]:
        try:
            for number in range(after + 1, after + 4):
                yield StreamEvent(number, "number", b"%d" % number)
            yield StreamEvent(after + 3)
            while True:
                await asyncio.sleep(0)
                yield StreamEvent(9, "filler", b"x" * 65_536)
        finally:
            self.ended.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        routes = (
            Route("GET", "/items/{id}", read),
            Route("POST", "/items", change, Needs.CHANGE, problems=(410,)),
            Route("GET", "/broken", broken),
            Route("GET", "/numbers", self.numbers),
        )
        async with serve(
            "Test", routes, self.access, self.streams, bind="127.0.0.1", port=0, troubles=lambda: self.troubles
        ) as url:
            yield url


def access(rule: str, clock: FakeClock | None = None) -> Access:
    clock = clock or FakeClock()
    match rule:
        case "open":
            return Access(clock)
        case "admin":
            return Access(clock, ADMIN)
        case "two":
            return Access(clock, ADMIN, FOLLOWER, (PAGE,))
    return Access(clock, ADMIN, public=True)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


WHO = [
    # rule, headers, status of reading, of changing
    ("open", {}, 200, 200),
    ("open", {"Host": "evil.example:8700"}, 403, 403),
    ("open", {"Host": "localhost:1"}, 200, 200),
    ("open", {"Host": "[::1]"}, 200, 200),
    ("open", {"Origin": "http://evil.example"}, 403, 403),
    ("open", {"Origin": "null"}, 403, 403),
    ("open", {"Host": "evil.example", "Origin": "http://evil.example"}, 403, 403),
    ("open", {"Host": "localhost:1", "Origin": "http://localhost:1"}, 200, 200),
    ("open", {"Sec-Fetch-Site": "cross-site"}, 403, 403),
    ("open", {"Sec-Fetch-Site": "same-site"}, 403, 403),
    ("open", {"Sec-Fetch-Site": "same-origin"}, 200, 200),
    ("open", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200, 403),
    ("open", bearer(ADMIN), 401, 401),
    ("admin", {}, 200, 401),
    ("admin", {"Host": "evil.example"}, 403, 401),
    ("admin", bearer(ADMIN), 200, 200),
    ("admin", {"Authorization": f"bearer  {ADMIN}"}, 200, 200),
    ("admin", {"Authorization": f"Basic {ADMIN}"}, 401, 401),
    ("admin", {"Authorization": "Bearer "}, 401, 401),
    ("admin", bearer(ADMIN[:-1]), 401, 401),
    ("two", {}, 401, 401),
    ("two", bearer(FOLLOWER), 200, 403),
    ("two", bearer(FOLLOWER) | {"Origin": PAGE}, 200, 403),
    ("two", bearer(FOLLOWER) | {"Origin": "https://other.example"}, 403, 403),
    ("public", {}, 401, 401),
    ("public", bearer(ADMIN) | {"Host": "crawler.example"}, 200, 200),
]


@pytest.mark.parametrize(("rule", "headers", "reading", "changing"), WHO)
async def test_who_may_read_and_who_may_change(
    rule: str, headers: Mapping[str, str], reading: int, changing: int
) -> None:
    async with Server(access(rule)).running() as url, ClientSession(headers=headers) as client:
        async with client.get(f"{url}/items/1") as response:
            assert response.status == reading, await response.text()
        async with client.post(f"{url}/items", json={"name": "a"}) as response:
            assert response.status == changing, await response.text()


async def test_a_ticket_reads_for_ten_minutes() -> None:
    clock = FakeClock()
    async with Server(access("two", clock)).running() as url, ClientSession() as client:
        async with client.post(f"{url}/tickets") as response:
            assert response.status == 401
        async with client.post(f"{url}/tickets", headers=bearer(FOLLOWER)) as response:
            ticket = (await response.json())["ticket"]
        for age, address, status in [
            (0, f"items/1?ticket={ticket}", 200),
            (0, f"items/1?ticket={ticket}0", 401),
            (0, f"items/1?ticket=9{ticket}", 401),
            (599, f"items/1?ticket={ticket}", 200),
            (3, f"items/1?ticket={ticket}", 401),
        ]:
            clock.advance(age)
            async with client.get(f"{url}/{address}") as response:
                assert response.status == status
        async with client.post(f"{url}/items?ticket={ticket}", json={"name": "a"}) as response:
            assert response.status == 401


async def test_a_page_of_an_allowed_origin_is_let_in_by_the_browser() -> None:
    async with Server(access("two")).running() as url, ClientSession() as client:
        for origin, allowed in [(PAGE, PAGE), ("https://other.example", None)]:
            async with client.options(f"{url}/items/1", headers={"Origin": origin}) as response:
                assert (response.status == 204) == bool(allowed)
                assert response.headers.get("Access-Control-Allow-Origin") == allowed
        async with client.get(f"{url}/items/1", headers={"Origin": PAGE} | bearer(FOLLOWER)) as response:
            assert response.headers["Access-Control-Allow-Origin"] == PAGE


TAKEN = [
    ("GET", "/items/a%2Fb%20c?limit=3", b"", 200, "a/b c 3"),
    ("GET", "/items/%7Bid%7D", b"", 200, "{id} 10"),
    ("GET", "/items/1?limit=x", b"", 400, "found 'limit' 'x'"),
    ("GET", "/items/1?limit=1&limit=2", b"", 400, "there twice"),
    ("GET", "/items/1?most=1", b"", 400, "expected limit"),
    ("GET", "/items", b"", 405, "Allow"),
    ("GET", "/nowhere", b"", 404, "nothing at this path"),
    ("POST", "/items", b'{"name":"a"}', 200, "a"),
    ("POST", "/items", b'{"name":"a","seconds":"1"}', 400, "seconds"),
    ("POST", "/items", b'{"name":"a","other":1}', 400, "other"),
    ("POST", "/items", b"", 400, "name"),
    ("POST", "/items", b"{", 400, "expected JSON"),
    ("POST", "/items", b'"\xff"', 400, "body"),
    ("POST", "/items", b"[" * 60_000, 400, "body"),
    ("POST", "/items", b" " * 70_000, 413, "65536"),
    ("POST", "/items", b'{"name":"busy"}', 409, "try later"),
    ("POST", "/items", b'{"name":"gone"}', 410, "it is gone"),
    ("GET", "/broken", b"", 500, ""),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "says"), TAKEN)
async def test_what_is_taken_or_why_not(method: str, path: str, body: bytes, status: int, says: str) -> None:
    async with Server(access("open")).running() as url, ClientSession() as client:
        request = client.request(method, url + path, data=body or None, headers={"Content-Type": "application/json"})
        async with request as response:
            text = await response.text()
            assert response.status == status
            assert says in text
            assert "secret" not in text
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_body_that_is_no_json_by_its_type_is_refused() -> None:
    async with Server(access("open")).running() as url, ClientSession() as client:
        response = await client.post(f"{url}/items", data=b"name=a", headers={"Content-Type": "text/plain"})
        assert response.status == 415


async def test_it_says_whether_it_is_there_and_ready() -> None:
    server = Server(access("public"))
    async with server.running() as url, ClientSession() as client:
        server.troubles = ["the database is away"]
        for path, status in [("/health", 200), ("/ready", 503)]:
            async with client.get(url + path) as response:
                assert response.status == status


async def test_a_stream_goes_on_where_its_reader_was() -> None:
    server = Server(access("open"))
    async with server.running() as url, ClientSession(headers={"Last-Event-ID": "4"}) as client:
        async with client.get(f"{url}/numbers") as response:
            lines = [await response.content.readline() for _ in range(11)]
        assert b"".join(lines).startswith(b"retry: 1000\n\nid: 5\nevent: number\ndata: 5\n\nid: 6\n")
        await asyncio.wait_for(server.ended.wait(), 30)


async def test_a_reader_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PATIENCE", 0.2)
    server = Server(access("open"))
    async with server.running() as url:
        connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        connection.sendall(b"GET /numbers HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(server.ended.wait(), 30)
        connection.close()


async def test_streams_are_bounded_and_end_with_the_server() -> None:
    server = Server(access("open"), Streams(1))
    async with ClientSession() as client:
        async with server.running() as url:
            first = await client.get(f"{url}/numbers")
            async with client.get(f"{url}/numbers") as second:
                assert second.status == 503
        await asyncio.wait_for(server.ended.wait(), 30)
        first.close()


async def test_it_describes_itself() -> None:
    async with Server(access("open")).running() as url, ClientSession() as client:
        document = await (await client.get(f"{url}/openapi.json")).json()
    get, post = document["paths"]["/items/{id}"]["get"], document["paths"]["/items"]["post"]
    assert get["summary"] == "An item."
    assert [(each["name"], each["in"], each["required"]) for each in get["parameters"]] == [
        ("id", "path", True),
        ("limit", "query", False),
    ]
    assert "410" in post["responses"]
    assert post["security"] == [{"token": []}]


async def test_a_port_that_is_taken_is_named() -> None:
    async with Server(access("open")).running() as url:
        with pytest.raises(FolderError, match="choose another port"):
            async with serve("Test", (), access("open"), Streams(), bind="127.0.0.1", port=int(url.rpartition(":")[2])):
                pass


def test_a_token_of_its_own_is_for_its_owner_only(tmp_path: Path) -> None:
    token = own_token(tmp_path)

    assert own_token(tmp_path) == token
    assert (tmp_path / "admin.token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ümlaut-ümlaut-ümlaut"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(FolderError, match="openssl"):
        Access(FakeClock(), token)


def test_an_address_that_others_reach_needs_a_token() -> None:
    with pytest.raises(FolderError, match="no token"):
        Access(FakeClock(), public=True)
