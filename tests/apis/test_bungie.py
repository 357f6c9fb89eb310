"""How Bungie's API is asked, and what its answers mean."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgcr_reports import COMPLETED, NUMBER, RAID, STRIKE, WALL, Json, entry, envelope, report

from sanderling.apis.bungie import DISABLED_FOR, NAMES, THROTTLES, Bungie
from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.fetch.classify import feedback, of_reply
from sanderling.formats.instance import MessageError, decode
from sanderling.limit.hints import LONGEST
from sanderling.outcome import Code
from sanderling.task import Headers, Reply

BASE = "https://www.bungie.example"
KEY = "0123456789abcdef"
API = Bungie(BASE, KEY)


def answer(body: bytes, status: int = 200, headers: Headers = (), *, wall: float = WALL) -> NumberedAnswer:
    reply = Reply(status, headers, body, BASE, 0.1)
    return API.read(NUMBER, reply, of_reply(status, headers, wall=wall), wall)


def refusal(code: int, status: int = 500, throttle: object = 0, headers: Headers = ()) -> NumberedAnswer:
    return answer(envelope(code=code, status="Whatever", throttle=throttle), status, headers)


@pytest.mark.parametrize(
    ("attempt", "query"), [(1, ""), (2, "?malformed_retry=1"), (3, "?malformed_retry=2"), (9, "?malformed_retry=8")]
)
def test_after_a_malformed_answer_the_question_gets_past_caches(attempt: int, query: str) -> None:
    task = API.task(NUMBER, attempt)

    assert task.url == f"{BASE}/Platform/Destiny2/Stats/PostGameCarnageReport/{NUMBER}/{query}"
    assert (task.method, task.attempt) == ("GET", 1)


@pytest.mark.parametrize("base", [BASE, f"{BASE}/", "http://127.0.0.1:7777", "https://proxy.example/to/bungie/"])
def test_a_proxy_may_stand_in_between(base: str) -> None:
    at = base.rstrip("/")

    assert Bungie(base).task(7, 1).url == f"{at}/Platform/Destiny2/Stats/PostGameCarnageReport/7/"
    assert Bungie(base).availability().url == f"{at}/Platform/Settings/"


def test_the_key_goes_into_its_header_and_is_never_shown() -> None:
    assert API.task(NUMBER, 1).headers == (("X-API-KEY", KEY),)
    assert API.availability().headers == (("X-API-KEY", KEY),)
    assert Bungie(BASE).task(NUMBER, 1).headers == ()
    assert KEY not in repr(API)
    assert KEY not in repr(API.task(NUMBER, 1))


@pytest.mark.parametrize(
    "base",
    [
        "",
        "www.bungie.example",
        "ftp://www.bungie.example",
        "wss://www.bungie.example",
        "https://",
        "https://?a=1",
        "https://www.bungie.example/?key=1",
        "https://www.bungie.example/#top",
        "https://www.bungie.example/a b",
        "https://user:pass@www.bungie.example",
        "https://www.bungie.example\n",
        "https://[::1",
    ],
)
def test_a_base_that_cannot_be_asked_is_refused(base: str) -> None:
    with pytest.raises(ValueError, match=r"base of bungie|host|URL|url"):
        Bungie(base)


@pytest.mark.parametrize("key", ["secret\r\nHost: evil", "secret\n", "sec ret", "secrét", "secret\0"])
def test_a_key_that_would_break_the_header_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match="key of bungie") as refused:
        Bungie(BASE, key)

    assert "sec" not in str(refused.value)


CASES: list[tuple[int, int, Status, Code]] = [
    # ErrorCode, HTTP status, what it comes to
    (1653, 404, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
    (1653, 500, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
    (1653, 200, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
    (5, 503, Status.DISABLED, Code.DEFERRED),
    (5, 200, Status.DISABLED, Code.DEFERRED),
    (12, 403, Status.HIDDEN, Code.ACCESS_DENIED),
    (12, 500, Status.HIDDEN, Code.ACCESS_DENIED),
    *((code, 500, Status.RATE_LIMITED, Code.RATE_LIMITED) for code in sorted(THROTTLES)),
    (1672, 200, Status.RATE_LIMITED, Code.RATE_LIMITED),
    (3, 500, Status.ERROR, Code.HOST_UNAVAILABLE),
    (1618, 500, Status.ERROR, Code.HOST_UNAVAILABLE),
    (1626, 500, Status.ERROR, Code.HOST_UNAVAILABLE),
    (1618, 503, Status.ERROR, Code.HOST_UNAVAILABLE),
    (1618, 200, Status.ERROR, Code.UNKNOWN_ERROR),
    (2101, 403, Status.ERROR, Code.AUTH_FAILED),
    (2102, 200, Status.ERROR, Code.AUTH_FAILED),
    # A code that says little: the status decides.
    (18, 400, Status.ERROR, Code.HTTP_ERROR),
    (18, 403, Status.RATE_LIMITED, Code.RATE_LIMITED),
    (18, 503, Status.RATE_LIMITED, Code.RATE_LIMITED),
    (18, 429, Status.RATE_LIMITED, Code.RATE_LIMITED),
    (18, 502, Status.ERROR, Code.HOST_UNAVAILABLE),
    (18, 200, Status.ERROR, Code.UNKNOWN_ERROR),
    (18, 404, Status.ERROR, Code.HTTP_ERROR),
    (1, 500, Status.ERROR, Code.HOST_UNAVAILABLE),
    (0, 200, Status.ERROR, Code.UNKNOWN_ERROR),
    (-1, 200, Status.ERROR, Code.UNKNOWN_ERROR),
    (10**300, 200, Status.ERROR, Code.UNKNOWN_ERROR),
]


@pytest.mark.parametrize(("code", "http", "status", "outcome"), CASES)
def test_the_code_goes_before_the_status(code: int, http: int, status: Status, outcome: Code) -> None:
    got = refusal(code, http)

    assert (got.status, got.outcome.code, got.outcome.status) == (status, outcome, http)
    assert got.error == NAMES.get(code, "other")
    assert got.message == b""
    assert len(got.outcome.detail) <= 200


@pytest.mark.parametrize(
    ("http", "status", "outcome"),
    [
        (200, Status.ERROR, Code.UNKNOWN_ERROR),
        (304, Status.ERROR, Code.HTTP_ERROR),
        (401, Status.ERROR, Code.AUTH_FAILED),
        (403, Status.RATE_LIMITED, Code.RATE_LIMITED),
        (404, Status.ERROR, Code.HTTP_ERROR),
        (410, Status.ERROR, Code.HTTP_ERROR),
        (429, Status.RATE_LIMITED, Code.RATE_LIMITED),
        (500, Status.ERROR, Code.HOST_UNAVAILABLE),
        (502, Status.ERROR, Code.HOST_UNAVAILABLE),
        (503, Status.RATE_LIMITED, Code.RATE_LIMITED),
        (520, Status.ERROR, Code.HOST_UNAVAILABLE),
        (999, Status.ERROR, Code.HTTP_ERROR),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"[]", b'{"ErrorCode": "1653"}', b'{"error": 1653}'])
def test_without_an_envelope_the_status_decides(http: int, status: Status, outcome: Code, body: bytes) -> None:
    got = answer(body, http)

    assert (got.status, got.outcome.code) == (status, outcome)
    assert got.error == outcome.value


def test_a_404_of_a_proxy_is_no_missing_record() -> None:
    """Else a proxy without its route would make us pass over everything."""
    got = answer(b"<html><title>404 Not Found</title>nginx</html>", 404)

    assert got.status is Status.ERROR
    assert not got.outcome.final


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (b"<html><head><TITLE lang=en>\n  Attention   Required! </TITLE>", '"Attention Required!"'),
        (b"<title>" + b"x" * 5000 + b"</title>", f'"{"x" * 80}"'),
        (b"<title>a\x1b[31m\x00b\xff</title>", '"a[31mb\N{REPLACEMENT CHARACTER}"'),
        (b"<title></title>", "bytes that are no envelope"),
        (b"<html>" * 5000 + b"<title>too far down</title>", "no envelope"),
    ],
)
def test_of_a_page_the_title_is_told(page: bytes, shown: str) -> None:
    detail = answer(page, 502).outcome.detail

    assert detail.startswith("HTTP 502, ")
    assert detail.endswith(shown)
    assert len(detail) <= 200


@pytest.mark.parametrize(
    ("throttle", "header", "wait"),
    [
        (10, None, 10.0),
        (2.5, None, 2.5),
        (0, None, None),
        (-3, None, None),
        (None, None, None),
        ("10", None, None),
        (True, None, None),
        ([[]], None, None),
        (10**30, None, LONGEST),
        (0, "30", 30.0),
        (10, "30", 30.0),
        (60, "30", 60.0),
    ],
)
def test_a_throttle_says_how_long_in_the_envelope_or_the_header(
    throttle: object, header: str | None, wait: float | None
) -> None:
    got = refusal(51, 500, throttle, (("Retry-After", header),) if header else ())

    assert got.status is Status.RATE_LIMITED
    assert got.outcome.retry_after == wait


def test_a_throttle_teaches_the_limiter_whatever_its_status_and_a_missing_record_does_not_blame_the_host() -> None:
    assert feedback(refusal(1672, 200).outcome, 0.1).status == 429
    assert feedback(refusal(1653, 500).outcome, 0.1).status == 404
    assert feedback(refusal(5, 503).outcome, 0.1).status == 0


def test_an_api_that_is_off_is_asked_again_later() -> None:
    assert refusal(5, 503).outcome.retry_after == DISABLED_FOR
    assert refusal(5, 503, 10).outcome.retry_after == DISABLED_FOR
    assert refusal(5, 503, headers=(("Retry-After", "600"),)).outcome.retry_after == 600


def test_a_raid_is_a_message_with_the_report_byte_for_byte() -> None:
    said = json.dumps(report(), indent=2).encode()
    body = b'{ "Response" :\n' + said + b' , "ErrorCode": 1, "ThrottleSeconds": 0 }'

    got = answer(body)

    assert (got.status, got.outcome.code, got.error) == (Status.SUCCESS, Code.OK, "")
    assert got.outcome.lag == 20.0
    message = decode(got.message)
    assert (message.id, message.api, message.crawled) == (str(NUMBER), "bungie", WALL)
    assert bytes(message.raw) == said
    assert message.instance.date_completed == COMPLETED


def test_anything_but_a_raid_is_skipped_and_says_how_old_it_was() -> None:
    got = answer(envelope(report(mode=STRIKE)))

    assert (got.status, got.outcome.code, got.outcome.lag, got.message) == (Status.SKIPPED, Code.SKIPPED, 20.0, b"")


def test_the_kind_that_is_kept_can_be_another() -> None:
    api = Bungie(BASE, keep=STRIKE)
    reply = Reply(200, (), envelope(report(mode=STRIKE)), BASE, 0.1)

    assert api.read(NUMBER, reply, of_reply(200, (), wall=WALL), WALL).status is Status.SUCCESS


@pytest.mark.parametrize("mode", [RAID, STRIKE])
def test_a_lag_below_0_stays_as_it_is(mode: int) -> None:
    assert answer(envelope(report(mode=mode)), wall=COMPLETED - 3).outcome.lag == -3.0


def test_what_asks_for_quiet_with_a_report_gets_it() -> None:
    assert answer(envelope(report()), headers=(("Retry-After", "7"),)).outcome.retry_after == 7.0


@pytest.mark.parametrize(
    "body",
    [
        envelope(),
        b'{"Response": null, "ErrorCode": 1}',
        b'{"Response": 7, "ErrorCode": 1}',
        b'{"Response": {}, "ErrorCode": 1}',
        b'{"Response": [], "ErrorCode": 1}',
    ],
)
def test_a_success_without_a_report_is_malformed(body: bytes) -> None:
    got = answer(body)

    assert (got.status, got.outcome.code) == (Status.BAD_FORMAT, Code.INVALID_RESPONSE)
    assert got.outcome.detail


def test_a_null_report_is_called_that() -> None:
    assert answer(b'{"Response": null, "ErrorCode": 1}').outcome.detail == "Response is null"


@pytest.mark.parametrize(
    ("mode", "depth", "statuses"),
    [
        (RAID, 500, {Status.SUCCESS}),
        (STRIKE, 500, {Status.SKIPPED}),
        (RAID, 100_000, {Status.ERROR, Status.BAD_FORMAT}),
        (STRIKE, 100_000, {Status.ERROR, Status.BAD_FORMAT}),
    ],
)
def test_nesting_without_end_is_an_answer_too(mode: int, depth: int, statuses: set[Status]) -> None:
    body = envelope(report(mode=mode, teams="HERE")).replace(b'"HERE"', b"[" * depth + b"]" * depth)

    assert answer(body).status in statuses


def settings(systems: object) -> bytes:
    return envelope({"environment": "live", "systems": systems})


ON: Json = {"Destiny2": {"enabled": True, "parameters": {}}, "Groups": {"enabled": False}}


@pytest.mark.parametrize(
    ("body", "http", "available"),
    [
        (settings(ON), 200, True),
        (settings({"Destiny2": {"enabled": False}}), 200, False),
        (settings({"Groups": {"enabled": True}}), 200, False),
        (settings({}), 200, False),
        (settings(None), 200, None),
        (settings({"Destiny2": {}}), 200, None),
        (settings({"Destiny2": {"enabled": "yes"}}), 200, None),
        (settings(ON), 503, None),
        (envelope({"systems": ON}, code=5), 200, None),
        (envelope({}), 200, None),
        (envelope(), 200, None),
        (b"<html>", 200, None),
        (b"", 502, None),
        (b"[" * 100_000, 200, None),
    ],
)
def test_whether_it_is_on_is_read_from_the_settings(body: bytes, http: int, available: bool | None) -> None:  # noqa: FBT001 - a column
    assert API.available(Reply(http, (), body, BASE, 0.1)) is available


# Anything that might come: bytes, JSON, and reports with something in them replaced or gone.

NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**32, 2**53, 2**63, 2**64, 1e300, -1, 0.5])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=())),  # with lone surrogates
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def places(value: object) -> list[tuple[Any, Any]]:
    """Every container of a document, with every key of it."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(value)))
    here: Any = value
    return [(here, key) for key in keys] + [place for key in keys for place in places(here[key])]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    said: Json = {"ErrorCode": 1, "Response": report([entry(playerCount=2), entry(playerCount=2, completed=0)])}
    said["Response"]["activityDetails"]["mode"] = draw(st.sampled_from([RAID, RAID, STRIKE]))
    for _ in range(draw(st.integers(0, 3))):
        container, key = draw(st.sampled_from(places(said)))
        if draw(st.booleans()):
            container[key] = draw(JSON)
        else:
            container.pop(key)
        if not places(said):
            break
    text = json.dumps(said, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.binary(max_size=3)) + text[at + draw(st.integers(0, 3)) :]
    return text


def decodes(message: bytes) -> bool:
    try:
        decode(message)
    except MessageError:
        return False
    return True


@given(
    body=st.binary() | JSON.map(lambda value: json.dumps(value).encode()) | mutated(),
    http=st.sampled_from([200, 200, 200, 404, 500, 503, 999]),
)
def test_whatever_comes_there_is_an_answer_and_a_message_only_with_success(body: bytes, http: int) -> None:
    got = answer(body, http)

    assert decodes(got.message) == (got.status is Status.SUCCESS)
    assert got.error in {"", "other", *NAMES.values(), *Code}
    assert len(got.outcome.detail) <= 200
    API.available(Reply(http, (), body, BASE, 0.1))


@given(st.dictionaries(st.sampled_from(["ErrorCode", "Response", "ThrottleSeconds", "ErrorStatus"]), JSON))
def test_any_envelope_is_an_answer(said: dict[str, object]) -> None:
    got = answer(json.dumps(said).encode())

    assert (got.message != b"") == (got.status is Status.SUCCESS)
