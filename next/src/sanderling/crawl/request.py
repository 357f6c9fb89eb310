"""Request: one piece of a job's work, as data; what is stored of it, and by what it is known."""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from sanderling.crawl.meaning import Headers
from sanderling.crawl.paging import Chain, Paging
from sanderling.crawl.urls import encoded, with_params
from sanderling.crawl.values import encode_value
from sanderling.ids import url_key

MOST_PRIORITY = 1000
FORM = "application/x-www-form-urlencoded"

_METHOD = re.compile(r"[A-Z]{1,20}")


class Request:
    """What to request, which function reads the response, and what that function needs to know."""

    __slots__ = ("body", "data", "headers", "key", "method", "paging", "priority", "read", "url")

    def __init__(
        self,
        url: str,
        *,
        read: str | None = None,
        method: str | None = None,
        params: Mapping[str, object] | None = None,
        json: object = None,
        form: Mapping[str, object] | None = None,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        data: Any = None,  # noqa: ANN401 - any JSON
        key: str | None = None,
        priority: int = 0,
        paging: Paging | None = None,
    ) -> None:
        if not isinstance(url, str):
            raise TypeError(f"the URL of a Request is {url!r:.60}; expected a text")
        if sum(each is not None for each in (json, form, body)) > 1:
            raise ValueError("a Request has several of json, form and body; expected one at most")
        self.url = with_params(url, params) if params else url
        self.read = read
        self.headers = _texts(headers.items() if isinstance(headers, Mapping) else headers)
        self.body = body.encode() if isinstance(body, str) else body
        if json is not None:
            self.body = encode_value(json)
            self.headers = _with_type(self.headers, "application/json")
        elif form is not None:
            self.body = encoded(form).encode()
            self.headers = _with_type(self.headers, FORM)
        self.method = method or ("POST" if form is not None or json is not None else "GET")
        self.data = data
        self.key = key
        self.priority = priority
        self.paging = paging
        if not _METHOD.fullmatch(self.method):
            raise ValueError(f"method is {self.method!r:.40}; expected one in capitals, like POST")
        if type(priority) is not int or abs(priority) > MOST_PRIORITY:
            raise ValueError(f"priority is {priority!r:.40}; expected -{MOST_PRIORITY} to {MOST_PRIORITY}")
        if key is not None and not isinstance(key, str):
            raise TypeError(f"key is {key!r:.60}; expected a text")

    def with_headers(self, **headers: str) -> "Request":
        """The request with more headers; `X_Signature` stands for X-Signature."""
        added = {name.replace("_", "-"): value for name, value in headers.items()}
        names = {name.lower() for name in added}
        kept = [(name, value) for name, value in self.headers if name.lower() not in names]
        return self._copy(headers=(*kept, *added.items()))

    def with_params(self, **params: object) -> "Request":
        """The request with more parameters in its query."""
        return self._copy(url=with_params(self.url, params))

    def _copy(self, *, url: str | None = None, headers: Iterable[tuple[str, str]] | None = None) -> "Request":
        return Request(
            url or self.url,
            read=self.read,
            method=self.method,
            body=self.body,
            headers=self.headers if headers is None else headers,
            data=self.data,
            key=self.key,
            priority=self.priority,
            paging=self.paging,
        )

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url[:100]}>"


class Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the ledger keeps of a request beside its URL, depth, function and priority."""

    method: str = "GET"
    headers: Headers = ()
    body: bytes | None = None
    data: Any = None
    paging: Paging | bool = False  # True: that of the job
    chain: Chain = Chain()
    only: tuple[int, ...] = ()  # the records that are wanted, by their number on the page
    keyed: bool = False  # the job has said by what it is known
    moves: int = 0  # redirects that led here
    flaw: str = ""  # why those records were not kept the last time
    by: bytes = b""  # the mark of the page that led here, by which repeats are known
    level: int = 1  # of a sitemap: how many are one inside the other

    @classmethod
    def unpack(cls, data: bytes) -> "Stored":
        """What `pack` made."""
        return _decoder.decode(data) if data else _PLAIN

    def pack(self) -> bytes:
        """As bytes; none for a plain GET."""
        return b"" if self == _PLAIN else msgspec.msgpack.encode(self)


_PLAIN = Stored()
_decoder = msgspec.msgpack.Decoder(Stored)


def request_key(url: str, method: str = "GET", body: bytes | None = None, own: str | None = None) -> bytes:
    """By what a request for a normal URL is known: method, URL with its query sorted, and body; or a key of its own."""
    if own is not None:
        return url_key(f"{'/'.join(url.split('/', 3)[:3])}/\nkey {own}")
    page, mark, query = url.partition("?")
    if "&" in query:
        url = f"{page}{mark}{'&'.join(sorted(query.split('&')))}"
    if method != "GET" or body:
        url = f"{url}\n{method} {blake2b(body or b'', digest_size=16).hexdigest()}"
    return url_key(url)


def keys_of(url: str) -> list[bytes]:
    """By what a plain GET may be known: pages keep the order of a query, jobs sort it."""
    return list(dict.fromkeys((url_key(url), request_key(url))))


def _texts(headers: Iterable[tuple[str, str]]) -> Headers:
    pairs = tuple((name, value) for name, value in headers)
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"header {name} is {value!r:.60}; expected a text")
    return pairs


def _with_type(headers: Headers, kind: str) -> Headers:
    known = any(name.lower() == "content-type" for name, _ in headers)
    return headers if known else (*headers, ("Content-Type", kind))
