import os
import re
import struct
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from broken_repos import Broken, mutations
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.formats import cbor
from sanderling.formats.car import read_car, write_car
from sanderling.formats.cid import RAW, Cid
from sanderling.formats.mst import build
from sanderling.formats.repo import ACTIVE, Cids, Collection, Kind, Limits, Repo, RepoError, Stats, parse_repo
from sanderling.worlds.pds_repos import make_commit, make_repo, mix

DID = "did:plc:abcdefghijklmnopqrstuvwx"
SOUND = make_repo(Random(1), DID, mix(60))
BROKEN = list(mutations(SOUND, Random(2)))


def repo_of(records: dict[str, bytes], *, version: int = 3) -> bytes:
    """A CAR with these blocks as its records."""
    named = {key.encode(): Cid.of(block) for key, block in records.items()}
    root, nodes = build(named.items())
    commit = make_commit(Random(1), DID, root, version=version)
    blocks = {**nodes, **{Cid.of(block): block for block in records.values()}, Cid.of(commit): commit}
    return write_car([Cid.of(commit)], blocks.items())


def unpacked(collection: Collection) -> Iterator[tuple[str, bytes]]:
    """The records of a collection's data."""
    at = 0
    while at < len(collection.data):
        (size,) = struct.unpack_from("<H", collection.data, at)
        rkey = collection.data[at + 2 : at + 2 + size]
        at += 2 + size
        (size,) = struct.unpack_from("<I", collection.data, at)
        yield rkey.decode(), collection.data[at + 4 : at + 4 + size]
        at += 4 + size


def obvious(car: bytes, *, strip: bool) -> dict[str, dict[str, bytes]]:
    """The records of a sound repo, as the definitions have it."""
    index = read_car(car, limits=Limits())
    blocks: dict[object, Any] = {cid: cbor.decode(car[start:end]) for cid, (start, end) in index.spans.items()}
    found: dict[str, dict[str, bytes]] = {}

    def visit(cid: object) -> None:
        node = blocks.get(cid)
        if not isinstance(node, dict):
            return
        visit(node["l"])
        key = b""
        for entry in node["e"]:
            key = key[: entry["p"]] + entry["k"]
            collection, rkey = key.decode().split("/")
            json = cbor.to_json(blocks[entry["v"]], strip=strip)
            found.setdefault(collection, {})[rkey] = json
            visit(entry["t"])

    visit(blocks[index.roots[0]]["data"])
    return found


@settings(max_examples=12)
@given(st.randoms(use_true_random=False), st.integers(0, 80), st.sampled_from(["strip", "keep"]), st.booleans())
def test_all_records_come_out_in_order(rng: Random, records: int, cids: Cids, verify: bool) -> None:  # noqa: FBT001 - drawn
    car = make_repo(rng, DID, mix(records))

    repo = parse_repo(car, cids=cids, verify=verify)

    expected = obvious(car, strip=cids == "strip")
    assert [collection.name for collection in repo.collections] == sorted(expected)
    for collection in repo.collections:
        assert list(unpacked(collection)) == list(expected[collection.name].items())
        assert collection.count == len(expected[collection.name])
    assert repo.did == DID
    assert repo.stats.records == records
    assert repo.stats.json_bytes == sum(len(json) for kept in expected.values() for json in kept.values())


@pytest.mark.parametrize("broken", [case for case in BROKEN if case.kind], ids=lambda case: case.name)
def test_a_fault_is_named_and_placed(broken: Broken) -> None:
    with pytest.raises(RepoError) as caught:
        parse_repo(broken.car, verify=broken.verify)

    error = caught.value
    assert error.kind is broken.kind
    assert 0 <= error.offset <= len(broken.car)
    assert str(error).startswith(f"{broken.kind} at byte {error.offset}: ")


def test_every_kind_of_fault_has_a_case() -> None:
    assert {case.kind for case in BROKEN} == {*Kind, None}


@pytest.mark.parametrize("broken", [case for case in BROKEN if not case.kind], ids=lambda case: case.name)
def test_what_is_wrong_with_one_record_is_counted(broken: Broken) -> None:
    stats = parse_repo(broken.car).stats

    assert (stats.missing > 0) == (broken.name == "a record missing")
    assert (stats.bad_records > 0) == broken.name.startswith("a record of")
    assert (stats.bad_keys > 0) == broken.name.startswith("the key")
    assert stats.missing + stats.bad_records + stats.bad_keys <= 1
    if broken.name != "one record under several keys" and not stats.bad_keys:
        assert stats.records == 60 - stats.missing


def test_the_errors_place() -> None:
    """Whoever reads the CAR by hand must find the fault where the error says it is."""
    index = read_car(SOUND, limits=Limits())
    commit, _ = index.spans[index.roots[0]]
    places = {
        "no root of the tree": 59 + 38,  # the commit, first in that CAR
        "a frame of no bytes": len(SOUND),
        "a frame with CIDv0": len(SOUND) + 1,
        "a header of version 2": 0,
        "no commit": 0,
    }
    assert commit > 59

    for case in BROKEN:
        if case.name in places:
            with pytest.raises(RepoError) as caught:
                parse_repo(case.car, verify=case.verify)
            assert caught.value.offset == places[case.name], case.name


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_changed_the_repo_is_read_or_refused(data: st.DataObject) -> None:
    car = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 3))):
        car[data.draw(st.integers(0, len(car) - 1))] = data.draw(st.integers(0, 255))

    try:
        repo = parse_repo(bytes(car), verify=False)
    except RepoError as error:
        assert 0 <= error.offset <= len(car)  # noqa: PT017 - either is fine
    else:
        assert sum(collection.count for collection in repo.collections) == repo.stats.records


