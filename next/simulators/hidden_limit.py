"""An API on loopback that allows 20 requests a second and 20 at once, and refuses all beyond with a 429.

`/item/7` is a small JSON document, or the 429; `/tally` says what was answered so far. With --told each 429 says when
to come back (Retry-After: 1), else nothing is said. A request that comes while a Retry-After holds is *early*, unless
it came within EN_ROUTE seconds of being told: then it may have left before. It responds at once.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.request import urlopen

from hosts import Bucket, bucket

RATE, DEPTH = 20.0, 20.0
EN_ROUTE = 0.1


@dataclass(frozen=True, slots=True)
class Tally:
    """What was answered. `seconds`: from the first request to the last new item; `age`: to now, None before all."""

    delivered: int
    refused: int
    early: int
    seconds: float
    age: float | None


@dataclass(slots=True)
class LimitedApi:
    told: bool
    quota: Bucket = field(default_factory=lambda: bucket(RATE, DEPTH))
    began: float | None = None
    last: float = 0.0
    refused: int = 0
    early: int = 0
    said: float = 0.0  # when it was last told to wait
    until: float = 0.0  # and until when
    delivered: set[bytes] = field(default_factory=set)

    def answer(self, path: bytes) -> bytes:
        now = time.monotonic()
        if path == b"/tally":
            age = None if self.began is None else now - self.began
            seconds = max(0.0, self.last - (self.began or 0.0))
            tally = Tally(len(self.delivered), self.refused, self.early, seconds, age)
            return _response("200 OK", json.dumps(asdict(tally)).encode())
        if not path.startswith(b"/item/"):
            return _response("404 Not Found", b"{}")
        self.began = now if self.began is None else self.began
        self.early += self.said + EN_ROUTE < now < self.until - 0.02
        if not self.quota.admits(now):
            self.refused += 1
            if self.told and now + 1 > self.until:
                self.said, self.until = now, now + 1
            return _response("429 Too Many Requests", b'{"error": "slower"}', "Retry-After: 1\r\n" * self.told)
        if path not in self.delivered:
            self.delivered.add(path)
            self.last = now
        return _response("200 OK", json.dumps({"item": path.decode(), "text": "a record " * 20}).encode())


def _response(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each."""

    def __init__(self, api: LimitedApi) -> None:
        self._api = api
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            path = self._unread.split(b" ", 2)[1]
            self._unread = self._unread[end + 4 :]
            self._transport.write(self._api.answer(path))


@dataclass(frozen=True, slots=True)
class Running:
    """A server in a process of its own."""

    base: str

    def tally(self) -> Tally:
        with urlopen(f"{self.base}/tally", timeout=10) as response:
            return Tally(**json.loads(response.read()))


@contextmanager
def running(*, told: bool) -> Iterator[Running]:
    """A fresh server, with a full bucket."""
    words = [sys.executable, str(Path(__file__)), *["--told"] * told]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Running(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()


async def serve(*, told: bool) -> None:
    """Print the port, and answer until killed."""
    api = LimitedApi(told)
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(api), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(told="--told" in sys.argv))
