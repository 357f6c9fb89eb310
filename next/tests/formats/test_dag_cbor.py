import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from atproto_repos import Link, cid_of, cid_text, encode
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats import dag_cbor
from sanderling.formats.dag_cbor import CborError, Cid, decode, exact_json, record_json

LINK = cid_of(b"")
HASH = LINK.hex()

# Each is the one form of its value.
GOOD: dict[str, Any] = {
    "00": 0, "17": 23, "1818": 24, "18ff": 255, "190100": 256, "19ffff": 65535, "1a00010000": 65536,
    "1affffffff": 2**32 - 1, "1b0000000100000000": 2**32, "1bffffffffffffffff": 2**64 - 1, "20": -1, "37": -24,
    "3818": -25, "3b7fffffffffffffff": -(2**63), "3bffffffffffffffff": -(2**64), "40": b"", "43010203": b"\1\2\3",
    "5818" + "00" * 24: bytes(24), "60": "", "6161": "a", "62c3a9": "é", "64f09f8c8a": "🌊", "6100": "\0", "80": [],
    "83010203": [1, 2, 3], "a0": {}, "a2616101616202": {"a": 1, "b": 2}, "a26162016261610a": {"b": 1, "aa": 10},
    "a260016161f6": {"": 1, "a": None}, "f4": False, "f5": True, "f6": None, "fb3ff199999999999a": 1.1,
    "fb0000000000000000": 0.0, "fb8000000000000000": -0.0, "fb7fefffffffffffff": 1.7976931348623157e308,
    f"d82a582500{HASH}": LINK, "d82a450001550000": Link(b"\x01\x55\x00\x00"),
}  # fmt: skip

# Each breaks one rule.
BAD = {
    "a value": ["", "61", "41", "81", "a1", "18", "1900", "1b00000001", "a16161", "58ff00", "d82a", "fb3ff1", "61c3"],
    "the shortest number": [
        "1800", "1817", "190000", "1900ff", "1a00000000", "1a0000ffff", "1b0000000000000000", "1b00000000ffffffff",
        "3800", "3900ff", "3b00000000ffffffff",
    ],
    "the shortest length": [
        "5800", "5900ff" + "00" * 255, "780161", "79000161", "9800", "99000100", "b800", "b90001616100",
    ],
    "a length that is there": [
        "5bffffffffffffffff", "5b0000010000000000", "7b8000000000000000", "9affffffff00", "9b8000000000000000",
        "bb0000010000000000", "ba00010000616100",
    ],
    "a definite length": ["5fff", "5f4101ff", "7fff", "7f6161ff", "9fff", "9f01ff", "bfff", "bf616101ff", "ff"],
    "a head that is given out": ["1c", "1d", "1e", "1f", "3f", "df", "fc", "e0", "f3", "f820", "f814", "f7"],
    "keys in order, each once": ["a2616101616102", "a2616201616102", "a262616101616202", "a26161016001"],
    "keys that are texts": ["a10101", "a1416101", "a1f601", "a18001"],
    "UTF-8": ["61ff", "62c328", "62c080", "63eda080", "64f4908080"],
    "no tag but 42": ["c06161", "c11a514b67b0", "c249010000000000000000", "d82b40"],
    "the shortest tag": [f"d9002a582500{HASH}", f"da0000002a582500{HASH}", "db000000000000002a40"],
    "a link to a CID": [
        "d82a00", "d82a6161", "d82a40", "d82a4100", "d82a5824" + HASH, "d82a582501" + HASH,
        "d82a5823001220" + "00" * 32, "d82a582500" + HASH[:-2], "d82a582600" + HASH + "00", "d82ad82a582500" + HASH,
        "d82a5900" + "25" + "00" + HASH, "d82a5867" + "000155" + "0062" + "00" * 98,
    ],
    "floats of 64 bits that are finite": [
        "f93c00", "f97e00", "fa3f800000", "fb7ff0000000000000", "fbfff0000000000000", "fb7ff8000000000000",
    ],
    "one value": ["0000", "a000", "f6f6"],
    "64 levels at most": ["81" * 65 + "00", "a16161" * 65 + "00", "81" * 100_000 + "00", "a16161" * 100_000 + "00"],
}  # fmt: skip

links = st.builds(cid_of, st.binary(max_size=4), st.sampled_from([0x55, 0x71]))
texts = st.text(max_size=8) | st.sampled_from(["cid", "$link", "$bytes", '"cid":', "\\", "\x00\x1f\x7f\u2028", "x8X"])
scalars = (
    st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | texts | st.binary(max_size=40) | links
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner, max_size=4), max_leaves=20)


WAYS = [dag_cbor.decode_by_libipld, *([dag_cbor.decode_by_cbrrr] if find_spec("cbrrr") else [])]


def same(block: bytes, *, strip: bool = False, nesting: int = 64) -> tuple[bytes, int] | None:
    """What each way gives, None for an error."""
    try:
        exact = exact_json(block, strip=strip, nesting=nesting)
    except CborError:
        exact = None
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dag_cbor, "decode_plain", way)
            try:
                assert record_json(block, strip=strip, nesting=nesting) == exact
            except CborError:
                assert exact is None
    return exact


