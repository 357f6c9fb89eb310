"""Values as strangers write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.fields import (
    LONGEST_ID,
    LONGEST_LINK,
    LONGEST_NAME,
    MOST,
    count,
    first,
    first_count,
    first_name,
    first_text,
    flag,
    id_or,
    link,
    members,
    platform,
    read_id,
    seconds,
    shown,
    text,
)

NOON = 1765016130.0  # 2025-12-06T10:15:30Z


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1234, 1234),
        ("1234", 1234),
        (" 1234 ", 1234),
        (1234.0, 1234),
        (1234.9, 1234),
        (0, 0),
        ("0", 0),
        (-5, 0),
        (-5.5, 0),
        (MOST, MOST),
        (3_000_000_000, 3_000_000_000),  # more than 32 bits
    ],
)
def test_a_count_is_never_below_zero_and_never_a_fraction(value: object, number: int) -> None:
    assert count(value) == number


@pytest.mark.parametrize(
    "value",
    [
        *("1,2K", "1.2K", "1,234", "12k", "", " ", "-5", "+5", "²", "٣", "1e3", "0x10", "9" * 20, "9" * 5000),
        *(True, False, None, [], {}, MOST + 1, 10**400, math.inf, -math.inf, math.nan, 1e300),
    ],
)
def test_anything_else_is_no_count(value: object) -> None:
    assert count(value) is None


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=80), st.lists(st.none())))
def test_no_value_is_too_odd_for_any_field(value: object) -> None:
    assert count(value) is None or 0 <= (count(value) or 0) <= MOST
    assert seconds(value) is None or 0 <= (seconds(value) or 0) <= 1e9
    assert flag(value) in (True, False)
    assert "\0" not in text(value) + platform(value) + link(value) + id_or(value, "")
    assert len(shown(value)) < 400


@pytest.mark.parametrize(("value", "length"), [(37, 37.0), (37.5, 37.5), ("37.5", 37.5), (0, 0.0)])
def test_a_length_of_time_is_in_seconds(value: object, length: float) -> None:
    assert seconds(value) == length


@pytest.mark.parametrize("value", [-1, "PT1M", "", math.nan, math.inf, 10**400, True, None])
def test_what_is_no_length_of_time_is_none(value: object) -> None:
    assert seconds(value) is None


@pytest.mark.parametrize(("value", "yes"), [(True, True), (1, True), ("True", True), ("true", True), ("1", True)])
def test_yes_has_many_spellings(value: object, yes: bool) -> None:  # noqa: FBT001 - a case of a table
    assert flag(value) is yes


@pytest.mark.parametrize("value", [False, 0, 2, "False", "NULL", "", None, 1.0, [], {}])
def test_all_else_is_no(value: object) -> None:
    assert flag(value) is False


def test_ids_of_19_digits_and_more_stay_exact() -> None:
    assert read_id(7301234567890123456) == "7301234567890123456"
    assert read_id("7301234567890123456") == "7301234567890123456"
    assert read_id(2**80) == str(2**80)
    assert read_id(" abc_-9 ") == "abc_-9"
    assert read_id("9" * LONGEST_ID) == "9" * LONGEST_ID


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "found nothing"),
        ("", "found ''"),
        ("  ", "found '  '"),
        ("NULL", "found 'NULL'"),
        (7.3e18, r"found 7\.3e\+18"),
        (True, "found True"),
        ([1], "found a list"),
        ({}, "found an object"),
        ("x" * (LONGEST_ID + 1), "more than 128 characters"),
        (10**LONGEST_ID, "more than 128 characters"),
        pytest.param(10**5000, "more than 128 characters", id="5001 digits"),
        ("a\0b", "cannot be printed"),
        ("a\nb", "cannot be printed"),
    ],
)
def test_what_is_no_id_is_said(value: object, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        read_id(value)
    assert id_or(value, "other") == "other"


@pytest.mark.parametrize(
    "value", ["https://a.example/b", "HTTP://a.example", " https://a.example ", "www.a.example/b", ""]
)
def test_an_address_of_the_web_is_a_link(value: str) -> None:
    assert link(value) == value.strip()


@pytest.mark.parametrize(
    "value",
    [
        *(
            "javascript:alert(1)",
            " JavaScript:alert(1)",
            "data:text/html,x",
            "java\nscript:alert(1)",
            "ftp://a.example",
        ),
        *("https://a.example/" + "x" * LONGEST_LINK, "https://a.example/\0", 5, None, {}),
    ],
)
def test_what_is_dangerous_or_none_is_no_link(value: object) -> None:
    assert link(value) == ""


@pytest.mark.parametrize(("value", "name"), [("TIKTOK", "tiktok"), (" YouTube ", "youtube"), ("x.com", "x.com")])
def test_platforms_are_in_lower_case(value: str, name: str) -> None:
    assert platform(value) == name


@pytest.mark.parametrize("value", ["", "a b", "x" * 21, "ti\0k", "../x", "tïktok", None, 5, [], " " * 99 + "tiktok"])
def test_a_platform_is_a_short_word(value: object) -> None:
    assert platform(value) == ""


def test_of_several_names_the_first_with_something_counts() -> None:
    source: dict[str, object] = {"a": None, "b": "", "c": "text", "d": "other", "e": "7", "f": 8, "g": [1]}

    assert first(source, ("a", "b", "c")) == ""
    assert first(source, ("a", "z")) is None
    assert first_text(source, ("a", "b", "g", "c", "d")) == "text"
    assert first_text(source, ("a", "b", "g")) == ""
    assert first_count(source, ("a", "b", "c", "e", "f")) == 7
    assert first_count(source, ("a", "g")) is None


def test_texts_lose_only_zero_bytes_and_names_are_cut() -> None:
    assert text("a\0b\0") == "ab"
    assert text(5) == "5"
    assert text(10**400) == text(2.5) == text(True) == text(None) == ""  # noqa: FBT003 - a value to read
    assert first_name({"n": f"  {'x' * 1000}"}, ("n",)) == "x" * LONGEST_NAME


def test_what_is_no_object_has_no_members() -> None:
    assert members({"a": 1}) == {"a": 1}
    assert members(None) == members([1]) == members("text") == {}
