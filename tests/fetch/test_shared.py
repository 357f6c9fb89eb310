"""What hosts share, with the real fetcher on real sockets: names that lead to one address, costs, redirects."""

import asyncio
import socket
from dataclasses import replace

import pytest
from scripted_server import ScriptedServer, Step, answer

from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.names import GuardedResolver
from sanderling.limit import Limiter, LimiterRules, PaceRules, Shared
from sanderling.task import Task

Script = dict[str, list[bytes | list[Step]]]
OWN = GuardRules(private=True, raw_addresses=True)
FAST = LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))


def fetch(script: Script, limiter: Limiter, *, name: str = "127.0.0.1") -> Fetched:
    async def main() -> Fetched:
        async with ScriptedServer(script) as server, Http(HttpRules(), OWN) as http:
            return await Fetcher(http, limiter).fetch(Task(f"http://{name}:{server.port}/"))

    return asyncio.run(main())


def used(limiter: Limiter) -> dict[str, tuple[int, int]]:
    return {view.host: (view.requests, view.inflight) for view in limiter.snapshot().shared}


def test_a_name_shares_what_is_allowed_at_the_address_it_leads_to() -> None:
    limiter = Limiter(replace(FAST, shared=(Shared("ip", "*"),), scopes={"ip/*": PaceRules.contract(100)}))

    for name in ("localhost", "127.0.0.1"):
        fetched = fetch({"/": [answer(200)]}, limiter, name=name)
        assert fetched.reply is not None
        assert fetched.reply.address == "127.0.0.1"

    assert used(limiter) == {"ip/127.0.0.1": (2, 0)}


def test_redirects_and_retries_draw_on_what_their_host_shares() -> None:
    script: Script = {"/": [answer(500), answer(301, Location="/new")], "/new": [answer(200)]}
    shared = (Shared("domain", "*"),)
    limiter = Limiter(replace(FAST, shared=shared, scopes={"domain/*": PaceRules.contract(100)}))

    fetched = fetch(script, limiter)

    assert fetched.outcome.ok
    assert fetched.requests == 3
    assert used(limiter) == {"domain/127.0.0.1": (3, 0)}


@pytest.mark.parametrize(("pattern", "cost"), [("*.localhost", 50.0), ("*.localhost/other", 1.0)])
def test_a_request_counts_for_what_it_costs(pattern: str, cost: float) -> None:
    async def main() -> float:
        async with ScriptedServer({"/": [answer(200)]}) as server, Http(HttpRules(), OWN) as http:
            host, slash, path = pattern.partition("/")
            costs = {f"{host}:{server.port}{slash}{path}": 50.0}
            scopes = {"domain/*": PaceRules.contract(10)}
            limiter = Limiter(replace(FAST, shared=(Shared("domain", "*"),), scopes=scopes, costs=costs))
            await Fetcher(http, limiter).fetch(Task(f"http://localhost:{server.port}/"))
            (view,) = limiter.snapshot().shared
            return view.tokens

    assert asyncio.run(main()) == pytest.approx(1 - cost, abs=20)


def test_the_lowest_of_several_addresses_is_taken_whatever_their_order() -> None:
    addresses = ["93.184.216.35", "93.184.216.34", "2606:2800:220:1::1"]

    def look_up(_host: str, _port: int, **_how: int) -> list[tuple[object, ...]]:
        addresses.append(addresses.pop(0))
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in each], socket.SOCK_STREAM, 6, "", (each, 443, 0, 0)) for each in addresses]

    async def main() -> set[str]:
        resolver = GuardedResolver(GuardRules(), look_up=look_up)
        seen = set()
        for _ in range(3):
            await resolver.resolve("a.example", 443)
            seen.add(resolver.address("a.example"))
        await resolver.close()
        return seen | {resolver.address("unknown.example")}

    assert asyncio.run(main()) == {"93.184.216.34", ""}


def test_where_a_proxy_looks_names_up_nobody_knows_the_address() -> None:
    async def main() -> str:
        async with ScriptedServer({"http://a.example/": [answer(200)]}) as proxy:
            rules = HttpRules(hosts=HostTable({"*": HostTraffic(proxy=f"http://127.0.0.1:{proxy.port}")}))
            async with Http(rules, OWN) as http:
                return (await http.send(Task("http://a.example/"))).address

    assert asyncio.run(main()) == ""
