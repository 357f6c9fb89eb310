"""What is set for hosts: by the pattern that names fewest of them, and secrets to nobody else."""

import asyncio

import pytest
from scripted_server import ScriptedServer, Step, answer

from sanderling.clock import SystemClock
from sanderling.fetch.attempts import CookieSender, Fetcher
from sanderling.fetch.cookies import CookieJar
from sanderling.fetch.guard import GuardRules, Refused
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.outcome import Code
from sanderling.task import Task

OWN = GuardRules(private=True, raw_addresses=True)
FAST = LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))


def test_the_longest_pattern_counts_most() -> None:
    table = HostTable(
        {
            "*": HostTraffic(headers=(("A", "1"), ("B", "1")), cookies=7),
            "*.example.org": HostTraffic(headers=(("b", "2"),), plain_http=True),
            "a.Example.org": HostTraffic(secrets=(("Authorization", "x"),), cookies=0),
        }
    )

    found = table.of("a.example.org")

    assert found == HostTraffic((("A", "1"), ("b", "2")), (("Authorization", "x"),), None, 0, plain_http=True)
    assert table.of("other.example").headers == (("A", "1"), ("B", "1"))
    assert (table.cookies("b.example.org"), HostTable().cookies("b.example.org")) == (7, 50)
    assert "x" not in repr(found)


def test_secrets_go_by_https_alone_and_the_task_has_the_last_word() -> None:
    traffic = HostTraffic((("Accept", "a"),), (("Authorization", "x"),))

    assert traffic.headers_for(Task("http://a.example/")) == (("Accept", "a"),)
    assert traffic.headers_for(Task("https://a.example/", headers=(("accept", "b"),))) == (
        ("Authorization", "x"),
        ("accept", "b"),
    )


@pytest.mark.parametrize(
    "wrong", [{"headers": (("a b", "1"),)}, {"proxy": "ftp://p"}, {"proxy": "http://"}, {"cookies": -1}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"expected|headers"):
        HostTraffic(**wrong)  # type: ignore[arg-type]


def test_each_hop_has_what_is_set_for_its_own_host() -> None:
    async def main() -> tuple[list[str | None], list[str | None]]:
        async with ScriptedServer({"/": [answer(200, b"x")]}) as other:
            moved = answer(302, Location=other.url("/"), Set_Cookie="s=1")
            async with ScriptedServer({"/": [moved]}) as server:
                traffic = HostTraffic(secrets=(("Authorization", "Basic eA=="),), plain_http=True)
                rules = HttpRules(hosts=HostTable({f"127.0.0.1:{server.port}": traffic}))
                async with Http(rules, OWN) as http:
                    fetched = await Fetcher(CookieSender(http, CookieJar(), SystemClock()), Limiter(FAST)).fetch(
                        Task(server.url("/"))
                    )
                assert fetched.outcome.ok
                async with Http(rules, OWN) as http:
                    kept = (await http.send(Task(server.url("/")))).sent
                assert "authorization" not in {name.lower() for name, _ in kept}
                seen = [[each.requests[0].headers.get("authorization")] for each in (server, other)]
                return seen[0], seen[1]

    assert asyncio.run(asyncio.wait_for(main(), 30)) == (["Basic eA=="], [None])


def test_a_redirect_to_itself_is_followed_once_its_cookie_is_set_and_a_loop_ends() -> None:
    async def main() -> list[tuple[Code, int]]:
        script: dict[str, list[bytes | list[Step]]] = {
            "/wall": [answer(302, Location="/wall", Set_Cookie="seen=1"), answer(200, b"in")],
            "/loop": [answer(302, Location="/loop", Set_Cookie="same=1")],
        }
        count = [answer(302, Location="/new", Set_Cookie=f"n={number}") for number in range(30)]
        async with ScriptedServer({**script, "/new": list(count)}) as server, Http(HttpRules(), OWN) as http:
            fetcher = Fetcher(CookieSender(http, CookieJar(), SystemClock()), Limiter(FAST))
            fetched = [await fetcher.fetch(Task(server.url(path))) for path in ("/wall", "/loop", "/new")]
            assert server.requests[1].headers["cookie"] == "seen=1"
            return [(each.outcome.code, each.requests) for each in fetched]

    assert asyncio.run(asyncio.wait_for(main(), 30)) == [
        (Code.OK, 2),
        (Code.REDIRECT_LOOP, 2),
        (Code.REDIRECT_LOOP, 21),
    ]


@pytest.mark.parametrize("url", ["http://localhost/", "http://db.internal/", "http://intranet/", "http://a.local/"])
def test_a_proxy_is_not_asked_for_what_is_private(url: str) -> None:
    async def main() -> None:
        rules = HttpRules(hosts=HostTable({"*": HostTraffic(proxy="http://127.0.0.1:9")}))
        async with Http(rules, GuardRules()) as http:
            await http.send(Task(url))

    with pytest.raises(Refused, match="own network"):
        asyncio.run(main())


def test_a_proxy_is_no_host_to_crawl() -> None:
    async def main() -> None:
        rules = HttpRules(hosts=HostTable({"*.example": HostTraffic(proxy="http://proxy.corp:3128")}))
        async with Http(rules, GuardRules()) as http:
            await http.send(Task("http://proxy.corp:8080/"))

    with pytest.raises(Refused, match="a proxy is not asked"):
        asyncio.run(main())


def test_https_goes_through_a_proxy_by_connect_and_keeps_its_secrets_from_it() -> None:
    async def main() -> tuple[Code, str, str, dict[str, str]]:
        async with ScriptedServer({"a.example:443": [answer(502)]}) as server:
            traffic = HostTraffic(
                secrets=(("Authorization", "Basic eA=="),), proxy=f"http://me:hunter2@127.0.0.1:{server.port}"
            )
            async with Http(HttpRules(hosts=HostTable({"*": traffic})), GuardRules()) as http:
                fetched = await Fetcher(http, Limiter(FAST), retry=False).fetch(Task("https://a.example/"))
            assert "hunter2" not in repr(fetched)
            (asked,) = server.requests
            return fetched.outcome.code, asked.method, asked.path, asked.headers

    code, method, path, headers = asyncio.run(asyncio.wait_for(main(), 30))

    assert (code, method, path) == (Code.NETWORK_ERROR, "CONNECT", "a.example:443")
    assert headers["proxy-authorization"] == "Basic bWU6aHVudGVyMg=="
    assert "authorization" not in headers
