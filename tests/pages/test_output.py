import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from frontier_urls import failed, fetched, fresh, url
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.output import PAGES, PageRows, whole_rows
from sanderling.stores.frontier_rows import BodyFile, End, Ended, QueuedUrl


@pytest.fixture
def folder() -> Iterator[Path]:
    with fresh() as path:
        yield path


def queued(number: int) -> QueuedUrl:
    return QueuedUrl(number, url(number), "a.example", 0)


def row(number: int) -> bytes:
    return (fetched(queued(number)).row or b"") + b"\n"


def test_rows_are_appended_one_to_a_line(folder: Path) -> None:
    output = PageRows(folder, 0)

    first = output.write([fetched(queued(1)), failed(queued(2))])
    second = output.write([fetched(queued(3), End.MOVED)])

    assert (folder / PAGES).read_bytes() == row(1) + row(3)
    assert (first, second) == (len(row(1)), len(row(1) + row(3)))


def test_what_stands_behind_the_watermark_is_cut_off(folder: Path) -> None:
    watermark = PageRows(folder, 0).write([fetched(queued(1))])
    with (folder / PAGES).open("ab") as file:
        file.write(b'{"id": 2, "ur')

    PageRows(folder, watermark).write([fetched(queued(3))])

    assert (folder / PAGES).read_bytes() == row(1) + row(3)


def test_a_large_batch_is_written_whole(folder: Path) -> None:
    """More than is handed to the kernel at once."""
    rows = [b"%d" % number * 300_000 for number in range(9)]
    batch = [Ended(**{f: getattr(fetched(queued(1)), f) for f in Ended.__struct_fields__} | {"row": r}) for r in rows]

    assert PageRows(folder, 0).write(batch) == sum(map(len, rows)) + 9
    assert (folder / PAGES).read_bytes().splitlines() == rows


def test_half_a_row_does_not_stand_before_the_next(folder: Path) -> None:
    output, before = PageRows(folder, 0), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            output.write([fetched(queued(1)), fetched(queued(2))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert (folder / PAGES).read_bytes() == b""
    assert output.write([fetched(queued(3))]) == len(row(3))
    assert (folder / PAGES).read_bytes() == row(3)


def test_bodies_are_files_named_by_their_content(folder: Path) -> None:
    body = BodyFile.of(b"content", ".pdf")

    PageRows(folder, 0).write([fetched(queued(1), body=body), fetched(queued(2), body=body)])

    assert body.path == f"bodies/{body.sha256[:2]}/{body.sha256}.pdf"
    assert [path.read_bytes() for path in folder.rglob("bodies/*/*")] == [b"content"]


def test_a_body_that_is_there_is_left_alone_and_half_of_one_is_not(folder: Path) -> None:
    body, other = BodyFile.of(b"content", ""), BodyFile.of(b"another", "")
    output = PageRows(folder, 0)
    output.write([fetched(queued(1), body=body), fetched(queued(2), body=other)])
    (folder / body.path).write_bytes(b"CONTENT")  # the same size: nobody looks into it
    (folder / other.path).write_bytes(b"ano")

    output.write([fetched(queued(3), body=body), fetched(queued(4), body=other)])

    assert (folder / body.path).read_bytes() == b"CONTENT"
    assert (folder / other.path).read_bytes() == b"another"


def test_a_body_that_cannot_be_kept_keeps_its_row_out(folder: Path) -> None:
    (folder / "bodies").write_text("in the way")
    output = PageRows(folder, 0)

    with pytest.raises(OSError, match="bodies"):
        output.write([fetched(queued(1), body=BodyFile.of(b"content", ".pdf"))])

    assert (folder / PAGES).read_bytes() == b""


ROWS = b"".join(row(number) for number in (1, 3, 2))


@given(st.integers(0, len(ROWS)))
def test_whole_rows_end_where_the_file_was_cut(length: int) -> None:
    ends = bytearray([0, End.FETCHED, End.UNCHANGED, End.MOVED])
    with fresh() as folder:
        (folder / PAGES).write_bytes(ROWS[:length])
        whole = whole_rows(folder / PAGES, ends)

    assert whole == ROWS[:length].rfind(b"\n") + 1
    assert ends[1:].count(End.WAITING) == ROWS[:whole].count(b"\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\x00\x00\n", id="no JSON"),
        pytest.param(b'{"id": 2}\n', id="no row"),
        pytest.param(b'{"id": 9, "url": ""}\n', id="an id that is not known"),
        pytest.param(b'{"id": -1, "url": ""}\n', id="an id that cannot be"),
        pytest.param(row(4), id="of a URL that failed"),
        pytest.param(row(1), id="a second row"),
    ],
)
def test_rows_are_whole_up_to_the_first_line_that_is_none(folder: Path, line: bytes) -> None:
    ends = bytearray([0, End.FETCHED, End.FETCHED, End.FETCHED, End.FAILED])
    (folder / PAGES).write_bytes(row(1) + line + row(2))

    assert whole_rows(folder / PAGES, ends) == len(row(1))
    assert list(ends) == [0, End.WAITING, End.FETCHED, End.FETCHED, End.FAILED]


def test_no_file_has_no_rows(folder: Path) -> None:
    assert whole_rows(folder / PAGES, bytearray(1)) == 0
