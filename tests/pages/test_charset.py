import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.charset import _LABELS, decode, named

TEXT = "Müßig, naïve, où"


def meta(charset: str) -> bytes:
    return f'<html><head><META Charset="{charset}">'.encode()


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("utf8", "utf-8"),
        (" UTF-8\n", "utf-8"),
        ('"latin1"', "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("GB2312", "gbk"),
        ("sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-7", None),
        ("rot13", None),
        ("base64", None),
        ("", None),
        (None, None),
    ],
)
def test_labels_mean_what_they_mean_on_the_web(label: str | None, name: str | None) -> None:
    assert named(label) == name


@pytest.mark.parametrize("name", _LABELS)
def test_every_encoding_is_one_that_can_be_read(name: str) -> None:
    assert decode(b"ab", name)[1] == name


@pytest.mark.parametrize(
    ("body", "hint", "name"),
    [
        (codecs.BOM_UTF8 + TEXT.encode(), "latin1", "utf-8"),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "utf-8", "utf-16le"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), None, "utf-16be"),
        (TEXT.encode("latin1"), "iso-8859-1", "windows-1252"),
        (TEXT.encode(), None, "utf-8"),
        (TEXT.encode("cp1252"), None, "windows-1252"),
        (TEXT.encode("cp1252"), "no-such-thing", "windows-1252"),
        (TEXT.encode(), "euc-jp", "utf-8"),
    ],
)
def test_what_says_how_to_read_it(body: bytes, hint: str | None, name: str) -> None:
    assert decode(body, hint) == (TEXT, name)


def test_the_server_is_believed_before_the_page() -> None:
    assert decode(meta("koi8-r") + b"\xe4", "latin1")[1] == "windows-1252"


def test_the_page_may_say_it_at_its_beginning() -> None:
    assert decode(meta("koi8-r") + "Привет".encode("koi8-r"), None)[0].endswith("Привет")
    http = b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'
    assert decode(http + "Привет".encode("cp1251"), None)[0].endswith("Привет")
    assert decode(b" " * 1024 + meta("koi8-r") + b"\xe4", None)[1] == "windows-1252"


def test_a_page_that_says_utf_16_in_plain_letters_is_not() -> None:
    assert decode(meta("utf-16") + TEXT.encode(), None)[1] == "utf-8"


def test_what_cannot_be_read_is_replaced() -> None:
    assert decode(b"a\xffb", "utf-8") == ("a\ufffdb", "utf-8")
    assert decode(b"a\x81b", None) == ("a\ufffdb", "windows-1252")


@given(st.binary(), st.none() | st.text() | st.sampled_from(list(_LABELS)))
def test_anything_can_be_read(body: bytes, hint: str | None) -> None:
    text, name = decode(body, hint)

    assert name in _LABELS
    text.encode()  # no lone surrogates
