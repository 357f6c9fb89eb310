from random import Random

from atproto_repos import make_repo

from sanderling import parse_repo

DID = "did:plc:abcdefghijklmnopqrstuvwx"


def test_all_records_come_out() -> None:
    repo = parse_repo(make_repo(Random(1), DID, 200))

    assert (repo.did, repo.version, repo.stats.records) == (DID, 3, 200)
    assert len(list(repo.records())) == 200
