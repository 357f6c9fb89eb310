"""What sinks send, over real sockets and into real queues, and what they say of those who refuse it."""

import asyncio
import base64
import hashlib
import hmac
import shutil
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from memory_changes import change
from scripted_server import ScriptedServer, Step, answer, reset

from sanderling.clock import SystemClock
from sanderling.polling import change_sinks
from sanderling.polling.change_sinks import LARGEST_BODY, MOST_SAID, ChangeQueueSink, SinkError, WebhookSink, posts
from sanderling.stores.polling import Op, RowChange
from sanderling.stores.queue import LARGEST_BODY as LARGEST_LETTER
from sanderling.stores.queue import Dead, Delivery, Letter, QueueError
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.testing import FakeClock

WALL = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
PATH = "/hook/s3cret-Key?token=t0ken-Value"
T = TypeVar("T")


class Told(msgspec.Struct):
    first: int
    last: int
    changes: list[RowChange]


@dataclass
class Receiver:
    """A real server: says yes, and keeps what it was told."""

    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.read())
        return web.Response(status=204)

    @property
    def told(self) -> list[Told]:
        return [msgspec.json.decode(body, type=Told) for body in self.bodies]


@asynccontextmanager
async def receiving(certificate: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application(client_max_size=20 << 20)
    app.router.add_post("/hook/{secret}", receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate).start()
        receiver.url = f"http{'s' if certificate else ''}://127.0.0.1:{runner.addresses[0][1]}{PATH}"
        yield receiver
    finally:
        await runner.cleanup()


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(300):
            return await main()

    return asyncio.run(bounded())


async def send(url: str, changes: Sequence[RowChange], secret: bytes = b"") -> None:
    sink = WebhookSink(url, FakeClock(wall=WALL), secret)
    try:
        await sink.send(changes)
    finally:
        await sink.close()


def received(changes: Sequence[RowChange], *, secret: bytes = b"", login: str = "") -> Receiver:
    async def main() -> Receiver:
        async with receiving() as receiver:
            await send(receiver.url.replace("://", f"://{login}"), changes, secret)
            return receiver

    return run(main)


def refusal(*steps: Step, changes: int = 1) -> SinkError:
    """What is said when a server answers so."""

    async def main() -> SinkError:
        async with ScriptedServer({PATH: [[*steps]]}) as server:
            with pytest.raises(SinkError) as raised:
                await send(server.url(PATH), [change(seq) for seq in range(1, changes + 1)])
            return raised.value

    return run(main)


# --- what is posted ---


def test_changes_are_posted_as_json_under_their_numbers() -> None:
    purge = RowChange(seq=9, at=3.5, op=Op.PURGE, table="", key="")
    changes = [change(7, "Zoë"), change(8), purge]

    receiver = received(changes)

    assert receiver.told == [Told(7, 9, changes)]
    (request,) = receiver.requests
    assert request.path_qs == PATH
    assert request.content_type == "application/json"
    assert request.headers["Idempotency-Key"] == "7-9"
    assert not {"X-Sanderling-Signature", "Authorization", "Cookie"} & set(request.headers)


def test_with_a_secret_the_body_is_signed() -> None:
    receiver = received([change(1)], secret=b"key")

    expected = hmac.new(b"key", receiver.bodies[0], hashlib.sha256).hexdigest()
    assert receiver.requests[0].headers["X-Sanderling-Signature"] == f"sha256={expected}"


def test_a_login_in_the_url_is_sent_whatever_its_letters() -> None:
    receiver = received([change(1)], login="Zoë:пароль@")

    expected = base64.b64encode("Zoë:пароль".encode()).decode()
    assert receiver.requests[0].headers["Authorization"] == f"Basic {expected}"


def test_a_large_batch_is_split_and_stays_in_order() -> None:
    changes = [change(seq, "x" * 90_000) for seq in range(1, 31)]

    receiver = received(changes)

    assert [(told.first, told.last) for told in receiver.told] == [(1, 11), (12, 22), (23, 30)]
    assert [each for told in receiver.told for each in told.changes] == changes
    assert [request.headers["Idempotency-Key"] for request in receiver.requests] == ["1-11", "12-22", "23-30"]


@given(st.lists(st.sampled_from([0, 10, 300_000, 499_000, 999_500, 1_200_000]), max_size=12))
def test_a_body_is_below_a_megabyte_unless_a_single_change_is_not(sizes: list[int]) -> None:
    changes = [change(seq, "x" * size) for seq, size in enumerate(sizes, 10**15)]

    found = [*posts(changes)]

    told = [msgspec.json.decode(post.body, type=Told) for post in found]
    assert [each for one in told for each in one.changes] == changes
    for post, one in zip(found, told, strict=True):
        assert (post.first, post.last) == (one.first, one.last) == (one.changes[0].seq, one.changes[-1].seq)
        assert len(post.body) < LARGEST_BODY or len(one.changes) == 1
    for earlier, later in zip(found, told[1:], strict=False):
        assert len(earlier.body) + len(msgspec.json.encode(later.changes[0])) > LARGEST_BODY - 200


def test_connections_are_used_again() -> None:
    async def main() -> int:
        async with ScriptedServer({PATH: [answer(204)]}) as server:
            sink = WebhookSink(server.url(PATH), SystemClock())
            for seq in range(1, 6):
                await sink.send([change(seq)])
            await sink.close()
            return server.connections

    assert run(main) == 1


# --- who is not told ---


def test_redirects_are_not_followed() -> None:
    async def main() -> tuple[Receiver, str]:
        async with receiving() as other, ScriptedServer({PATH: [answer(307, Location=other.url)]}) as server:
            with pytest.raises(SinkError) as raised:
                await send(server.url(PATH), [change(1)], b"key")
            return other, str(raised.value)

    other, why = run(main)

    assert other.requests == []
    assert why == "status 307, and redirects are not followed"


def test_a_host_that_nobody_vouches_for_is_told_nothing(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-nodes", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    make = ["req", "-x509", "-newkey", "rsa:2048", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *make], check=True, capture_output=True)  # noqa: S603
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def main() -> tuple[Receiver, str]:
        async with receiving(context) as receiver:
            with pytest.raises(SinkError) as raised:
                await send(receiver.url, [change(1)])
            return receiver, str(raised.value)

    receiver, why = run(main)

    assert receiver.requests == []
    assert why == "no answer: SSLCertVerificationError: self-signed certificate"


@pytest.mark.parametrize("url", ["", "ftp://a.example/s3cret", "https:///s3cret", "http://[::s3cret"])
def test_a_url_that_cannot_be_posted_to_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="the webhook's URL") as raised:
        WebhookSink(url, SystemClock())
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


# --- what is said of those who refuse ---


def test_a_refusal_is_quoted_in_one_short_printable_line() -> None:
    said = "no such\n\n table: \x1b[31mlaps\x00 " + "z" * 5_000

    why = str(refusal(answer(422, said.encode())))

    assert why == f"status 422: {('no such table: [31mlaps ' + 'z' * 5_000)[:MOST_SAID]}…"


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120),
        ("soon", 0),
        ("99999999", change_sinks.LONGEST_WAIT),
    ],
)
def test_what_a_receiver_asks_for_is_passed_on(header: str, wait: float) -> None:
    for status in (429, 503, 400):
        assert refusal(answer(status, Retry_After=header)).wait == wait


