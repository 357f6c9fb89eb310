"""What strangers send, over real sockets: it is refused in words, and the house stands."""

import asyncio
import gzip
import resource
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from looping import in_loop
from polling_house import TOKEN, FakeControl, House, a_target, head, house, parsed, raw
from structlog.testing import capture_logs

from sanderling.web.app import AppRules
from sanderling.web.serve import ServeRules

JSON = "Content-Type: application/json"


async def stands(opened: House) -> bool:
    """Whether others are still served."""
    return (await opened.ask("GET", "/targets")).status == 200


def post(body: bytes, *headers: str, path: str = "/promote") -> bytes:
    return head(f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *(headers or (JSON,))) + body


IDS = [
    "a/b",
    "/",
    "//",
    "..",
    ".",
    "../../etc/passwd",
    "a b+c",
    "100%",
    "%2F",
    "{id}",
    "a?b#c",
    "promote",
    "Zoë ☃ 𝄞",
    "line\r\nbreak",
    "'; DROP TABLE targets; --",
    "x" * 2500,
]


@pytest.mark.parametrize("source_id", IDS)
@in_loop
async def test_any_text_is_an_id_in_every_route(source_id: str) -> None:
    place = f"/targets/race/{quote(source_id, safe='')}"
    async with house(FakeControl([a_target(1, source_id=source_id), a_target(2)])) as opened:
        answers = [
            await opened.ask("GET", place),
            await opened.ask("PATCH", place, {"seconds": 2}),
            await opened.ask("POST", f"{place}/promote"),
            await opened.ask("POST", f"{place}/pause"),
            await opened.ask("POST", f"/ingest/events/e1/race/{quote(source_id, safe='')}"),
        ]
        hooked = await opened.ask("POST", "/hooks/promote", {"targets": [{"kind": "race", "id": source_id}]})

    assert [answer.status for answer in answers] == [200] * 5
    assert answers[0].data["id"] == answers[3].data["id"] == answers[4].data["ingested"][0]["id"] == source_id
    assert hooked.data["unknown"] == []
    paused = [target.source_id for target in opened.control.known.values() if not target.enabled]
    assert paused == [source_id]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/targets/race/a%0d%0aSet-Cookie:%20x=1", 404),
        ("/settings/a%0d%0aSet-Cookie:%20x=1", 405),
        ("/rows/a%0d%0aSet-Cookie:%20x=1", 404),
        ("/targets/race/%00", 400),
        ("/targets/race/a%00b", 400),
        ("/targets/%00/r1", 400),
        ("/targets/race/%ff", 400),
        ("/targets/race/%c0%af", 400),
        ("/targets/race/%ed%a0%80", 400),
        ("/rows/laps?after=%ff", 400),
        ("/rows/laps?after=%00", 400),
        ("/rows/laps?event=%00", 400),
        (f"/targets/race/{'x' * 2501}", 400),
        (f"/targets/{'x' * 201}/r1", 400),
        ("/targets/race/..%2f..%2fetc%2fpasswd", 404),
        ("/targets/race/../../status", 404),
        ("/../../etc/passwd", 404),
        ("/targets//r1", 404),
        ("/targets/race/", 404),
        ("/targets/race/r1/", 404),
        ("/targets/race", 404),
        ("//evil.example/targets", 404),
        ("/%74argets/race/r1", 200),
        ("/targets/race/r%31", 200),
        ("/changes?since=-1", 400),
        ("/changes?since=9223372036854775808", 400),
        ("/changes?since=9223372036854775807", 410),
        ("/changes?since=1e3", 410),
        ("/targets?limit=1001", 400),
        ("/targets?limit=0", 400),
        ("/rows/laps?limit=10001", 400),
        ("/events?since=x", 400),
        ("/health?x=1", 400),
        ("/targets?" + "&".join(f"a{number}=1" for number in range(500)), 400),
    ],
)
@in_loop
async def test_paths_and_queries_that_are_none_of_ours_are_refused(path: str, status: int) -> None:
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, head(f"GET {path} HTTP/1.1")))
        assert await stands(opened)

    assert answer.status == status
    assert "Set-Cookie" not in answer.headers
    if status >= 400:
        assert answer.data["status"] == status
        assert answer.data["detail"].isprintable()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"kind":"race"}' + b" " * (65_536 - 15), 200),
        (b'{"kind":"race"}' + b" " * (65_537 - 15), 413),
        (b"[" * 10_000, 400),
        (b'{"kind":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
        (b'{"kind":' * 5_000 + b"1" + b"}" * 5_000, 400),
        (b'{"seconds":1e999}', 400),
        (b'{"seconds":18446744073709551616}', 400),
        (b'{"seconds":' + b"9" * 60_000 + b"}", 400),
        (b'{"seconds":1,"seconds":2}', 400),
        (b'{"kind":"race","k\\u0069nd":"event"}', 400),
        (b'{"kind":"\x00"}', 400),
        (b'{"kind":"\\u0000"}', 400),
        (b'{"kind":"\\ud800"}', 400),
        (b'{"kind":"\xff"}', 400),
        (b"\xff\xfe{\x00}\x00", 400),
        (b'{"__proto__":{"kind":"race"}}', 400),
        (b"null", 400),
        (b"true", 400),
        (b"{", 400),
    ],
)
@in_loop
async def test_bodies_that_are_not_as_described_are_refused_and_promote_nothing(body: bytes, status: int) -> None:
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, post(body)))
        assert await stands(opened)

    assert answer.status == status
    assert len(opened.control.promotions) == (status == 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Content-Type: application/json; charset=UTF-8",), 200),
        (("Content-Type: APPLICATION/JSON",), 200),
        (("X-None: 1",), 415),
        (("Content-Type: text/plain",), 415),
        (("Content-Type: application/x-www-form-urlencoded",), 415),
        (("Content-Type: multipart/form-data; boundary=x",), 415),
        (("Content-Type: application/json; charset=latin-1",), 415),
        (("Content-Type: application/jsonx",), 415),
        ((JSON, "Content-Encoding: gzip"), 415),
        ((JSON, "Content-Encoding: br"), 415),
    ],
)
@in_loop
async def test_a_body_is_json_and_says_so(headers: tuple[str, ...], status: int) -> None:
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, post(b'{"kind":"race"}', *headers)))

    assert answer.status == status


