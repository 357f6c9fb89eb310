"""CARv1: a header that names the root, then frames of a CID and the block it names, in any order."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from sanderling.formats import cbor
from sanderling.formats.cid import DAG_CBOR, RAW, SIZE, Cid, CidError, to_varint, varint
from sanderling.formats.parsed import Kind, Limits, RepoError

_NAMES = frozenset((DAG_CBOR, RAW))
Span = tuple[int, int]  # where a block begins and ends in the CAR


class Car(NamedTuple):
    """Where each block of a CAR is. Of a block that is there twice, the last counts."""

    roots: tuple[Cid, ...]
    spans: dict[bytes, Span]
    frames: int


def read_car(car: bytes, *, verify: bool = True, limits: Limits) -> Car:
    """Check the framing of a CAR and, to `verify`, the hash of every block. Raises RepoError."""
    if len(car) > limits.car:
        raise RepoError(Kind.TOO_LARGE, 0, f"{len(car)} bytes, expected at most {limits.car}")
    roots, at = _header(car)
    spans: dict[bytes, Span] = {}
    frames = 0
    end = len(car)
    sha256 = hashlib.sha256
    while at < end:
        # Most frames are of 128 to 16,383 bytes; without this the framing takes a third longer.
        if car[at] >= 0x80 and at + 1 < end and 0 < car[at + 1] < 0x80:
            start, stop = at + 2, at + 2 + (car[at] & 0x7F | car[at + 1] << 7)
        else:
            start, stop = _frame(car, at)
        if not start < stop <= end:
            raise RepoError(Kind.CAR_FRAME, at, f"a frame that says {stop - start} bytes, {end - start} follow")
        cid = car[start : start + SIZE]
        start += SIZE
        if start > stop or cid[:4] not in _NAMES:
            found = f"a CID of {cid[:4].hex()}…, expected version 1, DAG-CBOR or raw, sha2-256"
            raise RepoError(Kind.CAR_CID, start - SIZE, found)
        if stop - start > limits.block or frames == limits.blocks:
            raise _too_large(at, stop - start, limits)
        if verify and sha256(car[start:stop]).digest() != cid[4:]:
            raise RepoError(Kind.HASH_MISMATCH, start, f"a block that is not {Cid(cid).text}")
        spans[cid] = start, stop
        frames += 1
        at = stop
    return Car(roots, spans, frames)


def _frame(car: bytes, at: int) -> Span:
    """Where the frame that `at` says the length of would begin and end."""
    try:
        size, start = varint(car, at)
    except CidError as error:
        raise RepoError(Kind.CAR_FRAME, at, str(error)) from None
    return start, start + size


def _too_large(at: int, size: int, limits: Limits) -> RepoError:
    if size > limits.block:
        return RepoError(Kind.TOO_LARGE, at, f"a block of {size} bytes, expected at most {limits.block}")
    return RepoError(Kind.TOO_LARGE, at, f"more than {limits.blocks} blocks")


def _header(car: bytes) -> tuple[tuple[Cid, ...], int]:
    """The roots, and where the frames begin."""
    try:
        size, start = varint(car, 0)
    except CidError as error:
        raise RepoError(Kind.CAR_HEADER, 0, str(error)) from None
    end = start + size
    if end > len(car):
        raise RepoError(Kind.CAR_HEADER, 0, f"a header that says {size} bytes, {len(car) - start} follow")
    try:
        header = cbor.decode(car[start:end])
    except cbor.CborError as error:
        raise RepoError(Kind.CAR_HEADER, 0, f"no CAR header, at its {error}") from None
    if not isinstance(header, dict) or header.keys() != {"roots", "version"}:
        raise RepoError(Kind.CAR_HEADER, 0, "no CAR header, expected a map of roots and version")
    version, roots = header["version"], header["roots"]
    if version != 1 or isinstance(version, bool | float):
        raise RepoError(Kind.CAR_HEADER, 0, f"a CAR of version {version!r:.20}, expected 1")
    if not isinstance(roots, list) or not roots:
        raise RepoError(Kind.CAR_HEADER, 0, "a CAR without a root, expected one or more")
    links = tuple(root for root in roots if isinstance(root, Cid))
    if len(links) != len(roots):
        raise RepoError(Kind.CAR_HEADER, 0, "a root that is no link")
    return links, end


def write_car(roots: Iterable[Cid], blocks: Iterable[tuple[Cid, bytes]]) -> bytes:
    """A CAR of these blocks, in this order."""
    header = cbor.encode({"roots": list(roots), "version": 1})
    parts = [to_varint(len(header)), header]
    for cid, block in blocks:
        parts += to_varint(len(cid) + len(block)), cid, block
    return b"".join(parts)
