"""What is around every answer and every problem: the id of the request, when it was, and a code."""

import re

import msgspec
import pytest
from events_house import ANALYTICS, EVENTS, FakeRows, events_house, is_enveloped
from looping import in_loop
from polling_house import TOKEN, head, parsed, raw
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from sanderling.web.access import SAFE_HEADERS
from sanderling.web.events_envelope import HEADER, LONGEST_ID

MADE = re.compile(r"[0-9a-f]{32}")
POSTS = f"{ANALYTICS}/posts?project_id=p"


@pytest.mark.parametrize("path", [POSTS, "/none", f"{ANALYTICS}/posts", "/health", "/openapi.json"])
@in_loop
async def test_the_id_that_a_client_chose_is_in_its_answer_whatever_that_is(path: str) -> None:
    async with events_house() as opened:
        answer = await opened.ask("GET", path, headers={HEADER: "from-me 1/2"})

    assert answer.headers[HEADER] == "from-me 1/2"
    if path not in {"/health", "/openapi.json"}:
        assert is_enveloped(answer)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a", True),
        ("~!\"#$%&'()*+,-./:;<=>?@[]^_`{|}", True),
        ("x" * LONGEST_ID, True),
        ("x" * (LONGEST_ID + 1), False),
        ("x" * 8000, False),
        ("", False),
        ("   ", False),
        ("\xe9", False),
        ("\xc3\xa9", False),
        ("a\tb", False),
        ("a\x85b", False),
    ],
)
@in_loop
async def test_an_id_is_kept_if_it_can_be_shown_anywhere(given: str, *, kept: bool) -> None:
    async with events_house() as opened:
        answer = parsed(await raw(opened.address, head(f"GET {POSTS} HTTP/1.1", f"{HEADER}: {given}")))

    assert answer.status == 200
    assert is_enveloped(answer)
    assert (answer.headers[HEADER] == given) is kept
    assert kept or MADE.fullmatch(answer.headers[HEADER])


@in_loop
async def test_of_two_ids_neither_is_kept_and_every_request_has_its_own() -> None:
    async with events_house() as opened:
        both = parsed(await raw(opened.address, head(f"GET {POSTS} HTTP/1.1", f"{HEADER}: a", f"{HEADER}: b")))
        others = [await opened.ask("GET", POSTS) for _ in range(3)]

    ids = {answer.headers[HEADER] for answer in (both, *others)}
    assert len(ids) == 4
    assert all(MADE.fullmatch(each) for each in ids)


@in_loop
async def test_the_log_knows_the_id_and_forgets_it_with_the_request() -> None:
    async with events_house() as opened:
        with capture_logs(processors=[merge_contextvars]) as lines:
            await opened.ask("GET", POSTS, headers={HEADER: "first"})
            await opened.ask("GET", POSTS, headers={HEADER: "second"})

    assert [line["request_id"] for line in lines if line["event"] == "request"] == ["first", "second"]


@in_loop
async def test_when_it_was_is_told_in_utc() -> None:
    async with events_house() as opened:
        answer = await opened.ask("GET", POSTS)

    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", answer.data["meta"]["timestamp"])


