"""The directory's two exports, folded by slow and obvious readers: both come to the fleet."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from sanderling.formats import cbor
from sanderling.formats.cid import Cid
from sanderling.worlds.pds import Fleet
from sanderling.worlds.pds_plc import GAP, STRANGE

FLEET = Fleet.make(1, hosts=4, repos=200, others=["dead"])


def export(query: str, fleet: Fleet = FLEET) -> list[dict[str, Any]]:
    answer = fleet.ask("plc.example", f"/export?{query}", {}, 0.0)
    assert (answer.status, dict(answer.headers)["Content-Type"]) == (200, "application/jsonlines")
    return [json.loads(line) for line in answer.body.split(b"\n") if line]


def sequenced(fleet: Fleet = FLEET, count: int = 70) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while page := export(f"after={rows[-1]['seq'] if rows else 0}&count={count}", fleet):
        rows += page
    return rows


def dated() -> list[dict[str, Any]]:
    rows = export("count=70")
    while page := export(f"count=70&after={rows[-1]['createdAt']}"):
        rows += page
    return rows


def endpoint(operation: dict[str, Any]) -> str:
    if operation["type"] == "create":
        return str(operation["service"])
    return str(operation.get("services", {}).get("atproto_pds", {}).get("endpoint", ""))


def folded(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Where each DID is now: the last operation that was not nullified says so."""
    hosts = {row["did"]: endpoint(row["operation"]).rstrip("/") for row in rows}
    return {did: host for did, host in hosts.items() if host}


def test_both_exports_fold_to_the_fleet() -> None:
    fleet = dict(FLEET.directory())

    assert folded(sequenced()) == fleet
    assert folded([row for row in dated() if not row["nullified"]]) == fleet
    assert len(fleet) == 204


def test_at_other_addresses_it_names_those() -> None:
    moved = FLEET.at({host.name: f"http://127.0.0.1:{9000 + at}" for at, host in enumerate(FLEET.hosts)})

    assert folded(sequenced(moved)) == dict(moved.directory())
    assert {host for _, host in moved.directory()} == {f"http://127.0.0.1:{9000 + at}" for at in range(5)}


def test_both_exports_tell_of_the_same_operations() -> None:
    numbered, plain = sequenced(), dated()

    assert [row["cid"] for row in numbered] == [row["cid"] for row in plain]
    assert numbered[0].keys() == {"type", "seq", "did", "operation", "cid", "createdAt"}
    assert plain[0].keys() == {"did", "operation", "cid", "createdAt", "nullified"}
    assert {row["type"] for row in numbered} == {"sequenced_op"}


def test_numbers_rise_with_gaps_and_no_two_times_are_the_same() -> None:
    rows = sequenced()
    steps = Counter(after["seq"] - before["seq"] for before, after in pairwise(rows))

    assert steps == {1: len(rows) - 1 - (len(rows) - 1) // GAP, 2: (len(rows) - 1) // GAP}
    assert [row["createdAt"] for row in rows] == sorted({row["createdAt"] for row in rows})


def test_operations_build_on_each_other_and_a_fork_nullifies() -> None:
    histories = defaultdict(list)
    for row in dated():
        histories[row["did"]].append(row)

    for history in histories.values():
        standing: list[str] = []
        for row in history:
            operation = row["operation"]
            assert row["cid"] == Cid.of(cbor.encode(operation)).text
            before = operation["prev"]
            standing = standing[: standing.index(before) + 1] if before else []
            standing.append(row["cid"])
        assert [row["cid"] for row in history if not row["nullified"]] == standing


def test_everything_that_happens_to_identities_happens() -> None:
    rows = dated()
    kinds = Counter((row["operation"]["type"], row["nullified"]) for row in rows)
    gone = {row["did"] for row in rows} - dict(FLEET.directory()).keys()

    assert all(
        kinds[kind, nullified] > 2
        for kind, nullified in (
            ("create", False),
            ("plc_operation", False),
            ("plc_operation", True),
            ("plc_tombstone", False),
            ("plc_tombstone", True),
        )
    )
    assert len(gone) == 12
    assert any(row["operation"].get("services") == {} for row in rows)
    assert any(endpoint(row["operation"]).endswith("/") for row in rows)
    assert {row["nullified"] for row in rows if endpoint(row["operation"]) == STRANGE} == {True}


@pytest.mark.parametrize("query", ["count=0", "count=-1", "count=x", "after=yesterday", "after=2023-01-01T00:00:00"])
def test_what_cannot_be_asked_is_said(query: str) -> None:
    answer = FLEET.ask("plc.example", f"/export?{query}", {}, 0.0)

    assert answer.status == 400
    assert json.loads(answer.body)["message"].startswith("Invalid ")


def test_a_page_has_a_thousand_operations_at_most_and_none_after_the_last() -> None:
    fleet = Fleet.make(1, hosts=1, repos=900, others=())

    assert len(export("after=0", fleet)) == len(export("after=0&count=5000", fleet)) == len(export("", fleet)) == 1000
    assert export(f"after={10**30}", fleet) == []
    assert fleet.ask("plc.example", "/did:plc:nobody", {}, 0.0).status == 404


def test_a_fleet_that_signs_signs_its_operations() -> None:
    fleet = Fleet.make(1, hosts=1, repos=1, others=(), signed=True)
    (made,) = fleet.plc.operations(0)
    key = fleet.pds[0].key

    unsigned = {name: value for name, value in made.body.items() if name != "sig"}
    assert made.body["signingKey"] == key.did
    (noisy,) = Fleet.make(1, hosts=1, repos=1, others=()).plc.operations(0)
    assert {name: value for name, value in noisy.body.items() if name != "sig"} == unsigned
    assert noisy.body["sig"] != made.body["sig"]
