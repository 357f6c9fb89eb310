"""The Merkle search tree of a repo: a sorted map of keys to records, whose shape follows from its keys alone.

A node is the map of `e`, its entries, and `l`, the tree left of them. An entry is the map of `k`, the end of its key;
`p`, how many bytes of the key before it come first; `t`, the tree right of it; and `v`, the record. Nothing else is a
node, down to the byte: so it is read here without a CBOR decoder, which is several times as fast and refuses the same.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sanderling.formats import cbor
from sanderling.formats.car import Span
from sanderling.formats.cid import Cid
from sanderling.formats.parsed import Kind, Limits, RepoError

# The network's own limit. It also bounds what a node can unfold to: a thousand short entries may each repeat the
# beginning of one long key.
LONGEST_KEY = 1024

_UNSIGNED = rb"([\x00-\x17]|\x18[\x18-\xff]|\x19(?!\0)..|\x1a(?!\0\0)....|\x1b(?!\0{4}).{8})"
_TREE = rb"(?:\xf6|\xd8\x2a\x58\x25\0(\x01\x71\x12\x20.{32}))"
_RECORD = rb"\xd8\x2a\x58\x25\0(\x01[\x55\x71]\x12\x20.{32})"
_ENTRIES = re.compile(rb"\xa2ae(?:([\x80-\x97])|\x98([\x18-\xff])|\x99((?!\0)..)|\x9a((?!\0\0)....))", re.DOTALL)
# How an entry begins whose suffix is short, as nearly all are, and of how many bytes that is.
_SHORT = {b"\xa4ak%c" % (0x40 + length): length for length in range(24)}
_LONG = re.compile(rb"\xa4ak(?:\x58([\x18-\xff])|\x59((?!\0)..))", re.DOTALL)
_REST = re.compile(rb"ap" + _UNSIGNED + rb"at" + _TREE + rb"av" + _RECORD, re.DOTALL)
_LEFT = re.compile(rb"al" + _TREE, re.DOTALL)


# One key of a node as it is stored: p, k, t and v. A plain tuple, since there are millions of them.
Entry = tuple[int, bytes, bytes | None, bytes]
# One key of the tree: the key, the CID of its record, and where its node stands in the CAR.
Leaf = tuple[bytes, bytes, int]


class Node(NamedTuple):
    """One block of the tree; `left` is its `l`."""

    left: bytes | None
    entries: list[Entry]


def read_node(block: bytes, offset: int = 0) -> Node:
    """The node that `block` is; `offset` is where it stands in the CAR, for the errors. Raises RepoError."""
    head = _ENTRIES.match(block) or _no_node(block, offset, 0)
    inline, *longer = head.groups(b"")
    count = inline[0] & 0x1F if inline else int.from_bytes(b"".join(longer))
    at = head.end()
    entries: list[Entry] = []
    size = 0  # of the key before
    for _ in range(count):
        length = _SHORT.get(block[at : at + 4])
        if length is None:
            long = _LONG.match(block, at) or _no_node(block, offset, at)
            start, length = long.end(), int.from_bytes(long[1] or long[2])
        else:
            start = at + 4
        at = start + length
        rest = _REST.match(block, at) or _no_node(block, offset, at)
        number, tree, record = rest.groups()
        prefix = number[0] if len(number) == 1 else int.from_bytes(number[1:])
        if prefix > size:
            raise RepoError(Kind.MST_PREFIX, offset, f"{prefix} bytes of a key of {size}, entry {len(entries)}")
        size = prefix + length
        if size > LONGEST_KEY:
            raise RepoError(Kind.MST_NODE, offset, f"a key of {size} bytes, expected at most {LONGEST_KEY}")
        entries.append((prefix, block[start:at], tree, record))
        at = rest.end()
    left = _LEFT.match(block, at) or _no_node(block, offset, at)
    if left.end() != len(block):
        _no_node(block, offset, left.end())
    return Node(left[1], entries)


def _no_node(block: bytes, offset: int, at: int) -> "re.Match[bytes]":
    found = block[at : at + 8].hex() or "the end"
    raise RepoError(Kind.MST_NODE, offset, f"no MST node: {found} at byte {at} of {len(block)}")


def walk(car: bytes, spans: dict[bytes, Span], root: bytes, *, linked_at: int = 0, limits: Limits) -> Iterator[Leaf]:
    """The keys of the tree under `root`, strictly ascending; `linked_at` is where the link stands. Raises RepoError.

    No node is visited twice: one with keys would repeat them, and a ring of empty ones would have no end.
    """
    seen: set[bytes] = set()
    above: list[tuple[Iterator[Entry], bytes, int]] = []
    entries: Iterator[Entry] = iter(())
    key = last = b""
    tree: bytes | None = root
    offset = linked_at
    while True:
        if tree is not None:
            start, end = _find(tree, spans, offset)
            if tree in seen:
                raise RepoError(Kind.MST_ORDER, start, "a node that is linked twice")
            above.append((entries, key, offset))
            if len(above) > limits.depth:
                raise RepoError(Kind.MST_DEPTH, start, f"a tree of more than {limits.depth} levels")
            seen.add(tree)
            offset = start
            tree, stored = read_node(car[start:end], start)
            entries, key = iter(stored), b""
            continue
        for prefix, suffix, tree, record in entries:
            key = key[:prefix] + suffix
            if key <= last:
                raise RepoError(Kind.MST_ORDER, offset, f"key {key!r:.80} after {last!r:.80}")
            last = key
            yield key, record, offset
            if tree is not None:
                break
        else:
            if not above:
                return
            entries, key, offset = above.pop()


def _find(tree: bytes, spans: dict[bytes, Span], offset: int) -> Span:
    span = spans.get(tree)
    if span is None:
        raise RepoError(Kind.MST_MISSING_NODE, offset, f"a link to the node {Cid(tree).text}, which is not there")
    return span


def height(key: bytes) -> int:
    """The level of the tree that `key` belongs to, counted from the bottom: every fourth key is one higher."""
    digest = int.from_bytes(hashlib.sha256(key).digest())
    return (256 - digest.bit_length()) // 2


def build(records: Iterable[tuple[bytes, Cid]]) -> tuple[Cid, dict[Cid, bytes]]:
    """The one tree of these keys, which need no order: its root, and its nodes, children first."""
    keyed = [(key, cid, height(key)) for key, cid in sorted(records)]
    blocks: dict[Cid, bytes] = {}
    top = max((level for _, _, level in keyed), default=0)
    root = _subtree(keyed, top, blocks) or _put(write_node(None, []), blocks)
    return root, blocks


def _subtree(keyed: list[tuple[bytes, Cid, int]], level: int, blocks: dict[Cid, bytes]) -> Cid | None:
    """The node at `level` over these keys, none of which is higher; None for none."""
    if not keyed:
        return None
    cuts = [index for index, (_, _, own) in enumerate(keyed) if own == level]
    left = _subtree(keyed[: cuts[0]] if cuts else keyed, level - 1, blocks)
    entries = [
        (*keyed[cut][:2], _subtree(keyed[cut + 1 : following], level - 1, blocks))
        for cut, following in pairwise([*cuts, len(keyed)])
    ]
    return _put(write_node(left, entries), blocks)


def write_node(left: Cid | None, entries: Iterable[tuple[bytes, Cid, Cid | None]]) -> bytes:
    """The block of a node with these keys, records and the trees right of them."""
    stored: list[cbor.Value] = []
    before = b""
    for key, record, tree in entries:
        shared = _shared(before, key)
        stored.append({"k": key[shared:], "p": shared, "t": tree, "v": record})
        before = key
    return cbor.encode({"e": stored, "l": left})


def _shared(before: bytes, key: bytes) -> int:
    """With how many of the same bytes the two begin."""
    pairs = enumerate(zip(before, key, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(key)))


def _put(block: bytes, blocks: dict[Cid, bytes]) -> Cid:
    cid = Cid.of(block)
    blocks[cid] = block
    return cid
