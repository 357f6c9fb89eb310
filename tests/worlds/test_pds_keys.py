"""Signatures by the examples of RFC 6979, A.2.5; those with the larger s, which the network refuses, turned over."""

import pytest

from sanderling.worlds.pds_keys import SigningKey

SECRET = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
POINT = (
    0x60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6,
    0x7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299,
)


def test_the_public_half_is_that_of_the_example() -> None:
    assert SigningKey(SECRET).point == POINT


@pytest.mark.parametrize(
    ("message", "r", "s"),
    [
        (
            b"sample",
            0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716,
            ORDER - 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8,
        ),
        (
            b"test",
            0xF1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367,
            0x019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083,
        ),
    ],
)
def test_signatures_are_those_of_the_examples(message: bytes, r: int, s: int) -> None:
    assert SigningKey(SECRET).sign(message) == r.to_bytes(32) + s.to_bytes(32)


def test_a_key_is_written_as_the_network_does() -> None:
    # The parity of y, x, and 0x1200 before both; all P-256 keys begin like this in base58.
    assert SigningKey(SECRET).did == "did:key:zDnaepBuvsQ8cpsWrVKw8fbpGpvPeNSjVPTWoq6cRqaYzBKVP"


def test_words_stand_for_one_key() -> None:
    assert SigningKey.of("a host") == SigningKey.of("a host") != SigningKey.of("another")
    assert 0 < SigningKey.of("a host").secret < ORDER
