"""Sources that are described by settings."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis import json_source
from sanderling.apis.json_source import JsonSource
from sanderling.apis.polled import Discovered, PolledSource, TargetActivity, TargetName, Wanted
from sanderling.outcome import Code
from sanderling.stores.documents import Document, SourceError, SourceRow
from sanderling.task import Reply

HOST = "https://scores.example"
MATCH = {
    "url": f"{HOST}/{{event}}/match/{{id}}",
    "ids_url": f"{HOST}/{{event}}/matches",
    "ids": "matches",
    "active_when": 'state = "live"',
    "seconds": 10,
    "active_seconds": 0.2,
}
TABLE = {"url": f"{HOST}/{{event}}/table", "items": "data.rows", "id": "team", "seconds": 60, "priority": 3}
SETTINGS = {
    "name": "scores",
    "event_url": f"{HOST}/now",
    "event": "current.id",
    "kinds": {"match": MATCH, "standing": TABLE},
}

ABOUT_MATCH = Wanted("match", "m1", "cup")
ABOUT_TABLE = Wanted("standing", "cup", "cup")


def source(**changes: object) -> JsonSource:
    return JsonSource.from_settings(SETTINGS | changes)


def with_match(**changes: object) -> JsonSource:
    return source(kinds={"match": MATCH | changes})


SOURCE: PolledSource = source()


def reply(said: object, status: int = 200) -> Reply:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return Reply(status, (), body, HOST, 0.1)


def discovered(api: PolledSource, *replies: Reply) -> tuple[list[str], Discovered]:
    """The addresses that were asked, and what came of it."""
    asking = api.discover()
    urls = [next(asking).url]
    urls += [asking.send(each).url for each in replies[:-1]]
    with pytest.raises(StopIteration) as ended:
        asking.send(replies[-1])
    found = ended.value.value
    assert isinstance(found, Discovered)
    return urls, found


def test_the_event_is_asked_for_first_then_what_there_is_of_each_kind() -> None:
    urls, found = discovered(
        SOURCE, reply({"current": {"id": 7}}), reply({"matches": [{"id": "m1"}, "m2", 3, {"id": "m1"}]})
    )

    assert urls == [f"{HOST}/now", f"{HOST}/7/matches"]
    assert found.event == "7"
    assert found.wanted == (
        *(Wanted("match", key, "7") for key in ("m1", "m2", "3")),
        Wanted("standing", "7", "7"),
    )
    assert found.document == Document(())


def test_without_an_address_for_it_the_event_is_the_source() -> None:
    asking = JsonSource.from_settings({"name": "scores", "kinds": {"standing": TABLE}}).discover()

    with pytest.raises(StopIteration) as ended:
        next(asking)
    assert ended.value.value.wanted == (Wanted("standing", "scores", "scores"),)


def test_ids_are_quoted_where_they_go_into_an_address() -> None:
    assert SOURCE.task(Wanted("match", "a/b ?c", "cup#1")).url == f"{HOST}/cup%231/match/a%2Fb%20%3Fc"
    assert SOURCE.task(Wanted("match", "{event}", "cup")).url == f"{HOST}/cup/match/%7Bevent%7D"
    assert source(headers={"X-Key": "1"}).task(ABOUT_TABLE).headers == (("X-Key", "1"),)


def test_a_document_that_is_a_record_is_a_row() -> None:
    document = SOURCE.read(ABOUT_MATCH, reply({"state": "live", "id": 5, "goals": [1, 2]}))

    record = '{"goals":[1,2],"id":5,"state":"live"}'
    assert document.rows == (
        SourceRow("match", "m1/5", {"event": "cup", "target": "m1", "active": True, "record": record}),
    )
    assert document.whole[0].keys == {"m1/5"}


def test_a_list_of_records_is_a_row_each_and_those_not_listed_go() -> None:
    document = SOURCE.read(ABOUT_TABLE, reply({"data": {"rows": [{"team": "a"}, {"team": "b"}]}}))

    assert [(row.key, row.values["active"]) for row in document.rows] == [("cup/a", False), ("cup/b", False)]
    whole = document.whole[0]
    assert (whole.table, whole.column, whole.parent) == ("standing", "target", "cup")
    assert whole.keys == {"cup/a", "cup/b"}
    assert SOURCE.read(ABOUT_TABLE, reply({"data": {"rows": []}})).whole[0].keys == frozenset()


def test_records_of_two_documents_never_share_a_key() -> None:
    one = SOURCE.read(Wanted("match", "a/b", "cup"), reply({"id": "c"}))
    other = SOURCE.read(Wanted("match", "a", "cup"), reply({"id": "b/c"}))

    assert one.rows[0].key != other.rows[0].key


def test_the_order_of_names_in_a_record_is_no_change() -> None:
    one, other = (SOURCE.read(ABOUT_MATCH, reply(body)) for body in (b'{"id": 1, "a": 2}', b'{ "a":2,"id":1}'))

    assert one == other


def test_documents_with_an_active_record_are_active() -> None:
    rows = [
        *SOURCE.read(Wanted("match", "m2", "cup"), reply({"id": 1, "state": "live"})).rows,
        *SOURCE.read(Wanted("match", "m1", "cup"), reply([{"id": 1}, {"id": 2, "state": "live"}])).rows,
        *SOURCE.read(Wanted("match", "m3", "cup"), reply({"id": 1, "state": "over"})).rows,
        *SOURCE.read(Wanted("match", "m4", "last year"), reply({"id": 1, "state": "live"})).rows,
    ]

    active = {TargetName("match", "m1"), TargetName("match", "m2")}
    assert SOURCE.activity("cup", rows) == TargetActivity(frozenset(active), TargetName("match", "m1"))
    assert SOURCE.activity("cup", []) == TargetActivity()
    assert SOURCE.watched == ("match",)


def test_a_kind_has_the_intervals_of_its_section() -> None:
    match, standing = SOURCE.kinds

    assert (match.name, match.seconds, match.active_seconds, match.priority) == ("match", 10.0, 0.2, 0)
    assert (standing.name, standing.seconds, standing.active_seconds, standing.priority) == ("standing", 60.0, None, 3)
    assert [table.name for table in SOURCE.schema.tables] == ["match", "standing"]


@pytest.mark.parametrize(
    ("wanted", "said", "expected"),
    [
        (ABOUT_MATCH, b"", "match m1: 0 bytes that are no JSON"),
        (ABOUT_MATCH, b'{"id": 1', "match m1: 8 bytes that are no JSON: Input data was truncated"),
        (ABOUT_MATCH, b"[" * 100_000, "match m1: 100000 bytes that are no JSON: maximum recursion"),
        (ABOUT_MATCH, None, "match m1: . is null, expected an object"),
        (ABOUT_MATCH, [7, {}], "match m1: .[0] is 7, expected an object"),
        (ABOUT_MATCH, {}, "match m1: id of . is null, expected a number, or up to 128 printable characters"),
        (ABOUT_MATCH, {"id": True}, "id of . is true"),
        (ABOUT_MATCH, {"id": "a\nb"}, "id of . is 'a\\nb'"),
        (ABOUT_MATCH, {"id": "x" * 129}, "id of . is 'xxx"),
        (ABOUT_MATCH, {"id": []}, "id of . is a list"),
        (ABOUT_TABLE, {"data": {}}, "standing cup: data.rows is null, expected an object"),
        (ABOUT_TABLE, {"data": {"rows": [{}]}}, "standing cup: team of data.rows[0] is null"),
    ],
)
def test_bad_documents_get_an_error_that_says_what_and_where(wanted: Wanted, said: object, expected: str) -> None:
    with pytest.raises(SourceError) as raised:
        SOURCE.read(wanted, reply(said))
    assert expected in str(raised.value)
    assert raised.value.outcome.status == 200


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([reply({})], "event: current.id is null, expected a number"),
        ([reply({}, 500)], "event: HTTP 500, expected 200"),
        ([reply({"current": {"id": ".."}})], "event: current.id is '..', expected"),
        ([reply({"current": {"id": "a"}}), reply(b'{"matches"')], "list of match: 10 bytes that are no JSON"),
        (
            [reply({"current": {"id": "a"}}), reply({"matches": [1] * 100_001})],
            "list of match: matches has 100001 items, expected at most 100000",
        ),
    ],
)
def test_a_list_that_cannot_be_read_ends_the_search(replies: list[Reply], expected: str) -> None:
    asking = SOURCE.discover()
    next(asking)
    for each in replies[:-1]:
        asking.send(each)

    with pytest.raises(SourceError) as raised:
        asking.send(replies[-1])
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("said", "ids", "unread", "note"),
    [
        ({"matches": 7}, [], ("match",), "list of match: matches is 7, expected a list"),
        ({"matches": [{}, True]}, [], ("match",), "list of match: id of matches[0] is null"),
        ({"matches": ["a", {}, 2]}, ["a", "2"], (), "id of matches[1] is null"),
        (b'{"matches": ["a"], "load": NaN}', ["a"], (), "not strict JSON"),
    ],
)
def test_an_odd_list_costs_what_is_odd_and_no_other_kind(
    said: object, ids: list[str], unread: tuple[str, ...], note: str
) -> None:
    asking = SOURCE.discover()
    next(asking)
    asking.send(reply({"current": {"id": "cup"}}))

    with pytest.raises(StopIteration) as ended:
        asking.send(reply(said))

    found = ended.value.value
    assert [each.source_id for each in found.wanted if each.kind == "match"] == ids
    assert [each.source_id for each in found.wanted if each.kind == "standing"] == ["cup"]
    assert found.unread == unread
    assert note in "".join(found.document.notes)


@pytest.mark.parametrize(
    ("said", "keys", "note"),
    [
        ([{"id": 1}, 7, {"id": 2}], ["m1/1", "m1/2"], ".[1] is 7, expected an object: left out"),
        ([{"id": 1}, {"id": []}], ["m1/1"], "id of .[1] is a list"),
        ([{"id": 1, "score": 3}, {"id": "1"}], ["m1/1"], ".[1]: 'm1/1' is listed twice: left out"),
        (
            b'[{"id": 1, "score": NaN}, {"id": 2, "name": "\\ud800 \xff", "big": 1e999}]',
            ["m1/1", "m1/2"],
            "not strict JSON",
        ),
    ],
)
def test_an_odd_record_costs_itself(said: object, keys: list[str], note: str) -> None:
    document = SOURCE.read(ABOUT_MATCH, reply(said))

    assert [row.key for row in document.rows] == keys
    assert note in "".join(document.notes)
    for row in document.rows:
        json.loads(str(row.values["record"]).encode())


@pytest.mark.parametrize(
    "wanted",
    [Wanted("weather", "a", "b"), Wanted("match", "", "b"), Wanted("match", "..", "b"), Wanted("match", "a", "\0")],
)
def test_a_target_that_cannot_be_one_is_refused_before_anything_is_sent(wanted: Wanted) -> None:
    for ask in (lambda: SOURCE.task(wanted), lambda: SOURCE.read(wanted, reply({}))):
        with pytest.raises(SourceError, match="expected") as raised:
            ask()
        assert raised.value.outcome.code is Code.REFUSED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "Scores!"}, "name is 'Scores!', expected up to 40"),
        ({"name": 7}, r"settings of a source: Expected `str`, got `int` - at `\$.name`"),
        ({"kinds": {}}, "source scores has no kinds"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"event": "a..b"}, "expected a path like"),
        ({"event_url": "now"}, "event_url does not start with http"),
        ({"event_url": f"{HOST}/{{event}}"}, r"event_url has '\{event\}' in it, expected no braces"),
        ({"headers": {"X Key": "a"}}, "header name is 'X Key'"),
        ({"headers": {"X-Key": "a\nb"}}, "header X-Key has a line break"),
        ({"kinds": {"a-b": TABLE}}, "kind 'a-b': found that name, expected up to 40"),
    ],
)
def test_settings_that_are_wrong_say_so(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        source(**changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"url": f"{HOST}/match"}, r"kind 'match': url has no \{id\}, expected one"),
        ({"url": f"{HOST}/{{id}}/{{race}}"}, r"url has '\{race\}' in it, expected \{event\} or \{id\}"),
        ({"url": f"{HOST}/{{id}}/}}"}, r"url has '\}' in it"),
        ({"url": "https://{id}.example/"}, "expected braces behind the host only"),
        ({"url": f"{HOST}/a b/{{id}}"}, "a space or a control character"),
        ({"ids_url": f"{HOST}/{{id}}"}, r"ids_url has '\{id\}' in it, expected \{event\}"),
        ({"ids_url": None}, r"url has '\{id\}' in it, expected \{event\}"),
        ({"seconds": 0}, "interval of match is 0.0 seconds"),
        ({"seconds": "often"}, r"Expected `float`, got `str` - at `\$.kinds\[...\].seconds`"),
        ({"active_when": None}, "expected both of active_when and active_seconds, or none"),
        ({"active_seconds": None}, "expected both of active_when and active_seconds, or none"),
        ({"active_when": "state is live"}, "kind 'match': 'state is live', at character 7"),
        ({"items": "a b"}, "expected a path like"),
        ({"every": 5}, "unknown field `every`"),
    ],
)
def test_a_kind_that_is_wrong_says_so(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        with_match(**changes)


def test_neither_addresses_nor_headers_are_ever_shown() -> None:
    secret = source(headers={"Authorization": "hush"}, event_url=f"{HOST}/?key=hush")

    assert "hush" not in repr(secret)
    with pytest.raises(ValueError, match="url") as raised:
        source(event_url="hush://a")
    assert "hush" not in str(raised.value)


def test_the_example_at_the_top_of_the_file_is_one() -> None:
    example = (json_source.__doc__ or "").split("\n\n", 1)[1].rsplit("\n\n", 1)[0]

    read = JsonSource.from_settings(tomllib.loads(example))

    assert read.task(ABOUT_MATCH).url == f"{HOST}/cup/match/m1"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "state", "data", "rows", "team", "matches", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=100) | VALUES.map(lambda value: json.dumps(value).encode())


def attempt(wanted: Wanted, body: bytes) -> Document | SourceError:
    try:
        return SOURCE.read(wanted, reply(body))
    except SourceError as error:
        return error


@given(st.sampled_from([ABOUT_MATCH, ABOUT_TABLE]), BODIES)
def test_whatever_comes_it_is_a_document_or_an_error(wanted: Wanted, body: bytes) -> None:
    found = attempt(wanted, body)

    if isinstance(found, SourceError):
        assert 0 < len(found.outcome.detail) <= 200
    else:
        assert {row.key for row in found.rows} == found.whole[0].keys


@pytest.mark.parametrize("digits", [4_000, 4_299, 4_300, 4_301, 50_000])
def test_a_number_without_end_is_an_error_and_no_crash(digits: int) -> None:
    assert isinstance(attempt(ABOUT_MATCH, b'{"id": ' + b"9" * digits + b"}"), SourceError)
    attempt(ABOUT_MATCH, b'{"id": 1, "x": ' + b"9" * digits + b"}")


@given(BODIES)
def test_whatever_list_comes_there_are_targets_that_can_be_asked_or_an_error(body: bytes) -> None:
    asking = SOURCE.discover()
    next(asking)
    asking.send(reply({"current": {"id": "cup"}}))

    with pytest.raises((StopIteration, SourceError)) as ended:
        asking.send(reply(body))

    if isinstance(ended.value, StopIteration):
        for wanted in ended.value.value.wanted:
            assert SOURCE.task(wanted).url.startswith(f"{HOST}/cup/")
