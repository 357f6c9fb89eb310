"""A repo's CAR to its records: for reader processes, since the bytes are a stranger's.

Faults are looked for as the bytes come: the CAR's size, its header, its frames one by one (length, CID, size, hash),
the commit, then the tree in order, each node whole before its keys.
"""

import re
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from sanderling.formats.car import CarLimits, RepoError, RepoFault, Span, index_car
from sanderling.formats.dag_cbor import CID_SIZE, DAG_CBOR, CborError, Cid, Value, decode, record_json
from sanderling.formats.mst import Leaf, walk

# The network's rules: a collection is at most 317 characters, an rkey 512 but neither . nor .., of these characters.
_KEY = re.compile(rb"[a-zA-Z0-9_~:.-]{1,317}/(?!\.\.?\Z)[a-zA-Z0-9_~:.-]{1,512}")
_LONGEST_TEXT = 2048  # of a DID by the network's rules; a rev has thirteen
_U32 = struct.Struct("<I")


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
            (size,) = _U32.unpack_from(data, middle)
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
    (root, *_), spans, blocks = index_car(car, verify=verify, limits=limits)
    if root not in spans:
        raise RepoError(RepoFault.COMMIT_MISSING, 0, f"the root {root} is not in the CAR")
    offset, end = spans[root]
    try:
        did, rev, version, tree = _commit(root, decode(car[offset:end]))
    except ValueError as error:
        raise RepoError(RepoFault.COMMIT_BAD, offset, f"no commit: {error}") from None
    leaves = walk(car, spans, tree, offset, limits)
    collections, counts = _collect(car, spans, leaves, strip=not cids, limits=limits)
    return Repo(did, rev, version, collections, RepoStats(blocks, *counts))


def _commit(root: Cid, value: Value) -> tuple[str, str, int, Cid]:
    """DID, rev, version and tree of a commit. Raises ValueError, whatever is wrong with a stranger's bytes."""
    if root[:4] != DAG_CBOR:
        raise ValueError(f"a root of {root[:4].hex()}, expected DAG-CBOR")
    if not isinstance(value, dict):
        raise ValueError("no map")
    did, version, tree = value.get("did"), value.get("version"), value.get("data")
    if repr(version) not in ("2", "3") or not isinstance(version, int):
        raise ValueError(f"version {version!r:.20}, expected 2 or 3")
    if not isinstance(did, str) or not did.startswith("did:") or len(did.encode()) > _LONGEST_TEXT:
        raise ValueError(f"did {did!r:.80}")
    # Commits of version 2 were made before there were revs, and some have no prev.
    old = version == 2
    rev = value.get("rev", "" if old else None)
    if not isinstance(rev, str) or len(rev.encode()) > _LONGEST_TEXT or not (rev or old):
        raise ValueError(f"rev {rev!r:.80}, expected a text")
    if not isinstance(tree, Cid) or len(tree) != CID_SIZE or tree[:4] != DAG_CBOR:
        raise ValueError("data that is no link to a node")
    if not isinstance(value.get("prev", None if old else ""), Cid | None) or type(value.get("sig")) is not bytes:
        raise ValueError("prev that is neither null nor a link, or sig that is no bytes")
    return did, rev, version, tree


def _collect(
    car: bytes, spans: dict[bytes, Span], leaves: Iterator[Leaf], *, strip: bool, limits: CarLimits
) -> tuple[tuple[RepoCollection, ...], tuple[int, ...]]:
    """The records of a repo, and the numbers of RepoStats but the first."""
    used = json_bytes = missing = bad_records = bad_keys = floats = 0
    collections: list[RepoCollection] = []
    prefix, data, count = b"/", bytearray(), 0  # no key begins with it
    for key, record in leaves:
        if not _KEY.fullmatch(key):
            bad_keys += 1
            continue
        span = spans.get(record)
        if span is None:
            missing += 1
            continue
        start, end = span
        used += end - start + len(key)  # a key is a few bytes in its node, whatever it unfolds to
        if used > limits.output:
            wrong = f"{used} bytes of keys, records and JSON, expected at most {limits.output}"
            raise RepoError(RepoFault.TOO_LARGE, start, wrong)
        try:
            json, number = record_json(car[start:end], strip=strip, nesting=limits.nesting)
        except CborError:
            bad_records += 1
            continue
        if not key.startswith(prefix):  # keys ascend: those of a collection come one after the other
            collections.append(RepoCollection(prefix[:-1].decode("ascii"), count, bytes(data)))
            prefix, data, count = key[: key.index(b"/") + 1], bytearray(), 0
        rkey = key[len(prefix) :]
        data += _before_json(len(rkey))(len(rkey), rkey, len(json))
        data += json
        count += 1
        floats += number
        used += len(json)
        json_bytes += len(json)
    collections.append(RepoCollection(prefix[:-1].decode("ascii"), count, bytes(data)))
    # The tree has `a.b.c` before `a.b`: `.` is less than `/`.
    found = tuple(sorted(each for each in collections if each.records))
    return found, (sum(each.records for each in found), json_bytes, missing, bad_records, bad_keys, floats)


@cache
def _before_json(size: int) -> Callable[[int, bytes, int], bytes]:
    """Packs what comes before a record's JSON, where the rkey has that size."""
    return struct.Struct(f"<H{size}sI").pack
