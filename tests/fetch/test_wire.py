"""What is written to a connection, and what is read of an answer before its body."""

import asyncio
from collections.abc import Callable

import pytest
from scripted_server import Request, ScriptedServer, Step, answer

from sanderling.fetch.guard import GuardRules
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.http import Http, HttpRules
from sanderling.task import Headers, Reply, Task

OWN = GuardRules(private=True, raw_addresses=True)


def ask(*tasks: Callable[[str], Task], says: list[Step] | None = None) -> tuple[list[Request], list[Reply], int]:
    """What a server was asked, what it said, and over how many connections."""

    async def main() -> tuple[list[Request], list[Reply], int]:
        steps = says or [answer(body=b"hello")]
        paths = ("/", "/?q", "/a?b=%7c'", "/a")
        async with ScriptedServer({path: [steps] for path in paths}) as server, Http(guard=OWN) as http:
            replies = [await http.send(task(server.url(""))) for task in tasks]
            return server.requests, replies, server.connections

    return asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("", "/"),
        ("/", "/"),
        ("?q", "/?q"),
        ("#top", "/"),
        ("?q#/top", "/?q"),
        ("/a?b=%7c'#top", "/a?b=%7c'"),
        ("/a#?x", "/a"),
    ],
)
def test_what_is_asked_for_is_the_address_as_it_is_spelled(rest: str, asked: str) -> None:
    requests, replies, _ = ask(lambda url: Task(url + rest))

    assert [each.path for each in requests] == [asked]
    assert replies[0].body == b"hello"


BODY = b'{"a": 1}'
PLAIN = {"host", "user-agent", "accept-encoding", "accept"}


@pytest.mark.parametrize(
    ("method", "headers", "body", "more"),
    [
        ("GET", (), None, {}),
        ("GET", (("accept", "text/html"),), None, {"accept": "text/html"}),
        ("GET", (("Host", "other.example"),), None, {"host": "other.example"}),
        ("DELETE", (), None, {"content-length": "0"}),
        ("POST", (), BODY, {"content-length": "8", "content-type": "application/octet-stream"}),
        ("POST", (("content-type", "x/y"),), BODY, {"content-length": "8", "content-type": "x/y"}),
        ("PUT", (("Content-Length", "3"),), BODY, {"content-length": "8", "content-type": "application/octet-stream"}),
        ("POST", (("Transfer-Encoding", "chunked"),), b"", {"content-length": "0"}),
    ],
)
def test_headers_are_said_once_and_the_length_is_that_of_the_body(
    method: str, headers: Headers, body: bytes | None, more: dict[str, str]
) -> None:
    requests, replies, _ = ask(*[lambda url: Task(url, method, headers, body)] * 2)
    said = requests[1].headers  # were the body longer than was said, the second would not be one

    assert said.keys() >= PLAIN | more.keys()
    assert more.items() <= said.items()
    assert "transfer-encoding" not in said
    assert {name.lower(): value for name, value in replies[0].sent} == requests[0].headers


def test_a_connection_is_used_again_after_an_answer_without_a_body() -> None:
    silent: list[Step] = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"]
    _, replies, connections = ask(*[lambda url: Task(url, "HEAD")] * 3, says=silent)

    assert ([each.body for each in replies], connections) == ([b""] * 3, 1)


def test_what_comes_before_the_answer_is_no_answer() -> None:
    early: list[Step] = [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0.01, answer(201, b"hello")]
    _, replies, connections = ask(*[Task] * 2, says=early)

    assert ([(each.status, each.body) for each in replies], connections) == ([(201, b"hello")] * 2, 1)


def test_a_body_that_is_not_wanted_costs_the_connection() -> None:
    _, replies, connections = ask(*[lambda url: Task(url, most=1)] * 2, says=[answer(body=b"hello" * 10**5)])

    assert ([each.body for each in replies], connections) == ([b"h"] * 2, 2)


def test_a_proxy_is_told_who_asks_and_the_whole_address() -> None:
    async def main() -> tuple[list[Request], Reply]:
        async with ScriptedServer({"http://a.example/x?y": [answer(204)]}) as proxy:
            way = f"http://me:hunter2@127.0.0.1:{proxy.port}"
            rules = HttpRules(hosts=HostTable({"*": HostTraffic(proxy=way)}))
            async with Http(rules, GuardRules()) as http:
                replies = [await http.send(Task("http://a.example/x?y")) for _ in range(2)]
            return proxy.requests, replies[1]

    requests, reply = asyncio.run(asyncio.wait_for(main(), 30))

    assert [each.headers["proxy-authorization"] for each in requests] == ["Basic bWU6aHVudGVyMg=="] * 2
    assert reply.status == 204
    assert "hunter2" not in repr(reply.sent)
    assert "proxy-authorization" not in {name.lower() for name, _ in reply.sent}  # what is kept of it
