"""JSON as it should not be: what can be read is read, and one bad member costs only itself."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.events.salvage import (
    MARKS,
    MOST_MARKS,
    MOST_MEMBERS,
    REPAIRED,
    DamagedError,
    JsonError,
    JsonReading,
    Unreadable,
    read_json,
    read_list,
)

DEEP = b"[" * 10_000 + b"]" * 10_000

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("read", [read_json, read_list])
@pytest.mark.parametrize(
    ("data", "value"),
    [
        (rb'{"a": "\ud83d"}', {"a": "\ufffd"}),
        (rb'{"a": "\ud83d\ude00", "b": NaN}', {"a": "😀", "b": None}),
        (rb'{"a": "\ude00\ud83d"}', {"a": "\ufffd\ufffd"}),
        (rb'{"a": "\ud83d\ud83d\ude00"}', {"a": "\ufffd😀"}),
        (rb'{"a": "\ud800", "b": "\\ud800"}', {"a": "\ufffd", "b": "\\ud800"}),
        (rb'{"\udfff": 1}', {"\ufffd": 1}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": "x\x00y\n"}', {"a": "x\x00y\n"}),
        (b'{"a": NaN, "b": -Infinity, "c": 1}', {"a": None, "b": None, "c": 1}),
        (b'{"a": 1e999, "b": 5}', {"a": None, "b": 5}),
        (b'{"a": ' + b"7" * 5000 + b', "b": NaN}', {"a": None, "b": None}),
        (b'{"a": ' + b"7" * 400 + b', "b": NaN}', {"a": int("7" * 400), "b": None}),
    ],
)
def test_what_is_nearly_json_is_read_and_noted(read: object, data: bytes, value: object) -> None:
    assert callable(read)
    assert read(data) == (value, (REPAIRED,))
    assert read(b"\xef\xbb\xbf" + data) == (value, (REPAIRED,))


@pytest.mark.parametrize("data", [b"", b" ", b"nonsense", b'{"a": 1', b'{"a"}', b"[1", b"\xff\xfe[\0]\0", b'"a', DEEP])
def test_what_is_not_json_at_all_is_an_error(data: bytes) -> None:
    for read in (read_json, read_list):
        with pytest.raises(JsonError):
            read(data)


@given(values)
def test_json_is_read_as_it_is(value: object) -> None:
    data = msgspec.json.encode(value)

    assert read_json(data) == read_list(data) == JsonReading(value)


@settings(max_examples=30)
@given(st.lists(values, min_size=1, max_size=6), st.data())
def test_the_members_beside_a_bad_one_are_read(members: list[object], data: st.DataObject) -> None:
    written = [json.dumps(member, ensure_ascii=data.draw(st.booleans())).encode() for member in members]
    place = data.draw(st.integers(0, len(members)))
    written.insert(place, DEEP)
    body = b" [" + b" , ".join(written) + b"]\n"

    for text in (body, b'{"count": 5, "items": ' + body + b', "x": [1, {"items": 2}]}'):
        value, notes = read_list(text)
        found = value["items"] if isinstance(value, dict) else value

        assert isinstance(found, list)
        assert isinstance(found.pop(place), Unreadable)
        assert found == members
        assert notes == (f"1 of {len(members) + 1} members cannot be read, the first is number {place}",)


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (b'[{"a": 1}, {"a": }, {"a": 3}]', [1]),
        (b'[{"a": 1},, {"a": 3}]', [1]),
        (b"[1, nonsense, 3, {'a': 1}]", [1, 3]),
        (b'["a,b[{", NaN, {"]": "\\"]"}, x]', [3]),
        (b"[1, 2, x, ]", [2]),
    ],
)
def test_commas_and_brackets_within_texts_do_not_count(data: bytes, places: list[int]) -> None:
    value, _ = read_list(data)

    assert isinstance(value, list)
    assert [place for place, member in enumerate(value) if isinstance(member, Unreadable)] == places


def test_a_comma_behind_the_last_member_is_forgiven() -> None:
    assert read_list(b"[1, 2, ]") == JsonReading([1, 2], (REPAIRED,))


@pytest.mark.parametrize("data", [b"[", b'[{"a": 1}, {"a"', b'["a', b'["a\\"]', b'{"items": [1, 2', b"[NaN, [1]"])
def test_what_ends_too_early_is_told_apart(data: bytes) -> None:
    with pytest.raises(JsonError, match="end too early") as raised:
        read_list(data)
    assert raised.value.truncated


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[NaN] x", "expected nothing behind it"),
        (b"[1}", "does not match its beginning"),
        (b"[}", "does not match its beginning"),
        (b'{"items": [NaN], "count": 1]', "does not match its beginning"),
        (b"[x, y]", "none of 2 members can be read"),
        (b"[" + b"NaN," * MOST_MEMBERS + b"1]", "more than 10,000 members"),
        (b'{"a": 1}\n{"a": 2}', "expected nothing behind it"),
        (DEEP, "none of 1 members can be read"),
    ],
)
def test_what_is_broken_for_good_says_how(data: bytes, found: str) -> None:
    with pytest.raises(JsonError, match=found) as raised:
        read_list(data)
    assert not raised.value.truncated


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.text(max_size=3), values, max_size=2), min_size=1, max_size=4), st.data())
def test_of_what_is_cut_off_the_members_before_that_are_salvaged(members: list[object], data: st.DataObject) -> None:
    written = [msgspec.json.encode(member) for member in members]
    head = data.draw(st.sampled_from([b"[", b' {"count": 4, "items" : [']))
    body = head + b", ".join(written) + b"]"
    length = data.draw(st.integers(len(head), len(body) - 1))
    ends = [len(head) + sum(map(len, written[: n + 1])) + 2 * n for n in range(len(written))]
    whole = [member for member, end in zip(members, ends, strict=True) if end <= length]

    if not whole:
        with pytest.raises(DamagedError, match="end too early"):
            read_list(body[:length], salvage=True)
        return
    value, notes = read_list(body[:length], salvage=True)
    found = value["items"] if isinstance(value, dict) else value
    assert isinstance(found, list)
    assert "end too early" in found.pop().reason
    assert found == whole
    assert notes == (f"1 of {len(whole) + 1} members cannot be read, the first is number {len(whole)}",)


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b'[{"a": 1}, {"a": {"b": 2}, {"a": 3}]', 1),
        (b'[{"a": 1}, {"a": 2}}, {"a": 3}]', 2),
        (b'{"items": [{"a": 1}, {"a": 2}}, {"a": 3}], "count": 3}', 2),
        (b'[{"a": 1}, {"a": 2}] {"a": 3}', 2),
        (b'[{"a": 1}, {"a": 2}}', 2),
    ],
)
def test_so_are_those_before_brackets_that_do_not_match(data: bytes, whole: int) -> None:
    value, _ = read_list(data, salvage=True)
    found = value["items"] if isinstance(value, dict) else value

    assert isinstance(found, list)
    assert isinstance(found.pop(), Unreadable)
    assert found == [{"a": number + 1} for number in range(whole)]


@pytest.mark.parametrize("data", [b"[1}", b'{"a": 1', b"[1, 2", b'{"a": 1}\n{"a": 2}', b'{"items": 1, "b": [{}'])
def test_without_an_object_before_the_damage_nothing_is_salvaged(data: bytes) -> None:
    with pytest.raises(JsonError):
        read_list(data, salvage=True)


@pytest.mark.parametrize("filler", [b"[],", b'"",', b"{},", b'"a":1,'])
def test_what_would_fill_the_memory_is_not_even_begun(filler: bytes) -> None:
    data = b"[" + filler * (MOST_MARKS // sum(map(filler.count, MARKS)) + 1) + b"0]"

    for read in (read_json, read_list):
        with pytest.raises(JsonError, match=r"found 2,000,00. brackets, commas and quotes, expected at most 2,000,000"):
            read(data)


def test_a_long_text_is_not_what_fills_the_memory() -> None:
    assert read_list(b'["' + b"x" * (MOST_MARKS + 1) + b'"]').notes == ()


def test_a_text_of_escapes_that_does_not_end_takes_no_time() -> None:
    with pytest.raises(JsonError, match="end too early"):
        read_list(b'["' + b'\\"' * 1_000_000)


@given(st.binary(max_size=60) | st.text(alphabet='[]{},:"\\ud8c0 1Na', max_size=40).map(str.encode))
def test_whatever_the_bytes_there_is_a_value_or_an_error(data: bytes) -> None:
    for read in (read_json, read_list):
        try:
            value = read(data).value
        except JsonError:
            continue
        json.dumps(value, default=lambda unreadable: unreadable.reason, ensure_ascii=False).encode()
