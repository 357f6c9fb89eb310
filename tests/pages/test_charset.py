import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.charset import decode, named

TEXT = "Müßig, naïve, où"
NAMES = [
    *(f"iso-8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, "8-i", 10, 13, 14, 15, 16)),
    *(f"windows-{number}" for number in (874, *range(1250, 1259))),
    *("utf-8", "utf-16be", "utf-16le", "ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "x-user-defined"),
    *("gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr"),
]


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


@pytest.mark.parametrize("name", NAMES)
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
    assert decode(b" " * 70_000 + meta("koi8-r") + b"\xe4", None)[1] == "windows-1252"


CYRILLIC = "Привет, это страница".encode("cp1251")


@pytest.mark.parametrize(
    "head",
    [
        b"<script>" + b"x" * 1500 + b"</script><meta charset=windows-1251>",
        b"<!-- <meta charset=koi8-r> --><meta charset=windows-1251>",
        b"<meta charset=bogus><meta charset=windows-1251>",
        b"<script>'<meta charset=koi8-r>'</script><meta charset='windows-1251'>",
        b"<style>/* <meta charset=koi8-r> */</style><META CHARSET = cp1251 >",
        b"<meta content='text/html; charset=koi8-r'><meta charset=windows-1251>",
        b"<meta content='charset=x; charset=y' charset=windows-1251>",
        b"<meta http-equiv=Content-Type content='text/html; charset = \"windows-1251\"'>",
        b"<meta name=a content='>'><a title='<meta charset=koi8-r>'><meta charset=windows-1251>",
        b"<!--><meta charset=windows-1251>",
        b"<!meta charset=koi8-r><?meta charset=koi8-r><meta/charset=windows-1251>",
        b"<meta charset=windows-1251 charset=koi8-r>",
        b"",
    ],
    ids=range(13),
)
def test_a_page_says_it_as_browsers_look_for_it_and_else_it_is_detected(head: bytes) -> None:
    assert decode(head + CYRILLIC, None)[1] == "windows-1251"


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("これは日本語のページです。", "shift_jis", "shift_jis"),
        ("这是一个中文网页。内容是今天的新闻和天气预报。我们在北京。欢迎大家访问我们的网站。", "gbk", "gb18030"),
        ("한국어 페이지입니다. 오늘의 뉴스.", "euc-kr", "euc-kr"),
        ("Ελληνική γλώσσα και ειδήσεις της ημέρας", "cp1253", "windows-1253"),
    ],
)
def test_what_nothing_says_is_detected(text: str, codec: str, name: str) -> None:
    assert decode(text.encode(codec), None) == (text, name)


@pytest.mark.parametrize(
    "evil",
    [b"<", b"<a ", b"<!--", b"<script>", b"<meta ", b"<a b='", b"<meta charset=", b"</", b"<meta content=charset"],
)
def test_looking_for_it_takes_no_longer_for_hostile_pages(evil: bytes) -> None:
    started = time.process_time()
    decode(evil * (2_000_000 // len(evil)) + b"\xff", None)

    assert time.process_time() - started < 0.5


def test_a_page_that_says_utf_16_in_plain_letters_is_not() -> None:
    assert decode(meta("utf-16") + TEXT.encode(), None)[1] == "utf-8"


def test_what_cannot_be_read_is_replaced() -> None:
    assert decode(b"a\xffb", "utf-8") == ("a\ufffdb", "utf-8")
    assert decode(b"a\x81b", "windows-1252") == ("a\ufffdb", "windows-1252")


@given(st.binary(), st.none() | st.text() | st.sampled_from(NAMES))
def test_anything_can_be_read(body: bytes, hint: str | None) -> None:
    text, name = decode(body, hint)

    assert name in NAMES
    text.encode()  # no lone surrogates


@pytest.mark.parametrize("flaw", [b"\xe9", b"\xff", b"\xc3"])
def test_utf8_with_one_bad_byte_stays_utf8(flaw: bytes) -> None:
    text, charset = decode("Дом и сад. ".encode() + flaw + " où naïve".encode(), None)

    assert (charset, text) == ("utf-8", "Дом и сад. \ufffd où naïve")


@given(st.sampled_from(["windows-1251", "windows-1252", "shift_jis", "gbk", "euc-kr", "big5"]))
def test_other_encodings_are_not_taken_for_flawed_utf8(name: str) -> None:
    text = {"windows-1251": "Съешь ещё этих мягких булок", "windows-1252": "Müßig, naïve, où, déjà vu"}.get(
        name, "東京 日本 中国" * 9
    )
    body = text.encode({"shift_jis": "cp932", "euc-kr": "cp949"}.get(name, name), "ignore")

    assert decode(body, None)[1] != "utf-8"
