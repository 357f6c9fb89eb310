"""What a status, a header or an exception means: one Outcome. Foreign exceptions are translated here, nowhere else.

The words of a foreign exception are never passed on: aiohttp's quote the whole URL, with the key in its query, and what
the host sent, which may be our own request read back to us. `detail` is made of names and numbers.
"""

import errno
import socket
import ssl
from collections.abc import Iterable

import aiohttp

from sanderling.fetch.decode import BadEncoding, TooLarge, TooShort
from sanderling.fetch.guard import Refused
from sanderling.ids import UrlError
from sanderling.limit.retry_after import retry_after
from sanderling.outcome import Code, Outcome
from sanderling.redact import SecretError

# Statuses that mean more than their hundred. 413, 414 and 431 are about the size of our request: sent again, it is
# refused again.
_BY_STATUS = {
    304: Code.NOT_MODIFIED,
    401: Code.AUTH_FAILED,
    403: Code.ACCESS_DENIED,
    404: Code.CONTENT_NOT_FOUND,
    408: Code.TIMEOUT,  # the host lost patience with our request: the same may well pass in a moment
    410: Code.CONTENT_REMOVED,
    425: Code.TIMEOUT,
    429: Code.RATE_LIMITED,
    451: Code.CONTENT_UNAVAILABLE,
}
_BY_HUNDRED = {2: Code.OK, 3: Code.HTTP_ERROR, 4: Code.HTTP_ERROR, 5: Code.HOST_UNAVAILABLE}
# With a Retry-After, these are a host that steers us, and not one that fails.
_STEERING = frozenset({429, 503, 529})
REDIRECTS = frozenset({301, 302, 303, 307, 308})


def of_response(status: int, headers: Iterable[tuple[str, str]], wall: float) -> Outcome:
    """What a response means that arrived whole; `wall` is the wall clock, which Retry-After may be measured by."""
    waits, date, location = [], None, False
    for name, value in headers:
        if len(name) in (4, 8, 11):  # every header of every response comes by here
            lower = name.lower()
            if lower == "retry-after":
                waits.append(value)
            elif lower == "date":
                date = value
            elif lower == "location":
                location = bool(value.strip())
    wait = None
    if waits:  # whatever the status: who asks for quiet gets it. Of two wishes the longer counts
        read = [retry_after(each, date, wall) for each in waits]
        wait = max((each for each in read if each is not None), default=None)
    code = _BY_STATUS.get(status) or _BY_HUNDRED.get(status // 100, Code.HTTP_ERROR)
    if status in _STEERING and wait is not None:
        code = Code.RATE_LIMITED
    elif status in REDIRECTS and location:
        code = Code.OK
    return Outcome(code, status, retry_after=wait)


# What ended a request, the first row that fits; so an exception stands before those it inherits from. With a code: a
# sentence, or "" for the exception's own words, which are ours.
_ERRORS: tuple[tuple[type[BaseException], Code, str], ...] = (
    (Refused, Code.REFUSED, ""),
    (TooLarge, Code.TOO_LARGE, ""),
    (BadEncoding, Code.BAD_ENCODING, ""),
    (TooShort, Code.TRUNCATED, ""),
    (UrlError, Code.INVALID_URL, ""),
    (SecretError, Code.INTERNAL_ERROR, ""),
    # Our own proxy is away: that says nothing about the host, and to blame it would open all circuits at once.
    (aiohttp.ClientProxyConnectionError, Code.INTERNAL_ERROR, "the proxy cannot be reached; look at its address"),
    (aiohttp.ClientHttpProxyError, Code.INTERNAL_ERROR, "the proxy refused to connect to the host"),
    (aiohttp.ConnectionTimeoutError, Code.TIMEOUT, "no connection in time"),
    (aiohttp.InvalidURL, Code.INVALID_URL, "the URL cannot be requested"),
    (TimeoutError, Code.TIMEOUT, "the host was silent for too long, or the whole took too long"),
    (socket.gaierror, Code.DNS_ERROR, "the host's name does not resolve"),
    (ConnectionRefusedError, Code.CONNECTION_REFUSED, "the host refused the connection"),
    (ssl.SSLCertVerificationError, Code.TLS_ERROR, "the certificate is not valid"),
    (ssl.SSLEOFError, Code.CONNECTION_RESET, "the connection was closed while TLS was spoken"),
    (ssl.SSLZeroReturnError, Code.CONNECTION_RESET, "the connection was closed while TLS was spoken"),
    (ssl.SSLError, Code.TLS_ERROR, "TLS failed"),
    (aiohttp.ClientSSLError, Code.TLS_ERROR, "TLS failed"),
    (aiohttp.ClientPayloadError, Code.TRUNCATED, "the body broke off, or is not framed as it is said to be"),
    (aiohttp.ServerDisconnectedError, Code.CONNECTION_RESET, "the connection was closed without a response"),
    (ConnectionError, Code.CONNECTION_RESET, "the connection was reset"),
    (aiohttp.ClientResponseError, Code.INVALID_RESPONSE, "what came is no HTTP response, or one with a head too long"),
    (aiohttp.ClientConnectorDNSError, Code.DNS_ERROR, "the host's name does not resolve"),
    (OSError, Code.NETWORK_ERROR, "the network failed"),
    (aiohttp.ClientConnectionError, Code.NETWORK_ERROR, "the connection failed"),
    (aiohttp.ClientError, Code.NETWORK_ERROR, "the request failed"),
    (ValueError, Code.INVALID_RESPONSE, "what came cannot be read"),
)
# What a host, or the way to it, can make the client raise. Anything else is a mistake of ours, and loud.
EXPECTED = tuple(kind for kind, _, _ in _ERRORS)
# Nothing was sent: the host is not there, or whoever is there is not who should be.
_UNSENT = frozenset({Code.REFUSED, Code.DNS_ERROR, Code.CONNECTION_REFUSED, Code.TLS_ERROR, Code.INVALID_URL})
_UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError, SecretError)
# Errors of the network that are our own doing: no files, memory or ports left on this machine. To blame the host would
# open the circuits of all hosts at once.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})


def of_error(error: BaseException, status: int = 0) -> Outcome:
    """What an exception of EXPECTED means that ended a request; `status` is that of its response, if one began."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links:
        links.append(link)
        link = link.__cause__
    # The innermost that fits the first row: a certificate within a connection error within aiohttp's own.
    code, words, found = next(
        (code, words, each) for kind, code, words in _ERRORS for each in reversed(links) if isinstance(each, kind)
    )
    if isinstance(found, OSError) and found.errno in _OURS:
        code, words = Code.INTERNAL_ERROR, "this machine has no files, memory or ports left"
    match found:
        case ssl.SSLCertVerificationError():
            more = found.verify_message  # OpenSSL's words
        case ssl.SSLError():
            more = found.reason
        case aiohttp.ClientHttpProxyError():
            more = f"status {found.status}"
        case OSError():
            more = errno.errorcode.get(found.errno or 0, "")
        case _:
            more = ""
    detail = (words or str(found)) + (f" ({more})" if more else "")
    unsent = code in _UNSENT or any(isinstance(each, _UNCONNECTED) for each in links)
    return Outcome(code, status, detail[:300], sent=not unsent)
