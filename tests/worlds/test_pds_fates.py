"""Each lie is the lie that its row says it is, down to the fault a parser finds."""

import tracemalloc

import pytest

from sanderling.fetch.classify import TooLarge
from sanderling.fetch.decode import Body
from sanderling.formats.parsed import Kind
from sanderling.formats.repo import RepoError, parse_repo
from sanderling.formats.repo_python import parse_repo as parse_slowly
from sanderling.worlds.pds_accounts import Account, AccountCensus
from sanderling.worlds.pds_fates import GONE, HELD, LIES, WALLED, RepoFate

# Without records, with some, and of the old version.
ACCOUNTS = [
    Account(1, AccountCensus.make(1).did(number), records, 3 - number % 2, None)
    for number, records in enumerate((0, 1, 40))
]


def named(word: str) -> RepoFate:
    return next(fate for fate in (*LIES, *WALLED) if fate.word == word)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("a broken hash", Kind.HASH_MISMATCH),
        ("a cut CAR", Kind.CAR_FRAME),
        ("a missing tree", Kind.MST_MISSING_NODE),
        ("a ring", Kind.HASH_MISMATCH),
        ("a deep tree", Kind.MST_DEPTH),
        ("2**40 bytes", Kind.CAR_FRAME),
        ("nothing", Kind.CAR_HEADER),
        ("200 page", Kind.CAR_HEADER),
    ],
)
def test_a_parser_finds_the_fault(word: str, kind: Kind) -> None:
    for account in ACCOUNTS:
        page = named(word).give(account)
        with pytest.raises(RepoError) as caught:
            parse_repo(page.body)

        assert (page.status, caught.value.kind) == (200, kind)


def test_a_ring_has_no_end_for_whoever_checks_no_hashes() -> None:
    with pytest.raises(RepoError) as caught:
        parse_slowly(named("a ring").give(ACCOUNTS[0]).body, verify=False)

    assert caught.value.kind is Kind.MST_ORDER


def test_anothers_repo_is_a_sound_one() -> None:
    for account in ACCOUNTS:
        repo = parse_repo(named("another's repo").give(account).body)

        assert repo.did != account.did
        assert repo.stats.records == account.records


def test_a_bomb_is_small_until_it_is_unpacked() -> None:
    page = named("a gzip bomb").give(ACCOUNTS[0])
    assert len(page.body) < 300_000

    tracemalloc.start()
    body = Body("gzip", most_raw=2**20, most_decoded=8 * 2**20)
    with pytest.raises(TooLarge):
        body.add(page.body)
    assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    tracemalloc.stop()


def test_what_is_held_is_served() -> None:
    for account in ACCOUNTS:
        repo = parse_repo(HELD.give(account).body)

        assert (repo.did, repo.rev, repo.version) == (account.did, account.rev, account.version)


def test_pages_for_people_name_errors_that_are_not_meant() -> None:
    assert all(b"RepoNotFound" in fate.give(ACCOUNTS[0]).body for fate in WALLED if fate is not HELD)


def test_fates_have_names_of_their_own() -> None:
    words = [fate.word for fate in {*GONE, *LIES, *WALLED}]

    assert len(words) == len(set(words))
