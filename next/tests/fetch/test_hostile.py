"""Answers of hosts that mean harm, byte by byte: one Outcome each, and CPU in proportion to what came."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest
from fetch.servers import fetch, moves, says, upstream
from fetch.test_decode import PACK

from sanderling.clock import cpu_seconds
from sanderling.fetch import Client, HttpRequest, RequestOptions, client
from sanderling.outcome import Code

pytestmark = pytest.mark.real
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TWO = b"Content-Length: 2\r\n\r\nok"


def in_parts(*parts: bytes, pause: float = 0.0) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def write(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)

    return write


def byte_by_byte(data: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    return in_parts(*(data[place : place + 1] for place in range(len(data))))


BAD = Code.INVALID_RESPONSE
ANSWERS: dict[str, tuple[object, Code]] = {
    "a head byte by byte": (byte_by_byte(HEAD + b"X: " + b"a" * 4000 + b"\r\n" + TWO), Code.OK),
    "20,000 spaces before a length": (HEAD + b"Content-Length: " + b" " * 20_000 + b"2\r\n\r\nok", Code.OK),
    "250,000 spaces after a length": (HEAD + b"Content-Length: 2" + b" " * 250_000 + b"\r\n\r\nok", BAD),
    "1 MB in a header": (HEAD + b"X: " + b"a" * 1_000_000 + b"\r\n" + TWO, BAD),
    "1 MB of headers": (HEAD + b"X-Header: aaaaaaaa\r\n" * 50_000 + TWO, BAD),
    "two lengths": (HEAD + b"Content-Length: 3\r\n" + TWO, BAD),
    "a length and chunks": (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", BAD),
    "a negative length": (HEAD + b"Content-Length: -2\r\n\r\nok", BAD),
    "a length in hex": (HEAD + b"Content-Length: 0x2\r\n\r\nok", BAD),
    "a length of 23 digits": (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nok", BAD),
    "a body shorter than its length": (HEAD + b"Content-Length: 20\r\n\r\nok", Code.TRUNCATED),
    "a body longer than its length": (says(body=b"ok") + b"HTTP/1.1 200 OK\r\n\r\nstolen", Code.OK),
    "the same length twice": (HEAD + b"Content-Length: 2\r\n" + TWO, BAD),
    "a length that is a list": (HEAD + b"Content-Length: 2, 2\r\n\r\nok", BAD),
    "a body without a length": (HEAD + b"\r\nok", Code.OK),
    "a chunk of negative size": (CHUNKED + b"1\r\nA\r\n-7\r\n", BAD),
    "a negative chunk after a pause": (in_parts(CHUNKED + b"1\r\nA\r\n", b"-7\r\nA", pause=0.05), Code.TRUNCATED),
    "chunks that break off": (CHUNKED + b"5\r\nhel", Code.TRUNCATED),
    "a chunk of 21 digits": (CHUNKED + b"fffffffffffffffffffff\r\nA", BAD),
    "100,000 trailers": (
        in_parts(CHUNKED, b"1\r\nA\r\n0\r\n" + b"X: y\r\n" * 100_000 + b"\r\n", pause=0.05),
        Code.TRUNCATED,
    ),
    "10,000 interim responses": (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000 + HEAD + TWO, Code.OK),
    "an upgrade": (b"HTTP/1.1 101 Hm\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Code.HTTP_ERROR),
    "status 999": (b"HTTP/1.1 999 Denied\r\n" + TWO, Code.HTTP_ERROR),
    "a status of four digits": (b"HTTP/1.1 1000 Odd\r\n" + TWO, BAD),
    "a zero byte in a header": (HEAD + b"X: a\0b\r\n" + TWO, BAD),
    "a header without a colon": (HEAD + b"nonsense\r\n" + TWO, BAD),
    "SSH": (b"SSH-2.0-OpenSSH_9.2p1\r\n", BAD),
    "SMTP": (b"220 mail.example ESMTP\r\n", BAD),
    "HTTP/0.9": (b"<html>hello</html>", BAD),
    "every byte there is": (bytes(range(256)) * 10, BAD),
    "a TLS alert": (b"\x15\x03\x03\x00\x02\x02\x46", BAD),
    "nothing": (b"", Code.CONNECTION_RESET),
    "a redirect to no URL": (moves("http://[::1"), Code.HTTP_ERROR),
    "a redirect to a script": (moves("javascript:alert(1)"), Code.HTTP_ERROR),
    "a redirect of 15,000 characters": (moves("/" + "a" * 15_000), Code.HTTP_ERROR),
    "a redirect to nowhere": (moves(""), Code.HTTP_ERROR),
    "a part that nobody wanted": (says("206 Partial", ("Content-Range: bytes 0-1/10",), b"ok"), Code.TRUNCATED),
    "a coding that is none": (says(headers=("Content-Encoding: rot13",), body=b"ok"), Code.BAD_ENCODING),
    "a million empty frames": (
        says(headers=("Content-Encoding: zstd",), body=PACK["zstd"](b"") * 1_000_000),
        Code.BAD_ENCODING,
    ),
    **{
        f"a cut body in {name}": (
            says(headers=(f"Content-Encoding: {name}",), body=pack(b"text " * 999)[:-3]),
            Code.TRUNCATED,
        )
        for name, pack in PACK.items()
    },
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_hostile_answer_is_one_outcome(name: str) -> None:
    answer, code = ANSWERS[name]
    async with upstream(answer) as host:  # type: ignore[arg-type] # bytes or a writer
        got = await fetch(host.url)

    assert (got.outcome.code, got.requests, len(host.heads)) == (code, 1, 1)
    assert "\n" not in got.outcome.detail
    assert len(got.outcome.detail) < 300


@pytest.mark.parametrize(
    "answer",
    [
        lambda size: HEAD + b"Content-Length: " + b" " * size + b"2\r\n\r\nok",
        lambda size: byte_by_byte(HEAD + b"X: " + b"a" * (size // 100) + b"\r\n" + TWO),
        lambda size: CHUNKED + b"1\r\nA\r\n" * (size // 6) + b"0\r\n\r\n",
        lambda size: CHUNKED + b"1;" + b"x" * size + b"\r\nA\r\n0\r\n\r\n",
        lambda size: b"HTTP/1.1 100 Continue\r\n\r\n" * (size // 25) + HEAD + TWO,
        lambda size: says(headers=("Content-Encoding: gzip",), body=gzip.compress(b"") * (size // 100)),
        lambda size: says(headers=("Content-Encoding: zstd",), body=PACK["zstd"](b"") * (size // 80)),
        lambda size: HEAD + b"X-Header: aaaaaaaa\r\n" * (size // 2000) + TWO,
        lambda size: moves("/" + "a%2" * (size // 30)),
        lambda size: says(headers=[f"Set-Cookie: a{at}=; Expires={'1' * 900}" for at in range(size // 3000)]),
    ],
    ids=[
        *("spaces", "byte by byte", "chunks", "extension of a chunk", "interim", "members", "frames"),
        *("headers", "location", "cookies"),
    ],
)
async def test_what_is_four_times_as_long_does_not_cost_sixteen_times_as_much(answer: Callable[[int], object]) -> None:
    async def cost(size: int) -> float:
        least = 1e9
        for _ in range(2):
            async with upstream(answer(size)) as host:  # type: ignore[arg-type] # bytes or a writer
                began = cpu_seconds()
                await fetch(host.url)
                least = min(least, cpu_seconds() - began)
        return least

    small, large = await cost(100_000), await cost(400_000)

    assert large < 8 * small + 0.05


async def test_what_follows_a_body_is_no_response_to_the_next_request() -> None:
    first = says(body=b"1") + says(body=b"smuggled")
    options = RequestOptions(private=True, policy="none")
    async with upstream(first, says(body=b"2"), keep=True) as host, Client(options) as own:
        bodies = [(await own.send(HttpRequest(host.url))).body for _ in range(2)]

    assert (bodies, len(host.heads)) == ([b"1", b"2"], 2)


async def test_a_body_beyond_the_bound_ends_without_being_read() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    async with upstream(endless) as host:
        refused = await fetch(host.url, largest=1 << 20)
        cut = await fetch(host.url, largest=1 << 20, cut=True)

    assert (refused.outcome.code, refused.outcome.status, refused.body) == (Code.TOO_LARGE, 200, b"")
    assert (cut.outcome.code, len(cut.body)) == (Code.OK, 1 << 20)


async def test_a_body_that_drips_ends_with_the_time_for_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TOTAL", 1.0)
    async with upstream(in_parts(CHUNKED, *[b"1\r\nA\r\n"] * 200, pause=0.02)) as host:
        got = await fetch(host.url)

    assert (got.outcome.code, got.outcome.status) == (Code.TIMEOUT, 200)
