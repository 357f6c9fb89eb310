"""The client against servers on loopback: permits, redirects, secrets, addresses, connections."""

import asyncio
import socket

import pytest
from fetch.servers import Upstream, fetch, moves, says, upstream

from sanderling.fetch import Client, HttpRequest, RequestOptions
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome

pytestmark = pytest.mark.real
NEW = Outcome(Code.OK, 200)


def options(**values: object) -> RequestOptions:
    return RequestOptions(**{"private": True, "policy": "none", **values})


async def test_each_hop_has_a_permit_of_its_own() -> None:
    async with upstream(says(body=b"there")) as last, upstream(moves(last.url + "a#b")) as first:
        limiter = Limiter(policy="none")
        async with Client(options(), limiter) as client:
            permit = await limiter.acquire(f"127.0.0.1:{first.port}")
            got = await client.send(HttpRequest(first.url), permit)

        assert (got.outcome, got.body, got.requests) == (NEW, b"there", 2)
        assert (got.url, got.redirects) == (last.url + "a", ((first.url, last.url + "a"),))
        assert not permit.live
        assert limiter.snapshot().total_requests == 2
        assert {each.host for each in limiter.snapshot().hosts} == {f"127.0.0.1:{it.port}" for it in (first, last)}


async def test_nothing_that_a_person_set_goes_to_another_origin() -> None:
    async with upstream(says()) as other, upstream(moves("/b"), moves(other.url)) as first:
        host = f"127.0.0.1:{first.port}"
        table = {host: {"headers": {"X-Key": "configured"}, "plain-http": True}}
        async with Client(options(hosts=table)) as client:
            await client.send(HttpRequest(first.url, headers=(("Accept", "text/odd"), ("X-Mine", "of the job"))))

    for request in (0, 1):
        assert (first.header("x-key", request), first.header("x-mine", request)) == ("configured", "of the job")
    assert (other.header("x-key"), other.header("x-mine"), other.header("accept")) == (None, None, "*/*")


async def test_a_body_goes_nowhere_else_and_becomes_none_with_a_get() -> None:
    async with (
        upstream(says()) as other,
        upstream(moves(other.url, 307, "Connection: close"), moves("/done", 303), says()) as first,
        Client(options()) as client,
    ):
        refused = await client.send(HttpRequest(first.url, "POST", body=b"secret"))
        followed = await client.send(HttpRequest(first.url, "POST", body=b"form"))

    assert (refused.outcome.code, other.heads) == (Code.REFUSED, [])
    assert followed.outcome.ok
    assert first.heads[-1].startswith("GET /done ")


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://0.0.0.0/",
        "http://example.org:6379/",
    ],
)
async def test_a_redirect_inside_is_refused_and_not_sent(target: str) -> None:
    async with upstream(moves(target)) as first:
        got = await fetch(first.url)

    assert (got.outcome.code, got.requests) == (Code.REFUSED, 1)


async def test_endless_redirects_end() -> None:
    async with upstream(moves("/again")) as loop:
        got = await fetch(loop.url)
    steps = (moves(f"/{step}") for step in range(100))
    async with upstream(*steps, keep=True) as chain:
        long = await fetch(chain.url)

    assert (got.outcome.code, got.requests) == (Code.REDIRECT_LOOP, 3)
    assert (long.outcome.code, long.requests) == (Code.REDIRECT_LOOP, 21)


async def test_who_does_not_follow_gets_the_redirect() -> None:
    async with upstream(moves("/b?utm_source=x", 301), moves("javascript:x")) as first, Client(options()) as client:
        asked: list[str] = []

        def follow(url: str) -> bool:
            asked.append(url)
            return False

        got = await client.send(HttpRequest(first.url), follow=follow)
        odd = await client.send(HttpRequest(first.url))

    assert asked == [first.url + "b?"[:-1]]
    assert (got.outcome, got.location, got.requests) == (Outcome(Code.OK, 301), asked[0], 1)
    assert (odd.outcome.code, odd.location) == (Code.HTTP_ERROR, None)


async def test_a_redirect_to_a_host_that_is_closed_is_put_off() -> None:
    async with upstream(says()) as other, upstream(moves(other.url)) as first:
        limiter = Limiter(policy="none")
        limiter.wait_until(f"127.0.0.1:{other.port}", limiter._now() + 60)
        async with Client(options(), limiter) as client:
            got = await client.send(HttpRequest(first.url))

    assert (got.outcome.code, other.heads) == (Code.DEFERRED, [])
    assert got.outcome.retry_after == pytest.approx(60, abs=5)


async def test_the_first_request_waits_its_turn_and_a_redirect_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.fetch.client.LONGEST_WAIT", 0.05)
    async with upstream(moves("/b"), says(body=b"there")) as host, Client(options()) as client:
        name, now = f"127.0.0.1:{host.port}", client.limiter._now
        client.limiter.wait_until(name, now() + 0.3)
        began = now()
        moved = await client.send(HttpRequest(host.url), follow=False)
        waited = now() - began
        client.limiter.wait_until(name, now() + 0.3)
        first = await client.send(HttpRequest(host.url))

    assert (moved.outcome.ok, first.body) == (True, b"there")
    assert waited > 0.2


async def test_routes_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.fetch.client.REMEMBERED", 2)
    async with Client(options()) as client:
        for port in range(1, 6):
            await client.send(HttpRequest(f"http://127.0.0.1:{port}/"))
        assert len(client._routes) <= 2


async def test_an_api_that_says_slow_down_with_a_200_slows_us_down() -> None:
    async with upstream(says(body=b"busy")) as api, Client(options()) as client:
        host = f"127.0.0.1:{api.port}"
        busy = Outcome(Code.RATE_LIMITED, 200, retry_after=30.0)
        got = await client.send(HttpRequest(api.url), read=lambda response: busy if response.body else NEW)
        assert client.limiter.ready_at(host) > 25

    assert got.outcome is busy


