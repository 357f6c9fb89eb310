"""Strict DAG-CBOR: one way to write each value, and nothing else is read.

Definite lengths, shortest numbers, map keys text, unique and in order (shorter first, then bytewise), tag 42 for links
and no other, floats of 64 bits and finite. A byte string is `bytes`, a link is a `Cid`, so the two are never mixed up.
"""

import base64
import json
import math
import struct
from typing import TypeAlias

from sanderling.formats.cid import Cid, CidError

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"

NESTING = 64
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_LINK_TAG = 42
_FLOAT = 27
_SIMPLES: dict[int, bool | None] = {20: False, 21: True, 22: None}
# The least number that needs 1, 2, 4 or 8 bytes; a smaller one in as many is not the shortest form.
_LEAST = {24: 24, 25: 2**8, 26: 2**16, 27: 2**32}


class CborError(ValueError):
    """Bytes are not DAG-CBOR. `offset` is where in them."""

    def __init__(self, offset: int, found: str) -> None:
        super().__init__(f"byte {offset}: {found}")
        self.offset = offset


def decode(data: bytes, *, nesting: int = NESTING) -> Value:
    """The one value that `data` is, of at most `nesting` maps and lists within each other. Raises CborError."""
    value, end = _item(data, 0, nesting)
    if end != len(data):
        raise CborError(end, f"{len(data) - end} bytes after the value, expected none")
    return value


def _item(data: bytes, at: int, room: int) -> tuple[Value, int]:  # noqa: PLR0911 - one return per type
    if at >= len(data):
        raise CborError(at, "the end, expected a value")
    major, info = data[at] >> 5, data[at] & 31
    if major == _SIMPLE:
        return _simple(data, at, info)
    argument, after = _argument(data, at, info)
    if major == _UNSIGNED:
        return argument, after
    if major == _NEGATIVE:
        return -1 - argument, after
    if major == _TAG:
        return _link(data, at, argument, after)
    # Bytes or items, which have a byte each at least.
    if argument > len(data) - after:
        raise CborError(at, f"{argument} bytes or items, {len(data) - after} bytes follow")
    if major == _BYTES:
        return data[after : after + argument], after + argument
    if major == _TEXT:
        return _text(data, after, argument), after + argument
    if room == 0:
        raise CborError(at, "a map or list too deep inside others")
    return (_list if major == _LIST else _map)(data, after, argument, room - 1)


def _argument(data: bytes, at: int, info: int) -> tuple[int, int]:
    if info < 24:
        return info, at + 1
    if info not in _LEAST:
        raise CborError(at, f"a head of {data[at]:#04x}, expected a definite length")
    end = at + 1 + (1 << (info - 24))
    if end > len(data):
        raise CborError(at, "the end within a number")
    value = int.from_bytes(data[at + 1 : end])
    if value < _LEAST[info]:
        raise CborError(at, f"{value} in {end - at} bytes, expected the shortest form")
    return value, end


def _simple(data: bytes, at: int, info: int) -> tuple[Value, int]:
    if info in _SIMPLES:
        return _SIMPLES[info], at + 1
    if info != _FLOAT:
        raise CborError(at, f"a head of {data[at]:#04x}, expected false, true, null or a float of 64 bits")
    if at + 9 > len(data):
        raise CborError(at, "the end within a float")
    (value,) = struct.unpack_from(">d", data, at + 1)
    if not math.isfinite(value):
        raise CborError(at, f"the float {value}, expected a finite one")
    return value, at + 9


def _text(data: bytes, at: int, size: int) -> str:
    try:
        return data[at : at + size].decode("utf-8")
    except UnicodeDecodeError as error:
        raise CborError(at + error.start, f"{error.reason}, expected UTF-8") from None


def _link(data: bytes, at: int, tag: int, after: int) -> tuple[Value, int]:
    if tag != _LINK_TAG:
        raise CborError(at, f"tag {tag}, expected 42")
    if after < len(data) and data[after] >> 5 != _BYTES:
        raise CborError(after, "a link that is no byte string")
    content, end = _item(data, after, 0)
    assert isinstance(content, bytes)  # noqa: S101 - by its head
    if content[:1] != b"\0":
        raise CborError(after, "a link that does not begin with a zero")
    try:
        return Cid.read(content[1:]), end
    except CidError as error:
        raise CborError(after, str(error)) from None


def _list(data: bytes, at: int, count: int, room: int) -> tuple[Value, int]:
    items: list[Value] = []
    for _ in range(count):
        item, at = _item(data, at, room)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, count: int, room: int) -> tuple[Value, int]:
    entries: dict[str, Value] = {}
    last = b""
    for index in range(count):
        start = at
        if at < len(data) and data[at] >> 5 != _TEXT:
            raise CborError(at, "a map key that is no text")
        key, at = _item(data, at, room)
        assert isinstance(key, str)  # noqa: S101 - by its head
        # A canonical head and the text sort as the keys must: a longer text has a greater head.
        if index and data[start:at] <= last:
            raise CborError(start, f"key {key[:80]!r} twice or after a greater one")
        last = data[start:at]
        entries[key], at = _item(data, at, room)
    return entries, at


def encode(value: Value) -> bytes:
    """The DAG-CBOR of `value`. Raises ValueError for what has none."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Value, parts: list[bytes]) -> None:  # noqa: C901 - one branch per type
    if isinstance(value, str):
        text = value.encode()
        parts += _head(_TEXT, len(text)), text
    elif isinstance(value, dict):
        parts.append(_head(_MAP, len(value)))
        for size, key in sorted((len(key), key) for key in map(str.encode, value)):
            parts += _head(_TEXT, size), key
            _write(value[key.decode()], parts)
    elif isinstance(value, Cid):
        parts += b"\xd8\x2a", _head(_BYTES, len(value) + 1), b"\0", value
    elif isinstance(value, bytes):
        parts += _head(_BYTES, len(value)), value
    elif isinstance(value, list):
        parts.append(_head(_LIST, len(value)))
        for item in value:
            _write(item, parts)
    elif value is None:
        parts.append(b"\xf6")
    elif isinstance(value, bool):
        parts.append(b"\xf5" if value else b"\xf4")
    elif isinstance(value, int):
        parts.append(_head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value))
    elif math.isfinite(value):
        parts.append(struct.pack(">Bd", 0xFB, value))
    else:
        raise ValueError(f"the float {value} has no DAG-CBOR, expected a finite one")


def _head(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes((major << 5 | argument,))
    if argument >= 2**64:
        raise ValueError(f"{argument} has no DAG-CBOR, expected 64 bits")
    info = max(info for info, least in _LEAST.items() if argument >= least)
    return bytes((major << 5 | info,)) + argument.to_bytes(1 << (info - 24))


def to_json(value: Value, *, strip: bool = False) -> bytes:
    """`value` as atproto's JSON, compact, in the order of its keys; `strip` drops every map entry called `cid`.

    A link is {"$link": text}, a byte string {"$bytes": base64 without padding}. A float is written as Python does.
    """
    plain = _plain(value, strip=strip)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: Value, *, strip: bool) -> Value:
    if isinstance(value, dict):
        return {key: _plain(item, strip=strip) for key, item in value.items() if not (strip and key == "cid")}
    if isinstance(value, list):
        return [_plain(item, strip=strip) for item in value]
    if isinstance(value, Cid):
        return {"$link": value.text}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii").rstrip("=")}
    return value


def floats_in(value: Value) -> int:
    """How many floats `value` has in it."""
    if isinstance(value, dict):
        return sum(map(floats_in, value.values()))
    if isinstance(value, list):
        return sum(map(floats_in, value))
    return isinstance(value, float)
