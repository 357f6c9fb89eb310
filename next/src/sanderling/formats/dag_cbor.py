"""Strict DAG-CBOR: each value has one form, and nothing else is read. A record becomes atproto's JSON.

Definite lengths, shortest numbers, map keys text, unique and in order (shorter first, then bytewise), tag 42 for links
and no other, floats of 64 bits and finite.
"""

import base64
import json
import math
import re
import struct
from typing import Any, TypeAlias

import libipld
import msgspec

NESTING = 64  # of maps and lists; the network's advice is 32
LONGEST_CID = 100  # bytes: the network's advice for links; known hashes need 64 at most
LONGEST_VARINT = 9  # bytes, by Multiformats
DAG_CBOR, RAW = b"\x01\x71\x12\x20", b"\x01\x55\x12\x20"  # how a CID of sha2-256 begins
CID_SIZE = 36  # of those


class CborError(ValueError):
    """Bytes are not DAG-CBOR. `offset` is where in them."""

    def __init__(self, offset: int, found: str) -> None:
        super().__init__(f"byte {offset}: {found}")
        self.offset = offset


class Cid(bytes):
    """The name of a block, in binary: a CIDv1 of whatever codec and hash."""

    __slots__ = ()

    def __str__(self) -> str:
        return "b" + base64.b32encode(self).decode("ascii").rstrip("=").lower()


Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned LEB128 number at `at`, and where it ends. Raises CborError unless it has the shortest form."""
    value = 0
    for index, byte in enumerate(data[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index:
                raise CborError(at, f"a varint of {index + 1} bytes for {value}, expected the shortest form")
            return value, at + index + 1
    raise CborError(at, f"a varint without an end, expected at most {LONGEST_VARINT} bytes")


# The exact way: slow, and it knows what is wrong.

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_LINK_TAG, _FLOAT = 42, 27
_SIMPLES: dict[int, bool | None] = {20: False, 21: True, 22: None}
# The least number that needs 1, 2, 4 or 8 bytes.
_LEAST = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}


def decode(data: bytes, nesting: int = NESTING) -> Value:
    """The value that `data` is, of at most `nesting` maps and lists within each other. Raises CborError."""
    value, end = _item(data, 0, nesting)
    if end != len(data):
        raise CborError(end, f"{len(data) - end} bytes after the value, expected none")
    return value


def _item(data: bytes, at: int, room: int) -> tuple[Value, int]:
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
    if argument > len(data) - after:  # an item has at least one byte
        raise CborError(at, f"{argument} bytes or items, {len(data) - after} bytes follow")
    if major == _BYTES:
        return data[after : after + argument], after + argument
    if major == _TEXT:
        try:
            return data[after : after + argument].decode(), after + argument
        except UnicodeDecodeError as error:
            raise CborError(after + error.start, f"{error.reason}, expected UTF-8") from None
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


def _link(data: bytes, at: int, tag: int, after: int) -> tuple[Value, int]:
    if tag != _LINK_TAG:
        raise CborError(at, f"tag {tag}, expected 42")
    if after < len(data) and data[after] >> 5 != _BYTES:
        raise CborError(after, "a link that is no byte string")
    content, end = _item(data, after, 0)
    if not isinstance(content, bytes) or content[:1] != b"\0":
        raise CborError(after, "a link that does not begin with a zero")
    cid = content[1:]
    if len(cid) > LONGEST_CID:
        raise CborError(after, f"a CID of {len(cid)} bytes, expected at most {LONGEST_CID}")
    version, place = read_varint(cid, 0)
    if version != 1:
        raise CborError(after, f"a CID of version {version}, expected 1")
    for _ in ("codec", "hash", "size"):
        size, place = read_varint(cid, place)
    if size != len(cid) - place:
        raise CborError(after, f"a CID with a hash of {len(cid) - place} bytes that says it has {size}")
    return Cid(cid), end


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
        key, at = _item(data, at, room)
        if not isinstance(key, str):
            raise CborError(start, "a map key that is no text")
        # The heads sort as the keys must: a longer text has a greater head.
        if index and data[start:at] <= last:
            raise CborError(start, f"key {key[:80]!r} twice or after a greater one")
        last = data[start:at]
        entries[key], at = _item(data, at, room)
    return entries, at


def exact_json(block: bytes, *, strip: bool, nesting: int = NESTING) -> tuple[bytes, int]:
    """The JSON of a record, and how many floats are in it. Raises CborError.

    Compact, in the order of its keys; `strip` drops every map entry called `cid`. A link is {"$link": text}, a byte
    string {"$bytes": base64 without padding}. A float is written as Python does.
    """
    value = decode(block, nesting)
    plain = _plain(value, strip=strip)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode(), _floats(value)


def _plain(value: Value, *, strip: bool) -> Value:
    if isinstance(value, dict):
        return {key: _plain(item, strip=strip) for key, item in value.items() if not (strip and key == "cid")}
    if isinstance(value, list):
        return [_plain(item, strip=strip) for item in value]
    if isinstance(value, Cid):
        return {"$link": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii").rstrip("=")}
    return value


def _floats(value: Value) -> int:
    if isinstance(value, dict | list):
        return sum(map(_floats, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


# The quick way: a library decodes what is proved to have one meaning; all else goes the exact way.
#
# libipld is strict but for four things (3.5, seen with 120 blocks that break one rule each): numbers in more bytes than
# they need, floats of 32 bits, links (it gives bytes for them, and hardly looks at them), and depth. So each byte is
# given a class, and a pair of classes that could be such a number, or a byte that could begin a float, sends the block
# the exact way, wherever it stands. Nearly no record has one by chance. Links become what they are in JSON beforehand.

_SMALL = b"0" + b"s" * 23  # heads of a byte, such as those of numbers below 24
_NUMBER = b"1248"  # heads of which so many bytes follow
# By major type, of which the last has no numbers: floats are of 16, 32 and 64 bits.
_CLASSES = _SMALL + _NUMBER + b"...." + 6 * (b"." * 24 + _NUMBER + b"....") + b"." * 26 + b"ff" + b"...."
_TAG_42 = b"\xd8\x2a"
_LINK = re.compile(rb"\xd8\x2a\x58\x25\0(\x01[\x55\x71]\x12\x20.{32})", re.DOTALL)
_encode = msgspec.json.Encoder().encode


class _NotPlainError(Exception):
    """A value is left to the exact way."""


def quick_json(block: bytes, *, strip: bool, nesting: int = NESTING) -> tuple[bytes, int]:
    """What `exact_json` gives, many times as fast for nearly all records."""
    try:
        return _encode(_decode(block, strip=strip, nesting=nesting)), 0
    except (ValueError, TypeError, RecursionError, OverflowError, _NotPlainError):
        return exact_json(block, strip=strip, nesting=nesting)  # which says why, if there is a reason


def _decode(block: bytes, *, strip: bool, nesting: int) -> Any:  # noqa: ANN401 - a value
    """The value of a record as its JSON will have it. Raises whatever is not plain."""
    links = 0
    if _TAG_42 in block:
        # A link has no form inside of a text, since it is no UTF-8. Inside of a byte string it has, and it may be there
        # in a block that is no DAG-CBOR: then fewer of the new maps are found in the value.
        if b"e$link" in block:
            raise _NotPlainError
        block, links = _LINK.subn(_link_map, block)
        if _TAG_42 in block:
            raise _NotPlainError
    classes = block.translate(_CLASSES)
    if b"10" in classes or b"1s" in classes or b"20" in classes or b"f" in classes or b"400" in classes:
        raise _NotPlainError
    if b"80000" in classes:
        raise _NotPlainError
    value = libipld.decode_dag_cbor(block)
    if _tidy(value, strip and b"ccid" in block, nesting) != links:
        raise _NotPlainError
    return value


def _link_map(link: re.Match[bytes]) -> bytes:
    return b"\xa1\x65$link\x78\x3b" + libipld.encode_cid(link[1]).encode()


def _tidy(value: Any, strip: bool, room: int) -> int:  # noqa: ANN401, FBT001 - runs for every map and list
    """Drop entries called `cid`; how many links there are. Raises _NotPlainError for byte strings, and for depth."""
    if room == 0:
        raise _NotPlainError
    links = 0
    kind = type(value)
    if kind is dict:
        if strip and "cid" in value and type(value.pop("cid")) is not str:
            raise _NotPlainError
        if "$link" in value:
            links = 1
        items = value.values()
    elif kind is list:
        items = value
    else:
        items = (value,)
    for item in items:
        kind = type(item)
        if kind is str:  # most are
            continue
        if kind is dict or kind is list:
            links += _tidy(item, strip, room - 1)
        elif kind is bytes:
            raise _NotPlainError
    return links


record_json = quick_json
