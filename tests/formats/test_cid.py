import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats.cid import DAG_CBOR, RAW, Cid, CidError, to_varint, varint

EMPTY = Cid.of(b"", RAW)


def test_the_text_is_the_one_everybody_writes() -> None:
    assert EMPTY.text == "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    assert repr(EMPTY) == f"<Cid {EMPTY.text}>"


def test_a_block_is_named_by_its_kind_and_hash() -> None:
    assert Cid.of(b"abc") == DAG_CBOR + hashlib.sha256(b"abc").digest()
    assert Cid.of(b"abc", RAW) != Cid.of(b"abc")


@given(st.binary(max_size=100), st.sampled_from([DAG_CBOR, RAW]))
def test_a_cid_can_be_written_and_read(block: bytes, kind: bytes) -> None:
    cid = Cid.of(block, kind)

    assert Cid.parse(cid.text) == cid
    assert Cid.read(bytes(cid)) == cid


@pytest.mark.parametrize(
    "data",
    [
        bytes(EMPTY),
        b"\x01\x70\x12\x20" + bytes(32),  # of a file
        b"\x01\x71\x13\x40" + bytes(64),  # sha2-512
        b"\x01\x71\x00\x00",  # the identity of nothing
        b"\x01\x81\x01\x12\x01a",  # a codec of two bytes
    ],
)
def test_a_link_may_be_any_cid_of_version_1(data: bytes) -> None:
    assert Cid.read(data) == data


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "varint"),
        (b"\x12\x20" + bytes(32), "version 18"),
        (b"\x00\x71\x12\x20" + bytes(32), "version 0"),
        (b"\x02\x71\x12\x20" + bytes(32), "version 2"),
        (b"\x81\x00\x71\x12\x20" + bytes(32), "shortest"),
        (b"\x01\x71\x12\x20" + bytes(31), "31 bytes that says it has 32"),
        (b"\x01\x71\x12\x20" + bytes(33), "33 bytes that says it has 32"),
        (b"\x01\x71\x12", "varint"),
        (b"\x01\x71\x12\xff\xff\xff\xff\xff\xff\xff\x7f", "says it has"),
        (b"\x01\x71\x00\x61" + bytes(97), "101 bytes"),
    ],
)
def test_what_is_no_cid_of_version_1_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(CidError, match=fault):
        Cid.read(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG",
        EMPTY.text.upper(),
        EMPTY.text + "=",
        EMPTY.text[:-1],
        EMPTY.text[:-1] + "v",  # the last digit has bits to spare
        "b" + EMPTY.text[1:-1] + "1",
        "bé",
    ],
)
def test_a_cid_has_one_text(text: str) -> None:
    with pytest.raises(CidError):
        Cid.parse(text)


@given(st.integers(0, 2**63 - 1), st.binary(max_size=3))
def test_a_varint_can_be_written_and_read(value: int, after: bytes) -> None:
    data = to_varint(value)

    assert varint(b"x" + data + after, 1) == (value, 1 + len(data))


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\x80\x00", b"\xff\xff\x00", b"\x80" * 9, b"\xff" * 20, to_varint(2**63)]
)
def test_a_varint_is_the_shortest_and_has_nine_bytes_at_most(data: bytes) -> None:
    with pytest.raises(CidError):
        varint(data, 0)
