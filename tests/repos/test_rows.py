"""Records become columns: each as it was archived, with the time it says it was made, if it can be believed."""

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_archives import collection

from sanderling.formats.rca import RcaError
from sanderling.repos.rows import EARLIEST, LATEST, PatternError, RecordColumns, RecordRun, chooser, split

AT = 1_750_000_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MADE = 1_709_251_200_000_000  # 2024-03-01


def one(json: bytes, crawled_at: int = AT) -> dict[str, Any]:
    """The row of a record."""
    rows = RecordColumns()
    content = collection("a.b", {"k": json}).data
    rows.add(RecordRun("did:plc:a", "a.b", crawled_at, 0), content, 1)
    table, left_out = rows.table()
    assert left_out == []
    (row,) = table.to_pylist()
    return dict(row) | {"created_at": (row["created_at"] - EPOCH) // timedelta(microseconds=1)}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('"2024-03-01T00:00:00Z"', MADE),
        ('"2024-03-01T00:00:00.123Z"', MADE + 123_000),
        ('"2024-03-01T00:00:00.123456Z"', MADE + 123_456),
        ('"2024-03-01T00:00:00.123456789Z"', MADE + 123_457),
        ('"2024-03-01T02:00:00+02:00"', MADE),
        ('"1900-01-01T00:00:00Z"', EARLIEST),
        ('"2299-12-31T23:59:59.999999Z"', LATEST),
        ('"1899-12-31T23:59:59.999999Z"', AT),
        ('"2300-01-01T00:00:00Z"', AT),
        ('"0001-01-01T00:00:00+14:00"', AT),
        ('"9999-12-31T23:59:59-14:00"', AT),
        ('"2024-02-30T00:00:00Z"', AT),
        ('"2024-03-01T00:00:00"', AT),
        ('"2024-03-01"', AT),
        ('"yesterday"', AT),
        ("1709251200", AT),
        ("null", AT),
        ('{"createdAt":"2024-03-01T00:00:00Z"}', AT),
    ],
)
def test_a_record_was_made_when_it_says_so_or_else_when_it_was_crawled(said: str, expected: int) -> None:
    row = one(f'{{"text":"x","createdAt":{said}}}'.encode())

    assert (row["created_at"], row["time_us"]) == (expected, AT)


@pytest.mark.parametrize(
    "json",
    [
        b'{"embed":{"createdAt":"2024-03-01T00:00:00Z"}}',
        b'{"text":"\\"createdAt\\":\\"2024-03-01T00:00:00Z\\""}',
        b"{}",
        b"[]",
        b"",
        b"no json",
        b'{"x":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    ],
    ids=range(7),
)
def test_only_the_record_itself_says_when_it_was_made(json: bytes) -> None:
    row = one(json)

    assert row["created_at"] == AT
    assert row["record_json"].encode() == json


@pytest.mark.parametrize(("crawled_at", "kept"), [(-(2**62), EARLIEST), (2**62, LATEST), (-1, -1)])
def test_a_time_that_the_table_cannot_hold_becomes_the_nearest(crawled_at: int, kept: int) -> None:
    row = one(b"{}", crawled_at)

    assert (row["created_at"], row["time_us"]) == (kept, crawled_at)


texts = st.text(max_size=5)


@given(st.lists(st.tuples(texts, texts, st.dictionaries(texts, texts, min_size=1, max_size=4)), max_size=5))
def test_what_goes_in_comes_out(runs: list[tuple[str, str, dict[str, str]]]) -> None:
    rows = RecordColumns()
    for number, (repo, name, records) in enumerate(runs):
        content = collection(name, {rkey: text.encode() for rkey, text in records.items()}).data
        rows.add(RecordRun(repo, name, number, 0), content, len(records))
    table, left_out = rows.table()

    expected = [(repo, name, *record, at) for at, (repo, name, kept) in enumerate(runs) for record in kept.items()]
    columns = [table.column(name).to_pylist() for name in ("repo", "collection", "rkey", "record_json", "time_us")]
    assert list(zip(*columns, strict=True)) == expected
    assert len(rows) == len(expected)
    assert left_out == []


def test_what_is_no_text_is_left_out_and_named() -> None:
    rows = RecordColumns()
    for repo, offset, content in (("did:plc:a", 100, b"\xc3\xa9"), ("did:plc:b", 200, b"\xff")):
        data = struct.pack("<H1sI", 1, b"k", len(content)) + content + struct.pack("<H1sI2s", 1, b"l", 2, b"{}")
        rows.add(RecordRun(repo, "a.b", AT, offset), data, 2)

    table, left_out = rows.table()

    kept = [(row["repo"], row["rkey"]) for row in table.to_pylist()]
    assert kept == [("did:plc:a", "k"), ("did:plc:a", "l"), ("did:plc:b", "l")]
    assert [error.offset for error in left_out] == [200]
    assert "did:plc:b/a.b/k" in str(left_out[0])


@given(st.binary(max_size=40), st.integers(0, 5))
def test_splitting_gives_all_records_or_an_error(content: bytes, count: int) -> None:
    try:
        rkeys, jsons = split(content, count, 7)
    except RcaError:
        return
    again = b"".join(
        struct.pack("<H", len(rkey)) + rkey + struct.pack("<I", len(json)) + json
        for rkey, json in zip(rkeys, jsons, strict=True)
    )
    assert (again, len(rkeys)) == (content, count)


def test_a_bad_collection_leaves_nothing_behind() -> None:
    rows, content = RecordColumns(), collection("a.b", {"k": b"{}", "l": b"{}"}).data

    for count, data in ((1, content), (3, content), (2, content[:-1])):
        with pytest.raises(RcaError):
            rows.add(RecordRun("did:plc:a", "a.b", AT, 0), data, count)

    assert (len(rows), rows.bytes, rows.table()[0].num_rows) == (0, 0, 0)


@pytest.mark.parametrize(
    ("patterns", "meant"),
    [
        ([], {"a.b", "a.b.c", "a.bc", "x"}),
        (["a.b"], {"a.b"}),
        (["a.b.*"], {"a.b.c"}),
        (["a.b*"], {"a.b", "a.b.c", "a.bc"}),
        (["x", "a.b.*"], {"a.b.c", "x"}),
        (["*"], {"a.b", "a.b.c", "a.bc", "x"}),
    ],
)
def test_collections_are_chosen_by_name_or_beginning(patterns: list[str], meant: set[str]) -> None:
    wanted = chooser(patterns)

    assert {name for name in ("a.b", "a.b.c", "a.bc", "x") if wanted(name)} == meant


@pytest.mark.parametrize("pattern", ["", "a.*.c", "*x", "**"])
def test_a_star_stands_at_the_end_only(pattern: str) -> None:
    with pytest.raises(PatternError, match="expected the name of a collection"):
        chooser([pattern])
