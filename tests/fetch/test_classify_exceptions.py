"""What an exception means, and that no outcome of one tells what it should not."""

import asyncio
import errno
import gzip
import http.client
import socket
import ssl
import zlib

import aiohttp
import pytest
from aiohttp import http_exceptions
from hypothesis import given
from hypothesis import strategies as st

from sanderling.fetch.classify import ERRORS, LONGEST_DETAIL, OURS, BadEncoding, RedirectLoop, TooLarge, of_error
from sanderling.fetch.guard import Refused
from sanderling.ids import HostError, host_of
from sanderling.outcome import Code, Outcome

SECRETS = ("s3cr3t", "hunter2", "alice")
TAIL = "/p?key=s3cr3t"


def caused(error: Exception, *causes: BaseException) -> Exception:
    link: BaseException = error
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return error


BROKE_OFF = "the body broke off"


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
        (http_exceptions.ContentEncodingError("x"), Code.BAD_ENCODING, "the body does not unpack"),
        (aiohttp.ClientPayloadError("x"), Code.TRUNCATED, BROKE_OFF),
        (caused(aiohttp.ClientPayloadError("x"), ConnectionResetError(104, "x")), Code.TRUNCATED, BROKE_OFF),
        (caused(aiohttp.ClientPayloadError("x"), TimeoutError()), Code.TIMEOUT, "timeout"),
        (asyncio.IncompleteReadError(b"", 9), Code.TRUNCATED, BROKE_OFF),
        (EOFError("x"), Code.TRUNCATED, BROKE_OFF),
        (http.client.IncompleteRead(b""), Code.TRUNCATED, "IncompleteRead"),
        (http.client.RemoteDisconnected("x"), Code.CONNECTION_RESET, "RemoteDisconnected"),
        (http.client.BadStatusLine("x"), Code.INVALID_RESPONSE, "BadStatusLine"),
        (http.client.InvalidURL("x"), Code.INVALID_URL, "InvalidURL"),
        (aiohttp.InvalidURL("http://alice:hunter2@a/?key=s3cr3t"), Code.INVALID_URL, "what it leads to is no URL"),
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
