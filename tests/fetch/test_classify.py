"""Where it is cheap, the exceptions here are real: a server on plain sockets misbehaves, and aiohttp says how."""

import asyncio
import errno
import gzip
import http.client
import shutil
import socket
import ssl
import struct
import subprocess
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from random import Random

import aiohttp
import pytest
from aiohttp import http_exceptions
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from sanderling.fetch.classify import (
    ANSWERED,
    BY_STATUS,
    ERRORS,
    LONGEST_DETAIL,
    OURS,
    BadEncoding,
    RedirectLoop,
    TooLarge,
    feedback,
    of_error,
    of_reply,
    retry_soon,
)
from sanderling.fetch.guard import GuardRules, Refused, check_addresses
from sanderling.ids import HostError, host_of
from sanderling.limit import Feedback, Limiter, Quota
from sanderling.outcome import Code, Outcome
from sanderling.testing.clock import FakeClock

NOON = 1_700_000_000.0
SECRETS = ("s3cr3t", "hunter2", "alice")
TAIL = "/p?key=s3cr3t"


def reply(status: int, **headers: str) -> Outcome:
    return of_reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, wall=NOON)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, Code.OK),
        (204, Code.OK),
        (206, Code.OK),
        (299, Code.OK),
        (304, Code.NOT_MODIFIED),
        (300, Code.HTTP_ERROR),
        (302, Code.HTTP_ERROR),
        (400, Code.HTTP_ERROR),
        (401, Code.AUTH_FAILED),
        (403, Code.ACCESS_DENIED),
        (404, Code.CONTENT_NOT_FOUND),
        (405, Code.HTTP_ERROR),
        (408, Code.TIMEOUT),
        (410, Code.CONTENT_REMOVED),
        (413, Code.HTTP_ERROR),
        (414, Code.HTTP_ERROR),
        (425, Code.TIMEOUT),
        (429, Code.RATE_LIMITED),
        (431, Code.HTTP_ERROR),
        (451, Code.CONTENT_UNAVAILABLE),
        (500, Code.HOST_UNAVAILABLE),
        (502, Code.HOST_UNAVAILABLE),
        (503, Code.HOST_UNAVAILABLE),
        (504, Code.HOST_UNAVAILABLE),
        (529, Code.HOST_UNAVAILABLE),
        (599, Code.HOST_UNAVAILABLE),
        (101, Code.INVALID_RESPONSE),
    ],
)
def test_a_status_has_a_meaning(status: int, code: Code) -> None:
    assert reply(status) == Outcome(code, status)


@pytest.mark.parametrize("status", [0, 99, 600, 999, 1000, -1])
def test_a_status_that_is_none_is_told_in_words(status: int) -> None:
    assert reply(status) == Outcome(Code.INVALID_RESPONSE, 0, f"status {status}")


def test_the_seeds_transient_statuses_are_retried_soon_and_its_permanent_ones_not() -> None:
    assert [status for status in (408, 425, 429, 500, 502, 503, 504) if not retry_soon(reply(status))] == []
    assert [status for status in (400, 401, 403, 404, 410, 413, 451) if retry_soon(reply(status))] == []


def test_what_was_denied_may_be_asked_for_again_but_not_within_seconds() -> None:
    denied = reply(401), reply(403), Outcome(Code.ACCESS_DENIED, 200)

    assert all(outcome.worth_retrying and not outcome.final for outcome in denied)
    assert not any(retry_soon(outcome) for outcome in denied)


@given(st.sampled_from(Code))
def test_all_else_is_retried_soon_if_it_is_worth_retrying(code: Code) -> None:
    denied = code in (Code.AUTH_FAILED, Code.ACCESS_DENIED)

    assert retry_soon(Outcome(code)) == (Outcome(code).worth_retrying and not denied)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_refusal_with_a_time_is_the_host_steering_us(status: int) -> None:
    assert reply(status, Retry_After="30") == Outcome(Code.RATE_LIMITED, status, retry_after=30.0)
    assert reply(status, Retry_After="0") == Outcome(Code.RATE_LIMITED, status, retry_after=0.0)


