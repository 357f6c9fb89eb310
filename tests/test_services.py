"""The services of the tests are real, found in the promised order, and leave nothing behind."""

import asyncio
import json
import os
import socket
import socketserver
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import obstore
import pytest
from obstore.exceptions import AlreadyExistsError
from redis import Redis
from services.clickhouse import CLICKHOUSE
from services.fixtures import guess
from services.postgres import POSTGRES
from services.process import Missing, Service, StartError, Unreachable, ask, free_ports, private_folder, running
from services.prometheus import scraping
from services.rabbitmq import RABBITMQ
from services.redis import REDIS
from services.s3 import S3
from services.s3 import SERVICE as S3_SERVICE

SERVICES = [POSTGRES, REDIS, RABBITMQ, S3_SERVICE, CLICKHOUSE, scraping(port=1)]
PLACE = {
    "postgres": "postgresql://postgres@127.0.0.1:{port}/test",
    "redis": "redis://127.0.0.1:{port}/0",
    "rabbitmq": "amqp://guest:guest@127.0.0.1:{port}/",
    "s3": "http://key:secret@127.0.0.1:{port}/bucket",
    "clickhouse": "clickhouse://127.0.0.1:{port}/default",
    "prometheus": "http://127.0.0.1:{port}",
}

each_service = pytest.mark.parametrize("service", SERVICES, ids=[service.name for service in SERVICES])


@pytest.fixture
def unique() -> str:
    return f"sanderling_{uuid.uuid4().hex}"


# --- each one, with the client we use ---


def test_a_row_written_to_postgres_can_be_read(postgres: str, unique: str) -> None:
    asyncio.run(write_and_read_a_row(postgres, unique))


async def write_and_read_a_row(url: str, table: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, body text)")
        await connection.copy_records_to_table(table, records=[(1, "wave"), (2, "shore")])
        body = await connection.fetchval(f"SELECT body FROM {table} WHERE id = $1", 2)  # noqa: S608 -- our own name
    finally:
        await connection.execute(f"DROP TABLE IF EXISTS {table}")
        await connection.close()

    assert body == "shore"


def test_a_set_kept_in_redis_knows_its_members(redis: str, unique: str) -> None:
    with Redis.from_url(redis) as client:
        client.sadd(unique, "a", "b")
        known = client.smismember(unique, ["a", "c"])
        client.delete(unique)

    assert known == [1, 0]


def test_a_message_published_to_rabbitmq_is_delivered(rabbitmq: str, unique: str) -> None:
    assert asyncio.run(publish_and_receive(rabbitmq, unique)) == b"sanderling"


async def publish_and_receive(url: str, queue_name: str) -> bytes:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(queue_name, exclusive=True)
        await channel.default_exchange.publish(aio_pika.Message(b"sanderling"), routing_key=queue_name)
        async with asyncio.timeout(300):
            message = await queue.get()
            await message.ack()
        await queue.delete()
    return message.body