def test_a_body_that_was_cut_never_looks_complete() -> None:
    whole = parse_repo(SOUND).stats
    index = read_car(SOUND, limits=Limits())
    ends = sorted(end for _, end in index.spans.values())[:-1]

    for end in ends:
        try:
            stats = parse_repo(SOUND[:end]).stats
        except RepoError as error:
            assert error.kind in {Kind.COMMIT_MISSING, Kind.MST_MISSING_NODE}  # noqa: PT017 - either is fine
        else:
            assert stats.missing > 0
            assert stats.records + stats.missing == whole.records


def test_a_repo_without_records() -> None:
    repo = parse_repo(repo_of({}))

    assert repo.collections == ()
    assert repo.stats == Stats(2, 0, 0, 0, 0, 0, 0)


def test_a_commit_of_version_2_needs_no_rev() -> None:
    repo = parse_repo(make_repo(Random(1), DID, mix(5), version=2))

    assert (repo.version, repo.rev, repo.stats.records) == (2, "", 5)
    assert re.fullmatch("[2-7a-z]{13}", parse_repo(SOUND).rev)


def test_collections_are_in_the_order_of_names_not_of_keys() -> None:
    """`.` and `-` are less than `/`, so the tree has it otherwise."""
    record = cbor.encode({})
    car = repo_of({f"{name}/r": record for name in ("a.b", "a.b.c", "a.b-c", "a")})

    assert [collection.name for collection in parse_repo(car).collections] == ["a", "a.b", "a.b-c", "a.b.c"]


@pytest.mark.parametrize(
    "key",
    ["a/b", "a/" + "b" * 512, "a" * 317 + "/b", "a.b-c_d~e:f/A.z-0_9~:", "a/...", "./a"],
)
def test_keys_that_are_kept(key: str) -> None:
    (collection,) = parse_repo(repo_of({key: b"\xa0"})).collections

    assert f"{collection.name}/{next(unpacked(collection))[0]}" == key


@pytest.mark.parametrize("key", ["a" * 318 + "/b", "a/" + "b" * 513, "a/b\n", "a\n/b", "a/b c", "a/b%", "ä/b", "a//b"])
def test_keys_that_are_dropped(key: str) -> None:
    assert parse_repo(repo_of({key: b"\xa0", "a/b": b"\xa0"})).stats[1:] == (1, 2, 0, 0, 1, 0)


def test_a_records_block_may_be_called_raw() -> None:
    """What it holds decides."""
    block = cbor.encode({"a": 1})
    root, nodes = build([(b"a/b", Cid.of(block, RAW))])
    commit = make_commit(Random(1), DID, root)
    blocks = {**nodes, Cid.of(block, RAW): block, Cid.of(commit): commit}

    repo = parse_repo(write_car([Cid.of(commit)], blocks.items()))

    assert list(unpacked(repo.collections[0])) == [("b", b'{"a":1}')]


def test_floats_are_kept_and_counted() -> None:
    records: dict[str, cbor.Value] = {"a/1": {"x": [1.5, 1e16]}, "a/2": {"x": 1}, "a/3": {"cid": 0.5}, "a/4": -0.0}
    repo = parse_repo(repo_of({key: cbor.encode(value) for key, value in records.items()}))

    assert dict(unpacked(repo.collections[0])) == {"1": b'{"x":[1.5,1e+16]}', "2": b'{"x":1}', "3": b"{}", "4": b"-0.0"}
    assert repo.stats.floats == 4


def test_json_is_bounded() -> None:
    car = repo_of({f"a/{number}": cbor.encode({"n": number}) for number in range(10)})
    assert parse_repo(car, limits=Limits(output=70)).stats.json_bytes == 70

    with pytest.raises(RepoError, match="too_large") as caught:
        parse_repo(car, limits=Limits(output=69))

    assert caught.value.kind is Kind.TOO_LARGE


def test_what_is_read_for_it_is_bounded_too() -> None:
    """A thousand keys of one large record that leaves nothing behind when it is stripped, or that is bad at its end."""
    for block in (cbor.encode({"cid": "x" * 10_000}), cbor.encode({"a": "x" * 10_000}) + b"\0"):
        car = repo_of({f"a/{number}": block for number in range(1000)})

        with pytest.raises(RepoError, match="too_large"):
            parse_repo(car, limits=Limits(output=1_000_000))


@pytest.mark.parametrize("nesting", [1, 64, 256])
def test_nesting_is_bounded_per_record(nesting: int) -> None:
    car = repo_of({"a/1": b"\x81" * nesting + b"\0", "a/2": b"\x81" * (nesting + 1) + b"\0"})

    assert parse_repo(car, limits=Limits(nesting=nesting)).stats[1:] == (1, 2 * nesting + 1, 0, 1, 0, 0)


@pytest.mark.parametrize("limits", [{"nesting": 257}, {"nesting": 0}, {"car": 0}, {"depth": -1}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Limits(**limits)


def test_cids_are_stripped_or_kept_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="'strip' or 'keep'"):
        parse_repo(SOUND, cids="drop")  # type: ignore[arg-type] # the point


def test_it_says_which_parser_it_is() -> None:
    assert ACTIVE in {"c", "python"}
    if os.environ.get("SANDERLING_PURE"):
        assert ACTIVE == "python"
    assert isinstance(parse_repo(SOUND), Repo)
