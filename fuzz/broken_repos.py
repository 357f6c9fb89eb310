"""CARs that are wrong in one way each: every kind of fault a parser must name, and what it must merely count."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import NamedTuple

from sanderling.formats import cbor
from sanderling.formats.car import read_car, write_car
from sanderling.formats.cbor import Value
from sanderling.formats.cid import RAW, Cid, to_varint
from sanderling.formats.mst import build, walk, write_node
from sanderling.formats.parsed import Kind, Limits

_LINK = b"\xd8\x2a\x58\x25\0"


class Broken(NamedTuple):
    """A CAR, and what is wrong with it; None if it can be read, with something to count or to ignore."""

    name: str
    kind: Kind | None
    car: bytes
    verify: bool = True  # false where a hash is forged, and the fault lies behind it


def mutations(car: bytes, rng: Random) -> Iterator[Broken]:
    """Variants of `car`, a sound repo with at least four records."""
    parts = _Parts(car)
    yield from _framing(parts, rng)
    yield from _cids(parts)
    yield from _commits(parts, rng)
    yield from _trees(parts, rng)
    yield from _nodes(parts)
    yield from _harmless(parts)


class _Parts:
    """A repo taken apart, so that it can be put together wrongly."""

    def __init__(self, car: bytes) -> None:
        index = read_car(car, limits=Limits())
        self.car = car
        self.root = index.roots[0]
        self.blocks = {Cid(cid): car[start:end] for cid, (start, end) in index.spans.items()}
        commit = cbor.decode(self.blocks[self.root])
        assert isinstance(commit, dict)  # noqa: S101 - the car is sound
        self.commit = commit
        self.tree = Cid(commit["data"])  # type: ignore[arg-type] # as above
        self.leaves = [(key, Cid(record)) for key, record, _ in walk(car, index.spans, self.tree, limits=Limits())]

    def with_root(self, block: bytes, blocks: Mapping[Cid, bytes] | None = None) -> bytes:
        """A CAR with `block` as the commit."""
        return write_car([Cid.of(block)], {Cid.of(block): block, **(self.blocks if blocks is None else blocks)}.items())

    def with_commit(self, **fields: Value) -> bytes:
        """A CAR whose commit says this instead."""
        return self.with_root(cbor.encode(self.commit | fields))

    def with_node(self, *nodes: bytes) -> bytes:
        """A CAR with the first of these as the root of the tree, and the others beside it."""
        blocks = {**self.blocks, **{Cid.of(node): node for node in nodes}}
        return self.with_root(cbor.encode(self.commit | {"data": Cid.of(nodes[0])}), blocks)

    def with_keys(self, *keys: bytes) -> bytes:
        """A CAR with one node of these keys, as they are: sorted or not, sound or not."""
        record = self.leaves[0][1]
        return self.with_node(write_node(None, [(key, record, None) for key in keys]))


def _framing(parts: _Parts, rng: Random) -> Iterator[Broken]:
    car, root = parts.car, parts.root
    header = cbor.encode({"roots": [root], "version": 1})
    frames = car[1 + len(header) :]
    cut = rng.randrange(1, 36)

    def headed(value: Value) -> bytes:
        block = cbor.encode(value)
        return to_varint(len(block)) + block + frames

    for name, broken in {
        "an empty body": b"",
        "not a CAR": b"<!doctype html>",
        "a cut header": car[:20],
        "a header of 2**40 bytes": to_varint(2**40) + car[1:],
        "a CAR of version 2": bytes.fromhex("0aa16776657273696f6e02") + car,
        "a header of version 2": headed({"roots": [root], "version": 2}),
        "a header of version true": headed({"roots": [root], "version": True}),
        "no root": headed({"roots": [], "version": 1}),
        "a root that is no link": headed({"roots": [bytes(root)], "version": 1}),
        "a header that is a list": headed([[root], 1]),
        "a header with more in it": headed({"roots": [root], "version": 1, "x": 1}),
    }.items():
        yield Broken(name, Kind.CAR_HEADER, broken)
    for name, broken in {
        "cut in the last frame": car[:-cut],
        "a frame of no bytes": car + b"\0",
        "a frame of 2**40 bytes": car + to_varint(2**40),
        "a frame of 2**63 - 1 bytes": car + to_varint(2**63 - 1),
        "a frame of 2**63 bytes": car + to_varint(2**63),
        "a varint cut off": car + b"\x80",
        "a varint without end": car + b"\xff" * 40,
        "a varint not the shortest": car + b"\xa5\x00" + RAW + bytes(33),
        "one byte too much": car + b"\x01",
    }.items():
        yield Broken(name, Kind.CAR_FRAME, broken)
    flipped = bytearray(car)
    flipped[-cut] ^= 1 << rng.randrange(8)
    yield Broken("a flipped bit", Kind.HASH_MISMATCH, bytes(flipped))
    large = bytes(Limits().block + 1)
    frame = to_varint(36 + len(large)) + Cid.of(large, RAW) + large
    yield Broken("a large block", Kind.TOO_LARGE, car + frame)


def _cids(parts: _Parts) -> Iterator[Broken]:
    digest = bytes(parts.root[4:])
    for name, cid in {
        "CIDv0": b"\x12\x20" + digest,
        "a codec that is not ours": b"\x01\x70\x12\x20" + digest,
        "a hash that is not ours": b"\x01\x71\x16\x20" + digest,
        "a short hash": b"\x01\x71\x12\x1f" + digest[:31],
        "a CID cut off": parts.root[:35],
    }.items():
        yield Broken(f"a frame with {name}", Kind.CAR_CID, parts.car + to_varint(len(cid)) + cid)


def _commits(parts: _Parts, rng: Random) -> Iterator[Broken]:
    without_root = {cid: block for cid, block in parts.blocks.items() if cid != parts.root}
    yield Broken("no commit", Kind.COMMIT_MISSING, write_car([parts.root], without_root.items()))
    odd = Cid(b"\x01\x70\x12\x20" + rng.randbytes(32))
    yield Broken("a root that cannot be there", Kind.COMMIT_MISSING, write_car([odd], parts.blocks.items()))
    raw = Cid.of(parts.blocks[parts.root], RAW)
    blocks = parts.blocks | {raw: parts.blocks[parts.root]}
    yield Broken("a raw root", Kind.COMMIT_BAD, write_car([raw], blocks.items()))
    changes: dict[str, dict[str, Value]] = {
        "of version 1": {"version": 1},
        "of version 4": {"version": 4},
        "of version 3.0": {"version": 3.0},
        "of nobody": {"did": None},
        "of somebody without a DID": {"did": "alice.example"},
        "of a very long DID": {"did": "did:plc:" + "a" * 2048},
        "without a rev": {"rev": None},
        "with an empty rev": {"rev": "", "version": 3},
        "without a tree": {"data": None},
        "with a raw tree": {"data": Cid.of(b"", RAW)},
        "with bytes for a tree": {"data": bytes(parts.tree)},
        "with a previous one in words": {"prev": "none"},
        "signed in words": {"sig": "alice"},
        "signed with a link": {"sig": parts.root},
    }
    for name, fields in changes.items():
        yield Broken(f"a commit {name}", Kind.COMMIT_BAD, parts.with_commit(**fields))
    for field in ("did", "data", "sig", "version"):
        rest = {key: value for key, value in parts.commit.items() if key != field}
        yield Broken(f"a commit that lacks {field}", Kind.COMMIT_BAD, parts.with_root(cbor.encode(rest)))
    yield Broken("a commit that is a list", Kind.COMMIT_BAD, parts.with_root(cbor.encode([parts.commit])))
    yield Broken("a commit with more behind", Kind.COMMIT_BAD, parts.with_root(parts.blocks[parts.root] + b"\0"))


def _trees(parts: _Parts, rng: Random) -> Iterator[Broken]:
    (one, first), (two, second), *_ = parts.leaves
    leaf = write_node(None, [(one, first, None)])
    gone = Cid.of(rng.randbytes(8))
    empty = write_node(None, [])

    yield Broken("no root of the tree", Kind.MST_MISSING_NODE, parts.with_commit(data=gone))
    for name, node in {
        "no left tree": write_node(gone, [(one, first, None)]),
        "no right tree": write_node(None, [(one, first, gone)]),
    }.items():
        yield Broken(name, Kind.MST_MISSING_NODE, parts.with_node(node))

    yield Broken("keys swapped", Kind.MST_ORDER, parts.with_keys(two, one))
    yield Broken("a key twice", Kind.MST_ORDER, parts.with_keys(one, one))
    yield Broken("an empty key", Kind.MST_ORDER, parts.with_keys(b""))
    for name, nodes in {
        "a right tree that is left": (write_node(None, [(two, second, Cid.of(leaf))]), leaf),
        "a tree with its own key": (write_node(Cid.of(leaf), [(one, first, None)]), leaf),
        "a node twice": (write_node(Cid.of(empty), [(one, first, Cid.of(empty))]), empty),
    }.items():
        yield Broken(name, Kind.MST_ORDER, parts.with_node(*nodes))

    for name, ring in {
        "a ring of one": {gone: write_node(gone, [])},
        "a ring of one with a key": {gone: write_node(None, [(one, first, gone)])},
        "a ring of two": {gone: write_node(parts.root, []), parts.root: write_node(gone, [])},
    }.items():
        forged = cbor.encode(parts.commit | {"data": gone})
        yield Broken(name, Kind.MST_ORDER, parts.with_root(forged, parts.blocks | ring), verify=False)

    chain = [empty]
    for _ in range(2000):
        chain.append(write_node(Cid.of(chain[-1]), []))
    yield Broken("a chain of empty nodes", Kind.MST_DEPTH, parts.with_node(*reversed(chain)))


def _nodes(parts: _Parts) -> Iterator[Broken]:
    (key, record), *_ = parts.leaves
    good: dict[str, Value] = {"k": key, "p": 0, "t": None, "v": record}
    plain = write_node(None, [(key, record, None)])
    link = _LINK + record

    def node(*entries: dict[str, Value], left: Value = None) -> bytes:
        return cbor.encode({"e": list(entries), "l": left})

    for name, block in {
        "a record for a node": parts.blocks[record],
        "nothing for a node": b"",
        "a node that lacks l": cbor.encode({"e": []}),
        "a node with more in it": cbor.encode({"e": [], "l": None, "x": 1}),
        "a node with more behind it": plain + b"\0",
        "a node cut off": plain[:-1],
        "a node with more entries than it has": plain.replace(b"\xa2ae\x81", b"\xa2ae\x82"),
        "a node of 2**32 - 1 entries": b"\xa2ae\x9a\xff\xff\xff\xff",
        "entries without an end": plain.replace(b"\xa2ae\x81", b"\xa2ae\x9f"),
        "an entry that lacks t": node({"k": key, "p": 0, "v": record}),
        "an entry with more in it": node(good | {"x": 1}),
        "a key in words": node(good | {"k": key.decode()}),
        "a key longer than there is": plain.replace(b"ak" + plain[7:9], b"ak\x59\xff\xff"),
        "a key of 1,025 bytes": node(good | {"k": b"a/" + b"b" * 1023}),
        "a negative prefix": node(good | {"p": -1}),
        "a prefix that is a float": node(good | {"p": 0.0}),
        "a prefix not the shortest": plain.replace(b"ap\0at", b"ap\x18\0at"),
        "a raw tree": node(good | {"t": Cid.of(b"", RAW)}),
        "a raw left tree": node(good, left=Cid.of(b"", RAW)),
        "bytes for a tree": node(good | {"t": bytes(record)}),
        "no record": node(good | {"v": None}),
        "bytes for a record": node(good | {"v": bytes(record)}),
        "a record of another codec": plain.replace(link, _LINK + b"\x01\x70" + record[2:]),
        "a record of another tag": plain.replace(link, b"\xd8\x2b" + link[2:]),
    }.items():
        yield Broken(name, Kind.MST_NODE, parts.with_node(block))
    after = good | {"k": b"~"}
    for name, entries in {
        "a prefix of nothing": [good | {"p": 1}],
        "a prefix longer than the key": [good, after | {"p": len(key) + 1}],
        "a prefix of 2**40": [good, after | {"p": 2**40}],
        "a prefix of 2**63": [good, after | {"p": 2**63}],
    }.items():
        yield Broken(name, Kind.MST_PREFIX, parts.with_node(node(*entries)))


def _harmless(parts: _Parts) -> Iterator[Broken]:
    (key, record), (_, second), *_ = parts.leaves
    without = {cid: block for cid, block in parts.blocks.items() if cid != record}
    yield Broken("a record missing", None, write_car([parts.root], without.items()))
    for name, block in {
        "a number not the shortest": b"\xa1aa\x18\x01",
        "keys out of order": b"\xa2ab\x01aa\x02",
        "NaN": b"\xa1aa\xfb\x7f\xf8" + bytes(6),
        "65 lists": b"\x81" * 65 + b"\0",
        "100,000 lists": b"\x81" * 100_000 + b"\0",
        "a string of 2**63 bytes": b"\x7b\x80" + bytes(7),
        "bad UTF-8": b"\xa1aa\x62\xc3\x28",
        "nothing": b"",
    }.items():
        cid = Cid.of(block)
        root, nodes = build([(b"com.example.bad/a", cid), *parts.leaves])
        blocks = parts.blocks | nodes | {cid: block}
        car = parts.with_root(cbor.encode(parts.commit | {"data": root}), blocks)
        yield Broken(f"a record of {name}", None, car)
    for bad in (b"no-slash", b"a/b/c", b"/a", b"a/", b"a/.", b"a/..", "a/é".encode(), b"a b/c", b"a/" + b"b" * 513):
        yield Broken(f"the key {bad.decode()[:10]!r}", None, parts.with_keys(bad))
    twice = [*parts.blocks.items(), *parts.blocks.items()]
    yield Broken("every block twice", None, write_car([parts.root], twice))
    yield Broken("several roots", None, write_car([parts.root, record, second], parts.blocks.items()))
    raw = parts.blocks | {Cid.of(b"x", RAW): b"x"}
    yield Broken("a raw block that nothing links to", None, write_car([parts.root], raw.items()))
    yield Broken("one record under several keys", None, parts.with_keys(key, key + b"a", key + b"b"))
