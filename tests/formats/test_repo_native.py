"""The C parser and its Python twin must not be told apart: the same bytes, the same fault at the same place."""

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from broken_repos import mutations
from dag_cbor import BAD, GOOD, values
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.formats import cbor, repo_python
from sanderling.formats.car import read_car, write_car
from sanderling.formats.cid import Cid, to_varint
from sanderling.formats.mst import build
from sanderling.formats.parsed import Kind, Limits, Repo, RepoError
from sanderling.worlds.pds_repos import make_commit, make_repo, mix

native = pytest.importorskip(
    "sanderling.formats._repo", reason="the C part was not built: no compiler when the package was installed"
)
DID = "did:plc:abcdefghijklmnopqrstuvwx"
SOUND = make_repo(Random(1), DID, mix(60))
OTHER = make_repo(Random(2), DID, {"com.example.note": 20})
BROKEN = list(mutations(SOUND, Random(3)))
FRAMES = sorted(start - 36 for start, _ in read_car(SOUND, limits=Limits()).spans.values())

options = st.fixed_dictionaries({"verify": st.booleans(), "cids": st.sampled_from(["strip", "keep"])})
tight = st.builds(
    Limits,
    car=st.integers(10_000, 40_000),
    block=st.integers(100, 2000),
    blocks=st.integers(20, 120),
    depth=st.integers(1, 6),
    nesting=st.integers(1, 8),
    output=st.integers(1, 30_000),
)


def said(parse: Callable[..., Repo], car: bytes, **options: Any) -> Repo | tuple[Kind, int]:  # noqa: ANN401 - handed on
    try:
        return parse(car, **options)
    except RepoError as error:
        return error.kind, error.offset


def both(car: bytes, **options: Any) -> Repo | tuple[Kind, int]:  # noqa: ANN401 - handed on
    """What the two say, which must be one thing."""
    fast, slow = said(native.parse_repo, car, **options), said(repo_python.parse_repo, car, **options)
    assert fast == slow
    return fast


def repo_of(records: dict[str, bytes]) -> bytes:
    """A CAR with these blocks as its records."""
    named = {key.encode(): Cid.of(block) for key, block in records.items()}
    root, nodes = build(named.items())
    commit = make_commit(Random(1), DID, root)
    blocks = {**nodes, **{Cid.of(block): block for block in records.values()}, Cid.of(commit): commit}
    return write_car([Cid.of(commit)], blocks.items())


def one_record(block: bytes, **options: Any) -> None:  # noqa: ANN401 - handed on
    assert isinstance(both(repo_of({"a/b": block}), **options), Repo)


@settings(max_examples=12)
@given(st.randoms(use_true_random=False), st.integers(0, 150), st.sampled_from([2, 3]), options)
def test_on_repos(rng: Random, records: int, version: int, options: dict[str, Any]) -> None:
    assert isinstance(both(make_repo(rng, DID, mix(records), version=version), **options), Repo)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda case: case.name)
def test_on_what_is_broken(broken: Any) -> None:  # noqa: ANN401 - a column
    for verify, cids in product((True, False), ("strip", "keep")):
        both(broken.car, verify=verify, cids=cids)


@given(st.sampled_from(BROKEN), options, tight)
def test_on_what_is_too_large(broken: Any, options: dict[str, Any], limits: Limits) -> None:  # noqa: ANN401 - a case
    both(broken.car, limits=limits, **options)
    both(SOUND, limits=limits, **options)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """SOUND, changed in a few places: bytes, pieces, lengths."""
    car = bytearray(SOUND)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(car) - 1) | st.sampled_from(FRAMES)) % len(car)
        piece = slice(at, at + draw(st.integers(1, 60)))
        way = draw(st.sampled_from(["flip", "set", "long", "lie", "cut", "drop", "repeat", "splice"]))
        if way == "flip":
            car[at] ^= 1 << draw(st.integers(0, 7))
        elif way == "set":
            car[at] = draw(st.integers(0, 255))
        elif way == "long":
            car[at : at + 9] = b"\xff" * 9
        elif way == "lie":
            car[at - 2 : at] = to_varint(draw(st.integers(0, 2**40)))
        elif way == "cut" and at:
            del car[at:]
        elif way == "drop" and len(car) > 100:
            del car[piece]
        elif way == "repeat":
            car[at:at] = car[piece]
        elif way == "splice":
            source = draw(st.integers(0, len(OTHER) - 60))
            car[piece] = OTHER[source : source + 60]
    return bytes(car)


@pytest.mark.parametrize("head", ["81", "9801", "990001", "9a00000001", "9b0000000000000001", "9b0000000100000000"])
@pytest.mark.parametrize("prefix", ["00", "01", "1800", "1b0000000000000000", "1b8000000000000000", "20"])
def test_on_nodes_whose_numbers_are_odd(head: str, prefix: str) -> None:
    """Of two faults in one node the first counts, whichever kind it is of."""
    link = b"\xd8\x2a\x58\x25\0" + Cid.of(b"")
    entry = b"\xa4akCa/bap" + bytes.fromhex(prefix) + b"at\xf6av" + link
    node = b"\xa2ae" + bytes.fromhex(head) + entry + b"al\xf6"
    commit = make_commit(Random(1), DID, Cid.of(node))

    both(write_car([Cid.of(commit)], [(Cid.of(commit), commit), (Cid.of(node), node)]))


