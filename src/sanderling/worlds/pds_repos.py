"""Repos of people who do not exist: real CARs with a true tree.

Words are drawn from syllables, so that nobody's post is in them. The signature is noise unless someone signs.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from random import Random

from sanderling.formats import cbor
from sanderling.formats.car import write_car
from sanderling.formats.cbor import Value
from sanderling.formats.cid import RAW, Cid
from sanderling.formats.mst import build

POST, LIKE, REPOST = "app.bsky.feed.post", "app.bsky.feed.like", "app.bsky.feed.repost"
FOLLOW, BLOCK, PROFILE = "app.bsky.graph.follow", "app.bsky.graph.block", "app.bsky.actor.profile"
NOTE = "com.example.note"  # of a lexicon nobody knows: bytes, links and deep maps

_SYLLABLES = ("ka", "lo", "mi", "ru", "ten", "sha", "vor", "é", "ñu", "ß", "日", "本", "жи", "ال", "🌊", "o", "an")
_TID_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
_FIRST_TID = 1_700_000_000_000_000 << 10  # microseconds of 2023, and ten bits of clock id
_STEP = 2**40  # at most, from one record to the next: 18 minutes

Make = Callable[[Random], Value]
Sign = Callable[[bytes], bytes]
Blocks = dict[Cid, bytes]


def mix(records: int) -> dict[str, int]:
    """How `records` are spread over collections in a usual repo."""
    sizes = {
        LIKE: records * 55 // 100,
        REPOST: records * 8 // 100,
        FOLLOW: records * 12 // 100,
        BLOCK: records // 100,
        NOTE: records // 200,
        PROFILE: min(records, 1),
    }
    sizes[POST] = records - sum(sizes.values())
    return {name: count for name, count in sizes.items() if count}


def make_repo(
    rng: Random, did: str, sizes: Mapping[str, int], *, version: int = 3, rev: str = "", sign: Sign | None = None
) -> bytes:
    """A CAR with that many records in each collection."""
    return write_blocks(*make_blocks(rng, did, sizes, version=version, rev=rev, sign=sign))


def write_blocks(root: Cid, blocks: Blocks) -> bytes:
    """The CAR of these blocks, in the order of hosts, which is that of no tree."""
    return write_car([root], sorted(blocks.items(), reverse=True))


def make_blocks(
    rng: Random, did: str, sizes: Mapping[str, int], *, version: int = 3, rev: str = "", sign: Sign | None = None
) -> tuple[Cid, Blocks]:
    """The blocks of a repo with that many records in each collection, and which of them is the commit."""
    records: dict[bytes, Cid] = {}
    blocks: Blocks = {}
    rkeys = tids(rng)
    for name, count in sizes.items():
        make = MAKERS.get(name, _note)
        for _ in range(count):
            rkey = "self" if name == PROFILE else next(rkeys)
            block = cbor.encode(make(rng))
            cid = Cid.of(block)
            blocks[cid] = block
            records[f"{name}/{rkey}".encode()] = cid
    tree, nodes = build(records.items())
    commit = make_commit(rng, did, tree, version=version, rev=rev, sign=sign)
    root = Cid.of(commit)
    return root, blocks | nodes | {root: commit}


def make_commit(
    rng: Random, did: str, tree: Cid, *, version: int = 3, rev: str = "", sign: Sign | None = None
) -> bytes:
    """The block of a commit to that tree. One of version 2 has no rev, as those of its time."""
    fields: dict[str, Value] = {"did": did, "data": tree, "prev": None, "version": version}
    noise = rng.randbytes(64)
    if version > 2:
        fields["rev"] = rev or next(tids(rng))
    return cbor.encode(fields | {"sig": noise if sign is None else sign(cbor.encode(fields))})


def tids(rng: Random) -> Iterator[str]:
    """Record keys made from times, each later than the one before."""
    number = _FIRST_TID + rng.randrange(2**50)
    while True:
        number += rng.randrange(1, _STEP)
        yield _tid(number)


def late_tid(rng: Random) -> str:
    """One that is later than those of a hundred thousand records."""
    return _tid(_FIRST_TID + 2**17 * _STEP + rng.randrange(2**50))


def _tid(number: int) -> str:
    return "".join(_TID_DIGITS[number >> shift & 31] for shift in range(60, -1, -5))


def words(rng: Random, count: int) -> str:
    """A sentence that says nothing."""
    return " ".join(map("".join, zip(*(rng.choices(_SYLLABLES, k=count) for _ in range(3)), strict=True)))


def _person(rng: Random) -> str:
    return "did:plc:" + base64.b32encode(rng.randbytes(15)).decode("ascii").lower()


def _time(rng: Random) -> str:
    draw = rng.randrange
    day, time = f"{draw(1, 13):02}-{draw(1, 29):02}", f"{draw(24):02}:{draw(60):02}:{draw(60):02}"
    return f"202{draw(3, 6)}-{day}T{time}.{draw(1000):03}Z"


def _reference(rng: Random, collection: str = POST) -> Value:
    return {"cid": Cid.of(rng.randbytes(8)).text, "uri": f"at://{_person(rng)}/{collection}/{next(tids(rng))}"}


def _blob(rng: Random) -> Value:
    if rng.random() < 0.1:  # as they were before blobs had a type
        return {"cid": Cid.of(rng.randbytes(8), RAW).text, "mimeType": "image/jpeg"}
    size = rng.randrange(1000, 1_000_000)
    return {"$type": "blob", "ref": Cid.of(rng.randbytes(8), RAW), "size": size, "mimeType": "image/jpeg"}


def _subject(collection: str) -> Make:
    return lambda rng: {"$type": collection, "subject": _reference(rng), "createdAt": _time(rng)}


def _somebody(collection: str) -> Make:
    return lambda rng: {"$type": collection, "subject": _person(rng), "createdAt": _time(rng)}


def _post(rng: Random) -> Value:
    text = words(rng, rng.randrange(1, 40))
    post: dict[str, Value] = {"$type": POST, "text": text, "langs": ["en"], "createdAt": _time(rng)}
    chance = rng.random()
    if chance < 0.45:
        post["reply"] = {"root": _reference(rng), "parent": _reference(rng)}
    elif chance < 0.6:
        images: list[Value] = [{"alt": words(rng, 5), "image": _blob(rng)} for _ in range(rng.randrange(1, 5))]
        post["embed"] = {"$type": "app.bsky.embed.images", "images": images}
    elif chance < 0.7:
        post["embed"] = {"$type": "app.bsky.embed.record", "record": _reference(rng)}
    if chance < 0.2:
        link: Value = {"$type": "app.bsky.richtext.facet#link", "uri": f"https://{next(tids(rng))}.example/a?b=c"}
        post["facets"] = [{"index": {"byteStart": 0, "byteEnd": len(text.encode())}, "features": [link]}]
    return post


def _profile(rng: Random) -> Value:
    about = {"displayName": words(rng, 2), "description": words(rng, 12) + '\n"quoted"\t\\ \x01\x7f'}
    return {"$type": PROFILE, **about, "avatar": _blob(rng), "banner": _blob(rng)}


def _note(rng: Random) -> Value:
    flags: list[Value] = [True, False, None, rng.randrange(-(2**40), 2**40)]
    inner: Value = {"cid": "x", "flags": flags, "key": rng.randbytes(9)}
    for _ in range(rng.randrange(20)):
        inner = {"in": inner} if rng.random() < 0.5 else [inner, words(rng, 1)]
    return {"$type": NOTE, "body": inner, "to": Cid.of(rng.randbytes(8))}


MAKERS: dict[str, Make] = {
    POST: _post,
    LIKE: _subject(LIKE),
    REPOST: _subject(REPOST),
    FOLLOW: _somebody(FOLLOW),
    BLOCK: _somebody(BLOCK),
    PROFILE: _profile,
}
