"""The connection's side of HTTP: aiohttp's, but what a server sends beyond its answer does not lose the answer."""

import asyncio
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

_HEAD_ENDS = b"\r\n\r\n"


class AnswerProtocol(ResponseHandler):
    """Hands the head of an answer to the parser before the rest.

    A body longer than its Content-Length is no HTTP, and the parser forgets all that came in the same piece. Browsers
    show the page. With its head read before, the page is whole when the parser stumbles; the connection is closed.
    """

    _in_head = False  # whether the last piece ended within a head

    def data_received(self, data: bytes) -> None:
        """Bytes came. To cut them anywhere is safe: the parser takes them in whatever pieces they come."""
        if self._in_head or data.startswith(b"HTTP/"):
            ends = data.find(_HEAD_ENDS)
            self._in_head = ends < 0
            if ends >= 0:
                super().data_received(data[: ends + len(_HEAD_ENDS)])
                data = data[ends + len(_HEAD_ENDS) :]
                if not data:
                    return
        super().data_received(data)


def read_leniently(connector: aiohttp.TCPConnector) -> None:
    """Have the connections of `connector`, which has made none yet, read so."""
    loop = asyncio.get_running_loop()
    made = partial(AnswerProtocol, loop=loop)
    connector._factory = cast("partial[ResponseHandler]", made)  # noqa: SLF001 - there is no public way; a test sees to it
