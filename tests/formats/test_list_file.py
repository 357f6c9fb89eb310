"""Lists that people write."""

from pathlib import Path

import pytest

from sanderling.formats.list_file import ListError, listed, read_list


def test_lines_that_say_something_are_numbered() -> None:
    text = "\ufeff# a list\n\n  one  # and why\r\n\ttwo\n#three\n"

    assert list(listed(text)) == [(3, "one"), (4, "two")]


def test_things_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("1\n2 # two\n\n3\n")

    assert read_list(tmp_path / "list", int) == [1, 2, 3]


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# numbers\n1\ntwo\n")

    with pytest.raises(ListError, match=r"list, line 3: invalid literal"):
        read_list(tmp_path / "list", int)


def test_what_is_no_list_is_said(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b"1\n\xff\xfe")

    with pytest.raises(ListError, match=r"cannot read .*nowhere: No such file"):
        read_list(tmp_path / "nowhere", int)
    with pytest.raises(ListError, match=r"packed, byte 2: expected UTF-8"):
        read_list(tmp_path / "packed", int)
