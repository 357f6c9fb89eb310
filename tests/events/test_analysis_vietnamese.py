import pytest

from sanderling.events.analysis.scan import words_of
from sanderling.events.analysis.vietnamese import looks_vietnamese, spellings, unslang, without_marks


@pytest.mark.parametrize(
    "text",
    [
        "xe này đẹp quá",
        "k biết sao luôn",
        "khong biet mua o dau",
        "a oi gia bao nhieu",
        "shop ơi còn size m không",
    ],
)
def test_vietnamese_is_seen_by_its_letters_or_its_small_words(text: str) -> None:
    assert looks_vietnamese(text, words_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "this is a good phone",
        "i had a great phở and a very good bánh mì at that place",
        "une très belle journée à la plage",
        "a k e",
        "",
        "12345 !!!",
        "これはとても良いです",
    ],
)
def test_other_text_is_not_vietnamese(text: str) -> None:
    assert not looks_vietnamese(text, words_of(text))


def test_letters_are_left_of_a_word_without_its_marks() -> None:
    assert without_marks("Đường đẹp quá, thuở ấy") == "Duong dep qua, thuo ay"


def test_a_tone_may_stand_on_either_letter_at_the_end_of_a_syllable_only() -> None:
    assert spellings("hòa") == ["hòa", "hoà"]
    assert spellings("thuỷ") == ["thuỷ", "thủy"]
    assert spellings("hoàn") == ["hoàn"]
    assert spellings("quý") == ["quý"], "here u belongs to q"


@pytest.mark.parametrize(
    ("slang", "written"),
    [
        ("k biết", "không biết"),
        ("đẹp,k mua", "đẹp,không mua"),
        ("(ko) e k thích.", "(không) em không thích."),
        ("mn ơi sp này dc k", "mọi người ơi sản phẩm này được không"),
        ("koko k", "koko không"),
        ("giá 50 k", "giá 50 k"),
        ("áo t-shirt, học c#, gửi e-mail, loa a/b", "áo t-shirt, học c#, gửi e-mail, loa a/b"),
        ("size m, vitamin c, hạng a", "size m, vitamin c, hạng a"),
    ],
)
def test_slang_is_written_out_as_whole_words(slang: str, written: str) -> None:
    assert unslang(slang, everything=True) == written


def test_outside_vietnamese_only_what_is_nothing_else_is_written_out() -> None:
    assert unslang("a vs k, ko", everything=False) == "a vs k, không"
