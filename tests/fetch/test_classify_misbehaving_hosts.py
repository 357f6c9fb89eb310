"""Where it is cheap, the exceptions here are real: a server on plain sockets misbehaves, and aiohttp says how."""

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules, check_addresses
from sanderling.outcome import Code, Outcome

TAIL = "/p?key=s3cr3t"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def sends(data: bytes, *, reset: bool = False) -> Serve:
    """A host that reads a request, sends this whatever it was, and hangs up, politely or not."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        if reset:
            hard = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hard)

    return serve


def stalls(data: bytes) -> Serve:
    """A host that sends this and then nothing, until the client has gone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await reader.read()

    return serve


async def speaks_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


NO_LIMIT = aiohttp.ClientTimeout()


def outcome_of(
    serve: Serve,
    scheme: str = "http",
    certificate: ssl.SSLContext | None = None,
    timeout: aiohttp.ClientTimeout = NO_LIMIT,
) -> Outcome:
    """What becomes of asking a host that does this."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def ask() -> Outcome:
        # The group waits for the host's side to end as well.
        async with asyncio.TaskGroup() as group:
            server = await asyncio.start_server(
                lambda reader, writer: group.create_task(handle(reader, writer)), "127.0.0.1", 0, ssl=certificate
            )
            async with server:
                port = server.sockets[0].getsockname()[1]
                return await asked(f"{scheme}://127.0.0.1:{port}{TAIL}", limits=timeout)

    return asyncio.run(ask())


async def asked(
    url: str, resolver: AbstractResolver | None = None, limits: aiohttp.ClientTimeout = NO_LIMIT
) -> Outcome:
    connector = aiohttp.TCPConnector(resolver=resolver)
    try:
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url, timeout=limits) as response:
            await response.read()
    except Exception as error:  # noqa: BLE001 - whatever it is, is the question
        return of_error(error)
    raise AssertionError(f"{url} answered")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
NO_ANSWER = "the connection was closed without an answer"
NO_STATUS = "what came does not begin as an HTTP answer does"
THREE = "the body is shorter than its Content-Length: 3 of 100 bytes came"
MOVED = b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: "


@pytest.mark.parametrize(
    ("serve", "code", "detail"),
    [
        pytest.param(sends(b""), Code.CONNECTION_RESET, NO_ANSWER, id="hangs up"),
        pytest.param(sends(b"", reset=True), Code.CONNECTION_RESET, "ConnectionResetError: ECONNRESET", id="resets"),
        pytest.param(sends(HEAD), Code.CONNECTION_RESET, NO_ANSWER, id="half a head"),
        pytest.param(sends(HEAD + b"\r\nabc"), Code.TRUNCATED, THREE, id="half a body"),
        pytest.param(sends(HEAD + b"\r\nabc", reset=True), Code.TRUNCATED, THREE, id="half, then reset"),
        pytest.param(
            sends(CHUNKED + b"\r\n5\r\nab"),
            Code.TRUNCATED,
            "the connection was closed within a chunk of the body",
            id="half a chunk",
        ),
        pytest.param(sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), Code.INVALID_RESPONSE, NO_STATUS, id="not HTTP"),
        pytest.param(sends(b"HTTP/1.1 99 X\r\n\r\n"), Code.INVALID_RESPONSE, NO_STATUS, id="no status"),
        pytest.param(sends(CHUNKED + b"\r\nzz\r\nab"), Code.INVALID_RESPONSE, "what came is no HTTP", id="not chunks"),
        pytest.param(
            sends(HEAD + b"A: " + b"x" * 20_000 + b"\r\n\r\n"),
            Code.TOO_LARGE,
            "a header line is longer than we take",
            id="long header",
        ),
        pytest.param(
            sends(HEAD + b"Content-Encoding: gzip\r\n\r\n" + b"?" * 100),
            Code.BAD_ENCODING,
            "the body does not unpack",
            id="not gzip",
        ),
        pytest.param(sends(MOVED + TAIL.encode() + b"\r\n\r\n"), Code.REDIRECT_LOOP, "TooManyRedirects", id="loops"),
        pytest.param(
            sends(MOVED + b"ftp://alice:hunter2@a.example\r\n\r\n"),
            Code.INVALID_URL,
            "NonHttpUrlRedirectClientError",
            id="leads to FTP",
        ),
        pytest.param(
            sends(MOVED + b"http://[?key=s3cr3t\r\n\r\n"),
            Code.INVALID_URL,
            "what it leads to is no URL",
            id="leads nowhere",
        ),
    ],
)
def test_what_a_host_does_wrong_has_a_name(serve: Serve, code: Code, detail: str) -> None:
    assert outcome_of(serve) == Outcome(code, detail=detail)


def test_a_host_that_reads_our_request_back_to_us_does_not_put_it_into_the_detail() -> None:
    outcome = outcome_of(sends(b"GET /p?key=s3cr3t HTTP/1.1\r\n\r\n"))

    assert outcome == Outcome(Code.INVALID_RESPONSE, detail=NO_STATUS)


@pytest.mark.parametrize(
    ("data", "timeout", "detail"),
    [
        (b"", aiohttp.ClientTimeout(sock_read=0.05), "timeout: first byte or idle"),
        (HEAD + b"\r\nabc", aiohttp.ClientTimeout(sock_read=0.05), "timeout: first byte or idle"),
        (b"", aiohttp.ClientTimeout(total=0.05), "timeout"),
        (HEAD + b"\r\nabc", aiohttp.ClientTimeout(total=0.05), "timeout"),
    ],
)
def test_a_host_that_stalls_is_a_timeout(data: bytes, timeout: aiohttp.ClientTimeout, detail: str) -> None:
    assert outcome_of(stalls(data), timeout=timeout) == Outcome(Code.TIMEOUT, detail=detail)


@pytest.mark.parametrize("phase", ["connect", "first byte", "idle", "total"])
def test_a_timeout_of_our_own_says_which(phase: str) -> None:
    assert of_error(TimeoutError(phase)) == Outcome(Code.TIMEOUT, detail=f"timeout: {phase}")


def test_nobody_listens() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there, and not listened to

        outcome = asyncio.run(asked(f"http://127.0.0.1:{closed.getsockname()[1]}{TAIL}"))

    assert outcome == Outcome(Code.CONNECTION_REFUSED, detail="ConnectionRefusedError: ECONNREFUSED")


class Resolver(AbstractResolver):
    """Does what it is told to for every name."""

    def __init__(self, answer: Callable[[str], Awaitable[list[str]]]) -> None:
        self._answer = answer

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._answer(host)
        return [ResolveResult(hostname=host, host=each, port=port, family=family, proto=0, flags=0) for each in found]

    async def close(self) -> None:
        pass


def outcome_resolved(
    answer: Callable[[str], Awaitable[list[str]]], timeout: aiohttp.ClientTimeout = NO_LIMIT
) -> Outcome:
    async def ask() -> Outcome:
        return await asked(f"http://a.example{TAIL}", Resolver(answer), timeout)

    return asyncio.run(ask())


def test_a_name_without_an_address_is_a_dns_error() -> None:
    async def no_such_name(host: str) -> list[str]:
        # Asks nobody, and fails as a look-up does.
        return [str(found) for found in socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)]

    assert outcome_resolved(no_such_name) == Outcome(Code.DNS_ERROR, detail="gaierror: EAI_NONAME")


def test_a_name_whose_look_up_never_ends_is_a_timeout() -> None:
    async def never(_: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    assert outcome_resolved(never, aiohttp.ClientTimeout(connect=0.05)) == Outcome(
        Code.TIMEOUT, detail="timeout: connect"
    )


def test_the_guards_refusal_comes_through_the_client() -> None:
    async def private(_: str) -> list[str]:
        return check_addresses(["10.0.0.1"], GuardRules())

    outcome = outcome_resolved(private)

    assert outcome == Outcome(Code.REFUSED, detail="address 10.0.0.1 is private (10.0.0.0/8): private is off")


def test_a_host_that_speaks_no_tls_is_a_tls_error() -> None:
    outcome = outcome_of(speaks_no_tls, scheme="https")

    assert outcome == Outcome(Code.TLS_ERROR, detail="SSLError: WRONG_VERSION_NUMBER")


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-nodes", "-subj", "/CN=a.example", "-days", "1"]
    make = ["req", "-x509", "-newkey", "rsa:2048", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *make], check=True, capture_output=True)  # noqa: S603
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_certificate_nobody_vouches_for_is_a_tls_error(self_signed: ssl.SSLContext) -> None:
    outcome = outcome_of(sends(b""), scheme="https", certificate=self_signed)

    assert outcome == Outcome(Code.TLS_ERROR, detail="SSLCertVerificationError: self-signed certificate")