def test_an_object_is_created_in_s3_once_only(s3: S3, unique: str) -> None:
    store = s3.store(prefix=unique)
    try:
        obstore.put(store, "segment", b"first", mode="create")
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, "segment", b"second", mode="create")
        body = obstore.get(store, "segment").bytes()
    finally:
        obstore.delete(store, "segment")

    assert bytes(body) == b"first"
    assert list(obstore.list(store)) == []


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(b"waves_total 42\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the parent's name
        """Write nothing."""


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """Run `server` in a thread and give its port."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_prometheus_answers_with_the_metric_it_scraped(prometheus: Callable[[int], str]) -> None:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Metrics)) as port:
        url = prometheus(port)
        status, body = ask("GET", f"{url}/api/v1/query?{urlencode({'query': 'waves_total'})}", 5)

    assert status == 200
    assert [sample["value"][1] for sample in json.loads(body)["data"]["result"]] == ["42"]


# --- the search ---


def test_a_variable_that_names_a_dead_port_is_an_error_and_not_a_skip(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for (name, url), port in zip(PLACE.items(), free_ports(len(PLACE)), strict=True):
        monkeypatch.setenv(f"SANDERLING_TEST_{name.upper()}", url.format(port=port))
    inner_tests = [f"def test_{name}({name}): pass" for name in PLACE if name != "prometheus"]
    pytester.makepyfile("\n".join([*inner_tests, "def test_prometheus(prometheus): prometheus(1)"]))

    result = run_inner_tests(pytester, monkeypatch)

    # The factory `prometheus` is called by the test itself, so its failure is the test's.
    result.assert_outcomes(errors=len(PLACE) - 1, failed=1)
    for name in PLACE:
        result.stdout.fnmatch_lines(f"*SANDERLING_TEST_{name.upper()}: no {name} answers on 127.0.0.1:*")


def test_a_variable_wins_over_the_usual_port_and_the_summary_says_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_folder() as folder, REDIS.start(Path(folder)) as server:
        monkeypatch.setenv("SANDERLING_TEST_REDIS", server.url)
        pytester.makepyfile(f"def test_url(redis): assert redis == {server.url!r}")

        result = run_inner_tests(pytester, monkeypatch)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("services: redis given by SANDERLING_TEST_REDIS")


@pytest.mark.parametrize("spread", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "in workers"])
def test_a_service_nobody_can_start_is_skipped_with_the_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, spread: tuple[str, ...]
) -> None:
    monkeypatch.delenv("SANDERLING_TEST_PROMETHEUS", raising=False)
    monkeypatch.setenv("PATH", str(pytester.path))
    pytester.makepyfile("def test_prometheus(prometheus): prometheus(1)")

    result = run_inner_tests(pytester, monkeypatch, *spread)

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines("services: prometheus skipped: no prometheus binary on the path")


def test_nothing_is_started_and_nothing_said_if_no_test_asks(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("def test_alone(): pass")

    result = run_inner_tests(pytester, monkeypatch)

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("services:*")


def run_inner_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own with our plugin, no other that is not named, and no other configuration."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the others take a second to load, in every process
    return pytester.runpytest_subprocess("-p", "services.fixtures", *arguments)


@each_service
def test_a_port_that_says_nothing_is_not_taken_for_a_service(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = PLACE[service.name].format(port=listener.getsockname()[1])
        began = time.monotonic()

        with pytest.raises(Unreachable):
            service.hello(url, 0.5)

    assert time.monotonic() - began < 60, "it would wait for ever"


class Stranger(socketserver.StreamRequestHandler):
    """A web server that has never heard of any of our services."""

    def handle(self) -> None:
        self.request.recv(100)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nmoo")


@each_service
def test_a_port_that_speaks_another_protocol_is_not_taken_for_a_service(service: Service) -> None:
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stranger)) as port, pytest.raises(Unreachable):
        service.hello(PLACE[service.name].format(port=port), 2)


def test_all_usual_places_together_get_one_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = PLACE["postgres"].format(port=listener.getsockname()[1])
        began = time.monotonic()

        assert guess(replace(POSTGRES, usual=(silent,) * 600), seconds=0.5) is None

    assert time.monotonic() - began < 100, "half a second for each would be 300"


# --- private ones, even where shared ones run ---


# Not RabbitMQ, which takes three seconds to start: where none runs, the tests that need one start theirs.
@pytest.mark.parametrize("service", [each for each in SERVICES if each is not RABBITMQ], ids=lambda each: each.name)
def test_a_private_one_answers_and_leaves_no_process_behind(service: Service) -> None:
    with private_folder() as name:
        folder = Path(name)
        try:
            with service.start(folder) as server:
                service.hello(server.url, 5)
                assert processes_in(folder)
        except Missing as why:
            pytest.skip(str(why))

        with pytest.raises(Unreachable):
            service.hello(server.url, 1)
        assert processes_in(folder) == []


def processes_in(folder: Path) -> list[str]:
    """Return the processes that stand in `folder`, as all that we start do, and their children."""
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    return [process.name for process in Path("/proc").glob("[0-9]*") if stands_in(process, folder)]


def stands_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


def never_ready() -> None:
    raise Unreachable("nobody home")


def test_a_server_that_ends_early_is_reported_at_once_with_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no space left'); raise SystemExit(3)"]

    with (
        pytest.raises(StartError, match=r"(?s)ended with status 3 .*no space left"),
        running(command, never_ready, folder=tmp_path),
    ):
        pytest.fail("must not get here")


def test_a_server_that_never_answers_is_given_up_and_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-uc", "print('thinking'); import time; time.sleep(60)"]

    with (
        pytest.raises(StartError, match=r"(?s)within 1 s \(nobody home\).*thinking"),
        running(command, never_ready, folder=tmp_path, seconds=1),
    ):
        pytest.fail("must not get here")

    assert processes_in(tmp_path) == []
