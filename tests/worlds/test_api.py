"""The simulated API: each list can be walked to its end, record for record, by what its answers say."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from sanderling.clock import SystemClock
from sanderling.worlds.api import (
    BAD,
    LOG_IN,
    NOT_FOUND,
    PASSWORD,
    USER,
    ApiRules,
    ApiServer,
    ApiWorld,
)
from sanderling.worlds.server import WorldPortError, WorldRequest
from sanderling.worlds.weather import WorldAnswer

CALM = ApiRules(posts=53, faults=0.0)


def said(answer: WorldAnswer) -> Any:  # noqa: ANN401 - JSON
    return json.loads(answer.body)


def get(world: ApiWorld, target: str, now: float = 0.0, session: str = "") -> WorldAnswer:
    return world.answer(WorldRequest("GET", target, {"authorization": f"Session {session}"}, stays=True), now)


def post(world: ApiWorld, target: str, given: object, now: float = 0.0) -> WorldAnswer:
    return world.answer(WorldRequest("POST", target, {}, stays=True, body=json.dumps(given).encode()), now)


def test_a_list_is_walked_by_its_cursor_and_each_entry_has_details() -> None:
    world, cursor = ApiWorld(1, CALM), None
    found: list[Any] = []
    while len(found) < 53:
        page = said(get(world, f"/posts?limit=10&cursor={cursor or ''}"))
        found += [said(get(world, f"/posts/{each['id']}")) for each in page["data"]]
        cursor = page["next"]

    assert found == world.posts()
    assert cursor is None
    assert get(world, "/posts/54") == NOT_FOUND
    assert get(world, "/posts?cursor=xx") == get(world, "/posts?limit=0") == BAD


def test_orders_need_a_log_in_that_ends() -> None:
    world = ApiWorld(1, CALM)
    session = said(post(world, "/login", {"user": USER, "password": PASSWORD}))["session"]["key"]

    found: list[Any] = []
    for page in range(1, 4):
        found += said(get(world, f"/orders?page={page}", 59.0, session))["orders"]

    assert found == world.orders()
    assert said(get(world, "/orders?page=4", 59.0, session)) == {"orders": []}
    assert get(world, "/orders", 60.0, session) == LOG_IN
    assert get(world, "/orders") == LOG_IN
    assert post(world, "/login", {"user": USER, "password": "high tide"}).status == 403


def test_a_search_and_a_graph_are_walked_by_what_is_posted() -> None:
    world = ApiWorld(1, CALM)
    hits = [said(post(world, "/search", {"query": "tide", "offset": at, "limit": 5})) for at in range(0, 60, 5)]
    books, after = [], None
    while True:
        given = {"query": "query {books}", "variables": {"first": 9, "after": after}}
        page = said(post(world, "/graphql", given))["data"]["books"]
        books += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]

    assert [hit for page in hits for hit in page["hits"]] == world.hits("tide")
    assert 0 < hits[0]["total"] == len(world.hits("tide")) < 53
    assert books == world.books()
    assert "errors" in said(post(world, "/graphql", {"query": "x"}))
    assert post(world, "/search", {}) == BAD


def test_faults_come_first_and_end() -> None:
    world = ApiWorld(1, ApiRules(posts=200, faults=0.3))

    first, second, third = ([get(world, f"/posts/{number}") for number in range(1, 201)] for _ in range(3))

    assert 30 < sum(each.status != 200 for each in first) < 90
    assert {each.status for each in first} == {200, 429, 500, 502, 504}
    assert 0 < sum(each.status != 200 for each in second) < 60
    assert [said(each) for each in third] == world.posts()


def test_it_is_served_over_a_socket() -> None:
    async def main() -> None:
        world = ApiWorld(1, ApiRules(posts=5, faults=0.0, latency=0.0))
        async with ApiServer(world, SystemClock()) as server, aiohttp.ClientSession() as session:
            async with session.get(server.url(path="/posts/3")) as reply:
                assert await reply.json() == world.post(3)
            given = {"query": "tide"}
            async with session.post(server.url(path="/search"), json=given) as reply:
                assert (await reply.json())["hits"] == world.hits("tide")
            port = int(server.host.rpartition(":")[2])
            with pytest.raises(WorldPortError, match=str(port)):
                async with ApiServer(world, SystemClock(), port=port):
                    pass
        assert world.asked.total() == 2

    asyncio.run(main())


@pytest.mark.parametrize("bad", [{"posts": 0}, {"page": 0}, {"page": 101}, {"faults": 1.1}])
def test_rules_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        ApiRules(**bad)
