"""What servers send beyond their answer."""

import asyncio

import pytest
from scripted_server import ScriptedServer, Step

from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.task import Task

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
