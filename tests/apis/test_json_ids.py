"""JSON APIs that are described by settings."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.conditions import Condition
from sanderling.apis.json_ids import JsonIds
from sanderling.apis.json_paths import Path
from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.fetch.classify import of_reply
from sanderling.formats.instance import MessageError, decode
from sanderling.outcome import Code
from sanderling.task import Headers, Reply, Task

URL = "https://news.example/v0/item/{id}.json"
WALL = 1_800_000_000.0
EVERY = Condition.parse(".")  # what comes with a 200 is a record
PLAIN = JsonIds("news", URL, record_if=EVERY)


def answer(api: JsonIds, said: object, status: int = 200, headers: Headers = (), number: int = 7) -> NumberedAnswer:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return api.read(number, Reply(status, headers, body, URL, 0.1), of_reply(status, headers, wall=WALL), WALL)


def api(**settings: object) -> JsonIds:
    return JsonIds.from_settings({"name": "news", "url": URL, "record_if": ".", **settings})


def test_the_id_goes_wherever_the_address_has_a_place_for_it() -> None:
    url = "http://shop.example/orders/{id}/?check={id}"
    twice = JsonIds("shop", url, (("Accept", "application/json"),), record_if=EVERY)

    assert PLAIN.task(7, 1).url == PLAIN.task(7, 3).url == "https://news.example/v0/item/7.json"
    assert twice.task(2**63 - 1, 1).url == f"http://shop.example/orders/{2**63 - 1}/?check={2**63 - 1}"
    assert twice.task(7, 1).headers == (("Accept", "application/json"),)


def test_it_cannot_be_asked_whether_it_is_on() -> None:
    ask: Callable[[], Task | None] = PLAIN.availability
    understand: Callable[[Reply], bool | None] = PLAIN.available

    assert ask() is None
    assert understand(Reply(200, (), b"{}", URL, 0.1)) is None


def test_a_record_is_a_message_with_the_body_byte_for_byte() -> None:
    body = b' {"id": 7,\n "time": 1799999990}\n'

    got = answer(api(timestamp="time", id="id"), body)

    assert (got.status, got.outcome.code, got.outcome.lag) == (Status.SUCCESS, Code.OK, 10.0)
    message = decode(got.message)
    assert (message.id, message.api, message.crawled) == ("7", "news", WALL)
    assert (message.instance.instance_id, message.instance.date_completed) == ("7", 1_799_999_990.0)
    assert bytes(message.raw).strip() == body.strip()


def test_without_a_timestamp_nothing_is_known_of_its_age() -> None:
    got = answer(PLAIN, {"time": 5})

    assert got.outcome.lag is None
    assert decode(got.message).instance.date_completed is None


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000_500, 1_700_000_000.5),
        ("1700000000", 1_700_000_000.0),
        ("2023-11-15T00:13:20.5+02:00", 1_700_000_000.5),
        (None, None),
    ],
)
def test_a_timestamp_says_how_old_a_record_is(stamp: object, seconds: float | None) -> None:
    got = answer(api(timestamp="at"), {"at": stamp})

    assert (got.status, got.outcome.detail) == (Status.SUCCESS, "")
    assert decode(got.message).instance.date_completed == seconds
    assert got.outcome.lag == (None if seconds is None else WALL - seconds)


@pytest.mark.parametrize("stamp", ["yesterday", "06/12/2025", True, -5, 0, 10**400, [], {}, ""])
def test_a_record_whose_timestamp_is_none_is_kept_with_a_remark(stamp: object) -> None:
    got = answer(api(timestamp="at"), {"at": stamp})

    assert (got.status, got.outcome.lag) == (Status.SUCCESS, None)
    assert decode(got.message).instance.date_completed is None
    assert got.outcome.detail.startswith("at is ")
    assert "expected a date or Unix time" in got.outcome.detail


@pytest.mark.parametrize("own", [7, "7"])
def test_a_record_with_the_id_asked_for(own: object) -> None:
    assert answer(api(id="data.id"), {"data": {"id": own}}).status is Status.SUCCESS


@pytest.mark.parametrize("own", [8, "8", "07", 7.0, True, None, [], {"id": 7}, 10**400])
def test_a_record_with_another_id_is_a_lie(own: object) -> None:
    got = answer(api(id="data.id"), {"data": {"id": own}})

    assert (got.status, got.outcome.code, got.error) == (Status.ERROR, Code.HOST_UNAVAILABLE, "no_record")
    assert got.outcome.detail.startswith("no record: data.id is ")
    assert ", expected 7; the answer begins " in got.outcome.detail


def test_true_is_no_id() -> None:
    assert answer(api(id="id"), {"id": True}, number=1).status is Status.ERROR


@pytest.mark.parametrize("rule", ["name", 'ok = "yes"', "count >= 1"])
def test_what_is_true_of_records_only_tells_them_from_errors(rule: str) -> None:
    good, bad = {"name": "a", "ok": "yes", "count": 1}, {"error": "internal"}

    assert answer(api(record_if=rule), good).status is Status.SUCCESS
    got = answer(api(record_if=rule), bad)
    assert (got.status, got.message) == (Status.ERROR, b"")
    assert got.outcome.detail.startswith("no record: ")
    assert f" is null, expected {rule}; the answer begins " in got.outcome.detail


def test_without_a_way_to_tell_a_record_from_an_error_there_is_no_api() -> None:
    with pytest.raises(
        ValueError, match=r"nothing tells a record of news from an error .*expected id, .* or record_if"
    ):
        JsonIds.from_settings({"name": "news", "url": URL, "missing": "gone", "keep_if": "a", "timestamp": "at"})


def test_what_is_not_wanted_is_skipped_and_says_how_old_it_was() -> None:
    stories = api(keep_if='type = "story"', timestamp="time")

    kept, skipped = (answer(stories, {"type": type_, "time": WALL - 3}) for type_ in ("story", "job"))

    assert kept.status is Status.SUCCESS
    assert (skipped.status, skipped.outcome.code, skipped.outcome.lag) == (Status.SKIPPED, Code.SKIPPED, 3.0)
    assert skipped.message == b""


def test_of_what_is_not_wanted_the_timestamp_does_not_matter() -> None:
    got = answer(api(keep_if="wanted", timestamp="time"), {"wanted": False, "time": "long ago"})

    assert (got.status, got.outcome.lag) == (Status.SKIPPED, None)


@pytest.mark.parametrize(
    ("said", "http", "status", "code"),
    [
        (b"", 404, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
        ({"a": 1}, 404, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
        (b"", 410, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
        (b"null", 200, Status.NOT_FOUND, Code.CONTENT_NOT_FOUND),
        ({"a": 1}, 201, Status.SUCCESS, Code.OK),
        ([1], 200, Status.SUCCESS, Code.OK),
        (b"<html>", 200, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b"", 200, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b"", 204, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b'{"a": "\xff"}', 200, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b'{"a": 1} {}', 200, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b"[" * 100_000, 200, Status.ERROR, Code.HOST_UNAVAILABLE),
        (b"null", 304, Status.ERROR, Code.HTTP_ERROR),
        ({}, 400, Status.ERROR, Code.HTTP_ERROR),
        ({}, 401, Status.ERROR, Code.AUTH_FAILED),
        ({}, 403, Status.ERROR, Code.ACCESS_DENIED),
        ({}, 429, Status.RATE_LIMITED, Code.RATE_LIMITED),
        ({}, 451, Status.ERROR, Code.HTTP_ERROR),
        ({}, 500, Status.ERROR, Code.HOST_UNAVAILABLE),
        ({}, 503, Status.ERROR, Code.HOST_UNAVAILABLE),
        ({}, 999, Status.ERROR, Code.HTTP_ERROR),
    ],
)
def test_statuses_mean_what_people_expect(said: object, http: int, status: Status, code: Code) -> None:
    got = answer(PLAIN, said, http)

    assert (got.status, got.outcome.code) == (status, code)
    assert (got.message != b"") == (status is Status.SUCCESS)


@pytest.mark.parametrize("http", [429, 503, 529])
def test_retry_after_is_passed_on(http: int) -> None:
    got = answer(PLAIN, b"", http, (("Retry-After", "12"),))

    assert (got.status, got.outcome.retry_after) == (Status.RATE_LIMITED, 12.0)


@pytest.mark.parametrize(
    ("rule", "said", "http", "status"),
    [
        ("error.code = 404", {"error": {"code": 404}}, 200, Status.NOT_FOUND),
        ("error.code = 404", {"error": {"code": 404}}, 404, Status.NOT_FOUND),
        ("error.code = 404", {"error": {"code": 404}}, 500, Status.NOT_FOUND),
        ("error.code = 404", {"error": {"code": 404}}, 429, Status.RATE_LIMITED),
        ("error.code = 404", {"error": {"code": 500}}, 500, Status.ERROR),
        ("error.code = 404", {"a": 1}, 200, Status.SUCCESS),
        # A rule says all there is to say: the 404 of a proxy, and a null, mean nothing then.
        ("error.code = 404", b"<html>", 404, Status.ERROR),
        ("error.code = 404", {}, 404, Status.ERROR),
        ("error.code = 404", {}, 410, Status.ERROR),
        (". = null", b"null", 200, Status.NOT_FOUND),
        (". = null", b"nil", 200, Status.ERROR),
        ("deleted", {"deleted": True}, 200, Status.NOT_FOUND),
        ("deleted", {"deleted": False}, 200, Status.SUCCESS),
    ],
)
def test_a_rule_for_what_is_missing_has_the_last_word(rule: str, said: object, http: int, status: Status) -> None:
    got = answer(api(missing=rule), said, http)

    assert got.status is status
    assert status is not Status.ERROR or not got.outcome.final


def test_settings_are_read() -> None:
    read = api(
        headers={"X-Token": "secret"}, missing="gone", timestamp="a[0]", keep_if="n > 1", id="id", record_if="kind"
    )

    assert read == JsonIds(
        "news",
        URL,
        (("X-Token", "secret"),),
        Condition.parse("gone"),
        Path(("a", 0)),
        Condition.parse("n > 1"),
        Path(("id",)),
        Condition.parse("kind"),
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"keepif": "a"}, "unknown setting 'keepif'; did you mean 'keep_if'?"),
        ({"timestmp": "a"}, "did you mean 'timestamp'?"),
        ({"zzz": 1}, "expected some of name, url, headers"),
        ({"name": 7}, "settings of an API: Expected `str`, got `int` - at `$.name`"),
        ({"name": "My API"}, "name is 'My API', expected"),
        ({"name": ""}, "name is ''"),
        ({"url": None}, "settings of an API: Expected `str`, got `null` - at `$.url`"),
        ({"url": "https://news.example/item"}, "expected {id} where the id goes"),
        ({"url": "https://news.example/{id}/{page}"}, "no other braces"),
        ({"url": "ftp://news.example/{id}"}, "does not start with http:// or https://"),
        ({"url": "news.example/{id}"}, "does not start with http:// or https://"),
        ({"url": "https://{id}.news.example/"}, "expected {id} behind the host"),
        ({"url": "https://news.example:8{id}/"}, "expected {id} behind the host"),
        ({"url": "https://news.example/{id} "}, "space"),
        ({"url": "https://us er/{id}"}, "host"),
        ({"url": "https://me:pw@news.example/{id}"}, "user info"),
        ({"headers": "Accept"}, "settings of an API: Expected `object`, got `str` - at `$.headers`"),
        ({"headers": {"Accept": 7}}, "settings of an API: Expected `str`, got `int` - at `$.headers[...]`"),
        ({"headers": {"Bad Name": "x"}}, "header name"),
        ({"headers": {"X-Token": "se\ncret"}}, "header X-Token has a line break"),
        ({"missing": 404}, "settings of an API: Expected `str | null`, got `int` - at `$.missing`"),
        ({"missing": "a = b"}, "setting 'missing': 'a = b', at character 5"),
        ({"keep_if": "a >"}, "setting 'keep_if': 'a >', at character 4: found the end"),
        ({"timestamp": "a..b"}, "setting 'timestamp': 'a..b', at character 2"),
        ({"record_if": "a ="}, "setting 'record_if': 'a =', at character 4: found the end"),
        ({"id": ""}, "setting 'id': '', at character 1: found the end, expected a path"),
    ],
)
def test_settings_that_are_none_are_refused_in_words(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        api(**settings)

    assert "cret" not in str(refused.value)
    assert "pw" not in str(refused.value)


def test_secrets_are_not_shown() -> None:
    shown = repr(JsonIds("news", "https://news.example/{id}?key=secret", (("X-Token", "secret"),), record_if=EVERY))

    assert "secret" not in shown
    assert "news" in shown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "time", "a", "é"]), inner),
    max_leaves=8,
)
APIS = st.sampled_from(
    [PLAIN, api(id="id"), api(timestamp="time"), api(keep_if="a > 1"), api(missing="a.id = null", timestamp="a[0]")]
)


def decodes(message: bytes) -> bool:
    try:
        decode(message)
    except MessageError:
        return False
    return True


@given(
    described=APIS,
    body=st.binary() | JSON.map(lambda said: json.dumps(said).encode()),
    http=st.sampled_from([200, 200, 200, 304, 404, 429, 500, 999]),
    number=st.integers(0, 3),
)
def test_whatever_comes_there_is_an_answer_and_a_message_only_with_success(
    described: JsonIds, body: bytes, http: int, number: int
) -> None:
    got = answer(described, body, http, number=number)

    assert decodes(got.message) == (got.status is Status.SUCCESS)
    assert len(got.outcome.detail) <= 200
    assert got.error in {"", "no_record", *Code}
