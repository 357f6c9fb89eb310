"""Make tests/folders/VERSION: what a release leaves in folders, databases and queues, for later releases to go on with.

    .venv/bin/python tests/folders/release_folders.py tests/folders/0.2.0

Every system is stopped in the middle of its work (kill -9 wherever it can be). `embedded` is what it keeps without a
server. `servers` is the same with PostgreSQL, Redis and RabbitMQ at their usual ports: the folder, and what these held.
test_release_folders.py goes on with each of them.
"""

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import redis

from sanderling.clock import SystemClock
from sanderling.stores.queue import open_queue
from sanderling.stores.rabbitmq import DELAYS
from sanderling.worlds.pds import Fleet, FleetServer

# Where the upstreams are, now and whenever a folder is gone on with: the folders have these addresses in them.
PORT, FLEET_PORT = 28460, 28470
PAGES = 12
IDS, HALF, MISSED = 30, 8, 5  # how many there are; how many are asked for before a kill; one that is among the missed
USUAL = ("postgresql://127.0.0.1:5432/postgres", "amqp://guest:guest@127.0.0.1:5672/", "redis://127.0.0.1:6379/0")
SECONDS = 120.0


class Upstream(ThreadingHTTPServer):
    """A site, an API of ids and an API of scores, all at one address. `allowed` more answers, and then silence."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", PORT), Answers)
        self.asked: list[str] = []
        self.allowed: dict[str, int] = {}  # by the first letter of the path

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{PORT}{path}"


class Answers(BaseHTTPRequestHandler):
    """What the upstream says to a path."""

    server: Upstream
    protocol_version = "HTTP/1.1"
    SCORES: ClassVar[dict[str, Any]] = {
        "/scores/now": {"current": {"id": "cup"}},
        "/scores/cup/matches": {"matches": ["1", "2"]},
        "/scores/cup/match/1": {"id": "1", "state": "over", "goals": 3},
        "/scores/cup/match/2": {"id": "2", "state": "over", "goals": 0},
    }

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        kind = self.path[:3]
        left = self.server.allowed.get(kind, sys.maxsize)
        self.server.allowed[kind] = left - 1
        if left <= 0:
            time.sleep(SECONDS)  # until whoever asks is killed
            return
        kind_of_body, body = self.body()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind_of_body)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> tuple[str, bytes]:
        if self.path == "/":
            links = "".join(f'<p><a href="/page/{number}">Page {number}</a></p>' for number in range(PAGES))
            return "text/html", f"<html><title>Front</title><body>{links}</body></html>".encode()
        if self.path.startswith("/page/"):
            return "text/html", f"<html><title>{self.path}</title><body><p>A page.</p></body></html>".encode()
        if self.path.startswith("/ids/"):
            number = int(self.path.rpartition("/")[2])
            there = 1 <= number <= IDS
            record = {"id": number, "created": f"2026-01-01T00:00:{number:02}Z"}
            return "application/json", json.dumps(record).encode() if there else b""
        found = self.SCORES.get(self.path)
        return "application/json", json.dumps(found).encode() if found is not None else b""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has above
        """Say nothing."""


@contextmanager
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def fleet() -> Iterator[FleetServer]:
    """Two hosts with ten repos."""
    ready, over, found = threading.Event(), asyncio.Event(), []

    async def serve() -> None:
        async with FleetServer(Fleet.make(1, 2, 10, others=()), SystemClock(), first_port=FLEET_PORT) as server:
            found.append((server, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    if not ready.wait(SECONDS):
        raise TimeoutError(f"no fleet at port {FLEET_PORT}")
    server, loop = found[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


@dataclass(frozen=True, slots=True)
class Commands:
    """The command of each system in a folder, on embedded stores or, with `flags`, on servers."""

    folder: Path
    flags: dict[str, list[str]] = field(default_factory=dict)

    def _of(self, system: str, *words: str) -> list[str]:
        return [system, *words, *self.flags.get(system, [])]

    def pages(self) -> list[str]:
        front = f"http://127.0.0.1:{PORT}/"
        return self._of("pages", "crawl", front, "--out", str(self.folder / "pages"), "--private", "--no-parquet")

    def sequence(self, *more: str) -> list[str]:
        api = ("--url", f"http://127.0.0.1:{PORT}/ids/{{id}}", "--id-path", "id", "@timestamp", "created", "--private")
        ids = ("--begin", "1", "--until", str(IDS), "--out", str(self.folder / "sequence"))
        return self._of("sequence", "crawl", *api, *ids, *more)

    def store(self) -> list[str]:
        return self._of("sequence", "store", "--until-empty", "--out", str(self.folder / "sequence"))

    def repos(self) -> list[str]:
        place = self.folder / "repos"
        return self._of("repos", "crawl", "--out", str(place), "--did-file", str(place / "dids.txt"), "--private")

    def polling(self) -> list[str]:
        place = self.folder / "polling"
        often = ("--set", "fullIntervalMs=1s", "--private")
        return self._of("polling", "run", "--out", str(place), "--source", str(place / "source.toml"), *often)

    def batches(self, number: int) -> list[str]:
        few = ("--batches", str(number), "--json", "--out", str(self.folder / "events"))
        queue = [word for word in self.flags.get("events", []) if "postgresql" not in word and word != "--database"]
        return ["world", "social", *few, *queue]

    def events(self) -> list[str]:
        return self._of("events", "consume", "--drain", "--json", "--out", str(self.folder / "events"))


SOURCE = f"""[source]
name = "scores"
event_url = "http://127.0.0.1:{PORT}/scores/now"
event = "current.id"

