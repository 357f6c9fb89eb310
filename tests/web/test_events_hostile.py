"""What strangers send to the routes of `events`, over real sockets: it is refused in words, and the house stands."""

import asyncio

import pytest
from events_house import ANALYTICS, EVENTS, EventsHouse, FakeLetters, events_house
from hypothesis import given, settings
from hypothesis import strategies as st
from looping import in_loop
from polling_house import head, parsed, raw
from structlog.testing import capture_logs

from sanderling.events.modes import Modes
from sanderling.stores.queue import Dead
from sanderling.web.app import AppRules
from sanderling.web.serve import ServeRules

JSON = "Content-Type: application/json"
GIVEN = b'{"new":false,"legacy":false,"inline":false,"canary":0.5}'


async def stands(opened: EventsHouse) -> bool:
    """Whether others are still served."""
    return (await opened.get("/posts", project_id="p")).status == 200


def put(body: bytes, *headers: str) -> bytes:
    return head(f"PUT {EVENTS}/modes HTTP/1.1", f"Content-Length: {len(body)}", *(headers or (JSON,))) + body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/posts?project_id=%ff", 400),
        ("/posts?project_id=%c0%af", 400),
        ("/posts?project_id=%ed%a0%80", 400),
        ("/posts?project_id=%00", 200),
        ("/posts?project_id=a%0d%0aSet-Cookie:%20x=1", 200),
        ("/posts?project_id=p&intent=a%0d%0aSet-Cookie:%20x=1", 200),
        ("/posts?project_id=p&unknown%0d%0aSet-Cookie:%20x=1", 400),
        ("/posts?project_id=p&page=" + "9" * 4000, 400),
        ("/posts?project_id=p&page=-1", 400),
        ("/posts?project_id=p&page=1.5", 400),
        ("/posts?project_id=p&page=nan", 400),
        ("/posts?project_id=p&page=", 400),
        ("/posts?project_id=p&is_viral=", 400),
        ("/posts?project_id=p&from_date=" + "2" * 41, 400),
        ("/posts?project_id=p&" + "&".join(f"a{number}=1" for number in range(500)), 400),
        ("/posts?project_id=" + "%F0%9F%9A%97" * 256, 200),
        ("/posts?project_id=" + "%F0%9F%9A%97" * 257, 400),
        ("/posts/1%2f2", 400),
        ("/posts/..%2fhealth", 400),
        ("/posts/", 404),
        ("/posts/1/", 404),
        ("/posts/1/2", 404),
        ("/../../etc/passwd", 404),
        ("/posts/%00", 400),
        ("/posts/%EF%BC%91", 400),
    ],
)
@in_loop
async def test_paths_and_queries_that_are_none_of_ours_are_refused(path: str, status: int) -> None:
    async with events_house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, head(f"GET {ANALYTICS}{path} HTTP/1.1")))
        assert await stands(opened)

    assert answer.status == status
    assert "Set-Cookie" not in answer.headers
    if status >= 400:
        assert answer.data["status"] == status
        assert answer.data["detail"] == answer.data["error"]["message"]
        assert answer.body.decode().isprintable()  # what was sent is quoted, and escaped


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (GIVEN, 200),
        (GIVEN + b" " * (65_536 - len(GIVEN)), 200),
        (GIVEN + b" " * (65_537 - len(GIVEN)), 413),
        (b"[" * 10_000, 400),
        (b'{"new":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
        (GIVEN.replace(b"0.5", b"1e999"), 400),
        (GIVEN.replace(b"0.5", b"9" * 60_000), 400),
        (GIVEN.replace(b"0.5", b"NaN"), 400),
        (GIVEN.replace(b"0.5", b'0.5,"canary":0.1'), 400),
        (GIVEN.replace(b"canary", b"__proto__"), 400),
        (b"\xff\xfe{\x00}\x00", 400),
        (b"null", 400),
        (b"", 400),
    ],
)
@in_loop
async def test_bodies_that_are_not_as_described_are_refused_and_switch_nothing(body: bytes, status: int) -> None:
    async with events_house() as opened, asyncio.timeout(300):
        answer = parsed(await raw(opened.address, put(body)))
        wrong_type = parsed(await raw(opened.address, put(GIVEN, "Content-Type: text/plain")))
        assert await stands(opened)

    assert (answer.status, wrong_type.status) == (status, 415)
    assert (opened.control.switched == Modes()) is (status != 200)


@in_loop
async def test_half_a_character_is_no_key() -> None:
    letters = FakeLetters(Dead("k", b"", "", 1, 0.0))
    async with events_house(letters=letters) as opened, asyncio.timeout(300):
        body = b'{"keys":["\\ud800"]}'
        asked = head(f"POST {EVENTS}/dead/replay HTTP/1.1", f"Content-Length: {len(body)}", JSON) + body
        answer = parsed(await raw(opened.address, asked))

    assert answer.status == 400
    assert letters.replayed == []


values = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20) | st.sampled_from(
    ["", "true", "1", "-1", "1e9", "2025-01-01", "9999-12-31T23:59:59Z", "asc", "p", "%00", "%ff", "%F0%9F%9A%97", "+"]
)
names = st.sampled_from(
    ["project_id", "page", "page_size", "limit", "from_date", "to_date", "is_viral", "sort_by", "after", "platform"]
)
places = st.sampled_from(
    ["posts", "posts/all", "posts/1", "summary", "trends", "top-keywords", "alerts", "errors", "health/detailed"]
)


@settings(max_examples=15)
@given(st.lists(st.tuples(places, st.lists(st.tuples(names, values), max_size=5)), min_size=20, max_size=20))
def test_whatever_is_asked_is_answered_or_refused_in_the_same_form(
    asked: list[tuple[str, list[tuple[str, str]]]],
) -> None:
    async def main() -> None:
        async with events_house(serve=ServeRules(idle=0.5), app=AppRules(body_seconds=0.5)) as opened:
            for place, query in asked:
                path = f"{ANALYTICS}/{place}?" + "&".join(f"{name}={value}" for name, value in query).replace("#", "")
                answer = await opened.ask("GET", path)
                assert answer.status in {200, 400, 404}
                assert answer.data["success"] is (answer.status == 200)
                assert answer.data["meta"]["request_id"] == answer.headers["X-Request-ID"]
            assert await stands(opened)

    with capture_logs() as written:
        asyncio.run(main())

    assert {line["log_level"] for line in written} <= {"debug", "info"}
