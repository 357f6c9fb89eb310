"""What becomes of a body that came as a repo: a block, a fault of the repo for good, or one that may pass."""

from random import Random

import pytest
from broken_repos import Broken, mutations

from sanderling.apis.atproto import PERMANENT, AtprotoCategory
from sanderling.formats.car import read_car, write_car
from sanderling.formats.cid import Cid
from sanderling.formats.parsed import Kind, Limits
from sanderling.formats.rca import decode_block
from sanderling.repos.packing import Packed, pack
from sanderling.repos.rules import RepoRules
from sanderling.worlds.pds_repos import make_repo, mix

DID, HOST = "did:plc:abcdefghijklmnopqrstuvwx", "https://a.example"
CAR = make_repo(Random(1), DID, mix(40))
# Whatever else is wrong, the repo is broken at its host, and another time it will be too.
MAY_PASS = {
    Kind.CAR_HEADER: AtprotoCategory.HTTP_ERROR,
    Kind.CAR_FRAME: AtprotoCategory.INCOMPLETE,
    Kind.COMMIT_MISSING: AtprotoCategory.INCOMPLETE,
    Kind.MST_MISSING_NODE: AtprotoCategory.INCOMPLETE,
}


def packed(car: bytes, did: str = DID, rules: RepoRules | None = None) -> Packed | AtprotoCategory:
    return pack(car, did, HOST, 1, rules or RepoRules())


def test_a_sound_repo_is_a_block() -> None:
    made = packed(CAR)

    assert isinstance(made, Packed)
    block = decode_block(made.block, 0)
    assert (block.did, block.pds, made.stats.records, made.collections) == (DID, HOST, 40, len(block.toc))


@pytest.mark.parametrize(
    "broken", [each for each in mutations(CAR, Random(1)) if each.kind], ids=lambda each: each.name
)
def test_every_fault_has_its_category(broken: Broken) -> None:
    assert broken.kind is not None
    if broken.kind is Kind.TOO_LARGE:
        expected = AtprotoCategory.TOO_LARGE
    else:
        # A forged hash is found before what lies behind it.
        expected = (
            MAY_PASS.get(broken.kind, AtprotoCategory.PARSE_ERROR) if broken.verify else AtprotoCategory.PARSE_ERROR
        )

    assert packed(broken.car) == expected


@pytest.mark.parametrize("body", [b"", b"<!DOCTYPE html><title>Back soon</title>", CAR[:-7], CAR[: len(CAR) // 2]])
def test_what_is_no_repo_today_may_be_one_tomorrow(body: bytes) -> None:
    """A page that says "back soon", or a body without a length that was cut: for good would be to lose the account."""
    made = packed(body)

    assert isinstance(made, AtprotoCategory)
    assert made not in PERMANENT


def test_a_repo_of_another_did_is_somebody_elses() -> None:
    assert packed(CAR, "did:plc:somebodyelse") is AtprotoCategory.DID_MISMATCH


def test_what_is_beyond_a_limit_is_too_large_and_not_unsound() -> None:
    assert packed(CAR, rules=RepoRules(limits=Limits(car=1000))) is AtprotoCategory.TOO_LARGE


def test_records_that_did_not_come_are_counted() -> None:
    index = read_car(CAR, limits=Limits())
    record = min(index.spans, key=lambda cid: index.spans[cid][0])
    rest = [(Cid(cid), CAR[start:end]) for cid, (start, end) in index.spans.items() if cid != record]

    made = packed(write_car(index.roots, rest))

    assert isinstance(made, Packed)
    assert made.stats.missing == 1
