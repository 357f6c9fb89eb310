"""Documents as rows of tables, and the words between a source and who polls it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.polled import PolledKind, TargetActivity, TargetName, Wanted
from sanderling.apis.polled_replies import LARGEST, body_of, within
from sanderling.outcome import Code
from sanderling.stores.documents import (
    MOST_ROWS,
    Column,
    ColumnKind,
    Parent,
    Schema,
    SourceError,
    SourceRow,
    SourceTable,
    source_error,
    waiting,
)
from sanderling.task import Reply

CITIES = SourceTable("cities", (Column("name"), Column("people", ColumnKind.INTEGER)))
STREETS = SourceTable("streets", (Column("city", references="cities"), Column("length", ColumnKind.REAL)))
SCHEMA = Schema((CITIES, STREETS))


def city(key: str) -> SourceRow:
    return SourceRow("cities", key, {"name": key.title(), "people": 7})


def street(key: str, city: str | None, length: float | None = 1.0) -> SourceRow:
    return SourceRow("streets", key, {"city": city, "length": length})


def reply(body: bytes = b"[]", status: int = 200) -> Reply:
    return Reply(status, (), body, "http://a.example/", 0.1)


def test_parents_come_before_their_children() -> None:
    document = SCHEMA.document([street("s", "b"), city("a"), street("t", "a"), city("b")])

    assert [row.key for row in document.rows] == ["a", "b", "s", "t"]
    assert document.needs == ()


def test_what_rows_refer_to_and_the_document_has_not_is_needed_once() -> None:
    document = SCHEMA.document([street("s", "b"), city("a"), street("t", "b"), street("u", None), street("v", "a")])

    assert document.needs == (Parent("cities", "b"),)
    assert waiting(document.needs[0]).outcome.code is Code.DEFERRED
    assert str(waiting(document.needs[0])) == "waiting for cities:b"


def test_a_row_that_is_listed_twice_is_an_error_and_the_same_key_in_another_table_is_none() -> None:
    assert len(SCHEMA.document([city("a"), street("a", "a")]).rows) == 2

    with pytest.raises(SourceError, match="cities 'a' is listed twice") as raised:
        SCHEMA.document([city("a"), city("b"), city("a")])
    assert raised.value.outcome.code is Code.INVALID_RESPONSE


def test_too_many_rows_are_an_error() -> None:
    rows = [city(str(number)) for number in range(MOST_ROWS + 1)]

    assert len(SCHEMA.document(rows[:-1]).rows) == MOST_ROWS
    with pytest.raises(SourceError, match="20001 rows, expected at most 20000") as raised:
        SCHEMA.document(rows)
    assert raised.value.outcome.code is Code.TOO_LARGE


@pytest.mark.parametrize(
    "values",
    [
        {"name": "A"},
        {"name": "A", "people": 7, "mayor": "B"},
        {"name": "A", "people": 7.0},
        {"name": "A", "people": True},
        {"name": 7, "people": 7},
    ],
)
def test_a_row_that_does_not_fit_its_table_is_our_own_mistake(values: dict[str, str | int | float | bool]) -> None:
    with pytest.raises(ValueError, match="cities"):
        SCHEMA.document([SourceRow("cities", "a", values)])


def test_tables_refer_only_to_tables_before_them() -> None:
    with pytest.raises(ValueError, match=r"streets\.city refers to cities, expected a table before it"):
        Schema((STREETS, CITIES))
    with pytest.raises(ValueError, match="expected a table before it"):
        Schema((SourceTable("places", (Column("within", references="places"),)),))
    with pytest.raises(ValueError, match="cities is there twice"):
        Schema((CITIES, CITIES))


@pytest.mark.parametrize("name", ["", "id", "Name", "a b", "1a", 'a"; drop table', "a" * 64, "é"])
def test_a_column_has_a_name_that_every_database_takes(name: str) -> None:
    with pytest.raises(ValueError, match="column is called"):
        Column(name)


def test_a_table_has_a_name_that_every_database_takes_and_each_column_once() -> None:
    with pytest.raises(ValueError, match="table is called 'a-b'"):
        SourceTable("a-b", ())
    with pytest.raises(ValueError, match="has a column twice: a, a"):
        SourceTable("t", (Column("a"), Column("a")))
    with pytest.raises(ValueError, match="expected text"):
        Column("city", ColumnKind.INTEGER, "cities")


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_an_interval_is_a_time_that_passes(seconds: float) -> None:
    with pytest.raises(ValueError, match="interval of race"):
        PolledKind("race", seconds)
    with pytest.raises(ValueError, match="interval of race"):
        PolledKind("race", 1.0, active_seconds=seconds)


def test_a_target_is_known_by_its_kind_and_source_id() -> None:
    assert Wanted("race", "a", "e").name == Wanted("race", "a", "f", only=("x",)).name == TargetName("race", "a")
    assert TargetActivity() == TargetActivity(frozenset(), None, {})


def error_within(document: str, answer: Reply, detail: str) -> SourceError:
    with pytest.raises(SourceError) as raised, within(document, answer):
        raise source_error(Code.PARSE_ERROR, detail)
    return raised.value


def test_an_error_says_in_which_document_and_with_which_status() -> None:
    error = error_within("Race.json", reply(), "cut off")

    assert str(error) == error.outcome.detail == "Race.json: cut off"
    assert (error.outcome.code, error.outcome.status) == (Code.PARSE_ERROR, 200)


@given(st.integers(100, 999), st.text(), st.text())
def test_no_status_and_no_text_is_too_much_for_an_error(status: int, detail: str, name: str) -> None:
    outcome = error_within(name, reply(status=status), detail).outcome

    assert outcome.status == (status if status <= 599 else 0)
    assert len(outcome.detail) <= 200


def test_only_a_reply_of_status_200_and_of_some_size_has_a_document() -> None:
    assert body_of(reply(b"\xef\xbb\xbf[]")) == b"[]"

    with pytest.raises(SourceError, match="HTTP 500, expected 200") as raised:
        body_of(reply(status=500))
    assert raised.value.outcome.code is Code.HTTP_ERROR
    with pytest.raises(SourceError, match="16777217 bytes, expected at most 16777216") as raised:
        body_of(reply(b" " * (LARGEST + 1)))
    assert raised.value.outcome.code is Code.TOO_LARGE
