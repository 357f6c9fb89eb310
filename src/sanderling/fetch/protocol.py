"""The connection's side of HTTP: aiohttp's, but as forgiving as browsers are with what servers send."""

import asyncio
import re
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import set_exception
from aiohttp.http_exceptions import HttpProcessingError

from sanderling.fetch.classify import NotHttp, TooLarge

MOST_HEAD = 256 * 1024  # bytes of the head of an answer, as Chromium has it; one line may be as long
_HEAD_ENDS = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*([^\r\n]*?)[ \t]*\r?\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:[^\r\n]*\bchunked[ \t]*\r?$")


class AnswerProtocol(ResponseHandler):
    """Hands the head of an answer to the parser whole, and before the rest.

    A body longer than its Content-Length is no HTTP, and the parser forgets all that came in the same piece. Browsers
    show the page. With its head read before, the page is whole when the parser stumbles; the connection is closed.
    """

    _head = b""  # what has come of a head that has not ended

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._head or (data.startswith(b"HTTP/") and (self._payload is None or self._payload.is_eof())):
            data = self._head + data
            found = _HEAD_ENDS.search(data, max(0, len(self._head) - 3))
            ends = found.end() if found else len(data)
            if ends > MOST_HEAD:
                self._head = b""
                self._fail(TooLarge(f"headers of more than {MOST_HEAD:,} bytes"))
                return
            self._head = b"" if found else data
            if not found:
                return
            super().data_received(_framed_once(data[:ends]))
            data = data[ends:]
            if not data:
                return
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """No more will come: of what there is of a head, the parser says what it is."""
        if self._head:
            data, self._head = self._head, b""
            super().data_received(data)
        super().connection_lost(exc)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """What the parser stumbles over within a body ends that too: aiohttp has its reader wait."""
        if isinstance(exc, HttpProcessingError) and self._payload is not None and not self._payload.is_eof():
            set_exception(self._payload, NotHttp("the body is not in the chunks that it is said to be in"))
        super().set_exception(exc, *cause)

    def _fail(self, error: Exception) -> None:
        self.set_exception(error)
        if self.transport is not None:
            self.transport.close()


def _framed_once(head: bytes) -> bytes:
    """A head that says once how long its body is, if what it says agrees (RFC 9112, 6.3).

    The parser refuses a length that is said twice, and one beside chunks, which then count. The connection of such an
    answer is not used again: whoever stands between may have read it otherwise.
    """
    if _is_plain(head.lower()):
        return head
    lengths = _LENGTH.findall(head)
    chunked = _CHUNKED.search(head) is not None
    said = {each.strip() for length in lengths for each in length.split(b",")}
    if not lengths or not (chunked or (len(said) == 1 and lengths != [*said])):
        return head
    once = b"" if chunked else b"Content-Length: " + said.pop() + b"\r\n"
    status, _, rest = _LENGTH.sub(b"", head).partition(b"\n")
    return status + b"\n" + once + b"Connection: close\r\n" + rest


def _is_plain(head: bytes) -> bool:
    """Whether a head, in lower case, says in one way at most how long its body is, and that in a number: most do."""
    _, said, rest = head.partition(b"content-length:")
    once = b"content-length" not in rest and rest.partition(b"\n")[0].strip(b" \t\r").isdigit()
    return not said or (once and b"chunked" not in head)


def read_leniently(connector: aiohttp.TCPConnector) -> None:
    """Have the connections of `connector`, which has made none yet, read so."""
    loop = asyncio.get_running_loop()
    made = partial(AnswerProtocol, loop=loop)
    connector._factory = cast("partial[ResponseHandler]", made)  # noqa: SLF001 - there is no public way; a test sees to it
