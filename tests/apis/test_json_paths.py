"""Paths into a document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.json_paths import EVERY, Path

DOCUMENT = {
    "id": 7,
    "data": {"items": [{"id": "a"}, {"id": "b"}], "empty": None, "a-b": 1, "$ref": 2, "0": 3},
    "yes": True,
    "no": False,
    "zero": 0,
    "text": "",
    "half": 0.5,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".", DOCUMENT),
        ("id", 7),
        ("data.items[1].id", "b"),
        ("data.items[2].id", None),
        ("data.items.id", None),
        ("data[0]", None),
        ("data.0", 3),
        ("data.a-b", 1),
        ("data.$ref", 2),
        ("nothing.at.all[3]", None),
        ("data.empty", None),
        ("[0]", None),
        ("data.items[-1].id", "b"),
        ("data.items[-3].id", None),
        ("data.items[*].id", ["a", "b"]),
        ("data.items[*].nothing", []),
        ("data[*].id", []),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(text: str, value: object) -> None:
    assert Path.parse(text).find(DOCUMENT) == value


def test_a_path_may_begin_in_a_list() -> None:
    assert Path.parse("[1][0].a").find([[], [{"a": 5}]]) == 5
    assert Path.parse("[*][*].a").find([[], [{"a": 5}, 7], 3, [{"a": 6}]]) == [5, 6]


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("", 1),
        (" a", 1),
        ("a ", 2),
        ("a..b", 2),
        (".a", 2),
        ("a.", 2),
        ("a.[0]", 2),
        ("a[--1]", 2),
        ("a[-]", 2),
        ("a[]", 2),
        ("a[0", 2),
        ("a[0]b", 5),
        ("a[**]", 2),
        ("a[9999999999]", 2),
        ("a b", 2),
        ('"a"', 1),
        ("a = 1", 2),
    ],
)
def test_what_is_no_path_is_refused_with_its_place(text: str, character: int) -> None:
    with pytest.raises(ValueError, match=f"at character {character}: found .*, expected a path"):
        Path.parse(text)


NAMES = st.from_regex(r"[A-Za-z_$@:0-9-]{1,8}", fullmatch=True) | st.sampled_from(["été", "a/b", "#"])
INDEXES = st.integers(-(10**9) + 1, 10**9 - 1) | st.just(EVERY)
PATHS = st.lists(NAMES | INDEXES, max_size=6).map(lambda steps: Path(tuple(steps)))


@given(PATHS)
def test_a_path_that_is_written_is_read_as_the_same(path: Path) -> None:
    assert Path.parse(str(path)) == path