# What leads inside: the name, and an address that is given after the check.


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names resolve to; each look-up takes the first address, as long as there is another."""
    known: dict[str, list[str]] = {}

    def look_up(host: str, port: int, *args: object, **options: object) -> list[object]:
        found = known[host]
        address = found.pop(0) if len(found) > 1 else found[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in address.split()]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


async def test_a_name_that_leads_inside_is_refused(names: dict[str, list[str]]) -> None:
    names["inside.example"] = ["169.254.169.254"]
    names["both.example"] = ["93.184.216.34 127.0.0.1"]
    async with upstream(says()) as first:
        for name in names:
            got = await fetch(f"http://{name}:{first.port}/", private=False)
            assert (got.outcome.code, got.outcome.sent, got.requests) == (Code.REFUSED, False, 0)

    assert first.heads == []


async def test_a_redirect_to_a_name_that_leads_inside_is_refused(names: dict[str, list[str]]) -> None:
    names["inside.example"] = ["169.254.169.254"]
    async with upstream(moves("http://inside.example/latest/meta-data/")) as first:
        got = await fetch(first.url)

    assert (got.outcome.code, got.requests, got.url) == (Code.REFUSED, 1, "http://inside.example/latest/meta-data/")


@pytest.mark.parametrize(
    "error", [socket.gaierror(socket.EAI_NONAME, "x"), socket.gaierror(socket.EAI_AGAIN, "x"), UnicodeError("x")]
)
async def test_a_name_that_does_not_resolve(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*args: object, **options: object) -> list[object]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    got = await fetch("http://nosuch.example/")

    assert (got.outcome.code, got.outcome.sent, got.requests) == (Code.DNS_ERROR, False, 0)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_an_ipv6_literal_is_an_address() -> None:
    async with upstream(says(body=b"six"), at="::1") as host:
        got = await fetch(f"http://[::1]:{host.port}/")
        refused = await fetch(f"http://[::1]:{host.port}/", private=False)
        mapped = await fetch(f"http://[::ffff:127.0.0.1]:{host.port}/", private=False)

    assert (got.body, host.header("host"), len(host.heads)) == (b"six", f"[::1]:{host.port}", 1)
    assert (refused.outcome.code, mapped.outcome.code) == (Code.REFUSED, Code.REFUSED)


@pytest.mark.parametrize(
    "url", ["http://me:secret@example.org/", "ftp://example.org/", "http:///x", "http://exa mple/", "http://h:99999/"]
)
async def test_what_is_no_normal_url_is_not_sent(url: str) -> None:
    got = await fetch(url)

    assert (got.outcome.code, got.requests) == (Code.INVALID_URL, 0)
    assert "secret" not in got.outcome.detail


async def test_the_address_is_checked_again_at_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies between the look-up and the connection, such as a cache, is not trusted."""
    from sanderling.fetch import connect

    async def resolve(self: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, object]]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 6, "flags": 0}]

    monkeypatch.setattr(connect.Guarded, "resolve", resolve)
    async with upstream(says()) as first:
        got = await fetch(f"http://rebound.example:{first.port}/", private=False)

    assert (got.outcome.code, first.heads) == (Code.REFUSED, [])


# Connections.


async def test_a_get_on_a_connection_that_was_closed_is_repeated_with_a_permit_of_its_own() -> None:
    async with upstream(says(body=b"1")) as host:  # which closes each connection without saying so
        limiter = Limiter(policy="none")
        async with Client(options(), limiter) as client:
            first = await client.send(HttpRequest(host.url))
            second = await client.send(HttpRequest(host.url))

    assert first.outcome.ok
    assert second.outcome.ok
    assert limiter.snapshot().total_requests >= len(host.heads) == 2


async def test_a_get_is_repeated_once() -> None:
    """Two connections are open, and the host closes both of them as they are used again."""
    host: Upstream

    async def both(writer: asyncio.StreamWriter) -> None:
        while len(host.heads) < 2:
            await asyncio.sleep(0.01)
        writer.write(says())

    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with upstream(both, both, cut, keep=True) as host, Client(options()) as client:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(client.send(HttpRequest(host.url)))
        got = await client.send(HttpRequest(host.url))

    assert (got.outcome.code, got.requests, len(host.heads)) == (Code.CONNECTION_RESET, 2, 4)


async def test_a_host_that_cuts_each_connection_is_asked_once_a_permit() -> None:
    async with upstream(b"") as host:
        limiter = Limiter(policy="none")
        async with Client(options(), limiter) as client:
            got = await client.send(HttpRequest(host.url))

    assert got.outcome.code is Code.CONNECTION_RESET
    assert "()" not in got.outcome.detail
    assert len(host.heads) == limiter.snapshot().total_requests == 1


async def test_a_request_that_is_given_up_returns_its_permit() -> None:
    async def never(_writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with upstream(never) as host, Client(options()) as client:
        permit = await client.limiter.acquire(f"127.0.0.1:{host.port}")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.send(HttpRequest(host.url), permit)
        assert not permit.live


async def test_a_host_that_is_silent_is_given_up() -> None:
    async def never(_writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with upstream(never) as host:
        got = await fetch(host.url, timeout=0.2)

    assert (got.outcome.code, got.outcome.sent) == (Code.TIMEOUT, True)


async def test_who_sends_it_is_said() -> None:
    async with upstream(says()) as host:
        await fetch(host.url, contact="me@example.org")

    assert "(+mailto:me@example.org)" in (host.header("user-agent") or "")
