"""The Merkle search tree of a repo: a sorted map of keys to records, whose shape follows from its keys alone.

A node is the map of `e`, its entries, and `l`, the tree left of them. An entry is the map of `k`, the end of its key;
`p`, how many bytes of the key before it come first; `t`, the tree right of it; and `v`, the record. Nothing else is a
node, down to the byte: so it is read without a CBOR decoder, which is several times as fast and refuses the same.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from sanderling.formats.car import CarLimits, RepoError, RepoFault, Span
from sanderling.formats.dag_cbor import Cid

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

Entry = tuple[int, bytes, bytes | None, bytes]  # p, k, t and v
Leaf = tuple[bytes, bytes]  # a key, and the CID of its record


def read_node(block: bytes, offset: int = 0) -> tuple[bytes | None, list[Entry]]:
    """The left tree and the entries of the node that `block` is; `offset` is its place in the CAR. Raises RepoError."""
    head = _ENTRIES.match(block) or _refuse(block, offset, 0)
    inline, *longer = head.groups(b"")
    count = inline[0] & 0x1F if inline else int.from_bytes(b"".join(longer))
    at = head.end()
    entries: list[Entry] = []
    size = 0  # of the key before
    for _ in range(count):
        length = _SHORT.get(block[at : at + 4])
        if length is None:
            long = _LONG.match(block, at) or _refuse(block, offset, at)
            start, length = long.end(), int.from_bytes(long[1] or long[2])
        else:
            start = at + 4
        at = start + length
        rest = _REST.match(block, at) or _refuse(block, offset, at)
        number, tree, record = rest.groups()
        prefix = number[0] if len(number) == 1 else int.from_bytes(number[1:])
        if prefix > size:
            raise RepoError(RepoFault.MST_PREFIX, offset, f"{prefix} bytes of a key of {size}, entry {len(entries)}")
        size = prefix + length
        if size > LONGEST_KEY:
            raise RepoError(RepoFault.MST_NODE, offset, f"a key of {size} bytes, expected at most {LONGEST_KEY}")
        entries.append((prefix, block[start:at], tree, record))
        at = rest.end()
    left = _LEFT.match(block, at) or _refuse(block, offset, at)
    if left.end() != len(block):
        _refuse(block, offset, left.end())
    return left[1], entries


def _refuse(block: bytes, offset: int, at: int) -> NoReturn:
    found = block[at : at + 8].hex() or "the end"
    raise RepoError(RepoFault.MST_NODE, offset, f"no MST node: {found} at byte {at} of {len(block)}")


def walk(car: bytes, spans: dict[bytes, Span], root: bytes, linked_at: int, limits: CarLimits) -> Iterator[Leaf]:
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
            span = spans.get(tree)
            if span is None:
                found = f"a link to the node {Cid(tree)}, which is not there"
                raise RepoError(RepoFault.MST_MISSING_NODE, offset, found)
            start, end = span
            if tree in seen:
                raise RepoError(RepoFault.MST_ORDER, start, "a node that is linked twice")
            above.append((entries, key, offset))
            if len(above) > limits.depth:
                raise RepoError(RepoFault.MST_DEPTH, start, f"a tree of more than {limits.depth} levels")
            seen.add(tree)
            offset, key = start, b""
            tree, stored = read_node(car[start:end], start)
            entries = iter(stored)
            continue
        for prefix, suffix, tree, record in entries:
            key = key[:prefix] + suffix
            if key <= last:
                raise RepoError(RepoFault.MST_ORDER, offset, f"key {key!r:.80} after {last!r:.80}")
            last = key
            yield key, record
            if tree is not None:
                break
        else:
            if not above:
                return
            entries, key, offset = above.pop()
