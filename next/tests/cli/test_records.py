"""The shared commands on what a system has collected."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from toy_program import Call
from toy_system import TOYS

import sanderling
from sanderling.files import Exit
from sanderling.records.collection import Collection


@pytest.fixture
def toys(call: Call) -> Call:
    """The command line, in a folder with twelve toys in `out`."""
    assert (
        call("toys", "count", "https://a.example/", "--out", "out", "--items", "12", "--pause", "0").code is Exit.DONE
    )
    return call


def test_records_come_out(toys: Call, tmp_path: Path) -> None:
    ended = toys("export", "out", "--to", "toys.sqlite", "--where", "id > `9`", "--json")

    assert (ended.code, json.loads(ended.out)["written"]) == (Exit.DONE, 3)
    with closing(sqlite3.connect(tmp_path / "toys.sqlite")) as database:
        assert database.execute("SELECT id FROM records").fetchall() == [(10,), (11,), (12,)]
    printed = toys("export", "out", "--to", "-", "--fields", "id", "--where", "id == `3`")
    assert printed.out == '{"id":3}\n'
    assert toys("export", "out", "--to", "toys.sqlite").code is Exit.WRONG
    assert toys("export", "out", "--to", "x.csv", "--where", "di > `9`").code is Exit.WRONG


def test_one_is_shown_or_what_became_of_it(toys: Call) -> None:
    assert json.loads(toys("show", "out", "7").out) == {"id": 7}
    unknown = toys("show", "out", "13")
    assert (unknown.code, unknown.out) == (Exit.FAILED, "")
    assert "never counted" in unknown.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), Exit.DONE, "a.example: your --rps 8 (4 of 8 allowed requests/s)\nb.example: down: 5 timeouts in a row"),
        (("a.example",), Exit.DONE, "a.example: your --rps 8"),
        (("7",), Exit.DONE, "7: it was stored, 1 record"),
        (("13",), Exit.DONE, "13: never counted"),
    ],
)
def test_the_reason_is_one_sentence(toys: Call, words: tuple[str, ...], code: Exit, said: str) -> None:
    ended = toys("why", "out", *words)

    assert (ended.code, ended.out[: len(said)]) == (code, said)


def test_verify_finds_a_flipped_bit(toys: Call, tmp_path: Path) -> None:
    whole = toys("verify", "out", "--json")
    assert (whole.code, json.loads(whole.out)) == (Exit.DONE, {"faults": [], "counts": {"toys": 12}})

    path = tmp_path / "out" / "toys.jsonl"
    path.write_bytes(path.read_bytes().replace(b"7", b"6"))
    broken = toys("verify", "out", "--json")
    assert (broken.code, len(json.loads(broken.out)["faults"])) == (Exit.FAILED, 1)


def test_tasks_are_counted_listed_and_tried_again(toys: Call) -> None:
    assert "1,200 failed TIMEOUT" in toys("tasks", "out").out
    assert toys("tasks", "out", "waiting").out == "21  not in this run\n"
    assert json.loads(toys("tasks", "out", "failed", "--code", "X", "--json").out)["code"] == "X"
    assert toys("tasks", "out", "failed", "--retry").out.startswith("3 ")
    assert toys("tasks", "out", "--retry").code is Exit.WRONG
    assert toys("tasks", "out", "fialed").code is Exit.WRONG
    assert "; did you mean failed?" in toys("tasks", "out", "fialed").err


def test_a_folder_is_opened_from_python(toys: Call, tmp_path: Path) -> None:
    posts = Collection(tmp_path / "out", TOYS.load().records)

    assert posts.where("id > `10`").count() == 2
    assert sanderling.open.__module__ == "sanderling.records.collection"
