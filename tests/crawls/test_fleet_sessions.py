"""Cookies of a crawl that machines share: whoever has a part next goes on with those that its commits have."""

from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest
from fleet_faults import Faults
from fleet_world import HOSTS, FleetWorld
from frontier_urls import fresh
from hypothesis import given
from hypothesis import strategies as st
from plays import seeds
from small_web import Web

from sanderling.crawls.fleet_cookies import FleetCookies
from sanderling.fetch.cookies import Cookie
from sanderling.stores.fleet import PartCommit
from sanderling.stores.fleet_memory import MemoryFleet
from sanderling.task import Reply, Task
from sanderling.testing import run_virtual


class Visited(Web):
    """Sets a cookie for whoever comes without one."""

    def __init__(self, of: Web) -> None:
        super().__init__(of.answers, of.latency)
        self.strangers: list[tuple[str, str]] = []  # host and URL, in order

    async def send(self, task: Task) -> Reply:
        found = await super().send(task)
        if task.url.endswith("/robots.txt") or "sid=" in dict(task.headers).get("Cookie", ""):
            return found
        self.strangers.append((task.url.split("/")[2], task.url))
        return replace(found, headers=(*found.headers, ("Set-Cookie", "sid=1")))


class SessionWorld(FleetWorld):
    """Machines, and a web that knows who comes again."""

    def make_web(self) -> Visited:
        return Visited(super().make_web())  # type: ignore[arg-type]  # it is one


@pytest.mark.parametrize("seed", seeds(6))
def test_a_host_sees_one_session_whoever_asks(seed: int) -> None:
    """Only the very first page of a host is ever asked for without its cookie: again, if its commit was never made."""

    async def main(folder: Path) -> tuple[list[tuple[str, str]], int]:
        async with SessionWorld(folder, Random(seed), 1 + seed % 2).running() as world:
            await Faults(world).play(12)
            await world.until_done(3600)
            web = world.web
            assert isinstance(web, Visited)
            return web.strangers, sum(each.worker.figures.acquired for each in world.machines)

    with fresh() as folder:
        strangers, acquired = run_virtual(main(folder))

    first = dict(reversed(strangers))
    assert [each for each in strangers if first[each[0]] != each[1]] == []
    assert acquired > 8 + 4  # parts that changed hands


def test_commits_have_what_has_changed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    commit = MemoryFleet.commit

    async def counted(server: MemoryFleet, made: PartCommit) -> None:
        sent.extend(key for key, _ in made.cookies)
        await commit(server, made)

    monkeypatch.setattr(MemoryFleet, "commit", counted)

    async def main(folder: Path) -> None:
        async with SessionWorld(folder, Random(1)).running() as world:
            await world.join()
            await world.until_done(3600)

    with fresh() as folder:
        run_virtual(main(folder))

    assert len(sent) == len(set(sent)) == HOSTS + 1


COOKIES = st.builds(
    Cookie,
    name=st.sampled_from("ab"),
    value=st.sampled_from("12"),
    domain=st.sampled_from(["a.example", "example"]),
    path=st.sampled_from(["/", "/x"]),
    host_only=st.booleans(),
    secure=st.booleans(),
    expires=st.none() | st.floats(1, 9),
    created=st.floats(0, 9),
)


def jars() -> st.SearchStrategy[list[Cookie]]:
    return st.lists(COOKIES, max_size=6, unique_by=lambda each: (each.name, each.domain, each.path, each.host_only))


@given(st.lists(st.tuples(jars(), st.booleans())))
def test_commits_have_the_last_jar_and_send_what_has_changed(saved: list[tuple[list[Cookie], bool]]) -> None:
    server: dict[bytes, bytes] = {}
    pending: dict[bytes, bytes] = {}
    cookies = FleetCookies([], pending)
    for jar, committed in saved:
        cookies.save(jar)
        kept = [body for body in (server | pending).values() if body]
        assert sorted(map(msgspec.json.encode, FleetCookies(kept, {}).load())) == sorted(kept)
        assert sorted(map(msgspec.json.encode, jar)) == sorted(kept)
        if committed:
            server |= pending
            pending.clear()
            cookies.save(jar)
            assert pending == {}


def test_cookies_of_another_release_are_left_out() -> None:
    assert list(FleetCookies([b'{"name": 1}', b"no json"], {}).load()) == []
