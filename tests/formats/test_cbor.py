import json
import struct

import pytest
from dag_cbor import BAD, GOOD, LINK, values
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats.cbor import CborError, Value, decode, encode, floats_in, to_json


@pytest.mark.parametrize(("text", "value"), GOOD.items())
def test_each_value_has_one_form(text: str, value: Value) -> None:
    data = bytes.fromhex(text)

    assert encode(value) == data
    assert same(decode(data), value)


@pytest.mark.parametrize("text", BAD)
def test_what_is_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(CborError) as caught:
        decode(bytes.fromhex(text))

    assert 0 <= caught.value.offset <= len(text) // 2
    assert str(caught.value).startswith(f"byte {caught.value.offset}: ")


@pytest.mark.parametrize("text", [text for text in BAD if text])
def test_a_fault_is_found_inside_of_lists_and_maps_too(text: str) -> None:
    with pytest.raises(CborError):
        decode(bytes.fromhex("8201" + text))
    with pytest.raises(CborError):
        decode(bytes.fromhex("a16161" + text))


@given(values)
def test_what_is_written_is_read_again(value: Value) -> None:
    assert same(decode(encode(value)), value)


@given(values, st.data())
def test_what_is_read_would_be_written_just_so(value: Value, data: st.DataObject) -> None:
    """So that there is one form, whatever bytes come."""
    block = bytearray(encode(value))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] = data.draw(st.integers(0, 255))

    try:
        read = decode(bytes(block))
    except CborError:
        return

    assert encode(read) == block


@given(st.binary(max_size=12))
def test_any_bytes_are_read_or_refused(block: bytes) -> None:
    try:
        assert encode(decode(block)) == block
    except CborError as error:
        assert error.offset <= len(block)  # noqa: PT017 - either is fine


@pytest.mark.parametrize("nesting", [1, 2, 64, 256])
def test_nesting_is_bounded(nesting: int) -> None:
    decode(b"\x81" * nesting + b"\0", nesting=nesting)

    with pytest.raises(CborError, match="too deep"):
        decode(b"\x81" * (nesting + 1) + b"\0", nesting=nesting)


@pytest.mark.parametrize("depth", [1000, 1_000_000])
def test_depth_does_not_reach_the_stack(depth: int) -> None:
    for opening in (b"\x81", b"\xa1aa"):
        with pytest.raises(CborError, match="too deep"):
            decode(opening * depth)


@pytest.mark.parametrize("value", [2**64, -(2**64) - 1, float("nan"), float("inf")])
def test_what_has_no_form_is_not_written(value: Value) -> None:
    with pytest.raises(ValueError, match="has no DAG-CBOR"):
        encode(value)


def test_json_is_compact_and_in_the_order_of_the_record() -> None:
    value: Value = {"b": [1, -2, None, True], "aa": 'é\n\x01"\\/\x7f\u2028🌊', "ccc": 1.5}

    assert to_json(value).decode() == '{"b":[1,-2,null,true],"aa":"é\\n\\u0001\\"\\\\/\x7f\u2028🌊","ccc":1.5}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (LINK, f'{{"$link":"{LINK.text}"}}'),
        (b"", '{"$bytes":""}'),
        (b"\xff", '{"$bytes":"/w"}'),
        (b"\xfb\xef\xbe\xff", '{"$bytes":"++++/w"}'),
        (2**64 - 1, "18446744073709551615"),
        (-(2**64), "-18446744073709551616"),
        (1e16, "1e+16"),
        (1e-7, "1e-07"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (2.0**-44, "5.684341886080802e-14"),
    ],
)
def test_json_of_what_json_does_not_have(value: Value, text: str) -> None:
    assert to_json(value).decode() == text


def test_cid_entries_are_stripped_at_any_depth_and_of_any_kind() -> None:
    value: Value = {
        "cid": {"a": 1},
        "a": [{"cid": "x", "uri": "y", "Cid": 1, "cids": 2}, [{"cid": LINK}]],
        "b": {"x": {"cid": None}},
        "c": "cid",
    }

    assert json.loads(to_json(value, strip=True)) == {
        "a": [{"uri": "y", "Cid": 1, "cids": 2}, [{}]],
        "b": {"x": {}},
        "c": "cid",
    }
    assert json.loads(to_json(value))["cid"] == {"a": 1}


@given(values)
def test_json_is_json(value: Value) -> None:
    json.loads(to_json(value))
    assert b'"cid":' not in to_json(value, strip=True).replace(b'\\"', b"")


def test_floats_are_counted() -> None:
    assert floats_in([1.0, {"a": [0.5, 1, True, "1.0"]}, -0.0]) == 3


def same(one: Value, other: Value) -> bool:
    """Equal, and of the same types: 1, 1.0 and True are three values, as are a link and its bytes, and 0.0 and -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return one == other
