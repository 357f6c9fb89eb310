"""Request: one piece of work of a job, as data. What is stored of it, and by what it is known."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from typing import Any, Self
from urllib.parse import quote, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from sanderling.apis.paging import Paging
from sanderling.apis.paging_chain import Chain
from sanderling.jobs import json_values
from sanderling.redact import redact_url
from sanderling.stores.frontier_file import KEY
from sanderling.task import Headers

MOST_PRIORITY = 1000
LONGEST_URL = 20_000  # characters; servers refuse longer ones, and each is kept

_METHOD = re.compile(r"[A-Z]{1,20}")
# What may stand for itself in a path or a query; a percent sign that begins no escape is escaped as well.
_PLAIN = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9A-Fa-f]{2})*")
_LOOSE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_SAFE = "%!$&'()*+,;=:@/?[]~"


@dataclass(slots=True, repr=False)
class Request:
    """What to ask, which function reads the reply, and what that function needs to know. Nothing here is a function."""

    url: str
    _: KW_ONLY
    read: str | None = None
    method: str = "GET"
    params: InitVar[Mapping[str, object] | None] = None
    json: InitVar[object] = None
    form: InitVar[Mapping[str, object] | None] = None
    body: bytes | str | None = None
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    data: Any = None
    key: str | None = None
    priority: int = 0
    paging: Paging | None = None

    def __post_init__(
        self, params: Mapping[str, object] | None, json: object, form: Mapping[str, object] | None
    ) -> None:
        self._check()
        if self.headers:
            self.headers = _texts(self.headers.items() if isinstance(self.headers, Mapping) else self.headers)
        if params:
            self.url = _with_params(self.url, params)
        if sum(each is not None for each in (json, form, self.body)) > 1:
            raise ValueError("of json, form and body more than one is given, expected one of them")
        if form is not None:
            self.method = "POST" if self.method == "GET" else self.method
            self._send(_pairs(form).encode(), "application/x-www-form-urlencoded")
        elif json is not None:
            self._send(json_values.encode(json), "application/json")
        elif isinstance(self.body, str):
            self.body = self.body.encode()

    def _check(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"url is {self.url!r}, expected a text")
        if self.method != "GET" and not _METHOD.fullmatch(self.method):
            raise ValueError(f"method is {self.method!r}, expected a word like GET or POST")
        if not isinstance(self.priority, int) or abs(self.priority) > MOST_PRIORITY:
            most = MOST_PRIORITY
            raise ValueError(f"priority is {self.priority!r}, expected a whole number from -{most} to {most}")

    def _send(self, body: bytes, kind: str) -> None:
        self.body = body
        if not any(name.lower() == "content-type" for name, _ in self.pairs):
            self.headers = (*self.pairs, ("Content-Type", kind))

    @property
    def pairs(self) -> Headers:
        """The headers as pairs."""
        return tuple(self.headers)  # type: ignore[arg-type] # a mapping was made pairs of

    @property
    def content(self) -> bytes | None:
        """The body as bytes."""
        return self.body.encode() if isinstance(self.body, str) else self.body

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - the arguments of a request
        """The same request with some arguments changed."""
        if changes.keys() & {"json", "form"}:
            changes.setdefault("body", None)
        return replace(self, **changes)

    def with_headers(self, **headers: str) -> Self:
        """The same request with these headers set; an underscore in a name stands for a hyphen."""
        new = {name.replace("_", "-"): value for name, value in headers.items()}
        names = {name.lower() for name in new}
        kept = [pair for pair in self.pairs if pair[0].lower() not in names]
        return self.replace(headers=(*kept, *new.items()))

    def __repr__(self) -> str:
        return f"<Request {self.method} {redact_url(self.url)} read={self.read}>"


class StoredRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a request beside its URL, reader and priority."""

    method: str = "GET"
    headers: Headers = ()
    body: bytes | None = None
    data: Any = None
    paging: bool | Paging = False  # True for that of the job
    chain: Chain = Chain()  # what the walk through the pages remembers
    keyed: bool = False  # the job has said by what it is known
    only: tuple[int, ...] = ()  # the records that were not kept when it was asked before; all if there are none


PLAIN = StoredRequest()
_decoder = msgspec.json.Decoder(StoredRequest)


def pack(stored: StoredRequest) -> bytes | None:
    """The bytes to store; nothing for a plain GET. Raises TypeError or ValueError for data that is no JSON."""
    return None if stored == PLAIN else msgspec.json.encode(stored)


def unpack(data: bytes | None) -> StoredRequest:
    """What was stored."""
    return PLAIN if data is None else _decoder.decode(data)


def resolve(url: str, base: str | None) -> str:
    """The address, absolute, without a fragment and with odd characters escaped. Raises ValueError."""
    url = url.partition("#")[0].strip()
    if "\\" in url:  # which is a slash to browsers, but in a query
        front, mark, query = url.partition("?")
        url = front.replace("\\", "/") + mark + query
    if base is not None and not _HTTP.match(url):
        url = urljoin(base, url)
    if len(url) > LONGEST_URL:
        raise ValueError(f"url has {len(url):,} characters, expected at most {LONGEST_URL:,}")
    if not _HTTP.match(url):
        raise ValueError(f"url is {redact_url(url)[:200]!r}, expected one that begins with https:// or http://")
    if _PLAIN.fullmatch(url) and "/" in url[8:] and url.startswith("http"):
        return url
    parts = urlsplit(url)
    path = quote(_LOOSE.sub("%25", parts.path), safe=_SAFE) or "/"
    return urlunsplit(parts._replace(path=path, query=quote(_LOOSE.sub("%25", parts.query), safe=_SAFE)))


def key_of(method: str, url: str, body: bytes | None) -> bytes:
    """By what a request is known: method, address with its query sorted, and body."""
    page, mark, query = url.partition("?")
    if mark and "&" in query:
        query = "&".join(sorted(query.split("&")))
    digest = hashlib.blake2b(f"{method} {page}?{query}\n".encode(), digest_size=KEY)
    if body is not None:
        digest.update(body)
    return digest.digest()


def own_key(key: str) -> bytes:
    """The same for a key that a job has set itself."""
    return hashlib.blake2b(b"key " + key.encode(), digest_size=KEY).digest()


def _with_params(url: str, params: Mapping[str, object]) -> str:
    page, mark, fragment = url.partition("#")
    pairs = _pairs(params)
    return f"{page}{'&' if '?' in page else '?'}{pairs}{mark}{fragment}" if pairs else url


def _texts(headers: Iterable[tuple[str, str]]) -> Headers:
    """The headers as pairs. Raises TypeError for a value that is no text."""
    pairs = tuple(headers)
    for name, value in pairs:
        if not isinstance(value, str):
            raise TypeError(f"header {name} is {value!r:.60}, expected a text")
    return pairs


def _pairs(values: Mapping[str, object]) -> str:
    """Names and values as a query has them, and a form."""
    return urlencode([(name, _param(value)) for name, value in values.items() if value is not None], doseq=True)


def _param(value: object) -> object:
    """How a value is spelled in a query: true and false as JSON has them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
