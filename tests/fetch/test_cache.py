"""What is kept, what is asked again, and that no secret reaches a file."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import ScriptedServer, Step, answer

from sanderling.clock import SystemClock
from sanderling.fetch.attempts import Fetched
from sanderling.fetch.cache import MOST, Cache, CachingFetcher, key_of
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.outcome import Code, Outcome
from sanderling.stores.durable import FolderError
from sanderling.task import SECRET_BODY, Reply, Task

OWN = GuardRules(private=True, raw_addresses=True)
FAST = LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))
SLOW = LimiterRules(pace=PaceRules(initial_rps=1 / 60, max_rps=1 / 60, min_rps=1 / 60))
Script = dict[str, list[bytes | list[Step]]]
URL = "https://api.example.org/posts?page=1"
SECRET = "hunter2hunter2"  # noqa: S105 - to be looked for


def reply(body: bytes = b"{}", url: str = URL, headers: Sequence[tuple[str, str]] = (), status: int = 200) -> Reply:
    return Reply(status, tuple(headers), body, url, 0.1)


def files(folder: Path) -> list[Path]:
    return [each for each in folder.glob("*/*") if each.is_file()]


def refuses(reply: Reply, outcome: Outcome) -> Outcome:
    return Outcome(Code.RATE_LIMITED) if b"too fast" in reply.body else outcome


async def fetch(cache: Cache, server: ScriptedServer, *paths: str, limiter: Limiter | None = None) -> list[Fetched]:
    async with Http(guard=OWN) as http:
        fetcher = CachingFetcher(http, limiter or Limiter(FAST), clock=SystemClock(), job="", retry=False, cache=cache)
        return [await fetcher.fetch(Task(server.url(path)), None, refuses) for path in paths]


def test_a_good_answer_is_asked_for_once_and_takes_no_leave(tmp_path: Path) -> None:
    script: Script = {"/a": [answer(200, b"one", X_Total="7")], "/moved": [answer(302, Location="/a")]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            first = await fetch(Cache(tmp_path), server, "/a", "/moved")
            limiter = Limiter(SLOW)
            async with asyncio.timeout(50):  # at a request a minute, each would wait longer
                again = await fetch(Cache(tmp_path), server, "/a", "/moved", "/a", limiter=limiter)
            assert [each.path for each in server.requests] == ["/a", "/moved", "/a"]
        assert [each.requests for each in (*first, *again)] == [1, 2, 0, 0, 0]
        for fresh, kept in zip(first, again, strict=False):
            assert fresh.reply is not None
            assert kept.reply is not None
            assert kept.outcome == fresh.outcome
            assert (kept.reply.body, kept.reply.url) == (b"one", fresh.reply.url)
            assert kept.reply.header("x-total") == "7"
        assert limiter.snapshot().requests == 0

    asyncio.run(main())


@pytest.mark.parametrize("bad", [answer(500), answer(429), answer(404), answer(200, b"too fast")])
def test_errors_and_refusals_are_asked_again(tmp_path: Path, bad: bytes) -> None:
    async def main() -> None:
        async with ScriptedServer({"/a": [bad, answer(200, b"good")]}) as server:
            first = await fetch(Cache(tmp_path), server, "/a")
            assert files(tmp_path) == []
            again = await fetch(Cache(tmp_path), server, "/a", "/a")
        assert not first[0].outcome.ok
        assert [each.reply.body for each in again if each.reply is not None] == [b"good", b"good"]
        assert [each.requests for each in again] == [1, 0]

    asyncio.run(main())


def test_what_is_read_as_a_refusal_now_is_asked_again(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        async with ScriptedServer({"/a": [answer(200, b"good")]}) as server:
            task = Task(server.url("/a"))
            cache.keep(task, reply(b"too fast", task.url))
            found = await fetch(cache, server, "/a")
        assert found[0].reply is not None
        assert found[0].reply.body == b"good"

    asyncio.run(main())


BODY = {"query": "tide", "page_token": "abc"}
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"headers": (("Authorization", "Bearer a"),)}, {"headers": (("Authorization", "Bearer b"),)}),
    ({"headers": (("X-Odd", "a"),), "secrets": frozenset({"x-odd"})}, {"headers": ()}),
    ({"headers": (("X-Timestamp", "1"), ("X-Signature", "a"))}, {"headers": ()}),
    ({"headers": (("Accept", "a"), ("X-Tenant", "1"))}, {"headers": (("x-tenant", "1"), ("accept", "a"))}),
]
OTHER: list[dict[str, Any]] = [
    {"url": f"{URL}&page=2"},
    {"url": f"{URL}&page_token=b"},
    {"method": "POST"},
    {"method": "POST", "body": b"a"},
    {"method": "POST", "body": b"b"},
    {"headers": (("Accept", "text/csv"),)},
    {"headers": (("X-Tenant", "2"),)},
    {"most": 10},
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question_is_known_by_what_may_change_its_answer(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key_of(Task(URL, **one)) == key_of(Task(URL, **other))


def test_other_questions_have_other_answers() -> None:
    tasks = [Task(URL), *(Task(**({"url": URL} | each)) for each in OTHER)]

    assert len({key_of(task) for task in tasks}) == len(tasks)


def test_no_secret_reaches_a_file(tmp_path: Path) -> None:
    cache, bearer = Cache(tmp_path), (("Authorization", f"Bearer {SECRET}"), ("Cookie", f"sid={SECRET}"))
    cookie = [
        ("Set-Cookie", f"sid={SECRET}"),
        ("X-Api-Key", SECRET),
        ("X-Odd", "\udcff"),
        ("Content-Type", "application/json"),
    ]
    url = f"{URL}&api_key={SECRET}"
    cache.keep(Task(url, headers=bearer), reply(url=url, headers=cookie))
    for body in (
        json.dumps({"user": "a", "password": SECRET}),
        f"grant_type=refresh_token&refresh_token={SECRET}",
        json.dumps({"accessToken": SECRET}),
    ):
        cache.keep(Task(URL, method="POST", body=body.encode()), reply(b'{"token": "x"}'))
    login = Task(URL, method="POST", body=b"grant_type=client_credentials", secrets=frozenset({SECRET_BODY}))
    cache.keep(login, reply(b'{"token": "x"}'))
    cache.keep(Task(f"{URL}&n=2"), reply(url=f"https://other.example.org/?sig={SECRET}"))
    odd = Task(f"{URL}&k={SECRET}", secrets=frozenset({"k"}))
    cache.keep(odd, reply(url=f"https://other.example.org/?k={SECRET}"))
    cache.keep(odd, reply(url=odd.url))

    kept = [path.read_text() for path in files(tmp_path)]

    assert len(kept) == 2
    assert SECRET not in "".join(kept)
    assert SECRET not in str(list(tmp_path.rglob("*")))
    found = cache.find(Task(url, headers=bearer))
    assert found is not None
    assert found.headers == (("Content-Type", "application/json"),)


def test_a_search_with_a_page_token_in_its_body_is_kept(tmp_path: Path) -> None:
    cache, task = Cache(tmp_path), Task(URL, method="POST", body=json.dumps(BODY).encode())

    cache.keep(task, reply(b"page"))

    found = cache.find(task)
    assert found is not None
    assert found.body == b"page"


@given(st.binary(max_size=50), st.data())
def test_what_was_damaged_is_asked_again(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    cache, task = Cache(folder), Task(URL)
    cache.keep(task, reply(body))
    (path,) = files(folder)
    whole = path.read_bytes()
    at = len(whole) - data.draw(st.integers(1, len(whole)))  # the body most of all
    cut = data.draw(st.booleans())
    path.write_bytes(whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])

    found = cache.find(task)

    # Either it is not answered from, or what was damaged is only what is there for people.
    assert found is None or found.body == body
    cache.keep(task, reply(body))
    assert path.read_bytes() == whole


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    cache.keep(Task(URL), reply(bytes(MOST + 1)))

    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FolderError, match="file"):
        Cache(tmp_path / "file")