PROBLEMS: list[tuple[str, str, object, int, str]] = [
    ("GET", f"{ANALYTICS}/posts", None, 400, "VAL_002"),
    ("GET", f"{ANALYTICS}/trends?project_id=p", None, 400, "VAL_002"),
    ("GET", f"{ANALYTICS}/trends?project_id=p&from_date=2025-01-01", None, 400, "VAL_002"),
    ("GET", f"{POSTS}&missing%20required=1", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&query:%20Object%20missing%20required%20field%20=1", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&page_size=101", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&page_size=0", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&page=0", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&page=1000002", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&page=10002&page_size=100", None, 400, "VAL_004"),
    ("GET", f"{POSTS}&page=50002", None, 400, "VAL_004"),
    ("GET", f"{ANALYTICS}/errors?page=50002", None, 400, "VAL_004"),
    ("GET", f"{POSTS}&sort_by=id", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&sort_by=analyzed_at%3B", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&order=up", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&sentiment=happy", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&risk_level=low", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&is_viral=maybe", None, 400, "VAL_001"),
    ("GET", f"{POSTS}&project_id=q", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts?project_id={'x' * 257}", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts/all?project_id=p&limit=10001", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/top-keywords?project_id=p&limit=51", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/alerts?project_id=p&limit=101", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/alerts?project_id=p&is_viral=true", None, 400, "VAL_001"),
    (
        "GET",
        f"{ANALYTICS}/trends?project_id=p&from_date=2025-01-01&to_date=2025-01-02&granularity=year",
        None,
        400,
        "VAL_001",
    ),
    ("GET", f"{POSTS}&from_date=x", None, 400, "VAL_003"),
    ("GET", f"{ANALYTICS}/posts/x", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts/0", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts/9223372036854775808", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts/1?more=1", None, 400, "VAL_001"),
    ("GET", f"{ANALYTICS}/posts/1", None, 404, "RES_001"),
    ("GET", f"{ANALYTICS}/none", None, 404, "RES_001"),
    ("POST", POSTS, {}, 405, "VAL_001"),
    ("GET", f"{EVENTS}/dead?limit=101", None, 400, "VAL_001"),
    ("GET", f"{EVENTS}/dead?after={'x' * 201}", None, 400, "VAL_001"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), PROBLEMS)
@in_loop
async def test_a_problem_is_one_and_an_envelope_too(
    method: str, path: str, body: object, status: int, code: str
) -> None:
    async with events_house() as opened:
        answer = await opened.ask(method, path, body)

    told = answer.data
    assert answer.status == told["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(told) == {"type", "title", "status", "detail", "success", "error", "meta"}
    assert told["error"] == {"code": code, "message": told["detail"]}
    assert is_enveloped(answer)
    assert opened.rows.asked == [] or status == 404
    assert SAFE_HEADERS.items() <= answer.headers.items()


@in_loop
async def test_a_bug_is_told_to_the_log_under_the_id_and_to_nobody_else() -> None:
    async with events_house(rows=FakeRows(trouble=RuntimeError("a secret"))) as opened:
        with capture_logs(processors=[merge_contextvars]) as lines:
            answer = await opened.ask("GET", POSTS, headers={HEADER: "mine"})

    assert (answer.status, answer.data["error"]["code"]) == (500, "SYS_001")
    assert b"a secret" not in answer.body
    assert is_enveloped(answer)
    assert [(line["log_level"], line["request_id"]) for line in lines if line["event"] == "request_failed"] == [
        ("error", "mine")
    ]


@in_loop
async def test_whoever_is_refused_at_the_door_is_told_in_the_same_form() -> None:
    async with events_house() as opened, events_house(token=None) as local:
        stranger = await opened.ask("GET", POSTS, headers={"Authorization": "Bearer wrong-and-long-enough"})
        page = await local.ask("GET", POSTS, headers={"Origin": "https://evil.example"})
        welcome = await local.ask("GET", POSTS)

    assert [each.status for each in (stranger, page, welcome)] == [401, 403, 200]
    assert stranger.data["error"]["code"] == page.data["error"]["code"] == "AUTH_001"
    assert stranger.headers["WWW-Authenticate"].startswith("Bearer")
    assert all(is_enveloped(each) for each in (stranger, page, welcome))


@in_loop
async def test_only_health_is_for_everyone() -> None:
    async with events_house() as opened:
        served = (await opened.ask("GET", "/openapi.json")).data["paths"]
        answers = {
            path: (await opened.ask(method.upper(), path.replace("{id}", "1"), headers={"Authorization": ""})).status
            for path, methods in served.items()
            for method in methods
        }

    assert {path for path, status in answers.items() if status != 401} == {"/health", "/ready", f"{ANALYTICS}/health"}
    assert answers[f"{ANALYTICS}/health"] == 200
    assert TOKEN not in msgspec.json.encode(served).decode()
