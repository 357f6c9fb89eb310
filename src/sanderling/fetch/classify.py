"""What a status, a header or an exception means: one Outcome. Foreign exceptions are translated here and nowhere else.

The words of a foreign exception are never passed on: aiohttp's quote the whole url, with the key in its query, and what
the host sent, which may be our own request read back to us. `detail` is made of names and numbers instead.
"""

import errno
import gzip
import http.client
import re
import socket
import ssl
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import aiohttp
from aiohttp import http_exceptions

from sanderling.fetch.guard import HeldBack, Refused
from sanderling.ids import HostError
from sanderling.limit.feedback import REFUSALS, Feedback
from sanderling.limit.hints import Quota, retry_after
from sanderling.outcome import Code, Outcome
from sanderling.task import first_header

LONGEST_DETAIL = 200


class TooLarge(Exception):  # noqa: N818 - like Refused, it names what was found
    """More came than we take. The message says of what, and where the limit is."""


class BadEncoding(Exception):  # noqa: N818 - the same
    """The body is not in the Content-Encoding it is said to be in, or that is none we read. The message says which."""


class NotHttp(Exception):  # noqa: N818 - the same
    """What came is not HTTP, or not the answer to what was asked. The message says in what."""


class RedirectLoop(Exception):  # noqa: N818 - the same
    """Redirects led on and on, or back to where they had been. The message says how many there were."""