def test_a_retry_after_that_cannot_be_read_is_none() -> None:
    assert reply(503, Retry_After="soon") == Outcome(Code.HOST_UNAVAILABLE, 503)


@pytest.mark.parametrize("status", [200, 301, 403, 404, 500])
def test_a_retry_after_is_kept_whatever_the_status(status: int) -> None:
    assert reply(status, Retry_After="7") == Outcome(reply(status).code, status, retry_after=7.0)


def test_a_retry_after_is_measured_by_the_clock_of_the_host() -> None:
    behind = NOON - 3600

    found = reply(429, date=formatdate(behind, usegmt=True), retry_after=formatdate(behind + 20, usegmt=True))

    assert found.retry_after == 20.0


HEADERS = [("X", "1"), ("retry-after", "5"), ("RETRY-AFTER", "9")]


@pytest.mark.parametrize("headers", [HEADERS, tuple(HEADERS), iter(HEADERS), CIMultiDictProxy(CIMultiDict(HEADERS))])
def test_headers_come_in_any_shape_and_the_first_of_a_name_counts(headers: list[tuple[str, str]]) -> None:
    assert of_reply(429, headers, wall=NOON).retry_after == 5.0


@given(st.integers(), st.lists(st.tuples(st.sampled_from(["Retry-After", "date", "X"]), st.text())))
@example(10**300, [])
def test_any_reply_has_an_outcome(status: int, headers: list[tuple[str, str]]) -> None:
    outcome = of_reply(status, headers, wall=NOON)

    assert outcome.ok == (200 <= status <= 299 or status == 304)
    assert len(outcome.detail) <= LONGEST_DETAIL


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
MOVED = b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: "


@pytest.mark.parametrize(
    ("serve", "code", "detail"),
    [
        pytest.param(sends(b""), Code.CONNECTION_RESET, "ServerDisconnectedError", id="hangs up"),
        pytest.param(sends(b"", reset=True), Code.CONNECTION_RESET, "ConnectionResetError: ECONNRESET", id="resets"),
        pytest.param(sends(HEAD), Code.CONNECTION_RESET, "ServerDisconnectedError", id="half a head"),
        pytest.param(sends(HEAD + b"\r\nabc"), Code.TRUNCATED, "ContentLengthError", id="half a body"),
        pytest.param(sends(HEAD + b"\r\nabc", reset=True), Code.TRUNCATED, "ContentLengthError", id="half, then reset"),
        pytest.param(sends(CHUNKED + b"\r\n5\r\nab"), Code.TRUNCATED, "TransferEncodingError", id="half a chunk"),
        pytest.param(sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), Code.INVALID_RESPONSE, "BadStatusLine", id="not HTTP"),
        pytest.param(sends(b"HTTP/1.1 99 X\r\n\r\n"), Code.INVALID_RESPONSE, "BadStatusLine", id="no status"),
        pytest.param(sends(CHUNKED + b"\r\nzz\r\nab"), Code.INVALID_RESPONSE, "BadHttpMessage", id="not chunks"),
        pytest.param(
            sends(HEAD + b"A: " + b"x" * 20_000 + b"\r\n\r\n"), Code.TOO_LARGE, "LineTooLong", id="long header"
        ),
        pytest.param(
            sends(HEAD + b"Content-Encoding: gzip\r\n\r\n" + b"?" * 100),
            Code.BAD_ENCODING,
            "ContentEncodingError",
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
            "InvalidUrlRedirectClientError",
            id="leads nowhere",
        ),
    ],
)
def test_what_a_host_does_wrong_has_a_name(serve: Serve, code: Code, detail: str) -> None:
    assert outcome_of(serve) == Outcome(code, detail=detail)


