"""An API on loopback that allows 20 requests a second and 20 at once, and says 429 to everything beyond.

`/item/7` is a small JSON document, or a 429; `/tally` says what was answered so far. By its variant it says with a 429
when to come back, says nothing, or claims with every answer to allow five times as much as it does.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from urllib.request import urlopen

RATE, DEPTH = 20.0, 20.0
CLAIMED = 100  # requests a second, as a lie
VARIANTS = ("Retry-After", "no header", "wrong limit")


@dataclass(frozen=True, slots=True)
class Tally:
    """What was answered: distinct items, refusals, the seconds from the first request to the last new item, and to now.

    `age` is None before the first request.
    """

    delivered: int
    refused: int
    seconds: float
    age: float | None


@dataclass(slots=True)
class Api:
    """The bucket, and what came out of it."""

    variant: str
    tokens: float = DEPTH
    asof: float = 0.0
    began: float | None = None
    last: float = 0.0
    refused: int = 0
    delivered: set[bytes] = field(default_factory=set)
    second: int = 0
    asked: int = 0

    def answer(self, path: bytes) -> bytes:
        """The bytes that go back."""
        if path.startswith(b"/item/"):
            return self._item(path, time.monotonic())
        if path != b"/tally":
            return _reply("404 Not Found", {}, b"not here")
        age = None if self.began is None else time.monotonic() - self.began
        seconds = max(0.0, self.last - (self.began or 0.0))
        tally = Tally(len(self.delivered), self.refused, seconds, age)
        return _reply("200 OK", {}, json.dumps(asdict(tally)).encode())

    def _item(self, path: bytes, now: float) -> bytes:
        if self.began is None:
            self.began = self.asof = now
        self.tokens = min(DEPTH, self.tokens + (now - self.asof) * RATE)
        self.asof = now
        headers = self._claims(now) if self.variant == "wrong limit" else {}
        if self.tokens < 1:
            self.refused += 1
            if self.variant == "Retry-After":
                headers["Retry-After"] = "1"
            return _reply("429 Too Many Requests", headers, b'{"error": "too many requests"}')
        self.tokens -= 1
        if path not in self.delivered:
            self.delivered.add(path)
            self.last = now
        return _reply("200 OK", headers, json.dumps({"item": path.decode(), "text": "a record " * 20}).encode())

    def _claims(self, now: float) -> dict[str, str]:
        """What it would say if it counted to CLAIMED in each second."""
        self.second, self.asked = int(now), self.asked + 1 if int(now) == self.second else 1
        left = max(1, CLAIMED - self.asked)
        return {
            "X-RateLimit-Limit": str(CLAIMED),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": "1",
            "RateLimit-Policy": f'"default";q={CLAIMED};w=1',
            "RateLimit": f'"default";r={left};t=1',
        }


def _reply(status: str, headers: dict[str, str], body: bytes) -> bytes:
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


class Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            path = self._unread.split(b" ", 2)[1]
            self._unread = self._unread[end + 4 :]
            self._transport.write(self._api.answer(path))


async def serve(variant: str) -> None:
    """Print the port, and answer until killed."""
    api = Api(variant)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(api), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass(frozen=True, slots=True)
class Limited:
    """A running server."""

    base: str

    def tally(self) -> Tally:
        """What it has answered so far."""
        with urlopen(f"{self.base}/tally", timeout=10) as reply:  # noqa: S310 - our own server
            return Tally(**json.loads(reply.read()))


@contextmanager
def running(variant: str) -> Iterator[Limited]:
    """A fresh server in a process of its own, with a full bucket."""
    process = subprocess.Popen([sys.executable, __file__, variant], stdout=subprocess.PIPE)  # noqa: S603 - this very file
    assert process.stdout is not None
    try:
        yield Limited(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=VARIANTS)
    asyncio.run(serve(parser.parse_args().variant))
