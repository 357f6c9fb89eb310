import struct
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from atproto_repos import (
    Blocks,
    Link,
    build_tree,
    cid_of,
    encode,
    make_car,
    make_commit,
    make_repo,
    varint,
    write_car,
    write_node,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.formats.car import CarLimits, RepoError, RepoFault, index_car
from sanderling.formats.repo import Repo, RepoStats, parse_repo, split_records

DID = "did:plc:abcdefghijklmnopqrstuvwx"
SOUND = make_repo(Random(1), DID, 60)
RECORDS = {f"com.example.note/{number:02}": encode({"n": number}) for number in range(60)}
KEYS = {key.encode(): cid_of(block) for key, block in RECORDS.items()}
ONE, TWO = list(KEYS)[:2]
GONE = cid_of(b"gone")


def car_of(tree: bytes, blocks: Mapping[Any, bytes], /, **fields: Any) -> bytes:
    """A repo of the records above with another tree, or another commit."""
    commit = make_commit(Random(1), DID, tree, **fields)
    every = {**{cid_of(block): block for block in RECORDS.values()}, **blocks, cid_of(commit): commit}
    return write_car([cid_of(commit)], every.items())


def node_car(*nodes: bytes) -> bytes:
    """A repo whose tree begins with the first of these nodes."""
    return car_of(cid_of(nodes[0]), {cid_of(node): node for node in nodes})


def keys_car(*keys: bytes) -> bytes:
    return node_car(write_node(None, [(key, KEYS[ONE], None) for key in keys]))


def commit_car(**fields: Any) -> bytes:
    tree, nodes = build_tree(KEYS.items())
    return car_of(fields.pop("tree", tree), nodes, **fields)


def root_car(block: bytes, root: bytes = b"") -> bytes:
    """A CAR whose root is this block."""
    return write_car([root or cid_of(block)], [(cid_of(block), block)])


def header_car(header: Any) -> bytes:
    block = encode(header)
    return varint(len(block)) + block + SOUND[59:]


def with_frame(cid: bytes, block: bytes = b"") -> bytes:
    return SOUND + varint(len(cid) + len(block)) + cid + block


GOOD = {"k": ONE, "p": 0, "t": None, "v": KEYS[ONE]}
PLAIN = write_node(None, [(ONE, KEYS[ONE], None)])
EMPTY = write_node(None, [])
LEAF = cid_of(PLAIN)
ROOT = Link(SOUND[SOUND.index(b"X%\0") + 3 :][:36])
CHAIN = [EMPTY]
while len(CHAIN) < 2000:
    CHAIN.append(write_node(cid_of(CHAIN[-1]), []))


def node(*entries: dict[str, Any], left: Any = None) -> bytes:
    return encode({"e": list(entries), "l": left})


def flipped() -> bytes:
    return SOUND[:-9] + bytes([SOUND[-9] ^ 4]) + SOUND[-8:]


def swapped(old: bytes, new: bytes) -> bytes:
    assert PLAIN.count(old) == 1
    return node_car(PLAIN.replace(old, new))


# What is wrong, and a CAR that is.
BROKEN: dict[RepoFault, dict[str, bytes]] = {
    RepoFault.CAR_HEADER: {
        "an empty body": b"",
        "not a CAR": b"<!doctype html>",
        "cut": SOUND[:20],
        "2**40 bytes": varint(1 << 40) + SOUND[1:],
        "more than there is": bytes([SOUND[0] + 1]) + SOUND[1:59],
        "CARv2": bytes.fromhex("0aa16776657273696f6e02") + SOUND,
        "version 2": header_car({"roots": [ROOT], "version": 2}),
        "version true": header_car({"roots": [ROOT], "version": True}),
        "version 1.0": header_car({"roots": [ROOT], "version": 1.0}),
        "no root": header_car({"roots": [], "version": 1}),
        "a root that is no link": header_car({"roots": [bytes(ROOT)], "version": 1}),
        "a second root that is no link": header_car({"roots": [ROOT, None], "version": 1}),
        "roots that are a text": header_car({"roots": "b", "version": 1}),
        "a list": header_car([[ROOT], 1]),
        "more in it": header_car({"roots": [ROOT], "version": 1, "x": 1}),
        "100,000 lists": varint(100_001) + b"\x81" * 100_000 + b"\0",
    },
    RepoFault.CAR_FRAME: {
        "cut": SOUND[:-1],
        "no bytes": SOUND + b"\0",
        "2**40 bytes": SOUND + varint(1 << 40),
        "2**63 bytes": SOUND + varint(1 << 63),
        "a length cut off": SOUND + b"\x80",
        "a length without end": SOUND + b"\xff" * 40,
        "a length not the shortest": SOUND + b"\xa5\x00" + cid_of(b"", 0x55) + b"x",
        "a byte too many": SOUND + b"\x01",
    },
    RepoFault.CAR_CID: {
        "version 0": with_frame(b"\x12\x20" + bytes(34)),
        "another codec": with_frame(b"\x01\x70\x12\x20" + bytes(32)),
        "another hash": with_frame(b"\x01\x71\x16\x20" + bytes(32)),
        "a short hash": with_frame(b"\x01\x71\x12\x1f" + bytes(32)),
        "cut off": with_frame(ROOT[:35]),
    },
    RepoFault.HASH_MISMATCH: {"a flipped bit": flipped(), "another block": with_frame(cid_of(b"a"), b"b")},
    RepoFault.TOO_LARGE: {"a block": with_frame(cid_of(bytes((2 << 20) + 1)), bytes((2 << 20) + 1))},
    RepoFault.COMMIT_MISSING: {
        "no block": root_car(b"\xa0", GONE),
        "a header and no more": write_car([GONE], []),
        "a root that cannot be there": root_car(b"\xa0", Link(b"\x01\x70\x12\x20" + bytes(32))),
    },
    RepoFault.COMMIT_BAD: {
        "a raw root": write_car([cid_of(b"\xa0", 0x55)], [(cid_of(b"\xa0", 0x55), b"\xa0")]),
        "a list": root_car(encode([])),
        "no DAG-CBOR": root_car(b"\xa1aa\x18\x01"),
        "a byte too many": root_car(encode({}) + b"\0"),
        **{
            f"{name} {value!r:.20}": commit_car(**{name: value})
            for name, values in {
                "version": (1, 4, 3.0, True, None, "left out"),
                "did": (None, "alice.example", "did:plc:" + "a" * 2041, b"did:plc:a", "left out"),
                "rev": (None, "", 3, "a" * 2049, "left out"),
                "data": (None, bytes(ROOT), cid_of(b"", 0x55), Link(b"\x01\x71\x00\x00"), "left out"),
                "prev": ("none", 0, "left out"),
                "sig": ("alice", ROOT, "left out"),
            }.items()
            for value in values
        },
    },
    RepoFault.MST_MISSING_NODE: {
        "the root": commit_car(tree=GONE),
        "left": node_car(write_node(GONE, [(ONE, KEYS[ONE], None)])),
        "right": node_car(write_node(None, [(ONE, KEYS[ONE], GONE)])),
    },
    RepoFault.MST_ORDER: {
        "swapped": keys_car(TWO, ONE),
        "a key twice": keys_car(ONE, ONE),
        "an empty key": keys_car(b""),
        "a right tree that is left": node_car(write_node(None, [(TWO, KEYS[TWO], LEAF)]), PLAIN),
        "a left tree with the same key": node_car(write_node(LEAF, [(ONE, KEYS[ONE], None)]), PLAIN),
        "a node twice": node_car(write_node(cid_of(EMPTY), [(ONE, KEYS[ONE], cid_of(EMPTY))]), EMPTY),
    },
    RepoFault.MST_DEPTH: {"2,000 empty nodes": node_car(*reversed(CHAIN))},
    RepoFault.MST_NODE: {
        "a record": node_car(RECORDS[ONE.decode()]),
        "nothing": node_car(b""),
        "no l": node_car(encode({"e": []})),
        "more in it": node_car(encode({"e": [], "l": None, "x": 1})),
        "more behind it": node_car(PLAIN + b"\0"),
        "cut off": node_car(PLAIN[:-1]),
        "more entries than there are": swapped(b"ae\x81", b"ae\x82"),
        "2**32 - 1 entries": node_car(b"\xa2ae\x9a\xff\xff\xff\xff"),
        "entries without end": swapped(b"ae\x81", b"ae\x9f"),
        "a count not the shortest": swapped(b"ae\x81", b"ae\x98\x01"),
        "a count of four bytes": swapped(b"ae\x81", b"ae\x9a\0\0\0\1"),
        "an entry without t": node_car(node({"k": ONE, "p": 0, "v": KEYS[ONE]})),
        "an entry with more in it": node_car(node(GOOD | {"x": 1})),
        "a key in words": node_car(node(GOOD | {"k": ONE.decode()})),
        "a key longer than there is": swapped(b"ak\x53", b"ak\x59\xff\xff"),
        "a key shorter than it is": swapped(b"ak\x53", b"ak\x52"),
        "a key one longer than it is": swapped(b"ak\x53", b"ak\x54"),
        "a length not the shortest": swapped(b"ak\x53", b"ak\x58\x13"),
        "a key of 1,025 bytes": node_car(node(GOOD | {"k": b"a/" + b"b" * 1023})),
        "a key that unfolds to 1,025": node_car(node(GOOD | {"k": b"b" * 1024}, GOOD | {"k": b"b", "p": 1024})),
        "a negative prefix": node_car(node(GOOD | {"p": -1})),
        "a prefix that is a float": node_car(node(GOOD | {"p": 0.0})),
        "a prefix not the shortest": swapped(b"ap\0at", b"ap\x18\0at"),
        "a prefix of eight bytes": swapped(b"ap\0at", b"ap\x1b" + bytes(8) + b"at"),
        "a raw tree": node_car(node(GOOD | {"t": cid_of(b"", 0x55)})),
        "a raw left tree": node_car(node(GOOD, left=cid_of(b"", 0x55))),
        "bytes for a tree": node_car(node(GOOD | {"t": bytes(ROOT)})),
        "no record": node_car(node(GOOD | {"v": None})),
        "bytes for a record": node_car(node(GOOD | {"v": bytes(ROOT)})),
        "a record of another codec": node_car(node(GOOD | {"v": Link(b"\x01\x70" + ROOT[2:])})),
        "a record of another tag": swapped(b"av\xd8\x2a", b"av\xd8\x2b"),
        "a tag not the shortest": swapped(b"av\xd8\x2a", b"av\xd9\0\x2a"),
    },
    RepoFault.MST_PREFIX: {
        "of nothing": node_car(node(GOOD | {"p": 1})),
        "longer than the key": node_car(node(GOOD, GOOD | {"k": b"~", "p": len(ONE) + 1})),
        "of 2**40": node_car(node(GOOD, GOOD | {"k": b"~", "p": 1 << 40})),
        "of 2**63": node_car(node(GOOD, GOOD | {"k": b"~", "p": 1 << 63})),
    },
}
CASES = [(fault, name) for fault, cases in BROKEN.items() for name in cases]


@pytest.mark.parametrize(("fault", "name"), CASES)
def test_a_fault_is_named_and_placed(fault: RepoFault, name: str) -> None:
    car = BROKEN[fault][name]
    with pytest.raises(RepoError) as caught:
        parse_repo(car)

    assert (caught.value.fault, str(caught.value)[:9]) == (fault, f"{fault} at byte "[:9])
    assert 0 <= caught.value.offset <= len(car)
    if fault not in {RepoFault.HASH_MISMATCH, RepoFault.TOO_LARGE}:
        with pytest.raises(RepoError) as again:
            parse_repo(car, verify=False)
        assert str(again.value) == str(caught.value)


def test_every_fault_has_a_case() -> None:
    assert set(BROKEN) == set(RepoFault)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("with_key", [False, True])
def test_a_ring_of_forged_nodes_has_an_end(length: int, with_key: bool) -> None:
    """Possible only where hashes are not checked."""
    cids = [cid_of(bytes([number])) for number in range(length)]
    blocks = {
        cid: write_node(None, [(ONE, KEYS[ONE], after)]) if with_key else write_node(after, [])
        for cid, after in zip(cids, cids[1:] + cids[:1], strict=True)
    }
    with pytest.raises(RepoError, match="mst_order at byte"):
        parse_repo(car_of(cids[0], blocks), verify=False)


def test_the_place_of_a_fault() -> None:
    frames = index_car(SOUND, verify=True, limits=CarLimits())[1]
    with pytest.raises(RepoError) as caught:
        parse_repo(flipped())
    assert caught.value.offset == max(start for start, _ in frames.values())
    for name, offset in {"no bytes": len(SOUND), "cut": max(start for start, _ in frames.values())}.items():
        with pytest.raises(RepoError) as caught:
            parse_repo(BROKEN[RepoFault.CAR_FRAME][name])
        assert offset - 40 <= caught.value.offset <= offset


def blocks_of(car: bytes) -> Blocks:
    return {cid: car[start:end] for cid, (start, end) in index_car(car, verify=True, limits=CarLimits())[1].items()}


def only(car: bytes, **options: Any) -> RepoStats:
    return parse_repo(car, **options).stats


def record_car(block: bytes) -> bytes:
    return make_car(Random(1), DID, RECORDS | {"com.example.bad/a": block})


@pytest.mark.parametrize(
    "block",
    [b"", b"\xa1aa\x18\x01", b"\xa2ab\x01aa\x02", b"\xa1aa\xfb\x7f\xf8" + bytes(6), b"\x81" * 65 + b"\0",
     b"\x81" * 100_000 + b"\0", b"\x7b\x80" + bytes(7), b"\xa1aa\x62\xc3\x28", b"\xa0\0"],
)  # fmt: skip
def test_a_record_that_is_no_dag_cbor_is_dropped_and_counted(block: bytes) -> None:
    stats = only(record_car(block))
    assert (stats.records, stats.bad_records, stats.missing, stats.bad_keys) == (60, 1, 0, 0)


@pytest.mark.parametrize(
    "key",
    ["no-slash", "a/b/c", "/a", "a/", "a/.", "a/..", "a/é", "a b/c", "a/" + "b" * 513, "a" * 318 + "/b", "a/b\n",
     "a\n/b", "a//b", "\x7f/b", "com.example.note/05/"],
)  # fmt: skip
def test_a_key_that_is_none_is_dropped_and_counted(key: str) -> None:
    car = make_car(Random(1), DID, RECORDS | {key: b"\xa0", "zz/1": b"\xa0"})
    repo = parse_repo(car)

    assert (repo.stats.records, repo.stats.bad_keys) == (61, 1)
    assert [each[:2] for each in repo.collections] == [("com.example.note", 60), ("zz", 1)]
    assert [record.rkey for record in repo.records()] == [f"{number:02}" for number in range(60)] + ["1"]


@pytest.mark.parametrize("key", ["a/b", "a/" + "b" * 512, "a" * 317 + "/b", "a.b-c_d~e:f/A.z-0_9~:", "a/...", "./a"])
def test_keys_of_every_length_and_sign(key: str) -> None:
    (record,) = parse_repo(make_car(Random(1), DID, {key: b"\xa0"})).records()

    assert (f"{record.collection}/{record.rkey}", record.json) == (key, b"{}")


def test_what_else_is_in_a_car_is_ignored() -> None:
    blocks = blocks_of(SOUND)
    expected = parse_repo(SOUND)
    more = {**blocks, cid_of(b"x", 0x55): b"x", cid_of(b"\xa0"): b"\xa0"}
    for roots, named in (
        ([ROOT], [*blocks.items()] * 2),
        ([ROOT, GONE], list(blocks.items())),
        ([ROOT], list(more.items())),
    ):
        found = parse_repo(write_car(roots, named))
        assert found._replace(stats=expected.stats) == expected
        assert found.stats == expected.stats._replace(blocks=len(named))
    # Of two blocks with one name the last counts, where hashes are not checked.
    forged = write_car([ROOT], [(ROOT, b"\xa0"), *blocks.items()])
    assert parse_repo(forged, verify=False).rev == expected.rev


def test_records_that_are_not_there_are_counted() -> None:
    """So a body that was cut between two frames never looks complete."""
    ends = sorted(end for _, end in index_car(SOUND, verify=True, limits=CarLimits())[1].values())
    for end in ends[:-1]:
        try:
            stats = only(SOUND[:end])
        except RepoError as error:
            assert error.fault in {RepoFault.COMMIT_MISSING, RepoFault.MST_MISSING_NODE}  # noqa: PT017 - either is fine
        else:
            assert 0 < stats.missing == 60 - stats.records


def test_a_repo_without_records_and_one_of_version_2() -> None:
    empty = parse_repo(make_repo(Random(1), DID, 0))
    old = parse_repo(make_repo(Random(1), DID, 5, version=2, rev="left out", prev="left out"))

    assert (empty.collections, empty.stats) == ((), RepoStats(blocks=2))
    assert (old.version, old.rev, old.stats.records) == (2, "", 5)


def test_collections_are_in_the_order_of_names_not_of_keys() -> None:
    """`.` and `-` are less than `/`, so the tree has it otherwise."""
    names = ["a", "a.b", "a.b-c", "a.b.c"]
    repo = parse_repo(make_car(Random(1), DID, {f"{name}/{rkey}": b"\xa0" for name in names for rkey in "rs"}))

    assert [(each.name, each.records) for each in repo.collections] == [(name, 2) for name in names]


def test_one_record_under_several_keys_and_a_raw_one() -> None:
    block = encode({"a": 1, "cid": "x"})
    cids = {b"a/1": cid_of(block), b"a/2": cid_of(block), b"a/3": cid_of(block, 0x55)}
    tree, nodes = build_tree(cids.items())
    car = car_of(tree, nodes | dict.fromkeys(cids.values(), block))

    assert [record.json for record in parse_repo(car).records()] == [b'{"a":1}'] * 3
    assert [record.json for record in parse_repo(car, cids=True).records()] == [b'{"a":1,"cid":"x"}'] * 3


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        (CarLimits(car=len(SOUND) - 1), RepoFault.TOO_LARGE),
        (CarLimits(block=50), RepoFault.TOO_LARGE),
        (CarLimits(output=1000), RepoFault.TOO_LARGE),
        (CarLimits(depth=1), RepoFault.MST_DEPTH),
    ],
)
def test_limits_are_kept(limits: CarLimits, fault: RepoFault) -> None:
    with pytest.raises(RepoError) as caught:
        parse_repo(SOUND, limits=limits)
    assert caught.value.fault == fault
    assert only(SOUND, limits=CarLimits(car=len(SOUND), nesting=1)).bad_records > 30


