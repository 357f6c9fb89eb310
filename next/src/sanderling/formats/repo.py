"""A repo's CAR to its records: for reader processes, since the bytes are a stranger's.

Faults are looked for as the bytes come: the CAR's size, its header, its frames one by one (length, CID, size, hash),
the commit, then the tree in order, each node whole before its keys.
"""

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from sanderling.formats.car import CarIndex, CarLimits, RepoError, RepoFault, index_car
from sanderling.formats.dag_cbor import CID_SIZE, DAG_CBOR, CborError, Cid, Value, decode, record_json
from sanderling.formats.mst import Leaf, walk

# The network's rules: a collection is at most 317 characters, an rkey 512 but neither . nor .., of these characters.
_KEY = re.compile(rb"([a-zA-Z0-9_~:.-]{1,317})/(?!\.\.?\Z)([a-zA-Z0-9_~:.-]{1,512})")
_LONGEST_TEXT = 2048  # of a DID by the network's rules; a rev has thirteen
_u16, _u32 = struct.Struct("<H"), struct.Struct("<I")


class RepoRecord(NamedTuple):
    """One record of a repo."""

    collection: str
    rkey: str
    json: bytes


class RepoCollection(NamedTuple):
    """The records of one collection, as an .rca compresses them: u16 size, rkey, u32 size, JSON, and so on."""

    name: str
    records: int
    data: bytes


class RepoStats(NamedTuple):
    """What was seen on the way. Nothing is dropped without being counted."""

    blocks: int = 0  # frames of the CAR
    records: int = 0  # kept
    json_bytes: int = 0  # of the records kept
    missing: int = 0  # records that the tree names and the CAR does not hold
    bad_records: int = 0  # dropped: no DAG-CBOR, or nested too deep
    bad_keys: int = 0  # dropped: not collection/rkey
    floats: int = 0  # in the records kept; the network forbids them, and some are there


class Repo(NamedTuple):
    """What a CAR holds. Collections are in bytewise order of name and never empty, records in the tree's order."""

    did: str
    rev: str  # "" where a commit of version 2 has none
    version: int
    collections: tuple[RepoCollection, ...]
    stats: RepoStats

    def records(self) -> Iterator[RepoRecord]:
        """All records, collection by collection."""
        for name, count, data in self.collections:
            yield from split_records(name, count, data)


def split_records(name: str, count: int, data: bytes) -> Iterator[RepoRecord]:
    """The records of a collection. Raises ValueError if `data` is not exactly that."""
    at, end = 0, len(data)
    try:
        for _ in range(count):
            start = at + 2
            middle = start + (data[at] | data[at + 1] << 8)
            (size,) = _u32.unpack_from(data, middle)
            at = middle + 4 + size
            if at > end:
                break
            yield RepoRecord(name, data[start:middle].decode(), data[middle + 4 : at])
    except (struct.error, IndexError, UnicodeDecodeError):
        at = -1
    if at != end:
        raise ValueError(f"{name[:80]!r}: {end} bytes that are not {count} records")


def parse_repo(car: bytes, *, verify: bool = True, cids: bool = False, limits: CarLimits = CarLimits()) -> Repo:  # noqa: B008 - frozen
    """The records of the repo in `car`. Raises RepoError.

    `verify` checks the hash of every block; `cids` keeps map entries called `cid`, which are dropped otherwise. Whether
    the repo is the one that was asked for is the caller's to check, by its DID. The signature is not checked.
    """
    index = index_car(car, verify=verify, limits=limits)
    root = index.roots[0]
    if root not in index.spans:
        raise RepoError(RepoFault.COMMIT_MISSING, 0, f"the root {root} is not in the CAR")
    offset, end = index.spans[root]
    try:
        did, rev, version, tree = _commit(root, decode(car[offset:end]))
    except ValueError as error:
        raise RepoError(RepoFault.COMMIT_BAD, offset, f"no commit: {error}") from None
    leaves = walk(car, index.spans, tree, offset, limits)
    return _collect(car, index, leaves, Repo(did, rev, version, (), RepoStats()), cids=cids, limits=limits)


def _commit(root: Cid, value: Value) -> tuple[str, str, int, Cid]:
    """DID, rev, version and tree of a commit. Raises ValueError, whatever is wrong with a stranger's bytes."""
    if root[:4] != DAG_CBOR:
        raise ValueError(f"a root of {root[:4].hex()}, expected DAG-CBOR")
    if not isinstance(value, dict):
        raise ValueError("no map")
    version, tree = value.get("version"), value.get("data")
    if not isinstance(version, int) or isinstance(version, bool) or version not in (2, 3):
        raise ValueError(f"version {version!r:.20}, expected 2 or 3")
    did = value.get("did")
    if not isinstance(did, str) or not did.startswith("did:") or len(did.encode()) > _LONGEST_TEXT:
        raise ValueError(f"did {did!r:.80}")
    # Commits of version 2 were made before there were revs, and some have no prev.
    rev = value.get("rev", "" if version == 2 else None)
    if not isinstance(rev, str) or len(rev.encode()) > _LONGEST_TEXT or not (rev or version == 2):
        raise ValueError(f"rev {rev!r:.80}, expected a text")
    if not isinstance(tree, Cid) or len(tree) != CID_SIZE or tree[:4] != DAG_CBOR:
        raise ValueError("data that is no link to a node")
    if not isinstance(value.get("prev", None if version == 2 else ""), Cid | None):
        raise ValueError("prev that is neither null nor a link")
    if not isinstance(value.get("sig"), bytes) or isinstance(value["sig"], Cid):
        raise ValueError("sig that is no bytes")
    return did, rev, version, tree


def _collect(car: bytes, index: CarIndex, leaves: Iterator[Leaf], repo: Repo, *, cids: bool, limits: CarLimits) -> Repo:
    """The repo with its records."""
    spans, nesting, most, strip = index.spans, limits.nesting, limits.output, not cids
    read = records = json_bytes = missing = bad_records = bad_keys = floats = 0
    collections: list[RepoCollection] = []
    name, count, data = b"", 0, bytearray()
    split, pack_u16, pack_u32 = _KEY.fullmatch, _u16.pack, _u32.pack
    for key, record in leaves:
        parts = split(key)
        if parts is None:
            bad_keys += 1
            continue
        if record not in spans:
            missing += 1
            continue
        start, end = spans[record]
        read += end - start + len(key)  # a key is a few bytes in its node, whatever it unfolds to
        if read > most:
            raise RepoError(RepoFault.TOO_LARGE, start, f"records and keys of {read} bytes, expected at most {most}")
        try:
            json, found = record_json(car[start:end], strip=strip, nesting=nesting)
        except CborError:
            bad_records += 1
            continue
        floats += found
        json_bytes += len(json)
        if json_bytes > most:
            raise RepoError(RepoFault.TOO_LARGE, start, f"JSON of {json_bytes} bytes, expected at most {most}")
        collection, rkey = parts.groups()
        if collection != name:  # keys ascend: those of a collection come one after the other
            if count:
                collections.append(RepoCollection(name.decode("ascii"), count, bytes(data)))
            name, count = collection, 0
            data.clear()
        data += pack_u16(len(rkey)) + rkey + pack_u32(len(json)) + json
        count += 1
        records += 1
    if count:
        collections.append(RepoCollection(name.decode("ascii"), count, bytes(data)))
    collections.sort()  # the tree has `a.b.c` before `a.b`: `.` is less than `/`
    stats = RepoStats(index.blocks, records, json_bytes, missing, bad_records, bad_keys, floats)
    return repo._replace(collections=tuple(collections), stats=stats)
