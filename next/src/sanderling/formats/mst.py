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

_TREE = rb"(?:\xf6|\xd8\x2a\x58\x25\0(\x01\x71\x12\x20.{32}))"
_VALUES = rb"at" + _TREE + rb"av\xd8\x2a\x58\x25\0(\x01[\x55\x71]\x12\x20.{32})"
_UNSIGNED = rb"([\x00-\x17]|\x18[\x18-\xff]|\x19(?!\0)..|\x1a(?!\0\0)....|\x1b(?!\0{4}).{8})"
_COUNT = re.compile(rb"\xa2ae(?:([\x80-\x97])|\x98([\x18-\xff])|\x99((?!\0)..)|\x9a((?!\0\0)....))", re.DOTALL)
# Usual keys are of printable signs, so that the end of one is found first and compared with its length afterwards.
_ENTRY = re.compile(
    rb"\xa4ak([\x40-\x57]|\x58[\x18-\xff])([!-~]{0,255})ap([\x00-\x17]|\x18[\x18-\xff])" + _VALUES, re.DOTALL
)
_LENGTHS = [bytes([0x40 + size] if size < 24 else [0x58, size]) for size in range(256)]
_LENGTH = re.compile(rb"\xa4ak(?:([\x40-\x57])|\x58([\x18-\xff])|\x59((?!\0)..))", re.DOTALL)
_REST = re.compile(rb"ap" + _UNSIGNED + _VALUES, re.DOTALL)
_LEFT = re.compile(rb"al" + _TREE, re.DOTALL)

Entry = tuple[int, bytes, bytes | None, bytes]  # p, k, t and v
Leaf = tuple[bytes, bytes]  # a key, and the CID of its record


def read_node(block: bytes, offset: int = 0) -> tuple[bytes | None, list[Entry]]:
    """The left tree and the entries of the node that `block` is; `offset` is its place in the CAR. Raises RepoError."""
    head = _COUNT.match(block) or _refuse(block, offset, 0)
    at = head.end()
    entries: list[Entry] = []
    size = 0  # of the key before
    for _ in range(_number(head)):
        entry = _ENTRY.match(block, at)
        if entry is not None:
            length, suffix, number, tree, record = entry.groups()
        if entry is not None and length == _LENGTHS[len(suffix)]:
            prefix, at = number[-1], entry.end()
        else:
            head = _LENGTH.match(block, at) or _refuse(block, offset, at)
            at = head.end() + _number(head)
            suffix = block[head.end() : at]
            rest = _REST.match(block, at) or _refuse(block, offset, at)
            number, tree, record = rest.groups()
            prefix, at = int.from_bytes(number[1:] or number), rest.end()
        if prefix > size:
            raise RepoError(RepoFault.MST_PREFIX, offset, f"{prefix} bytes of a key of {size}, entry {len(entries)}")
        size = prefix + len(suffix)
        if size > LONGEST_KEY:
            raise RepoError(RepoFault.MST_NODE, offset, f"a key of {size} bytes, expected at most {LONGEST_KEY}")
        entries.append((prefix, suffix, tree, record))
    left = _LEFT.match(block, at) or _refuse(block, offset, at)
    if left.end() != len(block):
        _refuse(block, offset, left.end())
    return left[1], entries


def _number(head: re.Match[bytes]) -> int:
    """The number in the head of a list or of bytes: within its first byte, or behind it."""
    inline, *behind = head.groups(b"")
    return inline[0] & 0x1F if inline else int.from_bytes(b"".join(behind))


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
