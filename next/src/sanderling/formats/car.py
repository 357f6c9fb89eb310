"""CARv1: a header that names the root, then frames of a CID and the block it names, in any order."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from sanderling.formats.dag_cbor import CID_SIZE, DAG_CBOR, RAW, CborError, Cid, decode, read_varint

Span = tuple[int, int]  # where a block begins and ends in the CAR


class RepoFault(StrEnum):
    """What is wrong with a repo. They are looked for in this order, and the first one found is named."""

    TOO_LARGE = "too_large"  # than one of the limits, wherever it shows
    CAR_HEADER = "car_header"
    CAR_FRAME = "car_frame"
    CAR_CID = "car_cid"
    HASH_MISMATCH = "hash_mismatch"
    COMMIT_MISSING = "commit_missing"
    COMMIT_BAD = "commit_bad"
    MST_MISSING_NODE = "mst_missing_node"
    MST_ORDER = "mst_order"
    MST_DEPTH = "mst_depth"
    MST_NODE = "mst_node"
    MST_PREFIX = "mst_prefix"


class RepoError(ValueError):
    """A CAR is no repo that can be read. `offset` is the byte of the CAR at which its faulty part begins."""

    def __init__(self, fault: RepoFault, offset: int, found: str) -> None:
        super().__init__(f"{fault} at byte {offset}: {found}")
        self.fault = fault
        self.offset = offset


@dataclass(frozen=True, slots=True)
class CarLimits:
    """What a repo may take."""

    car: int = 100 << 20  # bytes
    block: int = 2 << 20  # bytes of one; records may be 1 MiB, and a commit's blocks 2 MiB together
    depth: int = 128  # of the tree: 256 bits of hash, two to a level
    nesting: int = 64  # of maps and lists in a record; the network's advice is 32
    # Bytes of keys and CBOR that are read, and of JSON that is made: a thousand keys may name one record of a megabyte.
    output: int = 1 << 30

    def __post_init__(self) -> None:
        if min(self.car, self.block, self.depth, self.nesting, self.output) < 1:
            raise ValueError(f"{self}, expected numbers from 1 up")
        if self.nesting > 256:  # maps and lists are read by functions that call themselves, and a stack has its end
            raise ValueError(f"nesting is {self.nesting}, expected at most 256")


def index_car(car: bytes, *, verify: bool, limits: CarLimits) -> tuple[tuple[Cid, ...], dict[bytes, Span], int]:
    """The roots of a CAR, where each of its blocks is, and how many blocks it has, of which some may be equal.

    Checks the frames and, to `verify`, the hash of every block. Of a CID that is there twice, the last block counts.
    Raises RepoError.
    """
    if len(car) > limits.car:
        raise RepoError(RepoFault.TOO_LARGE, 0, f"{len(car)} bytes, expected at most {limits.car}")
    roots, at = _header(car)
    spans: dict[bytes, Span] = {}
    blocks, end = 0, len(car)
    sha256, size, kinds = hashlib.sha256, CID_SIZE, (DAG_CBOR, RAW)
    while at < end:
        # Most frames are of 128 to 16,383 bytes; without this the framing takes a third longer.
        if car[at] >= 0x80 and at + 1 < end and 0 < car[at + 1] < 0x80:
            start, stop = at + 2, at + 2 + (car[at] & 0x7F | car[at + 1] << 7)
        else:
            try:
                length, start = read_varint(car, at)
            except CborError as error:
                raise RepoError(RepoFault.CAR_FRAME, at, str(error)) from None
            stop = start + length
        if not start < stop <= end:
            raise RepoError(RepoFault.CAR_FRAME, at, f"a frame that says {stop - start} bytes, {end - start} follow")
        cid = car[start : start + size]
        start += size
        if start > stop or cid[:4] not in kinds:
            found = f"a CID of {cid[:4].hex()}…, expected version 1, DAG-CBOR or raw, sha2-256"
            raise RepoError(RepoFault.CAR_CID, start - size, found)
        if stop - start > limits.block:
            found = f"a block of {stop - start} bytes, expected at most {limits.block}"
            raise RepoError(RepoFault.TOO_LARGE, at, found)
        if verify and sha256(car[start:stop]).digest() != cid[4:]:
            raise RepoError(RepoFault.HASH_MISMATCH, start, f"a block that is not {Cid(cid)}")
        spans[cid] = start, stop
        blocks += 1
        at = stop
    return roots, spans, blocks


def _header(car: bytes) -> tuple[tuple[Cid, ...], int]:
    """The roots, and where the frames begin."""
    try:
        size, start = read_varint(car, 0)
        header = decode(car[start : start + size]) if size <= len(car) - start else None
    except CborError as error:
        raise RepoError(RepoFault.CAR_HEADER, 0, f"no CAR header: {error}") from None
    if not isinstance(header, dict) or header.keys() != {"roots", "version"}:
        raise RepoError(RepoFault.CAR_HEADER, 0, "no CAR header, expected a map of roots and version")
    version, roots = header["version"], header["roots"]
    if repr(version) != "1":
        raise RepoError(RepoFault.CAR_HEADER, 0, f"a CAR of version {version!r:.20}, expected 1")
    links = tuple(root for root in roots if isinstance(root, Cid)) if isinstance(roots, list) else ()
    if not links or [*links] != roots:
        raise RepoError(RepoFault.CAR_HEADER, 0, "a CAR without a root, or with one that is no link")
    return links, start + size
