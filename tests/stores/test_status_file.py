"""Status files: what is written is read whole, what is none of ours is none, and each process has its own."""

from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from known_reports import ALL, EVENTS, PAGES, changed

from sanderling.observe.report import AnyReport
from sanderling.stores.durable import FolderError
from sanderling.stores.status_file import (
    StatusError,
    StatusFile,
    decode_status,
    is_running,
    read_status,
    read_statuses,
    write_status,
)
from sanderling.web.house import KINDS


@pytest.mark.parametrize("system", ALL)
def test_others_read_what_was_written_last(tmp_path: Path, system: str) -> None:
    assert read_status(tmp_path, KINDS[system]) is None

    write_status(tmp_path, changed(ALL[system], pid=1))
    write_status(tmp_path, ALL[system])

    assert read_status(tmp_path, KINDS[system]) == ALL[system]
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


@given(st.binary(max_size=200))
@example(b'{"event": "\xff"}')
@example(b"[" * 100_000)
def test_a_file_that_is_none_of_ours_is_no_report(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "status.json").write_bytes(data)

    assert read_status(folder, KINDS["pages"]) is None
    with pytest.raises(StatusError, match=r"status\.json"):
        decode_status(data, KINDS["pages"])


@pytest.mark.parametrize("field", [each.name for each in msgspec.structs.fields(KINDS["events"]) if each.required])
def test_a_report_without_one_of_its_fields_is_none(field: str) -> None:
    told = msgspec.json.decode(msgspec.json.encode(EVENTS))
    del told[field]

    with pytest.raises(StatusError, match=field):
        decode_status(msgspec.json.encode(told), KINDS["events"])


def test_a_status_of_the_former_shape_is_said_to_be_one() -> None:
    former = b'{"pid": 7, "wall": 1000.0, "started": 900.0, "system": "pages", "counts": {"fetched": 60}, "known": 100}'

    with pytest.raises(StatusError, match=r"^status\.json was written by another version; .* writes it anew$"):
        decode_status(former, KINDS["pages"])


def test_what_cannot_be_written_is_an_error_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "status.json").mkdir()

    with pytest.raises(FolderError, match="cannot use"):
        write_status(tmp_path, PAGES)

    assert [path.name for path in tmp_path.iterdir()] == ["status.json"], "and nothing is left behind"


@pytest.mark.parametrize(
    ("report", "after", "runs"),
    [
        (PAGES, 1.0, True),
        (PAGES, -3600.0, True),  # by a clock that is ahead of ours
        (PAGES, 11.0, False),
        (changed(PAGES, running=False), 1.0, False),
    ],
)
def test_it_runs_while_it_says_so(report: AnyReport, after: float, runs: bool) -> None:  # noqa: FBT001 - a column
    assert is_running(report.process, report.process.wall + after) is runs


def test_processes_of_one_folder_have_a_file_each_and_the_next_start_removes_what_is_left(tmp_path: Path) -> None:
    def pids() -> list[int]:
        return [each.process.pid for each in read_statuses(tmp_path, KINDS["events"])]

    with StatusFile.of(tmp_path, 0.0) as first:
        with StatusFile.of(tmp_path, 0.0) as second:
            assert (first.alone, second.alone) == (True, False)
            first.write(changed(EVENTS, pid=1))
            second.write(changed(EVENTS, pid=2))
        assert pids() == [1, 2]

    with StatusFile.of(tmp_path, 0.0) as again:
        assert (again.name, again.alone, pids()) == ("status.json", True, [1])


def test_who_takes_the_first_file_while_others_still_run_is_not_alone(tmp_path: Path) -> None:
    with ExitStack() as others:
        with StatusFile.of(tmp_path, 0.0):
            others.enter_context(StatusFile.of(tmp_path, 0.0)).write(EVENTS)
        with StatusFile.of(tmp_path, 0.0) as beside:
            assert (beside.name, beside.alone) == ("status.json", False)
    with StatusFile.of(tmp_path, 0.0) as last:
        assert last.alone
