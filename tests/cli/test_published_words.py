"""What `status` of a folder says of every system: whether it runs, and what `--json` prints."""

import json
from pathlib import Path

import pytest
from command_line import called
from known_reports import EVENTS, POLLING, changed, put

from sanderling.cli.command_error import not_begun
from sanderling.cli.report_words import state
from sanderling.clock import SystemClock
from sanderling.observe.report import Process
from sanderling.stores.status_file import SILENT


@pytest.mark.parametrize(
    ("running", "age", "says"),
    [
        (True, 0.0, "running for 1:40 as process 7, as of now"),
        (True, -50.0, "running for 1:40 as process 7, as of now"),  # by a clock that is ahead of ours
        (True, SILENT - 1, "running for 1:40 as process 7, as of 9.0 s ago"),
        (True, SILENT, "which has said nothing for 10 s and is not running"),
        (False, 1.0, "which ended just now"),
        (False, 60.0, "which ended 60 s ago"),
    ],
)
def test_who_said_nothing_for_long_does_not_run(running: bool, age: float, says: str) -> None:  # noqa: FBT001 - a case
    assert state(Process(pid=7, started=900.0, wall=1000.0, running=running), 1000.0 + age) == says


def test_where_nothing_was_it_says_so_with_exit_code_2(tmp_path: Path) -> None:
    where = tmp_path / "none"

    done = called("status", str(where))

    assert (done.code, done.out) == (2, "")
    assert str(where) in done.err
    assert called("status", str(where), "--json").code == 2
    assert not where.exists(), "nothing is made"


def test_what_a_stranger_called_a_folder_does_not_move_the_cursor() -> None:
    assert "\x1b" not in str(not_begun("nothing was polled", Path("a\x1bb"), "--out", "sanderling polling run"))


def test_json_is_the_report_and_whether_it_runs(tmp_path: Path) -> None:
    put(tmp_path, POLLING)

    told = json.loads(called("status", str(tmp_path), "--json").out)

    assert sorted(told) == ["age", "running", "status"]
    assert told["status"] == json.loads((tmp_path / "status.json").read_bytes())


def test_each_process_of_a_folder_is_told_of(tmp_path: Path) -> None:
    put(tmp_path, changed(EVENTS, pid=11), SystemClock().wall() - 60)
    put(tmp_path, changed(EVENTS, pid=22, running=False, batches=7), name="status-2.json")

    said, told = called("status", str(tmp_path)).out, json.loads(called("status", str(tmp_path), "--json").out)

    assert "process  11, which has said nothing" in said
    assert "process  22, which ended" in said
    assert "7 batches: 4,290 posts" in said
    assert sorted(each["status"]["process"]["pid"] for each in told["processes"]) == [11, 22]


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_status_of_the_former_shape_is_answered_with_a_sentence(tmp_path: Path, flags: tuple[str, ...]) -> None:
    former = {"system": "polling", "pid": 7, "wall": 1000.0, "started": 900.0, "running": True, "targets": {"all": 3}}
    (tmp_path / "status.json").write_text(json.dumps(former))
    (tmp_path / "polling.db").touch()

    folder, home = called("status", str(tmp_path), *flags), called("status", "--home", str(tmp_path.parent), *flags)

    for done in (folder, home):
        assert "status.json was written by another version" in done.out + done.err
        assert "Traceback" not in done.err