def test_a_record_that_a_thousand_keys_name_is_not_read_without_end() -> None:
    for block in (encode({"cid": "x" * 10_000}), encode({"a": "x" * 10_000}) + b"\0"):
        car = make_car(Random(1), DID, {f"a/{number}": block for number in range(1000)})
        with pytest.raises(RepoError, match="too_large"):
            parse_repo(car, limits=CarLimits(output=1_000_000))


@pytest.mark.parametrize("wrong", [{"car": 0}, {"nesting": 257}, {"depth": -1}])
def test_limits_that_are_none(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        CarLimits(**wrong)


def test_a_prefix_may_be_shorter_than_it_could_be_and_a_key_of_any_bytes() -> None:
    entries = [GOOD | {"k": b"a/aa"}, GOOD | {"k": b"/ab", "p": 1}, GOOD | {"k": b"\xff" * 300}]
    assert only(node_car(node(*entries))).records == 2
    assert only(node_car(node(*(GOOD | {"k": b"a/%03d" % place} for place in range(300))))).records == 300


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_changed_the_repo_is_read_or_refused(data: st.DataObject) -> None:
    car = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(car) - 1))
        car[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found: list[Repo | RepoFault] = []
    for verify in (False, True):
        try:
            found.append(parse_repo(bytes(car), verify=verify))
        except RepoError as error:
            assert 0 <= error.offset <= len(car)  # noqa: PT017 - either is fine
            found.append(error.fault)
    # Checking hashes never changes what is read.
    assert found[0] == found[1] or isinstance(found[1], RepoFault)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40, 300])
def test_all_records_come_out_in_the_order_of_their_keys(count: int) -> None:
    repo = parse_repo(make_repo(Random(count), DID, count))
    keys = [(record.collection, record.rkey) for record in repo.records()]

    assert keys == sorted(keys)
    assert len(keys) == repo.stats.records == count
    assert repo.stats.json_bytes == sum(len(record.json) for record in repo.records())


@pytest.mark.parametrize("data", [b"", b"\1", b"\1\0k", b"\1\0k\2\0\0\0{", b"\1\0k\2\0\0\0{}x", b"\1\0\xff\0\0\0\0"])
def test_records_that_are_packed_wrongly(data: bytes) -> None:
    with pytest.raises(ValueError, match="'c': "):
        list(split_records("c", 1, data))
    good = struct.pack("<H1sI2s", 1, b"k", 2, b"{}")
    assert list(split_records("c", 1, good)) == [("c", "k", b"{}")]
