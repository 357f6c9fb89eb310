"""The simulated fleet: what its hosts hold is what they say, and the same seed says the same."""

import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.atproto import AtprotoCategory
from sanderling.formats import cbor
from sanderling.formats.car import read_car
from sanderling.formats.parsed import Limits
from sanderling.formats.repo import parse_repo
from sanderling.limit import hints
from sanderling.worlds.pds import ALL, LONGEST_PATH, Fleet
from sanderling.worlds.pds_accounts import METHOD, AccountCensus
from sanderling.worlds.pds_hosts import Expected, PdsHost
from sanderling.worlds.weather import TransportFault, WorldAnswer

SYNC = "/xrpc/com.atproto.sync."
FLEET = Fleet.make(1, hosts=4, repos=60)


def get_repo(did: str) -> str:
    return f"{SYNC}getRepo?did={did}"


def host(word: str, fleet: Fleet = FLEET) -> PdsHost:
    return next(each for each in fleet.pds if each.character.word == word)


def ask(word: str, path: str = "", times: int = 1, every: float = 0.0) -> list[WorldAnswer]:
    """What a host says to the same question, asked of a fleet that nobody has asked before."""
    fleet = Fleet.make(1, hosts=1, repos=20)
    asked = host(word, fleet)
    path = path or get_repo(next(iter(asked.expected())))
    return [fleet.ask(asked.name, path, {}, 1000 + every * number) for number in range(times)]


def told(answer: WorldAnswer) -> Any:  # noqa: ANN401 - JSON
    return json.loads(answer.body)


def header(answer: WorldAnswer, name: str) -> str | None:
    return dict(answer.headers).get(name)


def test_every_repo_of_a_healthy_host_holds_what_is_expected_of_it() -> None:
    healthy = [each for each in FLEET.pds if each.character.word in ("healthy", "small")]
    assert {each.character.word for each in healthy} == {"healthy", "small"}

    for each in healthy:
        for did, end in each.expected().items():
            answer = FLEET.ask(each.name, get_repo(did), {}, 0.0)
            if not end.archived:
                assert answer.status >= 400
                continue
            repo = parse_repo(answer.body)
            assert (repo.did, repo.rev) == (did, end.rev)
            assert {kept.name: kept.count for kept in repo.collections} == end.collections
            assert repo.stats.records == end.records
            assert repo.stats[3:] == (0, 0, 0, 0)