@in_loop
async def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, post(bomb, JSON, "Content-Encoding: gzip")))

    assert answer.status == 415


@in_loop
async def test_a_body_of_ten_megabytes_is_refused_by_its_length() -> None:
    big = head("POST /promote HTTP/1.1", JSON, "Content-Length: 10000000")
    async with house() as opened, asyncio.timeout(300):
        # Nothing of it is sent: the refusal comes all the same.
        reader, writer = await asyncio.open_connection(opened.address.host, opened.address.port)
        writer.write(big)
        first = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        all_sent = parsed(await raw(opened.address, big, *[b"x" * 100_000] * 100))
        assert await stands(opened)

    assert parsed(first).status == all_sent.status == 413


@in_loop
async def test_a_body_without_a_length_is_read_only_so_far() -> None:
    chunked = head("POST /promote HTTP/1.1", JSON, "Transfer-Encoding: chunked")
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, chunked, *[piece] * 150, b"0\r\n\r\n"))
        small = parsed(await raw(opened.address, chunked, b"2\r\n{}\r\n0\r\n\r\n"))
        broken = parsed(await raw(opened.address, chunked, b"zz\r\n{}\r\n"))
        assert await stands(opened)

    assert (answer.status, small.status, broken.status) == (413, 200, 400)


@in_loop
async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    half = head("POST /promote HTTP/1.1", JSON, "Content-Length: 20") + b'{"kind":'
    async with (
        house(app=AppRules(body_seconds=0.2), serve=ServeRules(lingering=0.1)) as opened,
        asyncio.timeout(300),
    ):
        answer = parsed(await raw(opened.address, half))
        assert await stands(opened)

    assert answer.status == 408
    assert opened.control.promotions == []


@in_loop
async def test_a_client_that_goes_away_in_the_middle_is_not_worth_a_line() -> None:
    half = head("POST /promote HTTP/1.1", JSON, "Content-Length: 20") + b'{"kind":'
    async with house() as opened, asyncio.timeout(300):
        with capture_logs() as lines:
            for _ in range(10):
                _, writer = await asyncio.open_connection(opened.address.host, opened.address.port)
                writer.write(half)
                await writer.drain()
                writer.transport.abort()
            assert await stands(opened)

    assert {line["log_level"] for line in lines} == {"debug"}
    assert opened.control.promotions == []


@in_loop
async def test_who_waits_to_be_asked_for_the_body_is_asked_only_if_it_is_wanted() -> None:
    async with house(serve=ServeRules(lingering=0.1)) as opened, asyncio.timeout(300):
        good = head("POST /promote HTTP/1.1", JSON, "Content-Length: 2", "Expect: 100-continue")
        wanted = await raw(opened.address, good, b"{}")
        wrong = await raw(opened.address, good, b"[]")
        stranger = good.replace(TOKEN.encode(), b"x" * len(TOKEN))
        refused = await raw(opened.address, stranger, b"{}")
        large = await raw(opened.address, good.replace(b"Content-Length: 2", b"Content-Length: 99999"))

    assert wanted.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert wrong.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad Request")
    assert (parsed(refused).status, parsed(large).status) == (401, 413)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "DELETE", "PROPFIND", "BREW", "get"])
@in_loop
async def test_wrong_methods_are_refused(method: str) -> None:
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, head(f"{method} /targets HTTP/1.1")))
        assert await stands(opened)

    # Some are no methods at all to the parser.
    assert answer.status in {400, 405}
    if answer.status == 405:
        assert answer.headers["Allow"] == "GET"


