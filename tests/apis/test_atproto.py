"""How ATProto hosts are asked, and what their refusals mean."""

import json

import msgspec
import pytest

from sanderling.apis import atproto
from sanderling.apis.atproto import PERMANENT, TRANSIENT, AtprotoCategory, why_not
from sanderling.outcome import Code, Outcome
from sanderling.task import Reply, Task

HOST = "https://host.example"
DID = "did:plc:abc"


def refusal(status: int, body: bytes = b"") -> AtprotoCategory:
    code = {404: Code.CONTENT_NOT_FOUND, 429: Code.RATE_LIMITED}.get(status, Code.HTTP_ERROR)
    if status >= 500:
        code = Code.HOST_UNAVAILABLE
    return why_not(Outcome(code, status), Reply(status, (), body, HOST, 0.1))


def error(name: str, message: str = "") -> bytes:
    return json.dumps({"error": name, "message": message}).encode()


@pytest.mark.parametrize(
    ("task", "url"),
    [
        (atproto.get_repo(HOST, DID), f"{HOST}/xrpc/com.atproto.sync.getRepo?did=did:plc:abc"),
        (atproto.get_repo(f"{HOST}/", DID), f"{HOST}/xrpc/com.atproto.sync.getRepo?did=did:plc:abc"),
        (
            atproto.get_repo(HOST, "did:web:a%3A80&x=1"),
            f"{HOST}/xrpc/com.atproto.sync.getRepo?did=did:web:a%253A80%26x%3D1",
        ),
        (atproto.get_latest_commit(HOST, DID), f"{HOST}/xrpc/com.atproto.sync.getLatestCommit?did=did:plc:abc"),
        (atproto.list_repos(HOST), f"{HOST}/xrpc/com.atproto.sync.listRepos?limit=1000"),
        (atproto.list_repos(HOST, "c 1", 5), f"{HOST}/xrpc/com.atproto.sync.listRepos?limit=5&cursor=c%201"),
        (atproto.list_hosts(HOST, "7"), f"{HOST}/xrpc/com.atproto.sync.listHosts?limit=1000&cursor=7"),
    ],
)
def test_addresses(task: Task, url: str) -> None:
    assert task.url == url


def test_a_repo_is_asked_for_as_a_car() -> None:
    assert atproto.get_repo(HOST, DID).headers == (("Accept", "application/vnd.ipld.car"),)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("RepoNotFound", AtprotoCategory.NOT_FOUND),
        ("RepoTakendown", AtprotoCategory.TAKENDOWN),
        ("RepoSuspended", AtprotoCategory.SUSPENDED),
        ("RepoDeactivated", AtprotoCategory.DEACTIVATED),
        ("SomethingElse", AtprotoCategory.HTTP_ERROR),
    ],
)
def test_a_400_is_known_by_the_name_of_its_error(name: str, category: AtprotoCategory) -> None:
    assert refusal(400, error(name)) is category


def test_a_repo_whose_root_is_gone_is_known_by_the_message() -> None:
    assert (
        refusal(400, error("InvalidRequest", "Could not find repo for DID: did:plc:abc")) is AtprotoCategory.NOT_FOUND
    )
    assert refusal(400, error("InvalidRequest", "Error: did must be a valid did")) is AtprotoCategory.HTTP_ERROR


@pytest.mark.parametrize(
    "body", [b"<html>RepoNotFound</html>", error("Oops", "RepoNotFound"), b'{"error": 7}', b"[" * 100_000, b""]
)
def test_the_name_elsewhere_in_the_body_means_nothing(body: bytes) -> None:
    assert refusal(400, body) is AtprotoCategory.HTTP_ERROR


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (404, AtprotoCategory.NOT_FOUND),
        (410, AtprotoCategory.DEACTIVATED),
        (429, AtprotoCategory.RATE_LIMITED),
        (401, AtprotoCategory.HTTP_ERROR),
        (500, AtprotoCategory.UNAVAILABLE),
        (503, AtprotoCategory.UNAVAILABLE),
    ],
)
def test_a_status_without_a_name_speaks_for_itself(status: int, category: AtprotoCategory) -> None:
    assert refusal(status, b"<html>") is category


@pytest.mark.parametrize(
    ("code", "category"),
    [
        (Code.DNS_ERROR, AtprotoCategory.DNS_ERROR),
        (Code.TIMEOUT, AtprotoCategory.TIMEOUT),
        (Code.CONNECTION_RESET, AtprotoCategory.CONNECTION_ERROR),
        (Code.TRUNCATED, AtprotoCategory.CONNECTION_ERROR),
        (Code.TOO_LARGE, AtprotoCategory.TOO_LARGE),
        (Code.REFUSED, AtprotoCategory.REFUSED),
        (Code.INTERNAL_ERROR, AtprotoCategory.UNKNOWN),
    ],
)
def test_without_an_answer_the_outcome_says_why(code: Code, category: AtprotoCategory) -> None:
    assert why_not(Outcome(code), None) is category


def test_a_body_that_was_cut_is_asked_for_again() -> None:
    assert not why_not(Outcome(Code.TRUNCATED), None).permanent


def test_each_category_is_permanent_or_transient() -> None:
    assert set(PERMANENT) | set(TRANSIENT) == set(AtprotoCategory)
    assert not set(PERMANENT) & set(TRANSIENT)
    assert not any(category.blames_host for category in PERMANENT)


def test_lists_are_read_as_hosts_write_them() -> None:
    repos = msgspec.json.decode(
        b'{"cursor":"2","repos":[{"did":"did:plc:a","head":"bafy","rev":"3k","active":false,"status":"takendown"}]}',
        type=atproto.ListedRepos,
    )
    hosts = msgspec.json.decode(b'{"hosts":[{"hostname":"host.example","seq":7}]}', type=atproto.ListedHosts)

    assert (repos.cursor, repos.repos[0].did, repos.repos[0].active) == ("2", "did:plc:a", False)
    assert (hosts.cursor, hosts.hosts[0].hostname) == (None, "host.example")
