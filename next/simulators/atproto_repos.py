"""Repos of people who do not exist: DAG-CBOR, trees and CARs, written from the protocol's text.

It shares no code with what reads them, so that each may find the other's mistakes.
"""

import base64
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from random import Random
from typing import Any

POST, LIKE, REPOST = "app.bsky.feed.post", "app.bsky.feed.like", "app.bsky.feed.repost"
FOLLOW, PROFILE, NOTE = "app.bsky.graph.follow", "app.bsky.actor.profile", "com.example.note"
_SYLLABLES = "ka lo mi ru ten sha vor é ñu ß 日 本 жи ال 🌊 o an".split()
_TID = "234567abcdefghijklmnopqrstuvwxyz"
Blocks = dict[bytes, bytes]
Value = Any  # of DAG-CBOR
Key = tuple[bytes, bytes]  # a key of the tree, and the CID of its record


class Link(bytes):
    """A CID where a record links to something."""


def cid_of(block: bytes, codec: int = 0x71) -> Link:
    return Link(bytes((1, codec, 0x12, 0x20)) + hashlib.sha256(block).digest())


def cid_text(cid: bytes) -> str:
    return "b" + base64.b32encode(cid).decode().rstrip("=").lower()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def head(major: int, number: int) -> bytes:
    """How an item of DAG-CBOR begins, in the shortest form."""
    if number < 24:
        return bytes([major << 5 | number])
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([major << 5 | 23 + size.bit_length()]) + number.to_bytes(size)


def encode(value: Value) -> bytes:
    """The DAG-CBOR of a value."""
    match value:
        case None | True | False:
            return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
        case Link():
            return b"\xd8\x2a" + head(2, len(value) + 1) + b"\0" + value
        case bytes():
            return head(2, len(value)) + value
        case str():
            return head(3, len(value.encode())) + value.encode()
        case float():
            return b"\xfb" + struct.pack(">d", value)
        case int():
            return head(0, value) if value >= 0 else head(1, -1 - value)
        case list():
            return head(4, len(value)) + b"".join(map(encode, value))
    keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
    return head(5, len(value)) + b"".join(encode(key) + encode(value[key]) for key in keys)


