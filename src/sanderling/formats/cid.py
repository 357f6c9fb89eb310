"""CIDs: the name of a block, made from its bytes.

A block's CID is 36 bytes: version 1, what the block is (DAG-CBOR or raw), sha2-256, and the hash. A record may link to
anything, so a link may be any CIDv1; one that is not of those 36 bytes names nothing that a repo can hold.
"""

import base64
import hashlib
from typing import Self

DAG_CBOR = b"\x01\x71\x12\x20"
RAW = b"\x01\x55\x12\x20"
SIZE = 36
# The network's advice for links; known hashes need 64 bytes at most.
LONGEST = 100
# Multiformats: a varint has at most nine bytes.
_LONGEST_VARINT = 9


class CidError(ValueError):
    """Bytes or a text are not a CID."""


class Cid(bytes):
    """A CIDv1 in binary. Make one with `of`, `read` or `parse`; the bare constructor checks nothing."""

    __slots__ = ()

    @classmethod
    def of(cls, block: bytes, kind: bytes = DAG_CBOR) -> Self:
        """The CID that names `block`."""
        return cls(kind + hashlib.sha256(block).digest())

    @classmethod
    def read(cls, data: bytes) -> Self:
        """`data` if that is a CIDv1 of whatever codec and hash. Raises CidError."""
        if len(data) > LONGEST:
            raise CidError(f"a CID of {len(data)} bytes, expected at most {LONGEST}")
        version, at = varint(data, 0)
        if version != 1:
            raise CidError(f"a CID of version {version}, expected 1")
        _codec, at = varint(data, at)
        _hash, at = varint(data, at)
        size, at = varint(data, at)
        if size != len(data) - at:
            raise CidError(f"a CID with a hash of {len(data) - at} bytes that says it has {size}")
        return cls(data)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The CID that is written `text`. Raises CidError."""
        if not text.startswith("b") or text != text.lower():
            raise CidError(f"CID {text[:80]!r}, expected b and base32 in lower case")
        digits = text[1:].upper()
        try:
            cid = cls.read(base64.b32decode(digits + "=" * (-len(digits) % 8)))
        except ValueError as error:
            raise CidError(f"CID {text[:80]!r}: {error}") from None
        # The last digit has bits to spare, so several texts would be read as one CID.
        if cid.text != text:
            raise CidError(f"CID {text[:80]!r}, expected {cid.text!r}")
        return cid

    @property
    def text(self) -> str:
        """As people and JSON write it."""
        return "b" + base64.b32encode(self).decode("ascii").rstrip("=").lower()

    def __repr__(self) -> str:
        return f"<Cid {self.text}>"


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned LEB128 number that begins at `at`, and where it ends. Raises CidError unless it is the shortest."""
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index:
                raise CidError(f"a varint of {index + 1} bytes for {value}, expected the shortest form")
            return value, at + index + 1
    raise CidError(f"a varint without an end, expected one of at most {_LONGEST_VARINT} bytes")


def to_varint(value: int) -> bytes:
    """The shortest form of `value`, 0 or more."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
