"""Rows: what counts comes back, what does not is cut off, and damage is found."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sanderling.files import FolderError
from sanderling.records.rows import RowReader, RowWriter
from sanderling.stores import RowFile

Entry = tuple[bytes, int, list[bytes]]


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


ENTRIES: list[Entry] = [
    (key(1), 1, [b'{"a":1}']),
    (key(2), 1, []),
    (key(3), 1, [b'{"a":2}', b'{"a":3}']),
    (key(1), 2, [b'{"a":4}']),
]


def write(folder: Path, entries: Sequence[Entry], counted: Sequence[RowFile] = (), process: int = 0) -> list[RowFile]:
    writer = RowWriter(folder, "pages", counted, process)
    for each, run, lines in entries:
        writer.append(each, lines, run)
    files = writer.write()
    writer.close()
    return files


def read(folder: Path, counted: Sequence[RowFile]) -> Iterator[Entry]:
    with RowReader(folder, "pages", counted) as rows:
        yield from ((each.key, each.run, each.lines) for each in rows.entries())


def test_what_was_written_is_read(tmp_path: Path) -> None:
    files = write(tmp_path, ENTRIES[:2])
    files = write(tmp_path, ENTRIES[2:], files)

    assert list(read(tmp_path, files)) == ENTRIES
    assert (tmp_path / "pages.jsonl").read_bytes().split() == [b'{"a":1}', b'{"a":2}', b'{"a":3}', b'{"a":4}']
    with RowReader(tmp_path, "pages", files) as rows:
        assert (rows.count(), rows.position()) == (4, {"pages.jsonl": 4})
        assert [(each.run, each.lines) for each in rows.find(key(1))] == [(1, [b'{"a":1}']), (2, [b'{"a":4}'])]
        assert list(rows.keys(1)) == [key(1), key(2), key(3)]
        assert rows.find(key(9)) == []
        assert list(rows.damage()) == []


def test_an_entry_is_found_by_its_number_and_one_that_says_the_same_is_no_newer_one(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, "pages", [])
    assert [writer.append(each, lines, run) for each, run, lines in ENTRIES[:2]] == [0, 1]
    files = writer.write()
    assert writer.append(key(1), [b'{"same":1}'], 2, same=True) == 2
    files = writer.write()
    writer.close()

    assert {each.file: each.rows for each in files} == {"pages.jsonl": 2, "pages.keys": 3}
    with RowReader(tmp_path, "pages", files) as rows:
        assert [(each, run) for each, run, _, _ in rows.places()] == [(key(1), 1), (key(2), 1)]
        assert list(rows.keys(2)) == [key(1)]
        found = rows.entry_of(key(1), 2)
        assert found is not None
        assert found.lines == [b'{"same":1}']
        assert rows.entry_of(key(1), 3) is rows.entry_of(key(1), 1) is None


def test_what_the_ledger_does_not_count_is_never_read_and_cut_off(tmp_path: Path) -> None:
    counted = write(tmp_path, ENTRIES[:1])
    write(tmp_path, ENTRIES[1:2] * 3, counted)  # and killed before the ledger's commit
    with (tmp_path / "pages.keys").open("ab") as keys:
        keys.write(b"torn")

    assert list(read(tmp_path, counted)) == ENTRIES[:1]
    files = write(tmp_path, ENTRIES[3:], counted)
    assert list(read(tmp_path, files)) == [ENTRIES[0], ENTRIES[3]]


def test_each_process_has_files_of_its_own(tmp_path: Path) -> None:
    files = [*write(tmp_path, ENTRIES[:1], process=1), *write(tmp_path, ENTRIES[2:], process=2)]

    assert list(read(tmp_path, files)) == [ENTRIES[0], *ENTRIES[2:]]


def test_a_key_within_an_entry_is_no_entry(tmp_path: Path) -> None:
    """Bytes of two fields side by side may look like a key."""
    files = write(tmp_path, [(b"\0" * 15 + b"\1", 1, []), (b"\1" + b"\0" * 15, 1, [])])

    with RowReader(tmp_path, "pages", files) as rows:
        assert len(rows.find(b"\0" * 15 + b"\1")) == 1
        assert rows.find(b"\0" * 16) == []


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.keys"])
def test_each_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    files = write(tmp_path, ENTRIES)
    path = tmp_path / name
    whole = path.read_bytes()

    for bit in range(0, len(whole) * 8, 7):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with RowReader(tmp_path, "pages", files) as rows:
            assert len(list(rows.damage())) == 1

    path.write_bytes(whole[:-1])
    with pytest.raises(FolderError):
        RowReader(tmp_path, "pages", files)


def test_a_damaged_row_is_not_returned(tmp_path: Path) -> None:
    files = write(tmp_path, ENTRIES)
    path = tmp_path / "pages.jsonl"
    path.write_bytes(path.read_bytes().replace(b"3", b"7"))

    with RowReader(tmp_path, "pages", files) as rows:
        assert rows.find(key(2))[0].lines == []
        with pytest.raises(FolderError):
            rows.find(key(3))
