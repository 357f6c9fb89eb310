"""A repo's CAR to its records, in Python: the reference that `_repo.c` must equal byte for byte.

Kinds are found in the order of `Kind`, as the bytes come: the CAR's size, its header, its frames one by one (length,
CID, size, hash), the commit, then the tree in order, each node whole before its keys. `tests/formats` says the rest.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sanderling.formats import cbor
from sanderling.formats.car import Car, read_car
from sanderling.formats.cid import DAG_CBOR, SIZE, Cid
from sanderling.formats.mst import Leaf, walk
from sanderling.formats.parsed import Cids, Collection, Kind, Limits, Repo, RepoError, Stats
from sanderling.formats.record import record_json

# The network's rules: a collection is at most 317 characters, an rkey 512 but neither . nor .., of these characters.
_KEY = re.compile(rb"([a-zA-Z0-9_~:.-]{1,317})/(?!\.\.?\Z)([a-zA-Z0-9_~:.-]{1,512})")
# Of a DID by the network's rules; a rev has thirteen.
_LONGEST_TEXT = 2048
_DEFAULT = Limits()
_u16 = struct.Struct("<H").pack
_u32 = struct.Struct("<I").pack


Record = tuple[bytes, bytes, bytes]  # collection, rkey, JSON


class Commit(NamedTuple):
    """What the root block says. The signature is not checked: whether the host may speak for the DID is not known."""

    did: str
    rev: str
    version: int
    data: Cid


def parse_repo(car: bytes, *, verify: bool = True, cids: Cids = "strip", limits: Limits = _DEFAULT) -> Repo:
    """The records of the repo in `car`. Raises RepoError.

    `verify` checks the hash of every block. `cids` says whether map entries called `cid` are stripped from the JSON.
    Whether the repo is the one that was asked for is the caller's to check, by `did`.
    """
    if cids not in ("strip", "keep"):
        raise ValueError(f"cids is {cids!r}, expected 'strip' or 'keep'")
    index = read_car(car, verify=verify, limits=limits)
    commit, offset = _commit(car, index)
    leaves = walk(car, index.spans, commit.data, linked_at=offset, limits=limits)
    tally = _Tally()
    records = _records(car, index, leaves, tally, strip=cids == "strip", limits=limits)
    # The tree's order is nearly that of names; but `a.b.c` comes before `a.b` there, since `.` is less than `/`.
    collections = tuple(sorted(_collections(records)))
    stats = Stats(index.frames, sum(collection.count for collection in collections), **asdict(tally))
    return Repo(commit.did, commit.rev, commit.version, collections, stats)


def _commit(car: bytes, index: Car) -> tuple[Commit, int]:
    """The commit, and where its block begins."""
    root = index.roots[0]
    span = index.spans.get(root)
    if span is None:
        raise RepoError(Kind.COMMIT_MISSING, 0, f"the root {root.text} is not in the CAR")
    start, end = span
    if root[:4] != DAG_CBOR:
        raise RepoError(Kind.COMMIT_BAD, start, f"a root of {root[:4].hex()}, expected DAG-CBOR")
    try:
        return _read_commit(cbor.decode(car[start:end])), start
    except (cbor.CborError, _NoCommitError) as error:
        raise RepoError(Kind.COMMIT_BAD, start, f"no commit: {error}") from None


class _NoCommitError(Exception):
    """Says what a commit lacks."""


def _read_commit(value: cbor.Value) -> Commit:
    if not isinstance(value, dict):
        raise _NoCommitError("no map")
    version, data = value.get("version"), value.get("data")
    if isinstance(version, bool | float) or version not in (2, 3):
        raise _NoCommitError(f"version {version!r:.20}, expected 2 or 3")
    did = value.get("did")
    if not isinstance(did, str) or not did.startswith("did:") or len(did.encode()) > _LONGEST_TEXT:
        raise _NoCommitError(f"did {did!r:.80}")
    # Commits of version 2 were made before there were revs, and some have no prev.
    rev = value.get("rev", "" if version == 2 else None)
    if not isinstance(rev, str) or len(rev.encode()) > _LONGEST_TEXT or not (rev or version == 2):
        raise _NoCommitError(f"rev {rev!r:.80}, expected a text")
    if not isinstance(data, Cid) or len(data) != SIZE or data[:4] != DAG_CBOR:
        raise _NoCommitError("data that is no link to a node")
    if not isinstance(value.get("prev", None if version == 2 else ""), Cid | None):
        raise _NoCommitError("prev that is neither null nor a link")
    if not isinstance(value.get("sig"), bytes) or isinstance(value["sig"], Cid):
        raise _NoCommitError("sig that is no bytes")
    return Commit(did, rev, int(version), data)


@dataclass(slots=True)
class _Tally:
    """What becomes of the Stats."""

    json_bytes: int = 0
    missing: int = 0
    bad_records: int = 0
    bad_keys: int = 0
    floats: int = 0


def _records(
    car: bytes, index: Car, leaves: Iterator[Leaf], tally: _Tally, *, strip: bool, limits: Limits
) -> Iterator[Record]:
    """The records of these leaves that can be had; the others are counted."""
    spans, nesting, most = index.spans, limits.nesting, limits.output
    read = 0
    for key, record, _ in leaves:
        parts = _KEY.fullmatch(key)
        if parts is None:
            tally.bad_keys += 1
            continue
        span = spans.get(record)
        if span is None:
            tally.missing += 1
            continue
        start, end = span
        read += end - start + len(key)  # a key is a few bytes in its node, whatever it unfolds to
        if read > most:
            raise RepoError(Kind.TOO_LARGE, start, f"records and keys of {read} bytes, expected at most {most}")
        try:
            json, floats = record_json(car[start:end], strip=strip, nesting=nesting)
        except cbor.CborError:
            tally.bad_records += 1
            continue
        tally.floats += floats
        tally.json_bytes += len(json)
        if tally.json_bytes > most:
            raise RepoError(Kind.TOO_LARGE, start, f"JSON of {tally.json_bytes} bytes, expected at most {most}")
        collection, rkey = parts.groups()
        yield collection, rkey, json


def _collections(records: Iterator[Record]) -> Iterator[Collection]:
    """The records in sheaves. Keys ascend, so those of one collection come without a break."""
    for name, group in groupby(records, itemgetter(0)):
        count, data = 0, bytearray()
        for _, rkey, json in group:
            count += 1
            data += _u16(len(rkey)) + rkey
            data += _u32(len(json))
            data += json
        yield Collection(name.decode("ascii"), count, bytes(data))
