import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from frontier_urls import fresh

from sanderling.pages import parquet
from sanderling.pages.parquet import files, have_parquet, schema, write_in_child, write_parquet
from sanderling.stores.durable import FolderError

pq = pytest.importorskip("pyarrow.parquet")

FULL = {
    "id": 1,
    "url": "https://a.example:8080/1",
    "outcome": "OK",
    "status": 200,
    "detail": "d",
    "depth": 2,
    "fetched_at": "2026-03-01T12:00:00Z",
    "seconds": 0.25,
    "bytes": 12,
    "content_type": "text/html",
    "charset": "utf-8",
    "etag": '"x"',
    "last_modified": "Sun, 01 Mar 2026 12:00:00 GMT",
    "moved_to": "https://a.example/2",
    "title": "T\u00fc",
    "description": "D",
    "language": "de",
    "text": "# T\n\ntext",
    "links": ["https://a.example/2", "https://b.example/"],
    "metadata": {"author": "a", "og:type": "b"},
    "json": {"a": [1, None]},
    "body_path": "bodies/ab/ab.pdf",
    "sha256": "ab",
    "warc_file": "x.warc.gz",
    "warc_offset": 1,
    "warc_length": 2,
    "warc_type": "response",
    "warc_digest": "sha1:X",
    "rendered": {"requests": 2, "blocked": 3},
    "screenshot": "screenshots/1.png",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with fresh() as path:
        yield path


def write(folder: Path, rows: list[dict[str, Any]], name: str = "pages.jsonl") -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows(*paths: Path) -> list[dict[str, Any]]:
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_every_field_of_a_row_is_a_column(folder: Path) -> None:
    write(folder, [FULL])

    (path,) = write_parquet(folder)

    (row,) = rows(path)
    assert row == FULL | {
        "host": "a.example:8080",
        "fetched_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "metadata": [("author", "a"), ("og:type", "b")],
        "rendered": [("requests", 2), ("blocked", 3)],
        "json": '{"a": [1, null]}',
        "requests": None,
        "fault": None,
    }
    assert set(FULL) | {"host", "requests", "fault"} == set(schema().names)


def test_what_a_row_does_not_have_is_null(folder: Path) -> None:
    write(folder, [{"id": 7, "url": "no url", "strange": 1}])

    (row,) = rows(*write_parquet(folder))

    assert {name for name, value in row.items() if value is not None} == {"id", "url"}


def test_failures_have_the_same_columns(folder: Path) -> None:
    blame = {"requests": 4, "fault": "item"}
    write(folder, [FULL])
    write(
        folder,
        [{"id": 2, "url": "https://b.example/", "host": "b.example", "outcome": "TIMEOUT"} | blame],
        "failed.jsonl",
    )

    paths = write_parquet(folder)

    assert [path.name for path in paths] == ["pages-00001.parquet", "failed.parquet"]
    assert pq.read_schema(paths[0]) == pq.read_schema(paths[1])
    assert [row["outcome"] for row in rows(*paths)] == ["OK", "TIMEOUT"]
    assert blame.items() <= rows(*paths)[1].items()


@pytest.mark.parametrize(("number", "expected"), [(0, [0]), (1, [1]), (5, [5]), (6, [5, 1]), (11, [5, 5, 1])])
def test_files_are_cut_by_rows(folder: Path, number: int, expected: list[int]) -> None:
    write(folder, [FULL | {"id": each} for each in range(number)])

    paths = write_parquet(folder, rows_per_file=5)

    assert [pq.read_metadata(path).num_rows for path in paths] == expected
    assert [row["id"] for row in rows(*paths)] == list(range(number))


def test_batches_are_cut_by_rows_and_by_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 3)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 5000)
    write(folder, [FULL | {"id": each, "text": "x" * (6000 if each == 4 else 1)} for each in range(9)])

    (path,) = write_parquet(folder)

    groups = pq.read_metadata(path)
    assert [groups.row_group(each).num_rows for each in range(groups.num_row_groups)] == [3, 2, 3, 1]


def test_the_same_rows_make_the_same_files_and_fewer_leave_none_behind(folder: Path) -> None:
    write(folder, [FULL] * 11)
    first = {path.name: path.read_bytes() for path in write_parquet(folder, rows_per_file=5)}
    (folder / "pages-00009.parquet.tmp").touch()
    assert {path.name: path.read_bytes() for path in write_parquet(folder, rows_per_file=5)} == first

    write(folder, [FULL])
    write_parquet(folder, rows_per_file=5)

    assert sorted(path.name for path in folder.iterdir()) == ["pages-00001.parquet", "pages.jsonl"]


def test_a_row_that_is_just_being_written_is_left_out(folder: Path) -> None:
    write(folder, [FULL])
    with (folder / "pages.jsonl").open("a") as file:
        file.write('{"id": 2, "url')

    assert len(rows(*write_parquet(folder))) == 1


@pytest.mark.parametrize("line", ["{", '{"id": "x", "url": "u"}', '{"id": 1}', "\udcff"])
def test_a_line_that_is_no_row_is_named_and_the_files_stay(folder: Path, line: str) -> None:
    write(folder, [FULL])
    before = {path: path.read_bytes() for path in write_parquet(folder)}
    with (folder / "pages.jsonl").open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")

    with pytest.raises(FolderError, match=r"pages\.jsonl line 2: "):
        write_parquet(folder)

    assert {path: path.read_bytes() for path in files(folder)} == before


def test_a_child_writes_the_same(folder: Path) -> None:
    write(folder, [FULL])
    (here,) = write_parquet(folder)
    expected = here.read_bytes()
    here.unlink()

    write_in_child(folder)

    assert here.read_bytes() == expected


def test_what_goes_wrong_in_the_child_is_said(folder: Path) -> None:
    (folder / "pages.jsonl").write_text("{\n")

    with pytest.raises(FolderError, match=r"Parquet could not be written to .*: .*pages.jsonl line 1: "):
        write_in_child(folder)


def test_pyarrow_is_not_loaded_until_it_is_needed() -> None:
    program = "import sys, sanderling.pages.folder, sanderling.pages.verify; sys.exit('pyarrow' in sys.modules)"

    assert have_parquet()
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603 - ourselves


def test_without_pyarrow_it_is_said_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "have_parquet", lambda: False)

    with pytest.raises(FolderError, match=r"pip install 'sanderling\[parquet\]'"):
        write_in_child(folder)
