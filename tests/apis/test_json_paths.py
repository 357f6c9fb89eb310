"""Paths into a document, and rules about what is found there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.json_paths import Path, Rule

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
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(text: str, value: object) -> None:
    assert Path.parse(text).find(DOCUMENT) == value


def test_a_path_may_begin_in_a_list() -> None:
    assert Path.parse("[1][0].a").find([[], [{"a": 5}]]) == 5


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
        ("a[-1]", 2),
        ("a[]", 2),
        ("a[0", 2),
        ("a[0]b", 5),
        ("a[*]", 2),
        ("a[9999999999]", 2),
        ("a b", 2),
        ('"a"', 1),
        ("a = 1", 2),
    ],
)
def test_what_is_no_path_is_refused_with_its_place(text: str, character: int) -> None:
    with pytest.raises(ValueError, match=f"at character {character}: found .*, expected a path"):
        Path.parse(text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("id", True),
        ("yes", True),
        ("no", False),
        ("zero", True),
        ("text", True),
        ("nothing", False),
        ("data.empty", False),
        ("data", True),
        ("id = 7", True),
        ("id=7", True),
        ("id  =  7.0 ", True),
        ("id = 8", False),
        ('id = "7"', False),
        ("id != 8", True),
        ('id != "7"', True),
        ("id != 7", False),
        ("yes = true", True),
        ("yes = 1", False),
        ("zero = false", False),
        ("no = false", True),
        ("nothing = null", True),
        ("nothing != null", False),
        ("nothing = 0", False),
        ("nothing != 0", True),
        ('data.items[0].id = "a"', True),
        ('text = ""', True),
        ("data = null", False),
        ("id > 6", True),
        ("id > 7", False),
        ("id >= 7", True),
        ("id < 7.5", True),
        ("id <= 6", False),
        ("half < 1", True),
        ("yes > 0", False),
        ("nothing < 1", False),
        ("text < 1", False),
        ("id < 1e300", True),
        (". = null", False),
    ],
)
def test_a_rule_holds_or_not(text: str, holds: bool) -> None:  # noqa: FBT001 - a column
    assert Rule.parse(text).holds(DOCUMENT) is holds


def test_whole_numbers_are_compared_exactly() -> None:
    assert not Rule.parse(f"id = {2**53 + 1}").holds({"id": 2**53})
    assert Rule.parse("id > 1.5").holds({"id": 10**400})


@pytest.mark.parametrize(
    ("text", "character", "expected"),
    [
        ("id ==  7", 5, "a number, true"),
        ("id = raid", 6, 'a "text" in quotes'),
        ("id = ", 6, "a number, true"),
        ("id = [1]", 6, "a number, true"),
        ("id = 'a'", 6, "a number, true"),
        ("id = NaN", 6, "a number, true"),
        ("id = 1 2", 6, "a number, true"),
        ("id = 1e999", 6, "a number, true"),
        ('id > "a"', 6, "a number behind >"),
        ("id <= null", 7, "a number behind <="),
        ("id > true", 6, "a number behind >"),
        ("id ~ 7", 3, "one of = != < <= > >="),
        ("id and yes", 3, "one of = != < <= > >="),
        ('id = "\ud800"', 6, "a number, true"),
        ("= 7", 1, "a path"),
        ("", 1, "a path"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str, character: int, expected: str) -> None:
    with pytest.raises(ValueError, match=f"at character {character}: found ") as refused:
        Rule.parse(text)

    assert expected in str(refused.value)


NAMES = st.from_regex(r"[A-Za-z_$@:0-9-]{1,8}", fullmatch=True) | st.sampled_from(["été", "a/b", "#"])
PATHS = st.lists(NAMES | st.integers(0, 10**9 - 1), max_size=6).map(lambda steps: Path(tuple(steps)))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
RULES = (
    st.builds(Rule, PATHS)
    | st.builds(Rule, PATHS, st.sampled_from(["=", "!="]), SCALARS.filter(lambda value: abs(hash(value)) < 2**60))
    | st.builds(Rule, PATHS, st.sampled_from(["<", "<=", ">", ">="]), st.integers(-(2**60), 2**60))
)


@given(PATHS)
def test_a_path_that_is_written_is_read_as_the_same(path: Path) -> None:
    assert Path.parse(str(path)) == path


@given(RULES)
def test_a_rule_that_is_written_is_read_as_the_same(rule: Rule) -> None:
    assert Rule.parse(str(rule)) == rule


@given(st.text() | st.text(alphabet='ab.[]0=!<> "'))
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    try:
        rule = Rule.parse(text)
    except ValueError as error:
        assert "at character" in str(error)  # noqa: PT017 - either way is right
    else:
        assert Rule.parse(str(rule)) == rule


JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(RULES, JSON)
def test_a_rule_holds_or_not_of_any_document(rule: Rule, document: object) -> None:
    same = json.loads(json.dumps(document))

    assert rule.holds(same) in (True, False)
    if rule.comparison == "!=":
        assert rule.holds(same) is not Rule(rule.path, "=", rule.value).holds(same)