[source.kinds.match]
url = "http://127.0.0.1:{PORT}/scores/{{event}}/match/{{id}}"
ids_url = "http://127.0.0.1:{PORT}/scores/{{event}}/matches"
ids = "matches"
items = "."
id = "id"
seconds = 1.0
"""


def run(words: Sequence[str]) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "sanderling", *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def stop(words: Sequence[str], enough: Callable[[], bool], how: signal.Signals = signal.SIGKILL) -> None:
    """Start a command, and stop it as soon as `enough` is so."""
    with subprocess.Popen([sys.executable, "-m", "sanderling", *words], stdout=subprocess.DEVNULL) as process:  # noqa: S603 - ours
        end = time.monotonic() + SECONDS
        while not enough() and time.monotonic() < end and process.poll() is None:
            time.sleep(0.02)
        if process.poll() is not None or not enough():
            process.kill()
            raise RuntimeError(f"{' '.join(words)}: ended, or had done too little after {SECONDS:.0f} s")
        time.sleep(1.0)  # what was answered is kept in groups
        process.send_signal(how)


def make(commands: Commands, site: Upstream, hosts: FleetServer) -> None:
    """Have every system do half of its work in the folder."""
    if "pages" not in commands.flags:  # it has no servers
        site.allowed["/pa"] = PAGES // 2
        stop(commands.pages(), lambda: site.allowed["/pa"] < 0)
    for store in (True, False):  # the first half is stored, the second waits in the queue
        site.allowed["/id"] = HALF
        stop(commands.sequence("--no-store"), lambda: site.allowed["/id"] < 0)
        if store:
            run(commands.store())
    missed = commands.folder / "missed.txt"
    missed.write_text(f"{MISSED}\n")
    run(["sequence", "missed", "import", str(missed), "--out", str(commands.folder / "sequence")])
    missed.unlink()
    for system in ("repos", "polling"):
        (commands.folder / system).mkdir(parents=True)
    dids = "".join(f"{did} {host}\n" for did, host in hosts.fleet.directory())
    (commands.folder / "repos" / "dids.txt").write_text(dids)
    (commands.folder / "polling" / "source.toml").write_text(SOURCE)
    before = sum(each.asked for each in hosts.tallies.values())
    stop(commands.repos(), lambda: sum(each.asked for each in hosts.tallies.values()) >= before + 7)
    seen = len(site.asked)
    stop(commands.polling(), lambda: sum("match/" in path for path in site.asked[seen:]) >= 6)
    run(commands.batches(2))
    run(commands.events())
    told = run(commands.batches(4))
    (commands.folder / "events" / "expected.json").write_text(told)


def tidy(folder: Path) -> None:
    """Leave out what no later run reads: locks, and the shared memory of SQLite."""
    for path in folder.rglob("*"):
        if path.name.endswith(("-shm", "lock", "-polls", "-sending")):
            path.unlink()


class Servers:
    """Names of our own at the usual ports, what they hold, and an end of them."""

    def __init__(self, name: str, postgres: str, rabbitmq: str, redis_url: str) -> None:
        self.name = name
        self.database = name.replace("-", "_")
        self.postgres = urlsplit(postgres)._replace(path=f"/{self.database}").geturl()
        self.maintenance = postgres
        self.rabbitmq = rabbitmq
        self.redis = free_redis(redis_url)

    def flags(self) -> dict[str, list[str]]:
        queue = ["--queue", self.rabbitmq, "@queue-name"]
        return {
            "pages": [],
            "sequence": ["--rows", self.postgres, *queue, f"{self.name}-sequence"],
            "repos": ["@redis-address", self.redis],
            "polling": ["--database", self.postgres],
            "events": ["--database", self.postgres, *queue, f"{self.name}-events", "@exchange", self.name],
        }

    def queues(self, *ends: str) -> list[str]:
        return [f"{self.name}-{system}{end}" for system in ("sequence", "events") for end in ("", ".dead", *ends)]

    async def create(self) -> None:
        connection = await asyncpg.connect(self.maintenance)
        await connection.execute(f'CREATE DATABASE "{self.database}"')
        await connection.close()

    async def drop(self) -> None:
        connection = await asyncpg.connect(self.maintenance)
        await connection.execute(f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
        await connection.close()
        async with await aio_pika.connect(self.rabbitmq) as broker:
            channel = await broker.channel()
            await channel.exchange_delete(self.name)
            for queue in self.queues(*(f".later.{seconds:g}s" for seconds in DELAYS)):
                await channel.queue_delete(queue)
        with redis.Redis.from_url(self.redis) as client:
            client.flushdb()

    def dump(self, folder: Path) -> None:
        """Write down what they hold."""
        command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", self.postgres]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours
        settings = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
        kept = [line for line in said.splitlines() if line and not line.startswith(settings)]
        (folder / "postgres.sql").write_text("\n".join(kept) + "\n")
        (folder / "redis.json").write_text(json.dumps(self.keys(), indent=1, sort_keys=True) + "\n")
        messages = asyncio.run(self.messages())
        (folder / "rabbitmq.jsonl").write_text("".join(json.dumps(each) + "\n" for each in messages))

    async def restore(self, folder: Path) -> None:
        """Have them hold what was written down there, under our own names."""
        connection = await asyncpg.connect(self.postgres)
        await connection.execute((folder / "postgres.sql").read_text())
        await connection.close()
        with redis.Redis.from_url(self.redis) as client:
            for key, value in json.loads((folder / "redis.json").read_text()).items():
                client.restore(key, 0, base64.b64decode(value))
        letters = [json.loads(line) for line in (folder / "rabbitmq.jsonl").read_text().splitlines()]
        for letter in letters:
            await self._send(letter)

    async def _send(self, letter: dict[str, Any]) -> None:
        queue = open_queue(self.rabbitmq, f"{self.name}-{letter['queue']}", SystemClock())
        await queue.depth()  # which makes it as a command does
        await queue.close()
        async with await aio_pika.connect(self.rabbitmq) as broker:
            message = aio_pika.Message(
                base64.b64decode(letter["body"]),
                headers=letter["headers"],
                message_id=letter["id"],
                content_type=letter["type"],
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            )
            await (await broker.channel()).default_exchange.publish(message, f"{self.name}-{letter['queue']}")

    def keys(self) -> dict[str, Any]:
        with redis.Redis.from_url(self.redis) as client:
            return {key.decode(): base64.b64encode(client.dump(key)).decode() for key in client.scan_iter()}

    async def messages(self) -> list[dict[str, Any]]:
        found = []
        async with await aio_pika.connect(self.rabbitmq) as broker:
            for name in self.queues():
                channel = await broker.channel()
                try:
                    queue = await channel.get_queue(name)
                except aio_pika.exceptions.ChannelNotFoundEntity:
                    continue
                while (message := await queue.get(fail=False)) is not None:
                    found.append(
                        {
                            "queue": name.removeprefix(f"{self.name}-"),
                            "id": message.message_id,
                            "type": message.content_type,
                            "headers": dict(message.headers),
                            "body": base64.b64encode(message.body).decode(),
                        }
                    )
        return found


def free_redis(server: str) -> str:
    """The last database of the Redis that holds nothing."""
    for number in range(15, 0, -1):
        url = urlsplit(server)._replace(path=f"/{number}").geturl()
        with redis.Redis.from_url(url) as client:
            if not client.dbsize():
                return url
    raise RuntimeError("every database of the Redis holds something")


def main(out: Path) -> None:
    """Make both halves."""
    shutil.rmtree(out, ignore_errors=True)
    servers = Servers(f"sanderling-release-{os.getpid()}", *USUAL)
    with tempfile.TemporaryDirectory() as scratch, fleet() as hosts:
        with upstream() as site:
            make(Commands(Path(scratch) / "embedded"), site, hosts)
        asyncio.run(servers.create())
        try:
            with upstream() as site:
                make(Commands(Path(scratch) / "servers", servers.flags()), site, hosts)
            servers.dump(Path(scratch) / "servers")
        finally:
            asyncio.run(servers.drop())
        for half in ("embedded", "servers"):
            tidy(Path(scratch) / half)
            shutil.copytree(Path(scratch) / half, out / half)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