def test_a_host_that_reads_our_request_back_to_us_does_not_put_it_into_the_detail() -> None:
    outcome = outcome_of(sends(b"GET /p?key=s3cr3t HTTP/1.1\r\n\r\n"))

    assert outcome == Outcome(Code.INVALID_RESPONSE, detail="BadStatusLine")


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


def caused(error: Exception, *causes: BaseException) -> Exception:
    link: BaseException = error
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (TooLarge("more than 10 bytes"), Code.TOO_LARGE, "more than 10 bytes"),
        (BadEncoding("no gzip"), Code.BAD_ENCODING, "no gzip"),
        (RedirectLoop("11 redirects"), Code.REDIRECT_LOOP, "11 redirects"),
        (Refused("port 25"), Code.REFUSED, "port 25"),
        (HostError("host 'a b'"), Code.INVALID_URL, "host 'a b'"),
        (caused(OSError("resolving"), Refused("port 25")), Code.REFUSED, "port 25"),
        (zlib.error("x"), Code.BAD_ENCODING, "error"),
        (gzip.BadGzipFile("x"), Code.BAD_ENCODING, "BadGzipFile"),
        (http_exceptions.ContentEncodingError("x"), Code.BAD_ENCODING, "ContentEncodingError"),
        (aiohttp.ClientPayloadError("x"), Code.TRUNCATED, "ClientPayloadError"),
        (caused(aiohttp.ClientPayloadError("x"), ConnectionResetError(104, "x")), Code.TRUNCATED, "ClientPayloadError"),
        (caused(aiohttp.ClientPayloadError("x"), TimeoutError()), Code.TIMEOUT, "timeout"),
        (asyncio.IncompleteReadError(b"", 9), Code.TRUNCATED, "IncompleteReadError"),
        (EOFError("x"), Code.TRUNCATED, "EOFError"),
        (http.client.IncompleteRead(b""), Code.TRUNCATED, "IncompleteRead"),
        (http.client.RemoteDisconnected("x"), Code.CONNECTION_RESET, "RemoteDisconnected"),
        (http.client.BadStatusLine("x"), Code.INVALID_RESPONSE, "BadStatusLine"),
        (http.client.InvalidURL("x"), Code.INVALID_URL, "InvalidURL"),
        (aiohttp.InvalidURL("http://alice:hunter2@a/?key=s3cr3t"), Code.INVALID_URL, "InvalidURL"),
        (TimeoutError(errno.ETIMEDOUT, "x"), Code.TIMEOUT, "timeout"),
        (TimeoutError("on http://a/?key=s3cr3t"), Code.TIMEOUT, "timeout"),
        (aiohttp.ConnectionTimeoutError("to http://a/?key=s3cr3t"), Code.TIMEOUT, "timeout: connect"),
        (BrokenPipeError(errno.EPIPE, "x"), Code.CONNECTION_RESET, "BrokenPipeError: EPIPE"),
        (ConnectionAbortedError("x"), Code.CONNECTION_RESET, "ConnectionAbortedError"),
        (aiohttp.ClientConnectionResetError("x"), Code.CONNECTION_RESET, "ClientConnectionResetError"),
        (ssl.SSLEOFError("x"), Code.CONNECTION_RESET, "SSLEOFError"),
        (ssl.SSLCertVerificationError("x"), Code.TLS_ERROR, "SSLCertVerificationError"),
        (aiohttp.ServerFingerprintMismatch(b"a", b"b", "h", 443), Code.TLS_ERROR, "ServerFingerprintMismatch"),
        (socket.herror(1, "x"), Code.DNS_ERROR, "herror: EPERM"),
        (socket.gaierror(99999, "x"), Code.DNS_ERROR, "gaierror: 99999"),
        (OSError(errno.EHOSTUNREACH, "x"), Code.NETWORK_ERROR, "OSError: EHOSTUNREACH"),
        (OSError("x"), Code.NETWORK_ERROR, "OSError"),
        (aiohttp.ClientConnectionError("x"), Code.NETWORK_ERROR, "ClientConnectionError"),
        (KeyError("s3cr3t"), Code.INTERNAL_ERROR, "KeyError"),
        (ExceptionGroup("s3cr3t", [TimeoutError()]), Code.INTERNAL_ERROR, "ExceptionGroup"),
        (caused(RuntimeError("s3cr3t"), ValueError()), Code.INTERNAL_ERROR, "RuntimeError"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_exception_has_a_meaning(error: Exception, code: Code, detail: str) -> None:
    assert of_error(error) == Outcome(code, detail=detail)


@pytest.mark.parametrize("number", sorted(OURS))
def test_what_this_machine_has_run_out_of_is_not_the_hosts_fault(number: int) -> None:
    cause = OSError(number, "x")
    error = caused(aiohttp.ClientOSError(number, "x"), cause)

    assert of_error(error) == Outcome(Code.INTERNAL_ERROR, detail=f"OSError: {errno.errorcode[number]}")


KEY = aiohttp.client_reqrep.ConnectionKey("proxy", 3128, False, False, None, None, None)  # noqa: FBT003


def test_a_proxy_that_is_not_there_is_not_the_hosts_fault() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "x")

    outcome = of_error(caused(aiohttp.ClientProxyConnectionError(KEY, refused), refused))

    assert outcome.code is Code.INTERNAL_ERROR
    assert not outcome.blames_host


