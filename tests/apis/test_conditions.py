"""Conditions about documents and replies."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.conditions import DEEPEST, Condition, JsonReply, Test, parse_subject, reply_condition
from sanderling.task import Headers, Reply

DOCUMENT = {
    "id": 7,
    "data": {"items": [{"id": "a"}, {"id": "b"}], "empty": None, "a-b": 1, "$ref": 2, "0": 3},
    "yes": True,
    "no": False,
    "zero": 0,
    "text": "",
    "half": 0.5,
    "message": "Rate limit exceeded",
    "codes": [17, "x", None],
    "none": [],
    "not": 1,
    "status": "live",
}


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
        ("id = 7 and yes", True),
        ("id = 8 and yes", False),
        ("id = 8 or yes", True),
        ("no or no or id = 7", True),
        ("yes or no and no", True),
        ("(yes or no) and no", False),
        ("not no", True),
        ("not(no)", True),
        ("not yes and no", False),
        ("not (yes and no)", True),
        ("not not yes", True),
        ("not = 1", True),
        ("not exists", True),
        ("not and yes", True),
        ("not not", False),
        ("text exists", True),
        ("nothing exists", False),
        ("no exists", True),
        ("text empty", True),
        ("none empty and nothing empty and not zero empty", True),
        ("data.items empty", False),
        ('message contains "limit"', True),
        ('message contains "Limit"', False),
        ("message contains 1", False),
        ("codes contains 17", True),
        ('codes contains "17"', False),
        ("codes contains null", True),
        ("id contains 7", False),
        ('data.items[*].id = "b"', True),
        ('data.items[*].id != "b"', True),
        ('data.items[*].id = "c"', False),
        ("data.items[*].nothing exists", False),
        ("none[*] != 1", False),
        ('codes[-1] = null and data.items[-1].id = "b"', True),
        ('status = "live"', True),
        ('message = "a) and (b"', False),
    ],
)
def test_a_condition_holds_or_not(text: str, holds: bool) -> None:  # noqa: FBT001 - a column
    assert Condition.parse(text).holds(DOCUMENT) is holds


def test_whole_numbers_are_compared_exactly() -> None:
    assert not Condition.parse(f"id = {2**53 + 1}").holds({"id": 2**53})
    assert Condition.parse("id > 1.5").holds({"id": 10**400})


@pytest.mark.parametrize(
    ("text", "character", "expected"),
    [
        ("id ==  7", 5, "a number, true"),
        ("id = raid", 6, 'a "text" in quotes'),
        ("id = ", 6, "a number, true"),
        ("id = [1]", 6, "a number, true"),
        ("id = 'a'", 6, "a number, true"),
        ("id = NaN", 6, "a number, true"),
        ("id = 1 2", 8, "and, or, or the end"),
        ("id = 1e999", 6, "a number, true"),
        ('id > "a"', 6, "a number behind >"),
        ("id <= null", 7, "a number behind <="),
        ("id > true", 6, "a number behind >"),
        ("id ~ 7", 4, "one of = != < <= > >="),
        ("id and", 4, "one of = != < <= > >="),
        ("id = 7 and", 8, "and, or, or the end"),
        ("id and id id", 11, "one of = != < <= > >="),
        ("(id = 7", 8, "a closing parenthesis"),
        ("id = 7)", 7, "and, or, or the end"),
        ("()", 2, "a path"),
        ("id exists 7", 11, "and, or, or the end"),
        ("id contains", 12, "a number, true"),
        ("not (", 6, "a path"),
        ("not " * (DEEPEST + 2) + "id", 85, "at most 20"),
        ("(" * 500 + "id" + ")" * 400, 22, "at most 20"),
        ("a" * 1001, 1001, "at most 1000 characters"),
        ('id = "\ud800"', 6, "a number, true"),
        ("= 7", 1, "a path"),
        ("", 1, "a path"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, character: int, expected: str) -> None:
    with pytest.raises(ValueError, match=f"at character {character}: found ") as refused:
        Condition.parse(text)

    assert expected in str(refused.value)


NAMES = st.from_regex(r"[A-Za-z_$@:0-9-]{1,8}", fullmatch=True) | st.sampled_from(
    ["été", "a/b", "#", "not", "and", "or", "empty", "exists", "contains", "status", "header", "body"]
)
WORDS = st.sampled_from(
    ["(", ")", "not ", " and ", " or ", " exists", " empty", " contains ", "a", "b[*]", ".", "body"]
)
TESTS = st.tuples(
    st.just("a.b") | NAMES, st.sampled_from(["", " exists", " = 1", ' != "x"', " < 2.5", " contains null"])
)
TEXTS = st.recursive(
    TESTS.map("".join),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("not ({})".format)
    ),
    max_leaves=6,
)
ANY_TEXT = st.text() | st.text(alphabet='ab.[]0*-=!<> ()"') | st.lists(WORDS, max_size=12).map("".join) | TEXTS


@pytest.mark.parametrize("parse", [Condition.parse, reply_condition])
@given(text=ANY_TEXT)
def test_any_text_is_a_condition_or_a_clear_error(parse: Callable[[str], Condition], text: str) -> None:
    try:
        condition = parse(text)
    except ValueError as error:
        assert "at character" in str(error)  # noqa: PT017 - either way is right
    else:
        assert parse(str(condition)) == condition


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(TEXTS, TEXTS, JSON)
def test_and_or_and_not_are_those_of_logic(one: str, other: str, document: object) -> None:
    def holds(text: str) -> bool:
        return Condition.parse(text).holds(document)

    assert holds(f"({one}) and ({other})") == (holds(one) and holds(other))
    assert holds(f"({one}) or ({other})") == (holds(one) or holds(other))
    assert holds(f"not ({one})") == (not holds(one))


def replied(said: object, status: int = 200, headers: Headers = ()) -> JsonReply:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return JsonReply(Reply(status, headers, body, "https://a.example/", 0.1))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("status = 200 and error.code != null", True),
        ("status >= 300", False),
        ('body.status = "live"', True),
        ('body.header = "h" and body.body = "b"', True),
        ("body exists and . exists", True),
        ("header.x-left = 0", True),
        ('header.X-Left = "0"', True),
        ("header.x-left < 0.5", True),
        ("header.x-name = 0", False),
        ('header.x-name contains "ba"', True),
        ("header.x-none exists", False),
        ("header.x-none empty", True),
        ("error.code = 17", True),
    ],
)
def test_a_condition_about_a_reply_knows_status_and_headers(text: str, holds: bool) -> None:  # noqa: FBT001 - a column
    document = {"status": "live", "header": "h", "body": "b", "error": {"code": 17}}
    headers = (("X-Left", "0"), ("x-name", "foo"), ("X-Name", "bar"))

    assert reply_condition(text).holds(replied(document, headers=headers)) is holds


@pytest.mark.parametrize(("text", "expected"), [("status.a", "status alone"), ("header", "header.x-name")])
def test_status_and_header_are_no_objects(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"at character 1: found .*, expected {expected}"):
        parse_subject(text)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"a": NaN}', b"1" * 5000, b"[" * 100_000, b'"\\ud800"', b"1e999", b"\xff"]
)
def test_a_hostile_body_is_no_json_and_says_why(body: bytes) -> None:
    reply = replied(body)

    assert not reply_condition("a exists").holds(reply)
    assert not reply.is_json
    assert 0 < len(reply.error) <= 200


def test_a_condition_that_does_not_hold_is_explained() -> None:
    condition = reply_condition('status = 200 and items[*].id = "x"')

    said = condition.explain(replied({"items": [{"id": 1}, {"id": {}}]}, 500))

    assert said == 'status is 500, items[*].id is 1, an object, expected status = 200 and items[*].id = "x"'
    assert [str(test) for test in condition.tests] == ["status = 200", 'items[*].id = "x"']
    assert isinstance(condition.tests[0], Test)
