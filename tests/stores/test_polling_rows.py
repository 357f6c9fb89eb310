from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polling_contract import DOCUMENT, after, parents
from polling_play import SCHEMA, WALL, Rows, document, event, lap, note, pilot, race, round_, told, whole

from sanderling.outcome import Code
from sanderling.stores.documents import Column, Document, Parent, Schema, SourceError, SourceRow, SourceTable, Value
from sanderling.stores.polling import Op, PollingStoreError, RowChange
from sanderling.stores.polling_rows import (
    LONGEST_KEY,
    Difference,
    cascade,
    changes_of,
    check_document,
    check_going,
    check_names,
    checked_fields,
    checked_seconds,
    difference,
    differs,
    is_text,
    legible,
    packed,
    unpacked,
    validator,
)

BOUNDED = settings(max_examples=80, deadline=None)
TEXT = st.text(max_size=20)
VALUE: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    TEXT,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)


def found_in(rows: Rows, document: Document) -> Difference:
    """What a document changes in these rows."""
    stored = {place: rows[place] for row in document.rows if (place := Parent(row.table, row.key)) in rows}
    there = [
        [
            place.key
            for place, values in rows.items()
            if place.table == each.table and values[each.column] == each.parent
        ]
        for each in document.whole
    ]
    return difference(document, stored, there)


def going_in(rows: Rows, found: Difference) -> list[Parent]:
    """All that goes, when what is new and what differs is there."""
    asking = cascade(SCHEMA.tables, found.delete)
    answer: list[str] | None = None
    while True:
        try:
            table, column, keys = next(asking) if answer is None else asking.send(answer)
        except StopIteration as end:
            return list(end.value)
        answer = [place.key for place, values in rows.items() if place.table == table and values[column] in keys]


def made_of(rows: Rows, document: Document) -> Rows | Code:
    """What the rows become by what differs; or why not."""
    if any(parent not in rows for parent in document.needs):
        return Code.DEFERRED
    try:
        found = found_in(rows, document)
        now = rows | {Parent(row.table, row.key): row.values for row in found.insert}
        assert not {Parent(row.table, row.key) for row in found.insert} & rows.keys()
        for row, fields in found.update:
            place = Parent(row.table, row.key)
            assert {name for name in row.values if row.values[name] != rows[place][name]} == set(fields) != set()
            now[place] = row.values
        going = going_in(now, found)
        check_going(document, going)
    except SourceError as error:
        return error.outcome.code
    for place in going:
        assert not [other for other in now if place in parents(other.table, now[other])], "children go first"
        del now[place]
    return now


# --- what differs ---


@BOUNDED
@given(st.lists(DOCUMENT, max_size=8))
def test_what_differs_makes_of_the_rows_what_the_document_says(documents: list[Document]) -> None:
    rows: Rows = {}
    for each in documents:
        made = made_of(rows, each)

        assert made == after(rows, each)
        rows = rows if isinstance(made, Code) else made


@BOUNDED
@given(st.lists(DOCUMENT, max_size=8))
def test_a_document_that_was_stored_differs_in_nothing(documents: list[Document]) -> None:
    rows: Rows = {}
    for each in documents:
        made = made_of(rows, each)
        if not isinstance(made, Code):
            rows = made

            assert found_in(rows, each) == Difference((), (), ())


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, False),
        (0.0, -0.0, False),
        (2**53 + 1, float(2**53), True),
        (None, None, False),
        (None, 0, True),
        (None, "", True),
        (None, False, True),
        (True, 1, True),
        (False, 0.0, True),
        (True, True, False),
        ("1", 1, True),
        ("a", "a", False),
    ],
)
def test_numbers_are_compared_as_numbers_and_nothing_else_is(one: Value, other: Value, *, expected: bool) -> None:
    assert differs(one, other) is expected
    assert differs(other, one) is expected

    row = SourceRow("t", "k", {"a": 5, "b": one})
    found = difference(Document((row,)), {Parent("t", "k"): {"a": 5, "b": other}}, [])
    assert [fields for _, fields in found.update] == ([("b",)] if expected else [])


def test_the_order_of_columns_does_not_matter() -> None:
    row = SourceRow("t", "k", {"a": True, "b": 1})

    assert difference(Document((row,)), {Parent("t", "k"): {"b": 1, "a": True}}, []) == Difference((), (), ())


