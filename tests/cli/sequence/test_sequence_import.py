"""`sequence missed import`: files of any kind and size, and what is taken from them."""

import json
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from command_line import called
from forked import Command
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_missing import ids, spans, under_way

from sanderling.apis.numbered import LARGEST_ID
from sanderling.cli.sequence import missed_import as sequence_import
from sanderling.clock import SystemClock
from sanderling.sequence.cursor import ranges_of
from sanderling.sequence.state import SequenceState
from sanderling.stores import sqlite_file


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SequenceState]:
    with under_way(tmp_path / "out") as opened:
        yield opened


@pytest.fixture
def out(tmp_path: Path) -> str:
    return f"--out={tmp_path / 'out'}"


def take_in(tmp_path: Path, content: bytes, *more: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "missed.log"
    path.write_bytes(content)
    done = called("sequence", "missed", "import", str(path), f"--out={tmp_path / 'out'}", "--json", *more)
    return done.code, json.loads(done.out)


def test_import_makes_ranges_of_ids_in_any_order_and_number(tmp_path: Path) -> None:
    numbers = [*range(100, 400), 7, 7, *range(399, 200, -1), 9, 8, 0, LARGEST_ID - 1]
    random.Random(1).shuffle(numbers)

    code, told = take_in(tmp_path, "\n".join(map(str, numbers)).encode())

    assert code == 0
    assert told == {"lines": 505, "ids": 505, "different": 305, "added": 305, "bad": 0, "examples": []}
    with closing(SequenceState(tmp_path / "out" / "sequence.db")) as state:
        assert spans(state) == [
            (0, 0, "imported"),
            (7, 9, "imported"),
            (100, 399, "imported"),
            (LARGEST_ID - 1, LARGEST_ID - 1, "imported"),
        ]
        assert {each.tries for each in state.missed()} == {0}
        assert state.next_due(failed=False) == pytest.approx(SystemClock().wall() + 15, abs=30)


def test_a_range_within_another_does_not_cut_it_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_import, "IN_MEMORY", 5)

    _, told = take_in(tmp_path, b"1 2 3 4 5 2 2 2 2 3 7 9 9 9 9".replace(b" ", b"\n"))

    assert (told["different"], told["added"]) == (7, 7)


def test_import_leaves_what_is_missed_already_as_it_is(tmp_path: Path, state: SequenceState) -> None:
    content = "\n".join(map(str, range(4, 1002))).encode()

    assert take_in(tmp_path, content)[1]["added"] == 998 - 4
    again = take_in(tmp_path, content)[1]
    assert (again["ids"], again["different"], again["added"]) == (998, 998, 0)
    assert spans(state) == [
        (4, 4, "imported"),
        (5, 5, "not_found"),
        (6, 6, "imported"),
        (7, 7, "hidden"),
        (8, 999, "imported"),
        (1000, 2999, "gap"),
    ]


def test_import_takes_a_file_of_windows(tmp_path: Path, state: SequenceState) -> None:
    code, told = take_in(tmp_path, b"\xef\xbb\xbf41\r\n\r\n  43 \r\n\t\r\n42")

    assert (code, told["lines"], told["ids"], told["bad"]) == (0, 5, 3, 0)
    assert (41, 43, "imported") in spans(state)


BAD = [
    b"abc",
    b"-5",
    b"+5",
    b"1.5",
    b"1e9",
    b"0x10",
    b"1_000",
    b"1 2",
    b"12,13",
    b"9223372036854775808",
    b"99999999999999999999999",
    "\N{ARABIC-INDIC DIGIT FIVE}".encode(),
    b"\x00",
    b"\xff\xfe5\x00",
    b"\x1b[31m5",
]


@pytest.mark.parametrize("line", BAD)
def test_a_line_that_is_no_id_is_told_and_the_others_are_taken(tmp_path: Path, line: bytes) -> None:
    code, told = take_in(tmp_path, b"1\n" + line + b"\n3\n")

    assert (code, told["ids"], told["added"], told["bad"]) == (1, 2, 2, 1)
    (example,) = told["examples"]
    assert example.startswith("line 2: ")
    assert example.endswith(f"expected an id from 0 to {LARGEST_ID}")
    assert example.isprintable()