def write_car(roots: Iterable[bytes], blocks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A CAR of these blocks, in this order."""
    header = encode({"roots": [Link(root) for root in roots], "version": 1})
    frames = b"".join(varint(len(cid) + len(block)) + cid + block for cid, block in blocks)
    return varint(len(header)) + header + frames


def write_node(left: bytes | None, entries: Iterable[tuple[bytes, bytes, bytes | None]]) -> bytes:
    """The block of a node with these keys, records, and trees right of them."""
    stored, last = [], b""
    for key, record, tree in entries:
        shared = next(
            (at for at, (one, other) in enumerate(zip(last, key, strict=False)) if one != other),
            min(len(last), len(key)),
        )
        stored.append({"k": key[shared:], "p": shared, "t": tree and Link(tree), "v": Link(record)})
        last = key
    return encode({"e": stored, "l": left and Link(left)})


def build_tree(keys: Iterable[Key]) -> tuple[Link, Blocks]:
    """The one tree of these keys: its root, and its nodes."""
    ordered = sorted(keys)
    heights = {key: (256 - int.from_bytes(hashlib.sha256(key).digest()).bit_length()) // 2 for key, _ in ordered}
    nodes: Blocks = {}

    def subtree(keys: list[Key], level: int) -> Link | None:
        if not keys and level < top:
            return None
        cuts = [place for place, (key, _) in enumerate(keys) if heights[key] == level]
        left = subtree(keys[: cuts[0]] if cuts else keys, level - 1) if keys else None
        entries = [
            (*keys[cut], subtree(keys[cut + 1 : following], level - 1))
            for cut, following in pairwise([*cuts, len(keys)])
        ]
        block = write_node(left, entries)
        nodes[cid_of(block)] = block
        return cid_of(block)

    top = max(heights.values(), default=0)
    root = subtree(ordered, top)
    assert root is not None
    return root, nodes


def make_commit(rng: Random, did: str, tree: bytes, /, **fields: Value) -> bytes:
    """The block of a commit, signed with noise."""
    commit = {"did": did, "data": Link(tree), "prev": None, "version": 3, "rev": tid(rng), "sig": rng.randbytes(64)}
    return encode({key: value for key, value in (commit | fields).items() if value != "left out"})


def make_car(rng: Random, did: str, records: Mapping[str, bytes], /, **fields: Value) -> bytes:
    """The CAR of a repo with these blocks as its records. `fields` of the commit may be others; "left out" is one."""
    cids = {key.encode(): cid_of(block) for key, block in records.items()}
    tree, nodes = build_tree(cids.items())
    commit = make_commit(rng, did, tree, **fields)
    blocks = {cid_of(block): block for block in records.values()} | nodes | {cid_of(commit): commit}
    # Hosts send them in an order that is none of the tree's.
    return write_car([cid_of(commit)], sorted(blocks.items()))


def tid(rng: Random, place: int = 0) -> str:
    number = (1_700_000_000_000_000 << 10) + (place << 40) + rng.randrange(1 << 40)
    return "".join(_TID[number >> shift & 31] for shift in range(60, -1, -5))


def words(rng: Random, count: int) -> str:
    return " ".join("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(count))


def _person(rng: Random) -> str:
    return "did:plc:" + base64.b32encode(rng.randbytes(15)).decode().lower()


def _time(rng: Random) -> str:
    draw = rng.randrange
    return (
        f"202{draw(3, 6)}-{draw(1, 13):02}-{draw(1, 29):02}T{draw(24):02}:{draw(60):02}:{draw(60):02}.{draw(1000):03}Z"
    )


def _strong_ref(rng: Random) -> dict[str, Any]:
    return {"cid": cid_text(cid_of(rng.randbytes(8))), "uri": f"at://{_person(rng)}/{POST}/{tid(rng)}"}


def _blob(rng: Random) -> dict[str, Any]:
    image = cid_of(rng.randbytes(8), 0x55)
    if rng.random() < 0.1:  # as they were before blobs had a type
        return {"cid": cid_text(image), "mimeType": "image/jpeg"}
    return {"$type": "blob", "ref": image, "size": rng.randrange(1000, 1_000_000), "mimeType": "image/jpeg"}


def _post(rng: Random) -> dict[str, Any]:
    text = words(rng, rng.randrange(1, 40))
    post: dict[str, Any] = {"$type": POST, "text": text, "langs": ["en"], "createdAt": _time(rng)}
    chance = rng.random()
    if chance < 0.45:
        post["reply"] = {"root": _strong_ref(rng), "parent": _strong_ref(rng)}
    elif chance < 0.6:
        images = [{"alt": words(rng, 5), "image": _blob(rng)} for _ in range(rng.randrange(1, 5))]
        post["embed"] = {"$type": "app.bsky.embed.images", "images": images}
    if chance < 0.2:
        link = {"$type": "app.bsky.richtext.facet#link", "uri": f"https://{tid(rng)}.example/a?b=c"}
        post["facets"] = [{"index": {"byteStart": 0, "byteEnd": len(text.encode())}, "features": [link]}]
    return post


def _note(rng: Random) -> dict[str, Any]:
    """A record of a lexicon that nobody knows, with all that records may hold."""
    inner: Any = {"cid": "x", "flags": [True, False, None, rng.randrange(-(2**40), 2**40)], "key": rng.randbytes(9)}
    for _ in range(rng.randrange(20)):
        inner = {"in": inner} if rng.random() < 0.5 else [inner, words(rng, 1) + '\n"\t\\\x01\x7f']
    return {"$type": NOTE, "body": inner, "to": cid_of(rng.randbytes(8))}


MAKERS: dict[str, Callable[[Random], dict[str, Any]]] = {
    LIKE: lambda rng: {"$type": LIKE, "subject": _strong_ref(rng), "createdAt": _time(rng)},
    REPOST: lambda rng: {"$type": REPOST, "subject": _strong_ref(rng), "createdAt": _time(rng)},
    FOLLOW: lambda rng: {"$type": FOLLOW, "subject": _person(rng), "createdAt": _time(rng)},
    PROFILE: lambda rng: {"$type": PROFILE, "displayName": words(rng, 2), "avatar": _blob(rng)},
    NOTE: _note,
    POST: _post,
}


def make_records(rng: Random, count: int) -> dict[str, bytes]:
    """As many records as a usual repo spreads them over collections."""
    shares = {LIKE: 55, REPOST: 8, FOLLOW: 12, NOTE: 1}
    records = {}
    for place in range(count):
        chance = rng.randrange(100)
        name = PROFILE if not place else POST
        for each, share in shares.items() if place else ():
            chance -= share
            if chance < 0:
                name = each
                break
        records[f"{name}/{'self' if name == PROFILE else tid(rng, place)}"] = encode(MAKERS[name](rng))
    return records


def make_repo(rng: Random, did: str, count: int, /, **fields: Value) -> bytes:
    """The CAR of a usual repo with that many records."""
    return make_car(rng, did, make_records(rng, count), **fields)
