from random import Random

import pytest
from broken_repos import mutations

from sanderling.formats import cbor
from sanderling.formats.car import read_car
from sanderling.formats.cid import Cid
from sanderling.formats.mst import build, walk
from sanderling.formats.parsed import Limits
from sanderling.formats.repo import parse_repo
from sanderling.worlds.pds_repos import NOTE, PROFILE, make_repo, mix

DID = "did:plc:abcdefghijklmnopqrstuvwx"


def test_the_same_randomness_makes_the_same_repo() -> None:
    assert make_repo(Random(5), DID, mix(30)) == make_repo(Random(5), DID, mix(30))
    assert make_repo(Random(5), DID, mix(30)) != make_repo(Random(6), DID, mix(30))


@pytest.mark.parametrize("records", [0, 1, 2, 50, 1000])
def test_a_repo_has_as_many_records_as_asked_for(records: int) -> None:
    sizes = mix(records)

    repo = parse_repo(make_repo(Random(1), DID, sizes))

    assert sum(sizes.values()) == repo.stats.records == records
    assert {collection.name: collection.count for collection in repo.collections} == sizes
    assert repo.stats[3:] == (0, 0, 0, 0)


def test_a_collection_nobody_knows_can_be_asked_for() -> None:
    repo = parse_repo(make_repo(Random(1), DID, {"com.example.other": 3}))

    assert [(collection.name, collection.count) for collection in repo.collections] == [("com.example.other", 3)]


@pytest.mark.parametrize("version", [2, 3])
def test_the_tree_is_the_one_its_keys_make(version: int) -> None:
    car = make_repo(Random(3), DID, mix(200), version=version)
    index = read_car(car, limits=Limits())
    commit = cbor.decode(car[slice(*index.spans[index.roots[0]])])
    assert isinstance(commit, dict)
    root = commit["data"]
    assert isinstance(root, bytes)

    leaves = [(key, Cid(record)) for key, record, _ in walk(car, index.spans, root, limits=Limits())]

    assert build(leaves)[0] == root
    assert commit.keys() == {"did", "data", "prev", "sig", "version"} | ({"rev"} if version == 3 else set())


def test_the_records_have_what_parsers_stumble_over() -> None:
    repo = parse_repo(make_repo(Random(3), DID, mix(600)), cids="keep")
    everything = b"".join(collection.data for collection in repo.collections)
    profile, note = (next(kept.data for kept in repo.collections if kept.name == name) for name in (PROFILE, NOTE))

    for part in (b'"$link":"baf', b'"cid":"bafyrei', b'{"cid":"bafkrei', b'"reply":', b'"facets":', "日".encode()):
        assert part in everything
    for part in (b"\\n", b'\\"', b"\\u0001", b"\\\\"):
        assert part in profile
    assert b'"$bytes":' in note


def test_what_is_broken_has_one_fault_and_a_name_of_its_own() -> None:
    cases = list(mutations(make_repo(Random(1), DID, mix(10)), Random(1)))

    assert len({case.name for case in cases}) == len(cases) > 100
