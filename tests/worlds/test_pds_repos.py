"""What signing and naming the edition change; `mix` and the records are tested where the formats are."""

from random import Random

from sanderling.formats import cbor
from sanderling.formats.repo import parse_repo
from sanderling.worlds.pds_repos import late_tid, make_blocks, make_repo, mix, tids, write_blocks

DID = "did:plc:abcdefghijklmnopqrstuvwx"


def test_the_signature_is_over_the_commit_without_it() -> None:
    seen = []

    def sign(message: bytes) -> bytes:
        seen.append(message)
        return b"s" * 64

    root, blocks = make_blocks(Random(1), DID, mix(5), sign=sign)
    commit = cbor.decode(blocks[root])

    assert isinstance(commit, dict)
    assert commit.pop("sig") == b"s" * 64
    assert seen == [cbor.encode(commit)]


def test_a_repo_is_its_blocks() -> None:
    assert make_repo(Random(1), DID, mix(9)) == write_blocks(*make_blocks(Random(1), DID, mix(9)))


def test_the_edition_can_be_named_and_is_later_than_the_records() -> None:
    rev = late_tid(Random(1))
    repo = parse_repo(make_repo(Random(1), DID, mix(200), rev=rev))

    assert repo.rev == rev
    assert rev > max(key for key, _ in zip(tids(Random(1)), range(100_000), strict=False))
    assert parse_repo(make_repo(Random(1), DID, mix(2), version=2, rev=rev)).rev == ""
