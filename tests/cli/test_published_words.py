"""What `status` of every system has in common: who runs, and one shape of JSON."""

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from command_line import called
from fake_polling import STATUS as POLLING
from sanderling.cli.published_words import document, nothing, state
from statuses import STATUS as PAGES

from sanderling.stores.status_file import SILENT, write_status


class Said(NamedTuple):
    """A status, of any system."""

    running: bool
    pid: int = 7
    process: None = None
    wall: float = 1000.0
    seconds: float = 100.0
    disk_trouble: str = ""


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
    assert state(Said(running), 1000.0 + age) == says


def test_the_document_has_what_was_said_and_what_is_on_disk() -> None:
    assert document(None, 0.0, {"cursor": 5}) == {
        "running": False,
        "age": None,
        "status": None,
        "kept": {"cursor": 5},
    }
    told = document(PAGES, PAGES.wall + 3.21)
    assert list(told) == ["running", "age", "status"]
    assert (told["running"], told["age"], told["status"]) == (True, 3.2, msgspec.to_builtins(PAGES))
    assert document(PAGES, PAGES.wall - 50)["age"] == 0, "what a clock says that is ahead of ours was said just now"


def test_where_nothing_was_it_says_so_and_how_to_begin_with_exit_code_2(tmp_path: Path) -> None:
    where = tmp_path / "none"

    done = called("status", str(where))

    assert (done.code, done.out) == (2, "")
    assert str(where) in done.err
    assert called("status", str(where), "--json").code == 2
    assert not where.exists(), "nothing is made"


def test_what_a_stranger_called_a_folder_does_not_move_the_cursor() -> None:
    assert "\x1b" not in str(nothing("nothing was polled", Path("a\x1bb"), "--out", "sanderling polling run"))


def test_json_is_one_object(tmp_path: Path) -> None:
    write_status(tmp_path, POLLING)

    done = called("status", str(tmp_path), "--json")

    assert sorted(json.loads(done.out)) == ["age", "running", "status"]
