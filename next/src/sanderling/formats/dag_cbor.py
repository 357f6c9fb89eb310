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

try:
    import cbrrr
except ImportError:
    cbrrr = None

NESTING = 64  # of maps and lists; the network's advice is 32
LONGEST_CID = 100  # bytes: the network's advice for links; known hashes need 64 at most
LONGEST_VARINT = 9  # bytes, by Multiformats
DAG_CBOR, RAW = b"\x01\x71\x12\x20", b"\x01\x55\x12\x20"  # how a CID of sha2-256 begins
CID_SIZE = 36  # of those


Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"


class CborError(ValueError):
    """Bytes are not DAG-CBOR, or not the varint that they should be."""


class Cid(bytes):
    """The name of a block, in binary: a CIDv1 of whatever codec and hash."""

    __slots__ = ()

    def __str__(self) -> str:
        return "b" + base64.b32encode(self).decode("ascii").rstrip("=").lower()


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned LEB128 number at `at`, and where it ends. Raises CborError unless it has the shortest form."""
    value = 0
    for index, byte in enumerate(data[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index:
                raise CborError(f"a varint of {index + 1} bytes for {value}, expected the shortest form")
            return value, at + index + 1
    raise CborError(f"a varint without an end, expected at most {LONGEST_VARINT} bytes")


# The exact way: slow, and it knows what is wrong.

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_SIMPLES: dict[int, bool | None] = {20: False, 21: True, 22: None}
_LEAST = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}  # that needs 1, 2, 4 or 8 bytes


def decode(data: bytes, nesting: int = NESTING) -> Value:
    """The value that `data` is, of at most `nesting` maps and lists within each other. Raises CborError."""
    try:
        value, end = _item(data, 0, nesting)
    except (IndexError, struct.error):
        raise CborError("the end within a value") from None
    except UnicodeDecodeError as error:
        raise CborError(f"a text that is no UTF-8: {error.reason}") from None
    if end != len(data):
        raise CborError(f"{len(data) - end} bytes after the value, expected none")
    return value


def _item(data: bytes, at: int, room: int) -> tuple[Value, int]:
    """The item at `at`, and where it ends."""
    major, number = data[at] >> 5, data[at] & 31
    at += 1
    if major == _SIMPLE:
        if number in _SIMPLES:
            return _SIMPLES[number], at
        (value,) = struct.unpack_from(">d", data, at)
        if number != 27 or not math.isfinite(value):
            raise CborError(f"a head of {data[at - 1]:#04x}, expected false, true, null or a finite float of 64 bits")
        return value, at + 8
    if number >= 24:
        if number not in _LEAST:
            raise CborError(f"a head of {data[at - 1]:#04x}, expected a definite length")
        least, size = _LEAST[number], 1 << (number - 24)
        data[at + size - 1]  # is there
        number, at = int.from_bytes(data[at : at + size]), at + size
        if number < least:
            raise CborError(f"{number} in {size} bytes, expected the shortest form")
    if major == _UNSIGNED:
        return number, at
    if major == _NEGATIVE:
        return -1 - number, at
    if major == _TAG:
        return _link(data, at, number)
    if major in (_BYTES, _TEXT):
        content = data[at : at + number]
        if len(content) != number:
            raise IndexError
        return content if major == _BYTES else content.decode(), at + number
    if room == 0:
        raise CborError("a map or list too deep inside others")
    return (_list if major == _LIST else _map)(data, at, number, room - 1)


def _link(data: bytes, at: int, tag: int) -> tuple[Value, int]:
    content, end = _item(data, at, 0)
    if tag != 42 or not isinstance(content, bytes) or content[:1] != b"\0":
        raise CborError(f"tag {tag} over {content!r:.20}, expected 42 over a zero and a CID")
    cid = content[1:]
    version, place = read_varint(cid, 0)
    for _ in ("codec", "hash", "size"):
        size, place = read_varint(cid, place)
    if version != 1 or size != len(cid) - place or len(cid) > LONGEST_CID:
        raise CborError(f"a CID of {cid.hex():.20}…, expected version 1, its size, and at most {LONGEST_CID} bytes")
    return Cid(cid), end


def _list(data: bytes, at: int, count: int, room: int) -> tuple[Value, int]:
    items: list[Value] = []
    for _ in range(count):  # each has a byte at least
        item, at = _item(data, at, room)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, count: int, room: int) -> tuple[Value, int]:
    entries: dict[str, Value] = {}
    last = b""
    for _ in range(count):
        start = at
        key, at = _item(data, at, 0)
        # The heads sort as the keys must: a longer text has a greater head.
        if not isinstance(key, str) or data[start:at] <= last:
            raise CborError(f"key {key!r:.80}, expected texts, each once, in order")
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
# they need, floats of 32 bits, links (it gives bytes for them, and hardly looks at them), and depth. A number in too
# many bytes has one below 0x18 as its second byte: a block without such a byte, as most are, has none. In the others
# each byte is given a class, and classes that could begin such a number, wherever they stand, send the block the exact
# way. Links become what they are in JSON beforehand. Floats and byte strings in the value send it the exact way, too.
#
# cbrrr is strict but for depth, -0.0, and what is in a link, and a tenth faster in all; but it has no wheels.

_SMALL = b"0" + b"s" * 23  # heads of one byte, such as those of numbers below 24
_NUMBER = b"1248"  # heads of which so many bytes follow
_CLASSES = _SMALL + _NUMBER + b"...." + 6 * (b"." * 24 + _NUMBER + b"....") + b"." * 32  # by major type
_NOT_SHORTEST = re.compile(rb"1[0s]|20|400|80000")
_TAG_42 = b"\xd8\x2a"
_UNUSUAL = bytes(63 if byte < 24 or byte == _TAG_42[0] else 46 for byte in range(256))
_LINK = re.compile(rb"\xd8\x2a\x58\x25\0(\x01[\x55\x71]\x12\x20.{32})", re.DOTALL)
_ODD_LINK = re.compile(rb"\xd8\x2a(?!\x58\x25\0\x01[\x55\x71]\x12\x20)")
_encode = msgspec.json.Encoder().encode


def record_json(block: bytes, *, strip: bool, nesting: int = NESTING) -> tuple[bytes, int]:
    """What `exact_json` gives, many times as fast for nearly all records."""
    try:
        value, links = decode_plain(block)
        if _tidy(value, strip and b"ccid" in block, nesting) == links or links is None:
            return _encode(value), 0
    except (ValueError, RecursionError, OverflowError):
        pass
    return exact_json(block, strip=strip, nesting=nesting)  # which says what is wrong, if something is


def decode_by_libipld(block: bytes) -> tuple[Any, int | None]:
    """The value of a record as JSON has it, and how many links must be found in it. Raises ValueError."""
    links = 0
    if b"?" in block.translate(_UNUSUAL):
        if _TAG_42 in block:
            # These bytes are no UTF-8, but may stand in a byte string, or in a block that is no DAG-CBOR: then fewer of
            # the new maps are found in the value.
            if b"e$link" in block:
                raise CborError("not plain")
            block, links = _LINK.subn(_link_map, block)
            if _TAG_42 in block:
                raise CborError("not plain")
        if _NOT_SHORTEST.search(block.translate(_CLASSES)):
            raise CborError("not plain")
    return libipld.decode_dag_cbor(block), links


def _link_map(link: re.Match[bytes]) -> bytes:
    return b"\xa1\x65$link\x78\x3b" + libipld.encode_cid(link[1]).encode()


def decode_by_cbrrr(block: bytes) -> tuple[Any, int | None]:
    """The value of a record as JSON has it. Raises ValueError."""
    if _TAG_42 in block and _ODD_LINK.search(block):
        raise CborError("not plain")
    return cbrrr.decode_dag_cbor(block, atjson_mode=True), None


decode_plain = decode_by_cbrrr if cbrrr else decode_by_libipld


def _tidy(value: Any, strip: bool, room: int) -> int:  # noqa: ANN401, FBT001 - runs for every map and list
    """Drop entries called `cid`; how many links there are. Raises CborError for bytes, floats and depth."""
    links = 0
    kind = type(value)
    if kind is dict:
        links += "$link" in value
        if strip and "cid" in value and type(value.pop("cid")) is not str:
            raise CborError("not plain")
        items = value.values()
    else:
        items = value if kind is list else (value,)
    if room == 0:
        raise CborError("not plain")
    for item in items:
        kind = type(item)
        if kind is str:  # most are
            continue
        if kind is dict or kind is list:
            links += _tidy(item, strip, room - 1)
        elif kind is bytes or kind is float:
            raise CborError("not plain")
    return links