class Relayed(Exception):  # noqa: N818 - the same
    """Somebody else has asked for us, and this is how it ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome.code))
        self.outcome = outcome


# Statuses that mean more than their hundred.
BY_STATUS = {
    304: Code.NOT_MODIFIED,
    401: Code.AUTH_FAILED,
    403: Code.ACCESS_DENIED,
    404: Code.CONTENT_NOT_FOUND,
    # The host lost patience with our request, or would rather not have it so early: the same request may well pass
    # in a moment.
    408: Code.TIMEOUT,
    425: Code.TIMEOUT,
    410: Code.CONTENT_REMOVED,
    429: Code.RATE_LIMITED,
    451: Code.CONTENT_UNAVAILABLE,
}
# The rest, by their hundred. 206 is OK like all of 2xx: whether a part was asked for is known to the sender only. 413,
# 414 and 431 are about the size of our request, so they are no TOO_LARGE: sent again it is refused again.
BY_HUNDRED = {2: Code.OK, 3: Code.HTTP_ERROR, 4: Code.HTTP_ERROR, 5: Code.HOST_UNAVAILABLE}


def of_reply(status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]], *, wall: float) -> Outcome:
    """What a reply means that arrived whole; `wall` is the wall clock, which Retry-After may be measured by."""
    pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    if first_header(pairs, "retry-after") is None:
        return _plain(status)
    # Whatever the status: who asks for quiet gets it. Of two wishes, the longer.
    said = [value for name, value in pairs if name.lower() == "retry-after"]
    waits = [retry_after(value, date=first_header(pairs, "date"), now=wall) for value in said]
    return _outcome(status, max((each for each in waits if each is not None), default=None))


@lru_cache(maxsize=1024)  # as many as there are statuses; nearly every answer means what its status does
def _plain(status: int) -> Outcome:
    return _outcome(status, None)


def _outcome(status: int, wait: float | None) -> Outcome:
    code = BY_STATUS.get(status) or BY_HUNDRED.get(status // 100, Code.INVALID_RESPONSE)
    if status in REFUSALS and wait is not None:
        # A 503 that says when to come back is the host steering us, not failing.
        code = Code.RATE_LIMITED
    known = _known(status)
    return Outcome(code, known, "" if known else f"status {status}"[:LONGEST_DETAIL], wait)


# (exception, code). The first row that fits any of an exception's links counts, so an exception stands before those it
# inherits from, and a cause before the wrapper it may come in.
ERRORS: tuple[tuple[type[Exception], Code], ...] = (
    (Refused, Code.REFUSED),
    (HeldBack, Code.DEFERRED),
    # Our own proxy is not there: that says nothing about the host, and to blame it would open all breakers at once.
    (aiohttp.ClientProxyConnectionError, Code.INTERNAL_ERROR),
    (TooLarge, Code.TOO_LARGE),
    (NotHttp, Code.INVALID_RESPONSE),
    (http_exceptions.LineTooLong, Code.TOO_LARGE),  # of a proxy, or a trailer: `protocol` bounds the head of an answer
    (BadEncoding, Code.BAD_ENCODING),
    (gzip.BadGzipFile, Code.BAD_ENCODING),  # an OSError
    (zlib.error, Code.BAD_ENCODING),
    (http_exceptions.ContentEncodingError, Code.BAD_ENCODING),
    (RedirectLoop, Code.REDIRECT_LOOP),
    (aiohttp.TooManyRedirects, Code.REDIRECT_LOOP),
    (HostError, Code.INVALID_URL),
    (aiohttp.InvalidURL, Code.INVALID_URL),
    (aiohttp.NonHttpUrlClientError, Code.INVALID_URL),
    (http.client.InvalidURL, Code.INVALID_URL),
    (TimeoutError, Code.TIMEOUT),  # an OSError; asyncio's, socket's and aiohttp's timeouts are this one
    (http_exceptions.ContentLengthError, Code.TRUNCATED),
    (http_exceptions.TransferEncodingError, Code.TRUNCATED),
    (http.client.IncompleteRead, Code.TRUNCATED),
    (EOFError, Code.TRUNCATED),  # asyncio's and gzip's word for it
    (aiohttp.ClientPayloadError, Code.TRUNCATED),  # a reset in mid-body too: the cut is what matters then
    (socket.gaierror, Code.DNS_ERROR),
    (socket.herror, Code.DNS_ERROR),
    (aiohttp.ClientConnectorDNSError, Code.DNS_ERROR),
    (ConnectionRefusedError, Code.CONNECTION_REFUSED),
    (ssl.SSLEOFError, Code.CONNECTION_RESET),  # hung up while TLS was spoken, with which nothing was wrong
    (ssl.SSLZeroReturnError, Code.CONNECTION_RESET),
    (ssl.SSLError, Code.TLS_ERROR),  # bad certificates too
    (aiohttp.ClientSSLError, Code.TLS_ERROR),
    (aiohttp.ServerFingerprintMismatch, Code.TLS_ERROR),
    (ConnectionError, Code.CONNECTION_RESET),  # reset, aborted, broken pipe
    (aiohttp.ServerDisconnectedError, Code.CONNECTION_RESET),
    (http_exceptions.HttpProcessingError, Code.INVALID_RESPONSE),
    (http.client.HTTPException, Code.INVALID_RESPONSE),
    (OSError, Code.NETWORK_ERROR),
    (aiohttp.ClientConnectionError, Code.NETWORK_ERROR),
    (aiohttp.ClientHttpProxyError, Code.NETWORK_ERROR),  # the proxy is there, and cannot reach the host
)

# Nothing was sent: the host is not there, or whoever is there is not who should be.
UNREACHED = frozenset({Code.DNS_ERROR, Code.CONNECTION_REFUSED, Code.TLS_ERROR})
UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)

# Errors of the network that are our own doing: no files, memory or ports left on this machine. To blame the host would
# open the breakers of all hosts at once.
OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})


def of_error(error: BaseException) -> Outcome:
    """What an exception means that ended a request.

    A cancellation, or whatever else is no Exception, is no way for a request to end: TypeError.
    """
    if not isinstance(error, Exception):
        raise TypeError(f"{type(error).__name__} is no outcome; expected it to be raised on") from error
    if isinstance(error, Relayed):
        return error.outcome
    links = list(_links(error))
    code, link = _match(links)
    detail = _clean(_timeout(links) if code is Code.TIMEOUT else _words(link))
    unsent = code in UNREACHED or any(isinstance(each, UNCONNECTED) for each in links)
    return Outcome(code, detail=detail, unsent=unsent)


def retry_soon(outcome: Outcome) -> bool:
    """Whether asking again within seconds could go otherwise."""
    # For an event AUTH_FAILED and ACCESS_DENIED are worth retrying, for a fetch 401 and 403 are permanent. Both are
    # right, on their own scale of time: a key is renewed and a ban lifted within hours, never within seconds.
    return outcome.worth_retrying and outcome.code not in (Code.AUTH_FAILED, Code.ACCESS_DENIED)


# By ourselves, before or instead of an answer.
UNANSWERED = frozenset({Code.CANCELLED, Code.DEFERRED})
# Found in the middle of an answer, whose status is often not known any more.
ANSWERED = frozenset({Code.TOO_LARGE, Code.BAD_ENCODING, Code.REDIRECT_LOOP})
# What the limiter reads as: alive, and no word on the rate.
SERVED = 404


def feedback(outcome: Outcome, latency: float, quota: Quota | None = None) -> Feedback:
    """What the limiter may learn from an outcome that took `latency` seconds.

    No status and nobody to blame (REFUSED, INVALID_URL, INTERNAL_ERROR, bytes that are no HTTP) teaches nothing.
    """
    if outcome.code in UNANSWERED:
        return Feedback()
    # A 5xx speaks for itself. A body that was cut came with a 200, and an API may say its errors with a 400: an item
    # that fails so for ever must not be taken for one that was answered in the end.
    error = outcome.code if outcome.blames_host and outcome.status < 500 else None
    return Feedback(_lesson(outcome), latency, error, outcome.retry_after, quota)


def _lesson(outcome: Outcome) -> int:
    """The status, unless the API has said otherwise: some say "slow down" with a 200, and "not found" with a 500."""
    if outcome.code is Code.RATE_LIMITED:
        return outcome.status if outcome.status in REFUSALS else 429
    if outcome.status >= 500 and not outcome.blames_host:
        return SERVED
    return outcome.status or (SERVED if outcome.code in ANSWERED else 0)


def _known(status: int) -> int:
    """The status if it is one; 0 for 999 and the like, which real hosts do send."""
    return status if 100 <= status <= 599 else 0


def _links(error: BaseException) -> Iterator[BaseException]:
    """The exception, its cause, and so on.

    Not its context: an error of ours while a timeout was handled is no timeout.
    """
    link: BaseException | None = error
    seen = set[int]()
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__


def _match(links: list[BaseException]) -> tuple[Code, BaseException]:
    """The code, and the link that gave it, which is the innermost of those that fit."""
    for kind, code in ERRORS:
        for link in reversed(links):
            if isinstance(link, kind):
                return (code, link) if not _is_ours(code, link) else (Code.INTERNAL_ERROR, link)
    return Code.INTERNAL_ERROR, links[0]


def _is_ours(code: Code, link: BaseException) -> bool:
    return code is Code.NETWORK_ERROR and isinstance(link, OSError) and link.errno in OURS


# What a plain TimeoutError may say of itself; other words of it are not passed on.
PHASES = frozenset({"connect", "first byte", "idle", "total"})


def _timeout(links: list[BaseException]) -> str:
    """Which of the times ran out, as far as it can be told."""
    for link in links:
        if isinstance(link, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
            return "timeout: connect"
        if isinstance(link, aiohttp.ServerTimeoutError):
            return "timeout: first byte or idle"
        if isinstance(link, TimeoutError) and str(link) in PHASES:
            return f"timeout: {link}"
    return "timeout"


# What others' exceptions found, where their own words could hold what was asked or what came.
WORDS: tuple[tuple[type[Exception], str], ...] = (
    (http_exceptions.LineTooLong, "a header line is longer than we take"),
    (http_exceptions.ContentLengthError, "the body is shorter than its Content-Length"),
    (http_exceptions.TransferEncodingError, "the connection was closed within a chunk of the body"),
    (http_exceptions.ContentEncodingError, "the body does not unpack"),
    (http_exceptions.BadStatusLine, "what came does not begin as an HTTP answer does"),
    (http_exceptions.HttpProcessingError, "what came is no HTTP"),
    (aiohttp.ServerDisconnectedError, "the connection was closed without an answer"),
    (aiohttp.ClientPayloadError, "the body broke off"),
    (aiohttp.ClientHttpProxyError, "the proxy did not reach the host"),
    (aiohttp.ClientProxyConnectionError, "the proxy cannot be reached"),
    (aiohttp.InvalidURL, "what it leads to is no URL"),
    (EOFError, "the body broke off"),
)
_COUNTS = re.compile(r"received (\d+) of (\d+) bytes")


def _words(link: BaseException) -> str:
    """What an exception found, or its name, and what else of it cannot hold a secret."""
    name = type(link).__name__
    match link:
        case Refused() | TooLarge() | BadEncoding() | NotHttp() | RedirectLoop() | HostError():
            return str(link)  # our own words
        case ssl.SSLCertVerificationError(verify_message=str(reason)) | ssl.SSLError(reason=str(reason)):
            return f"{name}: {reason}"  # OpenSSL's words
        case socket.gaierror():
            return f"{name}: {_RESOLVER.get(link.errno or 0, link.errno)}"
        case OSError() if link.errno is not None:
            return f"{name}: {errno.errorcode.get(link.errno, link.errno)}"
    words = next((words for kind, words in WORDS if isinstance(link, kind)), name)
    counts = _COUNTS.search(str(link)) if isinstance(link, http_exceptions.ContentLengthError) else None
    return words if counts is None else f"{words}: {int(counts[1]):,} of {int(counts[2]):,} bytes came"


def _clean(text: str) -> str:
    """One short line, without user info and query whoever wrote them."""
    line = " ".join(text[:2000].split())  # more would be cut off anyway, and the patterns are slow on long words
    return re.sub(r"\?\S+", "?…", re.sub(r"[^\s/@]*@", "…@", line))[:LONGEST_DETAIL]


_RESOLVER = {getattr(socket, name): name for name in dir(socket) if name.startswith("EAI_")}