def test_only_the_first_few_bad_lines_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "missed.log"
    path.write_bytes(b"no\n" * 1000 + b"5\n")

    done = called("sequence", "missed", "import", str(path), f"--out={tmp_path / 'out'}")

    assert done.code == 1
    assert "1,001 lines read: 1 id, 1 of them different." in done.out
    assert "1,000 lines left out:\n    line 1: 'no'; expected an id" in done.err
    assert "    line 5: 'no'" in done.err
    assert "line 6" not in done.err
    assert done.err.endswith("    and 995 more\n")


def test_lines_larger_than_the_memory_and_many_ids_fit_into_little_of_it(tmp_path: Path) -> None:
    path = tmp_path / "missed.log"
    numbers = [number * 7 % 200_003 for number in range(200_003)]
    with path.open("wb") as file:
        file.write(b"7" * 10_000_000 + b"\n")
        file.seek(1 << 29, 1)  # a hole, which reads as one line of zeros
        file.write(b"\n" + b"".join(b"%d\n" % number for number in numbers))
    command = [sys.executable, "-m", "sanderling", "sequence", "missed", "import", str(path), "--json"]

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))

    done = subprocess.run(  # noqa: S603 - ours
        [*command, f"--out={tmp_path / 'out'}"], capture_output=True, preexec_fn=bounded, timeout=300, check=False
    )

    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["lines"], told["bad"], told["ids"], told["different"]) == (200_005, 2, 200_003, 200_003)
    assert told["examples"][0].startswith("line 1: 10,000,001 bytes, beginning with '777")
    assert told["examples"][1].startswith("line 2: 536,870,913 bytes, beginning with ")


def test_import_from_the_input(tmp_path: Path, state: SequenceState) -> None:
    command = ["sequence", "missed", "import", "-", f"--out={tmp_path / 'out'}"]

    with Command[bytes](command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as child:
        out, err = child.communicate(b"50\n51\n", timeout=300)

    assert (child.returncode, err) == (0, b"")
    assert b"2 ids added to what is missed" in out
    assert (50, 51, "imported") in spans(state)


def test_what_was_exported_can_be_imported(tmp_path: Path, state: SequenceState, out: str) -> None:
    called("sequence", "missed", "export", str(tmp_path / "ids"), out)
    called("sequence", "missed", "import", str(tmp_path / "ids"), f"--out={tmp_path / 'other'}")

    with closing(SequenceState(tmp_path / "other" / "sequence.db")) as other:
        assert ids(other) == ids(state)


@pytest.mark.parametrize("name", ["none.log", "."])
def test_a_file_that_cannot_be_read_makes_nothing(tmp_path: Path, name: str) -> None:
    done = called("sequence", "missed", "import", str(tmp_path / name), f"--out={tmp_path / 'out'}")

    assert done.code == 2
    assert "cannot use" in done.err
    assert not (tmp_path / "out").exists()


@settings(max_examples=25)
@given(
    lines=st.lists(
        st.integers(0, 200) | st.integers(0, LARGEST_ID - 1) | st.sampled_from(["", "x", " 5"]), max_size=60
    ),
    in_memory=st.integers(1, 20),
)
def test_whatever_is_in_a_file_its_ids_come_out_as_ranges(
    tmp_path_factory: pytest.TempPathFactory, lines: list[int | str], in_memory: int
) -> None:
    folder = tmp_path_factory.mktemp("import")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_import, "IN_MEMORY", in_memory)
        _, told = take_in(folder, "\n".join(map(str, lines)).encode())

    numbers = {int(line) for line in lines if str(line).strip().isdecimal()}
    assert told["different"] == told["added"] == len(numbers)
    with closing(SequenceState(folder / "out" / "sequence.db")) as state:
        assert [(each.low, each.high) for each in state.missed()] == ranges_of(numbers)


def test_a_long_range_is_taken_in_by_pieces(tmp_path: Path, state: SequenceState) -> None:
    code, told = take_in(tmp_path, "\n".join(map(str, range(10_000, 125_000))).encode())

    assert (code, told["added"]) == (0, 115_000)
    assert ids(state) == [5, 7, *range(1000, 3000), *range(10_000, 125_000)]
    assert max(map(len, state.missed()[3:])) == sequence_import.LONGEST_RANGE


def test_a_file_that_is_locked_for_long_is_told_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: SequenceState, out: str
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.5)
    (tmp_path / "ids").write_text("1\n2\n")
    with closing(sqlite3.connect(state.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        reading = called("sequence", "missed", "list", out)
        writing = called("sequence", "missed", "import", str(tmp_path / "ids"), out)

    assert reading.code == 0
    assert writing.code == 1
    assert "is in use by another program" in writing.err