def test_repos_are_of_all_sizes_and_both_versions() -> None:
    ends = Fleet.make(1, hosts=3, repos=500, others=()).expected().values()
    sizes = sorted(end.records for end in ends if end.archived)

    assert sizes[0] == 0
    assert 4 < sizes[len(sizes) // 2] < 12
    assert sizes[-1] > 300
    assert len({end.rev for end in ends if end.rev}) == sum(end.rev != "" for end in ends)
    assert 1 / 20 < sum(end.rev == "" for end in ends if end.archived) / len(sizes) < 1 / 12


def test_the_largest_repo_has_the_size_that_was_asked_for() -> None:
    fleet = Fleet.make(1, hosts=1, repos=2, others=(), large=2**20)

    assert len(fleet.pds[0].census.account(0).car()) == pytest.approx(2**20, rel=0.05)


def test_a_few_hosts_have_most_repos() -> None:
    sizes = [each.size for each in Fleet.make(1).pds if each.character.word in ("healthy", "small")]

    assert (len(sizes), sum(sizes)) == (20, 2000)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 1000
    assert sum(size < 10 for size in sizes) >= 5
    assert min(sizes) >= 1


def answers(seed: int) -> list[WorldAnswer]:
    fleet = Fleet.make(seed, hosts=2, repos=20)
    return [
        fleet.ask(each.name, path, {}, now * 0.3)
        for each in fleet.pds
        for now, path in enumerate([f"{SYNC}listRepos?limit=3", *map(get_repo, list(each.expected())[:4])])
    ]


def test_the_same_seed_gives_the_same_answers() -> None:
    assert answers(7) == answers(7)
    assert answers(7) != answers(8)


def test_another_process_serves_the_same_bytes() -> None:
    code = """
import hashlib
from sanderling.worlds.pds import Fleet
fleet = Fleet.make(5, hosts=2, repos=15, others=["lying"])
asked = [fleet.ask(host.name, f"/xrpc/com.atproto.sync.getRepo?did={did}", {}, 0.0)
         for host in fleet.pds for did in host.expected()]
asked.append(fleet.ask("plc.example", "/export?after=0", {}, 0.0))
print(hashlib.sha256(repr(asked).encode()).hexdigest())
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": number}, capture_output=True, check=True)  # noqa: S603
        for number in ("1", "2")
    ]

    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == hashlib.sha256().digest_size * 2


@given(st.integers(0, 10**9), st.integers(0, 2**120 - 1))
def test_a_number_is_found_again_from_its_did(seed: int, number: int) -> None:
    census = AccountCensus.make(seed)
    did = census.did(number)

    assert len(did) == len(METHOD) + 24
    assert census.number(did) == number


def test_a_did_is_spelled_one_way() -> None:
    did = AccountCensus.make(1).did(0)

    assert AccountCensus.make(1).number(METHOD + did.removeprefix(METHOD).upper()) == -1


@given(st.text(max_size=40) | st.from_regex(r"did:plc:[a-z0-9]{24}", fullmatch=True))
def test_what_is_nobodys_did_is_nobodys(text: str) -> None:
    number = AccountCensus.make(1).number(text)

    assert number == -1 or AccountCensus.make(1).did(number) == text


def listed(name: str, what: str, limit: int) -> list[Any]:
    """All pages of a listing, together."""
    rows, cursor = [], ""
    while True:
        page = told(FLEET.ask(name, f"{SYNC}list{what.capitalize()}?limit={limit}{cursor}", {}, 0.0))
        rows += page[what]
        if "cursor" not in page:
            return rows
        cursor = f"&cursor={page['cursor']}"


def are_listed(ends: dict[str, Expected]) -> set[str]:
    return {did for did, end in ends.items() if end.category is not AtprotoCategory.NOT_FOUND}


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_the_pages_of_a_listing_have_every_repo_once(limit: int) -> None:
    gone = host("gone")
    rows = listed(gone.name, "repos", limit)

    assert len(rows) == len({row["did"] for row in rows}) == 8
    assert {row["did"] for row in rows} == are_listed(gone.expected())


def test_a_listing_says_what_a_repo_is_and_where_it_stands() -> None:
    gone = host("gone")
    statuses = {row["did"]: row.get("status") for row in listed(gone.name, "repos", 1000)}
    kept = listed("healthy-1.example", "repos", 3)[0]
    commit = told(FLEET.ask("healthy-1.example", f"{SYNC}getLatestCommit?did={kept['did']}", {}, 0.0))
    car = FLEET.ask("healthy-1.example", get_repo(kept["did"]), {}, 0.0).body

    assert all(gone.expected()[did].category == status for did, status in statuses.items())
    assert kept["active"]
    assert commit == {"cid": kept["head"], "rev": kept["rev"]}
    assert kept["head"] == read_car(car, limits=Limits()).roots[0].text
    assert kept["rev"] == FLEET.expected()[kept["did"]].rev


def test_what_is_gone_has_no_latest_commit_and_what_is_a_lie_has() -> None:
    def latest(word: str) -> set[int]:
        asked = host(word)
        paths = [f"{SYNC}getLatestCommit?did={did}" for did in asked.expected()]
        return {FLEET.ask(asked.name, path, {}, 0.0).status for path in paths}

    assert latest("gone") == {400, 404, 410}
    assert latest("walled") == {200, 403, 502}
    assert latest("lying") == {200}


def test_the_relay_lists_all_hosts_and_all_repos() -> None:
    hosts = listed("relay.example", "hosts", 5)
    repos = listed("relay.example", "repos", 100)

    assert [row["hostname"] for row in hosts] == [each.name for each in FLEET.pds]
    assert {row["hostname"] for row in hosts if row["status"] != "active"} == {"dead.example", "nameless.example"}
    assert sum(row["accountCount"] for row in hosts) == len(FLEET.expected())
    # Those on the host that says so to everybody are known to the relay, like all others that are not gone for good.
    assert {row["did"] for row in repos} == are_listed(
        {did: end for each in FLEET.pds for did, end in each.expected().items()}
    )
    assert len(repos) == len({row["did"] for row in repos})


def test_the_relay_sends_on_to_the_host() -> None:
    did, origin = next(iter(FLEET.directory()))
    answer = FLEET.ask("relay.example", get_repo(did), {}, 0.0)

    assert (answer.status, header(answer, "Location")) == (302, origin + get_repo(did))
    assert FLEET.ask("relay.example", get_repo("did:plc:nobody"), {}, 0.0).status == 404


def test_a_host_says_who_it_is() -> None:
    answer = FLEET.ask("healthy-1.example", "/xrpc/com.atproto.server.describeServer", {}, 0.0)

    assert told(answer)["did"] == "did:web:healthy-1.example"


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (f"{SYNC}getRepo", 400, "InvalidRequest"),
        (f"{SYNC}getRepo?did=alice.example", 400, "InvalidRequest"),
        (f"{SYNC}getRepo?did=did:plc:{'a' * 24}", 400, "RepoNotFound"),
        (f"{SYNC}getRepo?did=did:plc:%C3%9F{'%F0%9F%8C%8A' * 23}", 400, "RepoNotFound"),
        (f"{SYNC}getLatestCommit?did=did:web:x", 400, "RepoNotFound"),
        (f"{SYNC}listRepos?limit=0", 400, "InvalidRequest"),
        (f"{SYNC}listRepos?limit=1001", 400, "InvalidRequest"),
        (f"{SYNC}listRepos?cursor=x", 400, "InvalidRequest"),
        (f"{SYNC}subscribeRepos", 501, "MethodNotImplemented"),
    ],
)
def test_what_cannot_be_had_is_said_as_xrpc_does(path: str, status: int, error: str) -> None:
    answer = FLEET.ask("healthy-1.example", path, {}, 0.0)

    assert (answer.status, told(answer)["error"]) == (status, error)


@pytest.mark.parametrize("path", ["/", "//[", "/xrpc", "/" + "?&" * 2000])
def test_what_is_no_question_gets_an_answer(path: str) -> None:
    assert FLEET.ask("healthy-1.example", path, {}, 0.0).status == 404
    assert FLEET.ask("plc.example", path, {}, 0.0).status == 404
    assert FLEET.ask("relay.example", path + "x" * LONGEST_PATH, {}, 0.0).status == 414


def test_of_another_hosts_repo_a_host_knows_nothing() -> None:
    did = next(iter(host("limited").expected()))

    assert told(FLEET.ask("healthy-1.example", get_repo(did), {}, 0.0))["error"] == "RepoNotFound"


def test_who_takes_gzip_gets_it() -> None:
    did = next(did for did, end in FLEET.pds[0].expected().items() if end.records > 20)
    plain = FLEET.ask("healthy-1.example", get_repo(did), {}, 0.0)
    packed = FLEET.ask("healthy-1.example", get_repo(did), {"Accept-Encoding": "gzip, br"}, 0.0)

    assert (header(plain, "Content-Encoding"), header(packed, "Content-Encoding")) == (None, "gzip")
    assert len(packed.body) < len(plain.body) == int(header(plain, "Content-Length") or 0)


def test_a_fleet_that_signs_signs_its_commits() -> None:
    fleet = Fleet.make(1, hosts=1, repos=3, others=(), signed=True)
    (signing,) = fleet.pds
    for did in signing.expected():
        car = fleet.ask(signing.name, get_repo(did), {}, 0.0).body
        index = read_car(car, limits=Limits())
        start, end = index.spans[index.roots[0]]
        commit = cbor.decode(car[start:end])

        assert isinstance(commit, dict)
        assert commit.pop("sig") == signing.key.sign(cbor.encode(commit))


def test_the_limited_one_says_what_is_left_and_when_to_come_back() -> None:
    served = ask("limited", times=32, every=0.1)

    assert [answer.status for answer in served] == [200] * 30 + [429] * 2
    first = hints.quota(dict(served[0].headers), now=0.0)
    assert first == hints.Quota(remaining=29, resets_in=10, limit=30, window=10)
    assert hints.quota(dict(served[10].headers), now=0.0) == hints.Quota(remaining=19, resets_in=9, limit=30, window=10)
    assert header(served[0], "RateLimit-Policy") == "30;w=10"
    assert header(served[0], "Retry-After") is None
    assert header(served[-1], "Retry-After") == "7"
    assert header(served[-1], "RateLimit-Remaining") == "0"
    assert told(served[-1])["error"] == "RateLimitExceeded"
    assert {answer.status for answer in ask("limited", times=100, every=10 / 30)} == {200}


def test_the_silent_one_says_nothing() -> None:
    served = ask("silent", times=16)

    assert [answer.status for answer in served] == [200] * 15 + [429]
    assert {name for name, _ in served[-1].headers} == {"Content-Type", "Content-Length"}


def test_the_slow_one_takes_longer_the_more_it_is_asked() -> None:
    assert ask("slow", times=20)[-1].latency > 3.9
    assert max(answer.latency for answer in ask("slow", times=20, every=1.0)) < 1.0


def test_the_failing_one_fails_for_a_while() -> None:
    assert [answer.status for answer in ask("failing", times=5, every=7.0)] == [503] * 3 + [200] * 2


def test_the_mute_one_answers_when_nobody_waits_any_more() -> None:
    assert ask("mute")[0].latency == 3600


@pytest.mark.parametrize(
    ("word", "faults"),
    [
        ("healthy", {TransportFault.NONE: 1.0}),
        (
            "cutting",
            {
                TransportFault.NONE: 0.75,
                TransportFault.RESET: 0.05,
                TransportFault.CUT: 0.1,
                TransportFault.TRUNCATED: 0.1,
            },
        ),
        ("dead", {TransportFault.REFUSED: 1.0}),
        ("nameless", {TransportFault.REFUSED: 1.0}),
    ],
)
def test_faults_come_as_often_as_is_said(word: str, faults: dict[TransportFault, float]) -> None:
    seen = Counter(answer.fault for answer in ask(word, times=600))

    assert {fault: count / 600 for fault, count in seen.items()} == pytest.approx(faults, abs=0.04)


def test_what_each_character_is_for_is_expected_of_it() -> None:
    found: dict[str, set[AtprotoCategory | None]] = defaultdict(set)
    for each in FLEET.pds:
        found[each.character.word] |= {end.category for end in each.expected().values()}
    gone = {
        AtprotoCategory.NOT_FOUND,
        AtprotoCategory.DEACTIVATED,
        AtprotoCategory.TAKENDOWN,
        AtprotoCategory.SUSPENDED,
    }

    assert {word for word, categories in found.items() if categories == {None}} == {
        "small",
        "limited",
        "silent",
        "slow",
        "failing",
        "cutting",
    }
    assert {word: categories for word, categories in found.items() if categories != {None}} == {
        "healthy": {None, AtprotoCategory.NOT_FOUND, AtprotoCategory.DEACTIVATED, AtprotoCategory.TAKENDOWN},
        "walled": {None, AtprotoCategory.UNAVAILABLE, AtprotoCategory.HTTP_ERROR},
        "lying": {
            None,
            AtprotoCategory.DID_MISMATCH,
            AtprotoCategory.PARSE_ERROR,
            AtprotoCategory.TOO_LARGE,
            AtprotoCategory.INCOMPLETE,
            AtprotoCategory.HTTP_ERROR,
        },
        "gone": gone,
        "leading": {AtprotoCategory.REFUSED},
        "mute": {AtprotoCategory.TIMEOUT},
        "dead": {AtprotoCategory.CONNECTION_ERROR},
        "nameless": {AtprotoCategory.DNS_ERROR},
    }


def test_an_address_needs_no_name() -> None:
    moved = FLEET.at({each.name: "http://127.0.0.1:1" for each in FLEET.hosts})

    assert {end.category for end in host("nameless", moved).expected().values()} == {AtprotoCategory.CONNECTION_ERROR}
    assert ("nameless.example" in moved, "nameless.example" in FLEET) == (True, False)


def test_repos_that_were_sent_whole_are_counted() -> None:
    fleet = Fleet.make(1, hosts=1, repos=13, others=["gone"])
    kept, lost = next(iter(fleet.pds[0].expected())), next(iter(host("gone", fleet).expected()))
    for did, name in ((kept, fleet.pds[0].name), (kept, fleet.pds[0].name), (lost, "gone.example")):
        fleet.ask(name, get_repo(did), {}, 0.0)
    fleet.ask(fleet.pds[0].name, f"{SYNC}getLatestCommit?did={kept}", {}, 0.0)

    assert fleet.sent == {kept: 2}


def test_a_fleet_can_be_small_or_large() -> None:
    assert Fleet.make(1, hosts=0, repos=0, others=()).expected() == {}
    assert [each.name for each in Fleet.make(1, hosts=1, repos=1, others=["dead"]).hosts] == [
        "small-1.example",
        "dead.example",
        "relay.example",
        "plc.example",
    ]
    # Nothing is made before it is asked for.
    assert len(Fleet.make(1, hosts=500, repos=10**7).pds) == 500 + len(ALL)


def test_what_cannot_be_made_is_said() -> None:
    with pytest.raises(ValueError, match="3 hosts, 2 repos"):
        Fleet.make(1, hosts=3, repos=2)
    with pytest.raises(ValueError, match="large -1"):
        Fleet.make(1, large=-1)
    with pytest.raises(ValueError, match="no character angry; expected some of limited, silent"):
        Fleet.make(1, others=["slow", "angry"])
    with pytest.raises(ValueError, match=r"no host 'x.example' among the 4 of this fleet"):
        Fleet.make(1, hosts=1, repos=1, others=["dead"]).ask("x.example", "/", {}, 0.0)