@settings(max_examples=150)
@given(changed(), options)
def test_on_what_was_changed(car: bytes, options: dict[str, Any]) -> None:
    both(car, **options)


@settings(max_examples=150)
@given(st.data())
def test_on_blocks_that_were_changed(data: st.DataObject) -> None:
    """Under forged hashes a fault reaches the commit, the nodes and the records."""
    index = read_car(SOUND, limits=Limits())
    blocks = {Cid(cid): SOUND[start:end] for cid, (start, end) in index.spans.items()}
    commit: Any = cbor.decode(blocks[index.roots[0]])
    nodes = [cid for cid, block in blocks.items() if block.startswith(b"\xa2ae")]
    special = st.sampled_from([index.roots[0], commit["data"], *nodes])
    for cid in data.draw(st.lists(special | st.sampled_from(sorted(blocks)), min_size=1, max_size=3, unique=True)):
        block = bytearray(blocks[cid])
        at = data.draw(st.integers(0, len(block) - 1))
        block[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        blocks[cid] = bytes(block)
    swapped = data.draw(st.lists(st.sampled_from(sorted(blocks)), min_size=2, max_size=2))
    if data.draw(st.booleans()):
        blocks[swapped[0]], blocks[swapped[1]] = blocks[swapped[1]], blocks[swapped[0]]

    both(write_car(index.roots, blocks.items()), verify=False)


@pytest.mark.parametrize("wrapping", ["", "81", "a16161", "a163636964", "a26161006162"])
def test_on_all_that_is_and_is_not_dag_cbor(wrapping: str) -> None:
    for text in (*GOOD, *BAD):
        one_record(bytes.fromhex(wrapping + text))


def test_on_names_whose_order_is_not_that_of_keys() -> None:
    repo = both(repo_of({f"{name}/{name}": b"\xa0" for name in ("a", "a.b", "a.b.c", "a.b-c", "a:b", "b", "B")}))

    assert isinstance(repo, Repo)
    assert [collection.name for collection in repo.collections] == ["B", "a", "a.b", "a.b-c", "a.b.c", "a:b", "b"]


@pytest.mark.parametrize("size", [0, 1, 32, 95, 96, 97, 200])
def test_on_links_of_any_length(size: int) -> None:
    """At most 100 bytes, of which four are not the hash here."""
    cid = Cid(b"\x01\x55\0" + to_varint(size) + bytes(size))

    one_record(cbor.encode({"a": [cid, cid]}))


@given(st.lists(values, min_size=1, max_size=5), st.integers(1, 6), options)
def test_on_any_values(drawn: list[cbor.Value], nesting: int, options: dict[str, Any]) -> None:
    records = {f"a/{number}": cbor.encode(value) for number, value in enumerate(drawn)}

    both(repo_of(records), limits=Limits(nesting=nesting), **options)


@given(values, st.data())
def test_on_nearly_any_value(value: cbor.Value, data: st.DataObject) -> None:
    block = bytearray(cbor.encode(value))
    block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))

    one_record(bytes(block))


@given(st.text(max_size=60) | st.text(st.sampled_from('a"\\\n\x00\x1f\x7fé日🌊'), max_size=60))
def test_on_texts(text: str) -> None:
    """Of every length, since eight bytes are looked at together; and as keys, which are texts as well."""
    one_record(cbor.encode({"a": text, "b" + text: text[1:], "c" + text[2:]: [text[:9]]}))


@given(st.binary(max_size=30), st.integers(0, 9))
def test_on_bytes_that_may_be_no_text(content: bytes, before: int) -> None:
    text = b"x" * before + content

    one_record(bytes((0x78, len(text))) + text if len(text) >= 24 else bytes((0x60 + len(text),)) + text)


def test_on_limits_larger_than_any_repo() -> None:
    huge = 2**100

    both(SOUND, limits=Limits(car=huge, block=huge, blocks=huge, depth=huge, nesting=256, output=huge))


def test_on_every_character_and_every_wrong_one() -> None:
    """All leading bytes, and what may and may not follow them; one repo for each leading byte."""
    tails = [b"", b"\x7f", b"\x80", b"\x8f", b"\x90", b"\x9f", b"\xa0", b"\xbf", b"\xc0"]
    rests = [b"", b"\x80", b"\x80\x80", b"\xbf\xbf", b"\x80\x41", b"\x41"]
    for first in range(256):
        texts = [bytes((first,)) + tail + rest for tail, rest in product(tails, rests)]
        blocks = {f"a/{number:02}": bytes((0x60 + len(text),)) + text for number, text in enumerate(texts)}

        repo = both(repo_of(blocks))

        assert isinstance(repo, Repo)
        assert repo.stats.bad_records == sum(not is_text(text) for text in texts)
        assert kept(repo) == {f"{number:02}" for number, text in enumerate(texts) if is_text(text)}


def is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def kept(repo: Repo) -> set[str]:
    """The keys of all records that are in its collections."""
    found = set()
    for collection in repo.collections:
        at = 0
        while at < len(collection.data):
            start = at + 2
            end = start + int.from_bytes(collection.data[at:start], "little")
            found.add(collection.data[start:end].decode())
            at = end + 4 + int.from_bytes(collection.data[end : end + 4], "little")
    return found