ECHOED = [
    "s3cret-Key",
    "S3CRET-KEY",
    PATH,
    r"\/hook\/s3cret-Key",
    "t0ken-Value",
    "zoe-the-user",
    "pass word",
    "pass%20word",
    base64.b64encode(b"zoe-the-user:pass word").decode(),
    "signing-key",
]


@pytest.mark.parametrize("echoed", ECHOED)
def test_no_secret_is_quoted_though_the_receiver_says_it(echoed: str) -> None:
    async def main() -> str:
        async with ScriptedServer({PATH: [answer(404, f"cannot take <{echoed}> here".encode())]}) as server:
            url = server.url(PATH).replace("://", "://zoe-the-user:pass%20word@")
            with pytest.raises(SinkError) as raised:
                await send(url, [change(1)], b"signing-key")
            return str(raised.value)

    why = run(main)

    assert why.startswith("status 404: cannot take <")
    for secret in ("s3cret", "t0ken", "zoe-the", "pass word", "pass%20", "em9llxrozs", "signing"):
        assert secret not in why.lower()


BROKEN: list[list[Step]] = [
    [reset],
    [b"garbage\r\n\r\n"],
    [b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"],
    [b"HTTP/1.1", reset],
]


@pytest.mark.parametrize("steps", BROKEN)
def test_a_broken_answer_is_no_confirmation_and_tells_no_url(steps: list[Step]) -> None:
    error = refusal(*steps)

    assert str(error).startswith("no answer: ")
    assert "s3cret" not in "".join(traceback.format_exception(error))


def test_nobody_listening_is_said_without_the_url() -> None:
    async def main() -> SinkError:
        async with ScriptedServer({}) as server:
            url = server.url(PATH)
        with pytest.raises(SinkError) as raised:
            await send(url, [change(1)])
        return raised.value

    error = run(main)

    assert str(error) == "no answer: ConnectionRefusedError: ECONNREFUSED"
    assert "s3cret" not in "".join(traceback.format_exception(error))


def test_no_repr_has_the_url() -> None:
    assert repr(WebhookSink("https://me:pw@a.example/s3cret", SystemClock())) == "<WebhookSink of a.example>"


def test_a_receiver_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_sinks, "POST_SECONDS", 0.2)

    assert str(refusal(60.0)).startswith("no answer: timeout")
    slow = refusal(b"HTTP/1.1 500 No\r\nContent-Length: 9\r\nRetry-After: 3\r\n\r\n", 60.0)
    assert (str(slow), slow.wait) == ("status 500: timeout", 3)


