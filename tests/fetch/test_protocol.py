"""What servers send beyond their answer."""

import asyncio

import aiohttp
import pytest
from scripted_server import ScriptedServer, Step

from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.task import Reply, Task

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    "steps",
    [
        [HEAD + b"hello and more"],
        [HEAD, 0.01, b"hello and more"],
        [HEAD + b"hel", 0.01, b"lo and more"],
        [HEAD[:20], 0.01, HEAD[20:] + b"hello\r\n\r\nmore"],
        [HEAD + b"hello" + b"x" * 200_000],
        [HEAD + b"hello"],
    ],
    ids=range(6),
)
def test_bytes_beyond_the_content_length_do_not_lose_the_page(steps: list[Step]) -> None:
    async def ask() -> list[bytes]:
        guard = GuardRules(private=True, raw_addresses=True)
        async with ScriptedServer({"/": [steps, steps]}) as server, Http(guard=guard) as http:
            return [(await http.send(Task(server.url()))).body for _ in range(2)]

    assert asyncio.run(ask()) == [b"hello", b"hello"]


TWICE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-a: b\r\ncontent-length: 5\r\n\r\nhello"
LISTED = b"HTTP/1.1 200 OK\nContent-Length: 5, 5\n\nhello"
BOTH = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
MANY = b"HTTP/1.1 200 OK\r\n" + b"X-h: 1\r\n" * 3000 + b"Content-Length: 5\r\n\r\nhello"
LONG = b"HTTP/1.1 200 OK\r\nX-long: " + b"x" * 200_000 + b"\r\nContent-Length: 5\r\n\r\nhello"


@pytest.mark.parametrize("said", [TWICE, LISTED, BOTH, MANY, LONG], ids=["twice", "listed", "both", "many", "long"])
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_heads_that_browsers_take_are_taken_in_whatever_pieces(said: bytes, pieces: int) -> None:
    size = len(said) // pieces + 1
    steps: list[Step] = []
    for start in range(0, len(said), size):
        steps += [said[start : start + size], 0.005]

    async def ask() -> list[bytes]:
        guard = GuardRules(private=True, raw_addresses=True)
        async with ScriptedServer({"/": [steps, steps]}) as server, Http(guard=guard) as http:
            return [(await http.send(Task(server.url()))).body for _ in range(2)]

    assert asyncio.run(ask()) == [b"hello", b"hello"]


@pytest.mark.parametrize("length", [b"5\r\nContent-Length: 6", b"5, 6", b"5\r\nContent-Length: +5"])
def test_lengths_that_disagree_are_no_answer(length: bytes) -> None:
    steps: list[Step] = [b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nhello!"]

    async def ask() -> Reply:
        guard = GuardRules(private=True, raw_addresses=True)
        async with ScriptedServer({"/": [steps]}) as server, Http(guard=guard) as http:
            return await http.send(Task(server.url()))

    with pytest.raises(aiohttp.ClientError, match="no HTTP"):
        asyncio.run(ask())


def test_names_of_headers_stay_as_they_were_sent() -> None:
    steps: list[Step] = [b"HTTP/1.1 200 OK\r\ncontent-TYPE: a/b\r\nX-odd: \xe9\r\nContent-Length: 0\r\n\r\n"]

    async def ask() -> Reply:
        guard = GuardRules(private=True, raw_addresses=True)
        async with ScriptedServer({"/": [steps]}) as server, Http(guard=guard) as http:
            return await http.send(Task(server.url()))

    assert asyncio.run(ask()).headers[:2] == (("content-TYPE", "a/b"), ("X-odd", "\udce9"))