@pytest.mark.parametrize(
    "line", ["OPTIONS * HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1", "GET http://evil.example/targets HTTP/1.1"]
)
@in_loop
async def test_it_is_no_proxy(line: str) -> None:
    async with house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, head(line)))
        assert await stands(opened)

    assert answer.status in {200, 400, 404, 405}


@in_loop
async def test_an_upgrade_is_not_made() -> None:
    async with house() as opened, asyncio.timeout(300):
        asked = head("GET /health HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
        answer = parsed(
            await raw(opened.address, asked.replace(b"Connection: close\r\n", b""), head("GET /health HTTP/1.1"))
        )

    assert answer.status == 200


@pytest.mark.parametrize(
    "path", ["/targets", "/status", "/settings", "/openapi.json", "/events", "/changes?since=0", "/none", "/rows/laps"]
)
@in_loop
async def test_strangers_learn_nothing_not_even_what_there_is(path: str) -> None:
    async with house() as opened:
        answers = [
            await opened.ask("GET", path, headers=headers)
            for headers in (
                {"Authorization": "Bearer wrong-and-long-enough"},
                {"Authorization": ""},
                {"Authorization": f"Bearer {TOKEN[:-1]}"},
                {"Authorization": "Bearer x", "X-Sanderling-Token": TOKEN},
            )
        ]

    assert [answer.status for answer in answers] == [401] * 4
    assert all(answer.headers["WWW-Authenticate"].startswith("Bearer") for answer in answers)


@in_loop
async def test_a_hook_may_bring_the_token_in_its_own_header() -> None:
    async with house() as opened, asyncio.timeout(300):
        asked = post(b'{"event":"e1"}', JSON, f"X-Sanderling-Token: {TOKEN}", path="/hooks/promote")
        asked = asked.replace(f"Authorization: Bearer {TOKEN}\r\n".encode(), b"")
        hook = parsed(await raw(opened.address, asked))
        other = parsed(await raw(opened.address, asked.replace(b"/hooks/promote", b"/promote")))

    assert (hook.status, other.status) == (202, 401)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
@in_loop
async def test_without_a_token_pages_of_strangers_are_refused_everywhere(headers: dict[str, str], status: int) -> None:
    async with house(token=None) as opened:
        asked = [await opened.ask("GET", path, headers=headers) for path in ("/targets", "/health", "/openapi.json")]
        changed = await opened.ask("POST", "/ingest/purge", {"confirm": True}, headers)

    assert [answer.status for answer in (*asked, changed)] == [status] * 4
    assert opened.control.purged == (status == 200)


MANY = 1_000


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * MANY + 200, reason="too few files may be open for 2,000 sockets"
)
@in_loop
async def test_a_thousand_idle_streams_are_served_one_more_is_not_and_all_end_at_once() -> None:
    async with house() as opened, asyncio.timeout(300):
        writers = []
        for _ in range(MANY):
            reader, writer = await asyncio.open_connection(opened.address.host, opened.address.port)
            writer.write(head("GET /events HTTP/1.1"))
            assert (await reader.readuntil(b"retry: 1000\n\n")).startswith(b"HTTP/1.1 200 OK")
            writers.append(writer)
        assert opened.streams.count == MANY

        one_more = parsed(await raw(opened.address, head("GET /events HTTP/1.1")))
        assert (one_more.status, one_more.headers["Retry-After"]) == (503, "5")
        assert await stands(opened)
    for writer in writers:
        writer.transport.abort()

    assert opened.streams.count == 0


tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=10)
lines = st.one_of(
    st.binary(max_size=80),
    st.builds(
        lambda method, path, header, value, body: (
            b"%s /%s HTTP/1.1\r\nHost: localhost\r\n%s: %s\r\n\r\n%s"
            % (method.encode(), path.encode("utf-8", "replace"), header.encode(), value, body)
        ),
        st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "X"]),
        st.sampled_from(["targets", "events", "rows/laps", "changes?since=0", ""]) | st.text(max_size=20),
        st.sampled_from(["Content-Length", "Transfer-Encoding", "Expect", "Connection", "Authorization"]) | tokens,
        st.sampled_from([b"0", b"5", b"chunked", b"100-continue", b"Upgrade"]) | st.binary(max_size=20),
        st.binary(max_size=40),
    ),
)


@settings(max_examples=15)
@given(st.lists(lines, min_size=10, max_size=10))
def test_whatever_bytes_arrive_the_house_stands_and_nothing_is_logged_but_debug_lines(sent: list[bytes]) -> None:
    async def main() -> None:
        async with house(serve=ServeRules(idle=0.05, lingering=0.05), app=AppRules(body_seconds=0.05)) as opened:
            async with asyncio.TaskGroup() as group:
                for data in sent:
                    group.create_task(raw(opened.address, data))
            assert await stands(opened)

    with capture_logs() as written:
        asyncio.run(main())

    assert {line["log_level"] for line in written} <= {"debug", "info", "warning"}
    assert {line["event"] for line in written if line["log_level"] in {"info", "warning"}} <= {
        "serving",
        "access_refused",
    }
