"""What parsing a repo gives: its records by collection, or the reason why there are none. `repo` shows these names."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

Cids = Literal["strip", "keep"]


class Kind(StrEnum):
    """What is wrong with a repo. Checked in this order, and the first thing found is the one that is said."""

    TOO_LARGE = "too_large"  # than one of the Limits, wherever it shows
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
    """A CAR is not a repo that can be read. `offset` is a byte of the CAR.

    For the header it is 0, for a frame or its size the frame's first byte, for a CID or a hash the first byte of the
    CID or of the block; for the commit, a node or a link in it, the first byte of the block it is in.
    """

    def __init__(self, kind: Kind, offset: int, found: str) -> None:
        super().__init__(f"{kind} at byte {offset}: {found}")
        self.kind = kind
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a repo may ask of us."""

    car: int = 100 * 2**20  # bytes; what the network's own crawlers allow, and no known repo is near it
    block: int = 2 * 2**20  # bytes of one; records may be 1 MiB, and a commit's blocks 2 MiB together
    blocks: int = 5_000_000  # more than fit into 100 MiB: for those who raise `car`
    depth: int = 128  # of the tree: 256 bits of hash, two to a level
    nesting: int = 64  # of maps and lists in a record; the network's advice is 32
    # Bytes of JSON in all, and of CBOR read to make it: a thousand keys may name one record of a megabyte.
    output: int = 2**30

    def __post_init__(self) -> None:
        if min(self.car, self.block, self.blocks, self.depth, self.nesting, self.output) < 1:
            raise ValueError(f"{self}, expected numbers from 1 up")
        # Maps and lists are read by functions that call themselves, and a stack has its end.
        if self.nesting > 256:
            raise ValueError(f"nesting is {self.nesting}, expected at most 256")


class Collection(NamedTuple):
    """The records of one collection. `data` is what an .rca keeps compressed: (u16 size, rkey, u32 size, JSON)*."""

    name: str
    count: int  # type: ignore[assignment] # hides the method of tuples, which nobody needs here
    data: bytes


class Stats(NamedTuple):
    """What was seen on the way. Nothing is dropped without being counted."""

    blocks: int  # frames of the CAR
    records: int  # kept
    json_bytes: int  # of the records kept
    missing: int  # records the tree names and the CAR does not hold
    bad_records: int  # dropped: no DAG-CBOR, or nested too deep
    bad_keys: int  # dropped: not collection/rkey
    floats: int  # in the records kept; the network forbids them, and some are there


class Repo(NamedTuple):
    """A repo's records. Collections are in bytewise order of name and never empty, records in the tree's order."""

    did: str
    rev: str  # "" where a commit of version 2 has none
    version: int
    collections: tuple[Collection, ...]
    stats: Stats
