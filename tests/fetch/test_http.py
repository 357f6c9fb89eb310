"""One exchange over a real socket: what comes back, what is refused, and every way a server can misbehave."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from aiohttp import ClientConnectorSSLError
from scripted_server import ScriptedServer, Step, answer, reset

from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import TooLarge, of_error
from sanderling.fetch.guard import GuardRules, Refused
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import make_transport, share_memory
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.outcome import Code
from sanderling.task import Reply, Task

OWN = GuardRules(private=True, raw_addresses=True)
T = TypeVar("T")


def exchange(*steps: Step, rules: HttpRules | None = None, task: Callable[[str], Task] = Task) -> Reply:
    async def main() -> Reply:
        async with ScriptedServer({"/": [list(steps)]}) as server, Http(rules, OWN) as http:
            return await http.send(task(server.url()))

    return asyncio.run(main())


def outcome_of(*steps: Step, rules: HttpRules | None = None) -> tuple[Code, str]:
    try:
        reply = exchange(*steps, rules=rules)
    except EXPECTED as error:
        outcome = of_error(error)
        return outcome.code, outcome.detail
    pytest.fail(f"expected an error, got {reply}")


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(300):
            return await main()

    return asyncio.run(bounded())


def test_a_reply_has_status_headers_body_and_latency() -> None:
    reply = exchange(answer(203, b"hello", X_One="1"))

    assert (reply.status, reply.body, reply.header("x-one")) == (203, b"hello", "1")
    assert reply.latency > 0


def test_a_packed_body_is_unpacked() -> None:
    assert exchange(answer(body=gzip.compress(b"packed"), Content_Encoding="gzip")).body == b"packed"


def test_we_say_who_we_are_and_what_we_can_read() -> None:
    async def main() -> dict[str, str]:
        rules = HttpRules(contact="https://example.org/crawler")
        async with ScriptedServer({"/": [answer()]}) as server, Http(rules, OWN) as http:
            await http.send(Task(server.url(), headers=(("X-Own", "yes"),)))
            return server.requests[0].headers

    said = run(main)

    assert said["user-agent"].startswith("sanderling/")
    assert said["user-agent"].endswith("(+https://example.org/crawler)")
    assert said["accept-encoding"] == "gzip, deflate, br, zstd"
    assert said["x-own"] == "yes"


def test_a_reply_knows_which_headers_were_sent() -> None:
    async def main() -> tuple[dict[str, str], dict[str, str]]:
        async with ScriptedServer({"/": [answer()]}) as server, Http(None, OWN) as http:
            reply = await http.send(Task(server.url(), headers=(("X-Own", "yes"),)))
            return {name.lower(): value for name, value in reply.sent}, server.requests[0].headers

    known, sent = run(main)

    assert known == sent


def test_connections_are_kept_and_used_again() -> None:
    async def main() -> int:
        async with ScriptedServer({"/": [answer(body=b"x")]}) as server, Http(None, OWN) as http:
            for _ in range(5):
                await http.send(Task(server.url()))
            return server.connections

    assert run(main) == 1


def test_cookies_are_not_kept() -> None:
    async def main() -> list[str | None]:
        async with ScriptedServer({"/": [answer(Set_Cookie="a=1")]}) as server, Http(None, OWN) as http:
            await http.send(Task(server.url()))
            await http.send(Task(server.url()))
            return [request.headers.get("cookie") for request in server.requests]

    assert run(main) == [None, None]


def test_a_redirect_is_a_reply_and_is_not_followed() -> None:
    assert exchange(answer(302, Location="/elsewhere")).header("Location") == "/elsewhere"


def test_no_more_connections_than_allowed_go_to_one_host() -> None:
    async def main() -> int:
        rules = HttpRules(connections_per_host=2)
        slow: list[Step] = [0.05, answer(body=b"x")]
        async with ScriptedServer({"/": [slow]}) as server, Http(rules, OWN) as http, asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(http.send(Task(server.url())))
            await asyncio.sleep(0.2)
            return server.connections

    assert run(main) == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
QUICK = HttpRules(first_byte=0.3, connect=0.3, idle=0.6, total=1.2)


@pytest.mark.parametrize(
    ("steps", "code", "detail"),
    [
        ([5.0], Code.TIMEOUT, "first byte"),
        ([answer(Content_Length="10"), b"half", 5.0], Code.TIMEOUT, "idle"),
        ([answer(Content_Length="100"), *([b"x", 0.1] * 50)], Code.TIMEOUT, "total"),
        ([answer(Content_Length="10") + b"half", reset], Code.TRUNCATED, ""),
        ([reset], Code.CONNECTION_RESET, ""),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], Code.INVALID_RESPONSE, ""),
        ([answer(body=b"not gzip", Content_Encoding="gzip")], Code.BAD_ENCODING, ""),
        ([answer(body=b"\0\1\2", Content_Encoding="rot13")], Code.BAD_ENCODING, "rot13"),
        ([answer(X_Long="x" * 300_000)], Code.TOO_LARGE, "headers of more than 262,144 bytes"),
        ([b"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n"], Code.INVALID_RESPONSE, "the status is 000"),
        ([CHUNKED + b"zz\r\n<p>hello\r\n0\r\n\r\n"], Code.INVALID_RESPONSE, "not in the chunks"),
        ([CHUNKED + b"-5\r\n<p>hello\r\n0\r\n\r\n", 9.0], Code.INVALID_RESPONSE, "not in the chunks"),
        ([CHUNKED + b"2\r\nab\r\n" + b"f" * 40 + b"\r\n<p>hello", 9.0], Code.INVALID_RESPONSE, "not in the chunks"),
    ],
)
def test_every_misbehaviour_has_its_own_code(steps: list[Step], code: Code, detail: str) -> None:
    found = outcome_of(*steps, rules=QUICK)

    assert found[0] is code
    assert detail in found[1]


@pytest.mark.parametrize(
    ("steps", "phase"), [([5.0], "first byte"), ([answer(Content_Length="10"), b"half", 5.0], "idle")]
)
def test_a_task_may_wait_for_less_time_than_the_client(steps: list[Step], phase: str) -> None:
    with pytest.raises(TimeoutError, match=phase):
        exchange(*steps, task=lambda url: Task(url, wait=0.1))


def test_nothing_is_sent_twice_without_leave() -> None:
    async def main() -> int:
        async with ScriptedServer({"/": [[reset], answer(200)]}) as server, Http(None, OWN) as http:
            with pytest.raises(OSError, match=r"."):
                await http.send(Task(server.url()))
            return len(server.requests)

    assert run(main) == 1


def test_a_closed_port_is_a_refused_connection() -> None:
    async def main() -> Reply:
        async with ScriptedServer({}) as server:
            url = server.url()
        async with Http(None, OWN) as http:
            return await http.send(Task(url))

    with pytest.raises(OSError, match="Cannot connect") as caught:
        run(main)

    assert of_error(caught.value).code is Code.CONNECTION_REFUSED


def test_a_name_that_does_not_resolve_is_a_dns_error() -> None:
    async def main() -> Reply:
        async with Http() as http:
            return await http.send(Task("http://no-such-name.invalid/"))

    with pytest.raises(OSError, match="no-such-name") as caught:
        run(main)

    assert of_error(caught.value).code is Code.DNS_ERROR


def test_a_server_without_tls_is_a_tls_error() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        await writer.drain()
        writer.close()

    async def main() -> Reply:
        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server, Http(None, OWN) as http:
            return await http.send(Task(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))

    with pytest.raises(ClientConnectorSSLError) as caught:
        run(main)

    assert of_error(caught.value).code is Code.TLS_ERROR


def test_a_body_beyond_the_cap_is_dropped_while_it_arrives() -> None:
    endless: list[Step] = [answer(Content_Length=str(10 * 2**30)), *([bytes(2**16)] * 400)]

    with pytest.raises(TooLarge, match="more than 1,048,576 bytes on the wire"):
        exchange(*endless, rules=HttpRules(most_raw=2**20))


def test_a_bomb_is_dropped_at_the_cap() -> None:
    bomb = gzip.compress(bytes(20 * 2**20))

    with pytest.raises(TooLarge, match="once unpacked"):
        exchange(answer(body=bomb, Content_Encoding="gzip"), rules=HttpRules(most_decoded=2**20))


def test_a_packed_body_that_ends_early_is_not_taken_for_whole() -> None:
    half = gzip.compress(bytes(range(256)) * 100)[:-20]

    assert outcome_of(answer(body=half, Content_Encoding="gzip"))[0] is Code.TRUNCATED


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://[::1]/", "http://169.254.169.254/latest/meta-data"])
def test_own_addresses_are_refused_before_anything_is_sent(url: str) -> None:
    async def main() -> Reply:
        async with Http() as http:
            return await http.send(Task(url))

    with pytest.raises(Refused):
        run(main)


def test_a_name_that_leads_to_an_own_address_is_refused() -> None:
    async def main() -> tuple[type[BaseException] | None, int]:
        async with ScriptedServer({"/": [answer()]}) as server, Http() as http:
            try:
                await http.send(Task(f"http://localhost:{server.port}/"))
            except Refused as refused:
                return type(refused), server.connections
        return None, 0

    assert run(main) == (Refused, 0)


def test_a_proxy_is_used_and_may_be_at_home() -> None:
    async def main() -> tuple[int, str]:
        async with ScriptedServer({"http://host.example/": [answer(204)]}) as proxy:
            async with Http(HttpRules(hosts=HostTable({"*": HostTraffic(proxy=proxy.url(""))})), GuardRules()) as http:
                reply = await http.send(Task("http://host.example/"))
            return reply.status, proxy.requests[0].path

    assert run(main) == (204, "http://host.example/")


def test_it_must_be_opened_first() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        run(lambda: Http().send(Task("http://host.example/")))


@pytest.mark.parametrize(
    "rules",
    [
        {"connect": 0},
        {"idle": -1},
        {"total": float("nan")},
        {"most_raw": 0},
        {"connections_per_host": 0},
        {"contact": "me"},
        {"contact": "https://a\r\nX-Evil: 1"},
    ],
)
def test_rules_that_make_no_sense_say_so(rules: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(rules))):
        HttpRules(**rules)  # type: ignore[arg-type]


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_who_wants_the_beginning_gets_no_more_and_no_error(coding: str) -> None:
    """Of 10 MB that would be refused as too large: the first thousand bytes."""
    body = b"0123456789" * 2**20
    sent = gzip.compress(body) if coding else body
    rules = HttpRules(most_raw=10**6, most_decoded=10**6)

    reply = exchange(answer(body=sent, Content_Encoding=coding), rules=rules, task=lambda url: Task(url, most=1000))

    assert reply.body == body[:1000]


def test_who_wants_more_than_there_is_gets_what_there_is() -> None:
    assert exchange(answer(body=b"short"), task=lambda url: Task(url, most=1000)).body == b"short"


def test_bodies_wait_for_memory_and_the_host_is_not_blamed_for_it() -> None:
    async def main() -> tuple[int, int, int]:
        memory = Memory(1000)
        body = answer(body=b"x" * 800)
        async with ScriptedServer({"/a": [body], "/b": [body]}) as server:
            async with Http(HttpRules(idle=0.05), OWN, memory=memory) as http, asyncio.TaskGroup() as group:
                await http.send(Task(server.url("/a")))
                held = memory.total
                second = group.create_task(http.send(Task(server.url("/b"))))
                await asyncio.sleep(0.2)  # longer than a host may be silent
                assert not second.done()
                memory.release(server.url("/a"))
            memory.release(server.url("/b"))
            return held, len(second.result().body), memory.total

    assert run(main) == (800, 800, 0)


def test_clients_that_share_memory_take_of_it_and_what_is_let_go_is_free() -> None:
    """Else bodies of one would be let go in the memory of the other, and it would wait for ever in the end."""

    async def main() -> tuple[int, int]:
        memory = Memory(1000)
        asking = (make_transport(HttpRules(), Limiter(), 1000, private=True) for _ in range(2))
        async with ScriptedServer({"/": [answer(body=b"x" * 800)] * 6}) as server:
            for transport in (share_memory(each, memory) for each in asking):
                async with transport.http as http:
                    for _ in range(3):
                        await http.send(Task(server.url()))
                        held = memory.total
                        transport.memory.release(server.url())
        return held, memory.total

    assert run(main) == (800, 0)


def test_a_body_that_fails_lets_go_of_its_memory() -> None:
    async def main() -> int:
        memory = Memory(1000)
        cut: list[Step] = [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", b"x" * 500, reset]
        async with ScriptedServer({"/": [cut]}) as server, Http(None, OWN, memory=memory) as http:
            with pytest.raises(EXPECTED):
                await http.send(Task(server.url()))
        return memory.total

    assert run(main) == 0


def test_who_asks_again_lets_go_of_what_the_first_answer_held() -> None:
    """A 503 with a page in it, and then no answer at all: nobody is given the first one, so nobody lets go of it."""

    async def main() -> int:
        memory = Memory(1000)
        script: dict[str, list[bytes | list[Step]]] = {"/": [answer(503, b"x" * 500), [reset]]}
        async with ScriptedServer(script) as server, Http(None, OWN, memory=memory) as http:
            await http.send(Task(server.url()))
            with pytest.raises(EXPECTED):
                await http.send(Task(server.url()).again())
        return memory.total

    assert run(main) == 0


def test_a_body_that_waits_for_memory_is_not_timed_meanwhile() -> None:
    """Not even by the limit of the whole exchange: it is we who wait, and the host would be blamed for it."""

    async def main() -> int:
        memory, body = Memory(1000), answer(body=b"x" * 800)
        async with ScriptedServer({"/a": [body], "/b": [body]}) as server:
            async with Http(HttpRules(total=0.3), OWN, memory=memory) as http, asyncio.TaskGroup() as group:
                await http.send(Task(server.url("/a")))
                second = group.create_task(http.send(Task(server.url("/b"))))
                await asyncio.sleep(0.6)
                memory.release(server.url("/a"))
            return len(second.result().body)

    assert run(main) == 800


@pytest.mark.parametrize(("status", "headers", "held"), [(200, {}, 5), (302, {"Location": "/y"}, 0), (302, {}, 5)])
def test_the_body_of_a_redirect_holds_no_memory(status: int, headers: dict[str, str], held: int) -> None:
    """Whoever follows it has no use for it, and whoever gets the end of the chase does not know of it."""

    async def main() -> int:
        memory, said = Memory(100), answer(status, b"12345", **headers)
        async with ScriptedServer({"/": [said]}) as server, Http(None, OWN, memory=memory) as http:
            await http.send(Task(server.url()))
        return memory.total

    assert run(main) == held


def test_bodies_that_unpack_to_much_wait_for_memory_before_they_are_unpacked() -> None:
    """A few kilobytes in one piece, and a megabyte each: as many as are asked for would be unpacked at once."""
    most, number = 2**20, 16
    packed = answer(body=gzip.compress(bytes(most)), Content_Encoding="gzip")

    async def main() -> tuple[int, int]:
        memory, paths = Memory(most), [f"/{each}" for each in range(number)]
        await memory.hold("somebody else", most)
        rules = HttpRules(connections_per_host=number)
        async with (
            ScriptedServer({path: [packed] for path in paths}) as server,
            Http(rules, OWN, memory=memory) as http,
            asyncio.TaskGroup() as group,
        ):

            async def one(path: str) -> int:
                reply = await http.send(Task(server.url(path)))
                memory.release(reply.url)
                return len(reply.body)

            sent = [group.create_task(one(path)) for path in paths]
            while len(memory._held) <= number:  # noqa: ASYNC110 - nobody tells when all of them wait
                await asyncio.sleep(0.001)
            held = memory.total - most
            memory.release("somebody else")
        return held, sum(each.result() for each in sent)

    held, read = run(main)
    assert read == number * most
    assert held <= number * 2**17