def test_an_error_of_ours_while_a_timeout_was_handled_is_no_timeout() -> None:
    error = AttributeError("x")
    error.__context__ = TimeoutError()

    assert of_error(error).code is Code.INTERNAL_ERROR


@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_cancellation_is_never_an_outcome(kind: type[BaseException]) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} is no outcome"):
        of_error(kind())


def test_no_row_of_the_table_is_hidden_by_an_earlier_one() -> None:
    kinds = [kind for kind, _ in ERRORS]

    hidden = [
        (kind, earlier) for place, kind in enumerate(kinds) for earlier in kinds[:place] if issubclass(kind, earlier)
    ]

    assert hidden == []


@pytest.mark.parametrize(("kind", "code"), ERRORS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_row_of_the_table_is_reached(kind: type[Exception], code: Code) -> None:
    """By an exception of that very class, made without its constructor, and inside another that says nothing."""
    bare = kind.__new__(kind)

    assert of_error(bare).code is code
    assert of_error(caused(aiohttp.ClientError(), bare)).code is code


DISTINCT = {
    Code.DNS_ERROR: socket.gaierror(),
    Code.TLS_ERROR: ssl.SSLError(),
    Code.CONNECTION_REFUSED: ConnectionRefusedError(),
    Code.TIMEOUT: TimeoutError(),
    Code.CONNECTION_RESET: ConnectionResetError(),
    Code.TRUNCATED: aiohttp.ClientPayloadError(),
    Code.TOO_LARGE: TooLarge(),
    Code.BAD_ENCODING: BadEncoding(),
}


def test_what_operators_tell_apart_has_codes_of_its_own() -> None:
    assert {of_error(error).code: error for error in DISTINCT.values()} == DISTINCT


errors = st.builds(
    lambda kind, text: kind.__new__(kind, text),
    st.sampled_from([*(kind for kind, _ in ERRORS), ValueError, aiohttp.ClientError]),
    st.text() | st.just(f"http://alice:hunter2@a.example{TAIL}"),
)


@given(st.lists(errors, min_size=1, max_size=5), st.booleans())
def test_any_exception_has_an_outcome_that_tells_nothing_it_should_not(
    links: list[Exception],
    ring: bool,  # noqa: FBT001
) -> None:
    if ring:
        links.append(links[0])

    outcome = of_error(caused(*links))

    assert not outcome.ok
    assert outcome.status == 0
    assert len(outcome.detail) <= LONGEST_DETAIL
    assert len(outcome.detail.splitlines()) <= 1
    assert not any(secret in outcome.detail for secret in SECRETS)


@pytest.mark.parametrize("kind", [Refused, TooLarge, BadEncoding, RedirectLoop, HostError])
def test_even_our_own_words_are_cleaned(kind: type[Exception]) -> None:
    error = kind(f"not\nthis: http://alice:hunter2@a.example{TAIL} {'x' * 500}")

    detail = of_error(error).detail

    assert detail.startswith("not this: http://…@a.example/p?… xxx")
    assert len(detail) == LONGEST_DETAIL


def test_a_host_error_keeps_its_reason() -> None:
    with pytest.raises(HostError) as caught:
        host_of("http://2130706433/")

    assert of_error(caught.value).detail == str(caught.value)


@pytest.mark.parametrize("status", [0, 200, 500])
@pytest.mark.parametrize("code", list(Code))
def test_the_breaker_opens_for_what_blames_the_host_and_for_nothing_else(code: Code, status: int) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, rng=Random(1))

    while limiter.snapshot().requests < 9 and (permit := limiter.try_acquire("a.example")):
        limiter.feedback(permit, feedback(Outcome(code, status), 0.1))
        clock.advance(5.0)

    assert limiter.snapshot().open == code.blames_host


