"""What every target promises: each record once, its numbers as they were, whatever happens in between."""
# ruff: noqa: F811 - fixtures are arguments

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_records import RECORDS, KeptRecords, csv_cell, encoded, expected
from target_places import Place, kind, make_place, place  # noqa: F401 - fixtures are found by their names

from sanderling.records import export as export_module
from sanderling.records import parts
from sanderling.records.export import Exported, export
from sanderling.records.selection import Selection
from sanderling.records.target import ExportTarget, Mark, TargetError

SOME: list[dict[str, Any]] = [
    {"id": 1, "name": "Ann"},
    {"id": 2, "name": None, "tags": ["x", 1.5]},
    {"id": 3, "huge": 10**30},
]
EXAMPLES = {"postgres": 12, "duckdb": 8, "s3": 6, "s3-jsonl": 6}


def run(place: Place, records: Sequence[dict[str, Any]], *, new: bool = True, **selection: Any) -> Exported:  # noqa: ANN401 - of Selection
    with closing(place.target()) as target:
        source = KeptRecords(encoded(records))
        return export(source, target, Selection.parse(**selection), new=new, watch=lambda *_: None)


def assert_holds(place: Place, records: Sequence[dict[str, Any]]) -> None:
    if place.kind == "csv":
        assert_csv(place, records)
    else:
        assert place.read() == expected(records, nulls=place.kind in ("jsonl", "s3-jsonl"))


def assert_csv(place: Place, records: Sequence[dict[str, Any]]) -> None:
    if not records:
        return
    header, *rows = place.read()
    names = {each.field: f'"{each.name}"' for each in place.columns()}
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert {field: cells[names[field]] for field in record} == {f: csv_cell(v) for f, v in record.items()}
        assert sum(cell is not None for cell in row) == sum(value is not None for value in record.values())


class Killed(BaseException):
    """Stands for kill -9."""


class KilledAt:
    """A target that dies at a call, before or after it."""

    def __init__(self, inner: ExportTarget, call: int, *, after: bool) -> None:
        self._inner = inner
        self._left = call
        self._after = after
        self.place, self.notes = inner.place, inner.notes

    def open(self) -> Mark | None:
        return self._inner.open()

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        self._count(lambda: self._inner.write(records, mark))

    def finish(self, mark: Mark) -> None:
        self._count(lambda: self._inner.finish(mark))

    def _count(self, call: Callable[[], None]) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        call()
        if self._left == 0:
            raise Killed

    def close(self) -> None:
        self._inner.close()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "BATCH", 3)
    monkeypatch.setattr(parts, "ROWS", 5)


def test_a_field_may_have_the_marks_of_sql_in_its_name(place: Place) -> None:
    records: list[dict[str, Any]] = [{"?": 1, '"': 2, "$1": 3}, {"?": "text", "%s": 4}]

    run(place, records[:1])
    run(place, records)

    assert_holds(place, records)


def test_records_round_trip_in_any_number_of_runs(make_place: Callable[[], Place], kind: str) -> None:
    @settings(max_examples=EXAMPLES.get(kind, 40), deadline=None)
    @given(RECORDS, st.lists(st.integers(0, 12), max_size=2), st.integers(1, 6), st.booleans())
    def play(records: list[dict[str, Any]], cuts: list[int], call: int, after: bool) -> None:  # noqa: FBT001 - a draw
        place = make_place()
        for cut in sorted(cuts):
            run(place, records[:cut])
        with closing(KilledAt(place.target(), call, after=after)) as target, suppress(Killed):
            export(KeptRecords(encoded(records)), target, Selection(), new=True, watch=lambda *_: None)
        done = run(place, records)
        assert done.records == len(records)
        assert_holds(place, records)

    play()


def test_numbers_keep_their_digits_when_their_column_becomes_something_else(place: Place) -> None:
    numbers: list[Any] = [0.1, 1000000000000001.0, 2**53 + 1, Decimal("0.12345678901234567890"), "text"]
    records = [{"id": number} for number in numbers]

    for count in range(1, len(records) + 1):
        run(place, records[:count])

    assert_holds(place, records)


def test_nothing_new_changes_nothing(place: Place) -> None:
    run(place, SOME)

    assert run(place, SOME).written == 0
    assert_holds(place, SOME)


def test_a_complete_export_is_only_added_to_by_new(place: Place) -> None:
    run(place, SOME[:2], new=False)

    with pytest.raises(TargetError, match="--new"):
        run(place, SOME, new=False)
    assert run(place, SOME).written == 1
    assert_holds(place, SOME)


def test_columns_that_come_later_are_said(place: Place) -> None:
    run(place, SOME[:1])

    done = run(place, SOME)

    if not place.kind.endswith("jsonl"):
        assert any("tags" in note and "huge" in note for note in done.notes), done.notes


@pytest.mark.parametrize(
    ("records", "selection"),
    [
        pytest.param(SOME, {"where": "id > 1"}, id="another condition"),
        pytest.param(SOME, {"fields": ("id",)}, id="other fields"),
    ],
)
def test_what_was_exported_otherwise_is_refused(
    place: Place, records: list[dict[str, Any]], selection: dict[str, Any]
) -> None:
    run(place, records)

    with pytest.raises(TargetError, match="was exported without"):
        run(place, records, **selection)
    assert_holds(place, records)


def test_another_folder_is_refused(place: Place) -> None:
    run(place, SOME)

    with closing(place.target()) as target, pytest.raises(TargetError, match="another folder"):
        export(KeptRecords([], origin="there"), target, Selection(), new=True, watch=lambda *_: None)


def test_only_what_is_wanted_is_written(place: Place) -> None:
    done = run(place, SOME, where="id > 1", fields=("id", "tags[0]", "tags[1]"))

    assert (done.read, done.written) == (3, 2)
    assert_holds(place, [{"id": 2, "tags[0]": "x", "tags[1]": 1.5}, {"id": 3, "tags[0]": None, "tags[1]": None}])
