"""A process that polls live documents over real sockets: nothing that is made for crawls bounds them."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from command_line import called, finish, run, start
from polling_commands import SECONDS, until

LIVE = 8
SLOTS = 2  # the default
TIMEOUT = "600"  # seconds: whatever hangs, hangs for the whole test

SOURCE = """
[source]
name = "scores"

[source.kinds.match]
url = "http://127.0.0.1:{port}/match/{{id}}"
ids_url = "http://127.0.0.1:{port}/list"
active_when = 'state = "live"'
seconds = 10.0
active_seconds = 0.2
"""


class Upstream:
    """Documents that are live, at an address of this machine. While it is `silent`, whoever asks is left waiting."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.hanging: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.silent = False
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                self.asked[path] += 1
                if self.silent:
                    self.hanging[path] += 1
                    await reader.read()  # until the other side has had enough
                    self.hanging[path] -= 1
                    return
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                await asyncio.sleep(0.16)
                self.at_once -= 1
                writer.write(self._answer(path))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    def _answer(self, path: str) -> bytes:
        said = {"id": path, "state": "live", "looks": self.asked[path]}
        body = json.dumps([f"m{number}" for number in range(LIVE)] if path == "/list" else said).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@asynccontextmanager
async def served() -> AsyncIterator[Upstream]:
    """The upstream, for as long as it is wanted."""
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()


def test_live_documents_are_polled_through_slowness_and_silence(tmp_path: Path) -> None:
    """None waits for a slot, none for a request that hangs; and whoever asks why is told by which policy."""
    paths = [f"/match/m{number}" for number in range(LIVE)]
    out = tmp_path / "out"

    async def main() -> None:
        async with served() as upstream:
            source = tmp_path / "source.toml"
            source.write_text(SOURCE.format(port=upstream.port))
            process = await start(
                *("polling", "run", "--out", str(out), "--source", str(source), "--private", "@timeout", TIMEOUT)
            )
            try:
                await until(lambda: min(upstream.asked[path] for path in paths) >= 10)
                assert upstream.most_at_once > SLOTS + 2, "all of them at once, whatever the slots"
                upstream.silent = True
                await until(lambda: min(upstream.hanging[path] for path in paths) >= 2)
                upstream.silent = False
                before = dict(upstream.asked)
                await until(lambda: all(upstream.asked[path] >= before[path] + 10 for path in paths))
                await until(lambda: not any(upstream.hanging[path] for path in paths))
                async with asyncio.timeout(SECONDS):
                    said = await asyncio.to_thread(called, "why", f"127.0.0.1:{upstream.port}", "--out", str(out))
            finally:
                process.terminate()
            done = await finish(process)

        assert (done.code, "Traceback" in done.err) == (0, False)
        assert "Policy contract: the operator's cadence stands; only refusals, Retry-After" in said.out
        assert " is live: asked for every 200 ms, and 7 more." in said.out

    run(main)