def test_what_is_new_differs_and_goes_keeps_its_order() -> None:
    rows: Rows = {Parent("notes", key): {"target": "x", "text": key} for key in "cab"}
    said = document(event("e"), round_("r"), note("b", "x", "B"), race("a"), whole=[whole("notes", "target", "x", "b")])

    found = found_in(rows, said)

    assert [row.table for row in found.insert] == ["events", "rounds", "races"]
    assert [(row.key, fields) for row, fields in found.update] == [("b", ("text",))]
    assert found.delete == (Parent("notes", "a"), Parent("notes", "c"))


def test_what_two_lists_leave_out_goes_once() -> None:
    rows: Rows = {Parent("races", "a"): {"event": "e", "round": "r", "start": None}}
    said = document(whole=[whole("races", "event", "e"), whole("races", "round", "r")])

    assert found_in(rows, said).delete == (Parent("races", "a"),)


@pytest.mark.parametrize("stored", [True, False])
def test_a_row_that_its_own_list_leaves_out_is_a_contradiction(*, stored: bool) -> None:
    said = document(note("1", "x"), whole=[whole("notes", "target", "x", "2")])

    with pytest.raises(SourceError, match=r"notes '1' is in the document, and is gone") as error:
        found_in({Parent("notes", "1"): {"target": "x", "text": None}} if stored else {}, said)

    assert error.value.outcome.code is Code.INVALID_RESPONSE


# --- what goes ---


def test_those_that_refer_to_what_goes_are_asked_for_table_by_table() -> None:
    rows: Rows = {
        Parent(row.table, row.key): row.values
        for row in (event(), round_("r"), round_("s"), race("a", "r"), race("b", "s"), lap("2", "a"), lap("1", "a"))
    }
    found = Difference((), (), (Parent("rounds", "r"),))

    assert going_in(rows, found) == [("laps", "1"), ("laps", "2"), ("races", "a"), ("rounds", "r")]


def test_if_nothing_goes_nobody_is_asked() -> None:
    asking = cascade(SCHEMA.tables, ())

    with pytest.raises(StopIteration) as end:
        next(asking)

    assert end.value.value == []


# --- changes ---


def test_changes_are_numbered_in_the_order_in_which_they_can_be_done() -> None:
    old = {"target": "x", "text": None}
    rows: Rows = {Parent("notes", "1"): old, Parent("notes", "2"): old}
    said = document(event("e"), note("1", "x", "new"), whole=[whole("notes", "target", "x", "1")])
    found = found_in(rows, said)

    changes = changes_of(told(said, "a"), found, found.delete, 7)

    assert [(each.seq, each.op, each.table, each.key, each.values, each.fields) for each in changes] == [
        (7, Op.INSERT, "events", "e", {"name": None}, ()),
        (8, Op.UPDATE, "notes", "1", {"target": "x", "text": "new"}, ("text",)),
        (9, Op.DELETE, "notes", "2", {}, ()),
    ]
    assert {(each.at, each.kind, each.source_id, each.event) for each in changes} == {(WALL, "race", "a", "e")}


@BOUNDED
@given(
    st.builds(
        RowChange,
        seq=st.integers(1, 2**63 - 1),
        at=st.floats(allow_nan=False, allow_infinity=False),
        op=st.sampled_from(Op),
        table=TEXT,
        key=TEXT,
        values=st.dictionaries(TEXT, VALUE, max_size=4),
        fields=st.lists(TEXT, max_size=3).map(tuple),
        kind=TEXT,
        source_id=TEXT,
        event=TEXT,
    )
)
def test_a_change_comes_out_as_it_went_in(change: RowChange) -> None:
    back = unpacked(packed(change))

    assert back == change
    assert {name: type(value) for name, value in back.values.items()} == {
        name: type(value) for name, value in change.values.items()
    }


@pytest.mark.parametrize("place", [2, 5, 6])
@pytest.mark.parametrize("value", [None, "{", "1", '{"a": [1]}', "\ud800"])
def test_a_change_that_is_damaged_is_said(place: int, value: Any) -> None:  # noqa: ANN401 - anything
    row: Any = list(packed(RowChange(seq=5, at=1.0, op=Op.INSERT, table="t", key="k")))
    row[place] = value

    with pytest.raises(PollingStoreError, match="change 5 is damaged: ") as error:
        unpacked(row)

    assert not error.value.transient


