"""JobReply: what the functions of a job are given of an answer."""

import re
from collections.abc import Mapping
from typing import Any

from sanderling.apis.conditions import JsonReply
from sanderling.apis.json_bodies import charset_of
from sanderling.jobs.request import Request, resolve
from sanderling.task import Headers, Reply

SHOWN = 60  # bytes of a body that an error quotes

_BYTE = re.compile(r"\(byte (\d+)\)")


class JobReply:
    """An answer; beside it the request with its `data`, and the arguments of the job as `args`.

    `depth` is how many links from where the job started it was found.
    """

    __slots__ = ("args", "depth", "parsed", "raw", "request")

    def __init__(self, raw: Reply, request: Request, args: Mapping[str, Any]) -> None:
        self.raw = raw
        self.request = request
        self.args = args
        self.depth = 0
        self.parsed = JsonReply(raw)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.raw.status

    @property
    def headers(self) -> Headers:
        """Names and values, as they came."""
        return self.raw.headers

    @property
    def body(self) -> bytes:
        """The bytes."""
        return self.raw.body

    @property
    def url(self) -> str:
        """The address that answered, after redirects."""
        return self.raw.url

    @property
    def data(self) -> Any:  # noqa: ANN401 - whatever JSON the job has stored
        """What the request has carried along."""
        return self.request.data

    def header(self, name: str) -> str | None:
        """The first value under that name, in whatever case; None if there is none."""
        return self.raw.header(name)

    def json(self) -> Any:  # noqa: ANN401 - whatever JSON the host has sent
        """The body as JSON, decoded once. Raises ValueError, with the place and the bytes there, if it is none."""
        if not self.parsed.is_json:
            raise ValueError(f"the body {self.parsed.error}; it has {self._show(self.parsed.error)}")
        return self.parsed.document

    def text(self) -> str:
        """The body as text, in the charset that it is said to have, or in UTF-8."""
        try:
            return self.body.decode(charset_of(self.raw), errors="replace")
        except LookupError:
            return self.body.decode(errors="replace")

    def follow(self, url: str, **arguments: Any) -> Request:  # noqa: ANN401 - the arguments of a request
        """A request for an address that this reply names, resolved against its own."""
        return Request(resolve(url, self.url), **arguments)

    def _show(self, error: str) -> str:
        """The bytes around the place that an error names."""
        found = _BYTE.search(error)
        start = max(0, int(found[1]) - SHOWN // 3) if found else 0
        part = self.body[start : start + SHOWN]
        return f"{part!r} at byte {start}" if part else "no bytes"

    def __repr__(self) -> str:
        return f"<JobReply {self.raw!r}>"
