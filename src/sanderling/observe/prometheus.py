"""Ask a Prometheus server what it has seen, over its HTTP API.

Tricky bits. The server is named by whoever runs us, but what answers there may be a proxy's page, another program or
another version: nothing is believed before it was read as what it should be, and anything else is a `PrometheusError`
in plain words. How we prove who we are is never part of a message.
"""

import math
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

# The variable that holds the bearer token of a server that wants one.
TOKEN = "SANDERLING_PROMETHEUS_TOKEN"  # noqa: S105 - its name, not the token

TIMEOUT = 10.0
# A reading is a few hundred bytes; this is for what is no reading.
MOST_BYTES = 5 * 2**20
# Of what the server wrote, in a message of ours.
MOST_SAID = 300

# As Go writes a float; Python's own reader would also take "1_000" and "infinity".
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?|NaN|[+-]Inf")


class PrometheusError(Exception):
    """The server gave no answer that could be used; the message says what it gave instead."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one combination of labels: (Unix seconds, value), oldest first. A value may be NaN or infinite."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class _Envelope(msgspec.Struct):
    status: Literal["success", "error"]
    error: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct):
    resultType: Literal["matrix"]  # noqa: N815 - Prometheus's spelling
    result: list[_Line]


class _Point(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    resultType: Literal["vector"]  # noqa: N815 - Prometheus's spelling
    result: list[_Point]


T = TypeVar("T", bound=msgspec.Struct)


class PrometheusServer:
    """The server at `url`, which may name a user and a password: `async with PrometheusServer(url) as server`."""

    def __init__(self, url: str, token: str = "", timeout: float = TIMEOUT) -> None:
        given = _checked(url)
        if not token.isascii() or not token.isprintable():
            raise ValueError("the token for the Prometheus server has characters that no header can carry")
        if given.user is not None and token:
            raise ValueError("the URL of the Prometheus server names a user, and there is a token too; expected one")
        self._base = given.with_user(None)
        # Not compressed: a body that unpacks to gigabytes is none of our troubles then.
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif given.user is not None:
            pair = f"{given.user}:{given.password or ''}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<PrometheusServer {self._base}>"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=self._timeout),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def query(self, expr: str, at: float) -> list[Series]:
        """What `expr` is at one instant, in Unix seconds: a sample for each series."""
        found = await self._ask("query", {"query": expr, "time": f"{at:.3f}"}, _Vector)
        return [Series(each.metric, (_sample(each.value),)) for each in found.result]

    async def query_range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """What `expr` was at `start`, and each `step` seconds from there up to `end`, both in Unix seconds."""
        asked = {"query": expr, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        found = await self._ask("query_range", asked, _Matrix)
        return [Series(each.metric, tuple(map(_sample, each.values))) for each in found.result]

    async def _ask(self, verb: str, parameters: Mapping[str, str], shape: type[T]) -> T:
        if self._session is None:
            raise RuntimeError("use the server as a context manager: async with PrometheusServer(url) as server")
        url = (self._base / "api" / "v1" / verb).with_query(parameters)
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                body = await _body(response)
                return _understood(response.status, body, shape)
        except TimeoutError:
            raise PrometheusError(f"{self._base}: no answer within {self._timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PrometheusError(f"{self._base}: {type(error).__name__}: {_cut(str(error))}") from None


def _checked(url: str) -> URL:
    """The URL, if it can be a server's. What is wrong with it is said without it: it may hold a password."""
    try:
        given = URL(url.strip())
    except ValueError:
        raise ValueError("the URL of the Prometheus server cannot be read; expected http://host:9090") from None
    if given.scheme not in {"http", "https"} or not given.host:
        raise ValueError("the URL of the Prometheus server must begin with http:// or https:// and name a host")
    if given.query_string or given.fragment:
        raise ValueError("the URL of the Prometheus server has a query; expected only the server and its path")
    return given


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MOST_BYTES:
            raise PrometheusError(f"the answer is longer than {MOST_BYTES} bytes; is that a Prometheus server?")
    return bytes(body)


def _understood(status: int, body: bytes, shape: type[T]) -> T:
    """The data of an answer. An error has a status of its own, and often says in JSON what it is."""
    if 300 <= status < 400:
        raise PrometheusError(f"status {status}: the server sends us elsewhere; give the address that it sends us to")
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
        if envelope.status == "error":
            raise PrometheusError(f"status {status}: {_cut(envelope.error) or 'an error without a text'}")
        if status == 200:
            return msgspec.json.decode(envelope.data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if status == 200:
            begins = _cut(body[:60].decode("utf-8", "replace"))
            raise PrometheusError(f"no answer of Prometheus's: {_cut(str(error))}; it begins {begins!r}") from None
    raise PrometheusError(f"status {status}, expected 200")


def _sample(pair: tuple[float, str]) -> tuple[float, float]:
    at, text = pair
    if not _NUMBER.fullmatch(text) or not math.isfinite(at):
        raise PrometheusError(f"a sample is {_cut(text)!r} at {at}, expected numbers")
    return at, float(text)


def _cut(text: str) -> str:
    """The text as far as it is worth a line, without what could end one."""
    short = text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"
    return "".join(each if each.isprintable() else " " for each in short)