def test_an_endless_refusal_is_read_no_further_than_it_is_quoted() -> None:
    endless: list[Step] = [b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n" + b"n" * 100_000, 60.0]

    assert str(refusal(*endless)) == f"status 500: {'n' * MOST_SAID}…"


# --- into a queue ---


async def drained(queue: SqliteQueue) -> list[Delivery]:
    found: list[Delivery] = []
    while some := await queue.take(100, 0.0):
        await queue.done(some)
        found += some
    return found


def test_each_change_is_a_letter_under_its_number(tmp_path: Path) -> None:
    changes = [change(seq) for seq in range(8, 13)]

    async def main() -> list[Delivery]:
        queue = SqliteQueue(tmp_path / "changes.db", SystemClock())
        sink = ChangeQueueSink(queue)
        await sink.send(changes)
        await sink.send(changes[2:])  # a file holds one letter of a key
        found = await drained(queue)
        await sink.close()
        return found

    found = run(main)

    assert sorted(letter.key for letter in found) == [f"{seq:020d}" for seq in range(8, 13)]
    assert sorted(
        (msgspec.json.decode(letter.body, type=RowChange) for letter in found), key=lambda each: each.seq
    ) == (changes)


class AwayQueue(SqliteQueue):
    async def publish(self, letters: Sequence[Letter]) -> None:
        raise QueueError(f"the broker of {letters[0].key} is away")


def test_a_change_that_no_queue_takes_is_a_dead_letter_and_holds_up_no_other(tmp_path: Path) -> None:
    async def main() -> tuple[list[Delivery], list[Dead]]:
        queue = SqliteQueue(tmp_path / "changes.db", SystemClock())
        await ChangeQueueSink(queue).send([change(1), change(2, "x" * LARGEST_LETTER), change(3)])
        found = await drained(queue), await queue.dead(10)
        await queue.close()
        return found

    letters, (dead,) = run(main)

    assert [int(letter.key) for letter in letters] == [1, 3]
    assert (int(dead.key), "bytes, at most 15,728,640 are taken" in dead.why) == (2, True)


def test_a_queue_that_is_away_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        sink = ChangeQueueSink(AwayQueue(tmp_path / "changes.db", SystemClock()))
        with pytest.raises(SinkError, match=r"the broker of 0{19}7 is away"):
            await sink.send([change(7)])
        await sink.close()

    run(main)
