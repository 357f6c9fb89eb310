"""Paths, queries and bodies into typed values, or into a problem that says what was found, what was expected and where.

Pure, but for reading the body.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from aiohttp import web
from msgspec import UnsetType

from sanderling.web.problems import ProblemError, problem

LARGEST_BODY = 65_536
MOST_PARAMETERS = 50
LONGEST_SHOWN = 60
JSON = "application/json"

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

# A step of a path as msgspec writes it: `.name`, `[3]`, or `[...]` for a value of a mapping, of which it says no more.
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]")
_WHERE = re.compile(r" - at `\$((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])*)`$")


class Taken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is taken is taken as it is described, and nothing else."""


class Nothing(Taken, frozen=True, kw_only=True):
    """What a route takes that takes nothing."""


def given(value: V | UnsetType) -> V | None:
    """What was given, or None."""
    return None if isinstance(value, UnsetType) else value


def read_path(raw: str, template: str, kind: type[T]) -> T:
    """The parameters of a path that a template like `/targets/{kind}/{id}` matches. Split first, then decoded."""
    pairs = zip(template.split("/"), raw.split("/"), strict=True)
    texts = {name[1:-1]: _decoded(text, "path") for name, text in pairs if name.startswith("{")}
    return _converted(texts, kind, "path")


def read_query(raw: str, kind: type[T]) -> T:
    """The parameters of a query string: each once, and none that is not known."""
    parts = raw.split("&") if raw else []
    if len(parts) > MOST_PARAMETERS:
        raise problem(400, f"query: found {len(parts)} parameters, expected at most {MOST_PARAMETERS}")
    texts: dict[str, str] = {}
    for part in parts:
        name, _, text = (_decoded(piece.replace("+", " "), "query") for piece in part.partition("="))
        if name in texts:
            raise problem(400, f"query: {_shown(name)} is there twice, expected it once")
        texts[name] = text
    return _converted(texts, kind, "query")


def read_json(body: bytes, kind: type[T]) -> T:
    """The value that a body has; an empty one counts as an object without members."""
    body = body or b"{}"
    try:
        value = msgspec.json.decode(body, type=kind)
        # That decoder takes the last of two members with one name; the sender may have meant the first.
        json.loads(body.decode(), object_pairs_hook=_members, parse_int=str, parse_float=str)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind, "body", _whatever(body)) from None
    except (msgspec.DecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise problem(400, f"body: {error}, expected JSON in UTF-8") from None
    except RecursionError:
        raise problem(400, "body: JSON that is nested too deeply") from None
    return value


async def read_body(request: web.Request, seconds: float) -> bytes:
    """The body as it was sent, if it is JSON and not too large; empty if there is none."""
    if not request.body_exists:
        return b""
    _check_headers(request)
    await _continue(request)
    try:
        async with asyncio.timeout(seconds):
            return await _read(request)
    except TimeoutError:
        raise problem(408, f"the body was not here within {seconds:g} s") from None
    except (web.RequestPayloadError, ConnectionError):
        raise problem(400, "the body ended early, or is not framed as HTTP wants it") from None


async def _read(request: web.Request) -> bytes:
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise _too_large(f"more than {LARGEST_BODY}")
    if body and request.content_type != JSON:
        raise problem(415, f"body: Content-Type is {_shown(request.content_type)}, expected {JSON}")
    return bytes(body)


def _check_headers(request: web.Request) -> None:
    if (length := request.content_length) is not None and length > LARGEST_BODY:
        raise _too_large(f"{length}")
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise problem(415, f"body: Content-Encoding is {_shown(encoding)}, expected none")
    if (charset := request.charset) and charset.lower() not in {"utf-8", "utf8"}:
        raise problem(415, f"body: its charset is {_shown(charset)}, expected utf-8")


async def _continue(request: web.Request) -> None:
    """Ask for the body where the client waits to be asked: only now is it clear that we want it."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def _too_large(found: str) -> ProblemError:
    return problem(413, f"body: found {found} bytes, expected at most {LARGEST_BODY}")


def _decoded(text: str, where: str) -> str:
    """What was percent-encoded, as text."""
    try:
        return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode()
    except UnicodeError:
        raise problem(400, f"{where}: {_shown(text)} is not UTF-8") from None


def _converted(texts: Mapping[str, str], kind: type[T], where: str) -> T:
    try:
        # Not strict: a number is written as text here.
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind, where, texts) from None


def _invalid(error: msgspec.ValidationError, kind: type[msgspec.Struct], where: str, data: object) -> ProblemError:
    """The problem of a value that is not what was expected: with what was found, where that is known."""
    said = str(error)
    if said.startswith("Object contains unknown field"):
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        at_top = _WHERE.search(said) is None
        return problem(400, f"{where}: {said}" + (f"; expected {names or 'none'}" if at_top else ""))
    place = _WHERE.search(said)
    found = f"; found {_shown(_at(data, place[1]))}" if place else ""
    return problem(400, f"{where}: {said}{found}")


def _at(data: object, path: str) -> object:
    """The value at a path of msgspec's, as far as it goes."""
    for name, index in _STEP.findall(path):
        if isinstance(data, Mapping) and name in data:
            data = data[name]
        elif isinstance(data, Sequence) and index and int(index) < len(data):
            data = data[int(index)]
    return data


def _whatever(body: bytes) -> object:
    """What a body says, to show some of it; it was read before, so it is JSON as far as that went."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _members(pairs: list[tuple[str, object]]) -> None:
    """Raise if a name is there twice."""
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise problem(400, f"body: the member {_shown(name)} is there twice, expected it once")
        names.add(name)


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