@pytest.mark.parametrize(("status", "code"), [(200, Code.OK), *BY_STATUS.items(), (500, Code.HOST_UNAVAILABLE)])
def test_a_status_is_passed_on(status: int, code: Code) -> None:
    assert feedback(Outcome(code, status), 0.5) == Feedback(status=status, latency=0.5)


def test_hints_are_passed_on() -> None:
    quota = Quota(10, 60)

    told = feedback(Outcome(Code.RATE_LIMITED, 503, retry_after=9.0), 0.5, quota)

    assert told == Feedback(status=503, latency=0.5, retry_after=9.0, quota=quota)


@pytest.mark.parametrize("code", [code for code in Code if code.blames_host])
def test_no_answer_is_a_failure(code: Code) -> None:
    assert feedback(Outcome(code), 0.5) == Feedback(latency=0.5, error=code)


def test_a_cut_body_is_a_failure_although_its_status_was_fine() -> None:
    assert feedback(Outcome(Code.TRUNCATED, 200), 0.5) == Feedback(status=200, latency=0.5, error=Code.TRUNCATED)


def test_a_refusal_that_is_a_refusal_only_in_the_body_is_one_for_the_limiter() -> None:
    assert feedback(Outcome(Code.RATE_LIMITED, 200), 0.5).status == 429
    assert feedback(Outcome(Code.RATE_LIMITED), 0.5).status == 429


def test_a_500_that_means_not_found_does_not_count_against_the_host() -> None:
    assert feedback(Outcome(Code.CONTENT_NOT_FOUND, 500), 0.5) == Feedback(status=404, latency=0.5)


@pytest.mark.parametrize("code", sorted(ANSWERED))
def test_what_was_found_in_the_middle_of_an_answer_was_served(code: Code) -> None:
    assert feedback(Outcome(code), 0.5) == Feedback(status=404, latency=0.5)
    assert feedback(Outcome(code, 200), 0.5) == Feedback(status=200, latency=0.5)


@pytest.mark.parametrize("code", [Code.CANCELLED, Code.DEFERRED])
def test_what_was_not_answered_by_our_own_doing_teaches_nothing(code: Code) -> None:
    assert feedback(Outcome(code, retry_after=60.0), 0.5) == Feedback()


@pytest.mark.parametrize(
    "code", [Code.REFUSED, Code.INVALID_URL, Code.INVALID_RESPONSE, Code.INTERNAL_ERROR, Code.UNKNOWN_ERROR]
)
def test_without_a_status_and_with_nobody_to_blame_nothing_is_learned(code: Code) -> None:
    told = feedback(Outcome(code), 0.5)

    assert not told.status
    assert told.error is None


def test_a_redirect_to_where_we_do_not_go_was_an_answer() -> None:
    assert feedback(Outcome(Code.REFUSED, 302), 0.5) == Feedback(status=302, latency=0.5)