@pytest.mark.parametrize(("form", "value"), GOOD.items())
def test_each_value_has_one_form(form: str, value: Any) -> None:
    data = bytes.fromhex(form)
    found = decode(data)

    assert encode(value) == data
    assert (repr(found), type(found)) == (repr(value), Cid) if isinstance(value, Link) else (repr(value), type(value))
    assert same(data)


@pytest.mark.parametrize("rule", BAD)
def test_what_breaks_a_rule_is_refused_wherever_it_stands(rule: str) -> None:
    for form in BAD[rule]:
        for around in ("", "8201", "a16161", "a261610163636964", "8361386178"):
            if form or not around:
                assert same(bytes.fromhex(around + form)) is None, (rule, around + form)
    assert same(encode({"a": ["x" * 56 + "\n", "8\n", 24, {"x": 5}]}))  # what looks as if it broke one


def test_the_public_vectors() -> None:
    """All 83 but six: a link may be any CIDv1, since records may link to anything; and -0.0 is a finite float."""
    rows = (Path(__file__).parent / "dasl_vectors.txt").read_text().splitlines()[1:]
    wrong = [row.split(" ", 2)[2] for row in rows if bool(same(bytes.fromhex(row.split()[1]))) == row.startswith("bad")]

    assert len(rows) == 83
    assert sorted(wrong) == [
        "CIDv1 that isn't raw or cbor",
        "disallowed hash type (SHA-1)",
        "empty CID",
        "long hash digest",
        "negative zero float64",
        "short hash digest",
    ]


@given(values, st.booleans())
def test_the_quick_way_gives_what_the_exact_way_gives(value: Any, strip: bool) -> None:
    written = same(encode(value), strip=strip)

    assert written is not None
    json.loads(written[0])
    assert b"\n" not in written[0]
    if strip:
        assert b'"cid":' not in written[0].replace(b'\\"', b"")


@given(values, st.data())
def test_a_changed_byte_means_the_same_to_both_or_is_refused(value: Any, data: st.DataObject) -> None:
    block = bytearray(encode([value, "á", LINK]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(block) - 1))
        piece = data.draw(
            st.binary(min_size=1, max_size=2) | st.just(encode(LINK)[:9]) | st.sampled_from([b"x8", b"\xc3"])
        )
        block[at : at + len(piece)] = piece
    same(bytes(block))


def test_a_link_within_bytes_or_a_text_is_no_link() -> None:
    """A quick way that looked for links alone would read the rest of the block as something else."""
    link = encode(LINK)
    shown = encode({"$link": cid_text(LINK)})
    for around in (b"\x58\x29", b"\x78\x2a\xc3", b"\x78\x29"):
        for behind in (b"", b"\x00", shown, encode("x" * 30)):
            for opening in (b"", b"\x82", b"\x83", b"\xa2\x61a"):
                same(opening + around + link + behind)
                same(opening + link + around + link + behind)
    assert same(encode([bytes(link), LINK])) == same(encode([bytes(link), LINK]))


@pytest.mark.parametrize("nesting", [1, 2, 64, 256])
def test_nesting_is_bounded(nesting: int) -> None:
    assert same(b"\x81" * nesting + b"\0", nesting=nesting)
    assert same(b"\xa1aa" * (nesting - 1) + encode({"a": LINK}), nesting=nesting)
    assert same(b"\x81" * (nesting + 1) + b"\0", nesting=nesting) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (LINK, f'{{"$link":"{cid_text(LINK)}"}}'),
        ([b"", b"\xff", b"\xfb\xef\xbe\xff"], '[{"$bytes":""},{"$bytes":"/w"},{"$bytes":"++++/w"}]'),
        ([2**64 - 1, -(2**64)], "[18446744073709551615,-18446744073709551616]"),
        ([1e16, 1e-7, 100.0, -0.0, 2.0**-44], "[1e+16,1e-07,100.0,-0.0,5.684341886080802e-14]"),
        (
            {"b": [1, None, True], "aa": 'é\n\x01"\\/\x7f\u2028🌊'},
            '{"b":[1,null,true],"aa":"é\\n\\u0001\\"\\\\/\x7f\u2028🌊"}',
        ),
    ],
)
def test_json_of_what_json_does_not_have(value: Any, text: str) -> None:
    written = same(encode(value))

    assert written is not None
    assert written[0].decode() == text


def test_entries_called_cid_are_dropped_at_any_depth_and_of_any_kind() -> None:
    value = {
        "cid": {"a": LINK},
        "a": [{"cid": "x", "uri": "y", "Cid": 1, "cids": 2}, [{"cid": LINK}, {"cid": b"x"}]],
        "b": {"x": {"cid": None}, "y": {"cid": 1.5}},
        "c": "cid",
    }
    dropped = same(encode(value), strip=True)
    kept = same(encode(value))

    assert dropped is not None
    assert kept is not None
    assert json.loads(dropped[0]) == {
        "a": [{"uri": "y", "Cid": 1, "cids": 2}, [{}, {}]],
        "b": {"x": {}, "y": {}},
        "c": "cid",
    }
    assert json.loads(kept[0])["cid"] == {"a": {"$link": cid_text(LINK)}}
    assert same(encode([1.0, {"a": [0.5, 1, True, "1.0"]}, -0.0])) == (b'[1.0,{"a":[0.5,1,true,"1.0"]},-0.0]', 3)
