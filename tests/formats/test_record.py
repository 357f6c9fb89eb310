"""The quick way to JSON must not be told from the exact one."""

import json

import pytest
from dag_cbor import BAD, GOOD, LINK, values
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats import record
from sanderling.formats.cbor import CborError, Value, encode
from sanderling.formats.cid import Cid

pytestmark = pytest.mark.skipif(not record.QUICK, reason="libipld and orjson are not installed")


def both(block: bytes, *, strip: bool = True, nesting: int = 64) -> object:
    """What the two ways say, which must be one thing."""
    results: list[object] = []
    for way in (record.exact_json, record.quick_json):
        try:
            results.append(way(block, strip=strip, nesting=nesting))
        except CborError as error:
            results.append(str(error))
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize("wrapping", ["", "81", "a16161", "a163636964"])
def test_on_all_that_is_and_is_not_dag_cbor(wrapping: str) -> None:
    for text in (*GOOD, *BAD):
        both(bytes.fromhex(wrapping + text))


@given(values, st.booleans(), st.integers(1, 5))
def test_on_any_value(value: Value, strip: bool, nesting: int) -> None:  # noqa: FBT001 - drawn
    both(encode(value), strip=strip, nesting=nesting)


@given(values, st.data())
def test_on_nearly_any_value(value: Value, data: st.DataObject) -> None:
    block = bytearray(encode(value))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] = data.draw(st.integers(0, 255))

    both(bytes(block))


@given(st.binary(max_size=40))
def test_on_any_bytes(block: bytes) -> None:
    both(block)


@pytest.mark.parametrize("nesting", [1, 2, 64, 256])
@pytest.mark.parametrize("opening", [b"\x81", b"\xa1aa", b"\xa1ccid"])
def test_on_nesting(nesting: int, opening: bytes) -> None:
    assert isinstance(both(opening * nesting + b"\0", nesting=nesting), tuple)
    assert isinstance(both(opening * (nesting + 1) + b"\0", nesting=nesting), str)


@pytest.mark.parametrize(
    "value",
    [
        bytes(LINK),  # a byte string that is a CID to the byte
        [bytes(LINK), LINK],
        {"cid": LINK},
        {"cid": [1.5]},
        {"$link": LINK.text},
        {"a": Cid(b"\x01\x70\x12\x20" + bytes(32))},
        {"a": b"\x12\x20" + bytes(32)},
        [-(2**64), 2**64 - 1],
    ],
)
@pytest.mark.parametrize("strip", [True, False])
def test_on_what_the_quick_way_cannot_know(value: Value, strip: bool) -> None:  # noqa: FBT001 - a column
    assert isinstance(both(encode(value), strip=strip), tuple)


def test_what_is_plain_goes_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the quick way would be none, and nothing above would show it."""
    monkeypatch.setattr(record, "exact_json", None)
    value: Value = {"subject": {"cid": "x", "uri": "y"}, "to": LINK, "n": [1, None, {"t": "é"}]}

    made, floats = record.quick_json(encode(value), strip=True, nesting=64)

    assert json.loads(made) == {"subject": {"uri": "y"}, "to": {"$link": LINK.text}, "n": [1, None, {"t": "é"}]}
    assert floats == 0
