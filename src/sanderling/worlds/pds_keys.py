"""P-256 signatures in plain Python, as commits and identities carry them.

For simulated hosts only: some milliseconds each, and their timing tells the secret.
"""

import hashlib
import hmac
from dataclasses import dataclass
from functools import cached_property
from typing import Self

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_X = 0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296
_Y = 0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5
_P256_PUBLIC = b"\x80\x24"  # multicodec 0x1200, as a varint
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

# In Jacobian coordinates, which need no division: (x, y, z) stands for the point (x / z², y / z³). With z = 0 it is
# the point at infinity.
Point = tuple[int, int, int]


@dataclass(frozen=True)
class SigningKey:
    """A secret number, from 1 to the order of the curve."""

    secret: int

    @classmethod
    def of(cls, words: str) -> Self:
        """The key that these words stand for."""
        return cls(int.from_bytes(hashlib.sha512(words.encode()).digest()) % (_N - 1) + 1)

    @cached_property
    def point(self) -> tuple[int, int]:
        """The public half."""
        return _affine(_times(self.secret, (_X, _Y, 1)))

    @cached_property
    def did(self) -> str:
        """The public half as identities write it: did:key:zDn…"""
        x, y = self.point
        return "did:key:z" + _base58(_P256_PUBLIC + bytes((2 + y % 2,)) + x.to_bytes(32))

    def sign(self, message: bytes) -> bytes:
        """64 bytes: r and s, the smaller of the two possible. The same message always gets the same (RFC 6979)."""
        digest = hashlib.sha256(message).digest()
        nonce = _nonce(self.secret, digest)
        r = _affine(_times(nonce, (_X, _Y, 1)))[0] % _N
        s = pow(nonce, -1, _N) * (int.from_bytes(digest) + r * self.secret) % _N
        return r.to_bytes(32) + min(s, _N - s).to_bytes(32)


def _nonce(secret: int, digest: bytes) -> int:
    """RFC 6979, 3.2: a number that only who has the secret can foresee."""
    known = secret.to_bytes(32) + (int.from_bytes(digest) % _N).to_bytes(32)
    key, value = bytes(32), b"\1" * 32
    for mark in (b"\0" + known, b"\1" + known):
        key = _mac(key, value + mark)
        value = _mac(key, value)
    while True:
        value = _mac(key, value)
        if 0 < (nonce := int.from_bytes(value)) < _N:
            return nonce
        key = _mac(key, value + b"\0")
        value = _mac(key, value)


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _times(factor: int, point: Point) -> Point:
    total: Point = (0, 1, 0)
    for bit in f"{factor:b}":
        total = _double(total)
        if bit == "1":
            total = _add(total, point)
    return total


def _double(point: Point) -> Point:
    x, y, z = point
    square = y * y % _P
    across = 4 * x * square % _P
    slope = 3 * (x - z * z) * (x + z * z) % _P  # a of the curve is -3
    new = (slope * slope - 2 * across) % _P
    return new, (slope * (across - new) - 8 * square * square) % _P, 2 * y * z % _P


def _add(one: Point, other: Point) -> Point:
    """The sum of two different points."""
    (x, y, z), (a, b, c) = one, other
    if z == 0 or c == 0:
        return other if z == 0 else one
    left, right = x * c * c % _P, a * z * z % _P
    low, high = y * c**3 % _P, b * z**3 % _P
    if left == right:
        return _double(one) if low == high else (0, 1, 0)
    run, rise = right - left, high - low
    cube = run**3 % _P
    across = left * run * run % _P
    new = (rise * rise - cube - 2 * across) % _P
    return new, (rise * (across - new) - low * cube) % _P, run * z * c % _P


def _affine(point: Point) -> tuple[int, int]:
    x, y, z = point
    inverse = pow(z, -1, _P)
    return x * inverse**2 % _P, y * inverse**3 % _P


def _base58(data: bytes) -> str:
    """Of bytes that do not begin with a zero."""
    number, digits = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, 58)
        digits = _BASE58[digit] + digits
    return digits