# --- what can be stored ---


@pytest.mark.parametrize("value", ["", "a", "Ω\n\x01", 2**63 - 1, -(2**63), 1e308, True, None, 0])
def test_what_every_database_holds_is_let_through(value: Value) -> None:
    check_document(Document((SourceRow("t", "k", {"a": value}),)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\0", "NUL"),
        ("\ud800x", "half a character"),
        (2**63, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        (10**400, "64 bits"),
        (float("inf"), "is inf, expected a finite number"),
        (float("nan"), "is nan"),
    ],
)
def test_what_some_database_cannot_hold_is_said_with_its_place(value: Value, said: str) -> None:
    with pytest.raises(SourceError, match=rf"t\.a of 'k' .*{said}") as error:
        check_document(Document((SourceRow("t", "j", {"a": 1}), SourceRow("t", "k", {"a": value}))))

    assert error.value.outcome.code is Code.INVALID_RESPONSE


@pytest.mark.parametrize("key", ["", "a\0", "\udc80", "x" * (LONGEST_KEY + 1), "é" * (LONGEST_KEY // 2 + 1)])
def test_keys_that_some_database_cannot_hold_are_refused_wherever_they_are(key: str) -> None:
    for said in (
        Document((pilot(key),)),
        Document((), (whole("notes", "target", key),)),
        Document((), (whole("notes", "target", "x", key),)),
    ):
        with pytest.raises(SourceError, match=r"pilots|notes") as error:
            check_document(said)
        assert error.value.outcome.code is Code.INVALID_RESPONSE


@BOUNDED
@given(st.text() | st.text(st.sampled_from("a\0\ud800\udfffΩ")))
def test_what_is_made_legible_can_be_stored_and_what_could_be_is_left(text: str) -> None:
    good = "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)

    assert is_text(text) is good
    assert is_text(legible(text))
    assert len(legible(text)) == len(text)
    assert validator(text) == (text if good else "")
    if good:
        assert legible(text) == text


@pytest.mark.parametrize("name", ["polling_targets", "polling_", "sqlite_master"])
def test_names_of_tables_that_are_taken_are_refused(name: str) -> None:
    with pytest.raises(PollingStoreError, match=rf"a table {name}, expected none that begins with polling_") as error:
        check_names(Schema((SourceTable("good", ()), SourceTable(name, (Column("a"),)))))

    assert not error.value.transient
    check_names(Schema((SourceTable("polling", ()), SourceTable("targets", ()))))


# --- what an admin may set ---


def test_nothing_goes_back_to_what_discovery_says() -> None:
    nothing = checked_fields({"enabled": None, "set_seconds": None, "set_priority": None})

    assert nothing == {"enabled": True, "set_seconds": None, "set_priority": None}
    assert checked_fields({"enabled": False, "set_seconds": 0.2, "set_priority": -1}) == {
        "enabled": False,
        "set_seconds": 0.2,
        "set_priority": -1,
    }


@BOUNDED
@given(
    st.sampled_from(["enabled", "set_seconds", "set_priority", "id", "promote"]), VALUE | st.floats() | st.integers()
)
def test_an_admin_can_set_nothing_else(name: Any, value: Any) -> None:  # noqa: ANN401 - anything
    good = {
        "enabled": value is None or isinstance(value, bool),
        "set_seconds": value is None or (type(value) in {int, float} and 0 < value < 1e10),
        "set_priority": value is None or (type(value) is int and -(2**63) <= value < 2**63),
    }.get(name, False)

    if good:
        checked_fields({name: value})
    else:
        with pytest.raises(ValueError, match=f"{name}.*expected"):
            checked_fields({name: value})


@pytest.mark.parametrize("seconds", [-1e-9, 1e10, float("nan"), float("inf")])
def test_an_acceleration_has_an_end(seconds: float) -> None:
    with pytest.raises(ValueError, match="expected 0 or more"):
        checked_seconds(seconds)

    assert checked_seconds(0) == 0.0
