"""What becomes of a post's texts. Hostile ones too: whatever it is, a text comes out, and soon."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.events.analysis.intent import load_intents
from sanderling.events.analysis.preprocess import (
    MOST_COMMENT,
    MOST_TEXT,
    Clean,
    has_phone,
    most_liked,
    normalise,
    preprocess,
)
from sanderling.events.analysis.scan import words_of
from sanderling.events.posts import Comment, Post

SPAM = load_intents().spam


def comment(text: str, likes: int = 0) -> Comment:
    return Comment(id="1", text=text, likes=likes)


def cleaned(text: str = "", transcription: str = "", comments: tuple[Comment, ...] = ()) -> Clean:
    return preprocess(Post(id="1", platform="tiktok", text=text, transcription=transcription, comments=comments), SPAM)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\uff26\uff35\uff2c\uff2c \uff57idth", "full width"),
        ("d\u0065\u0323p".replace("d", "đ"), "đẹp"),
        ("xem https://a.vn/x?y=1 nhé", "xem nhé"),
        ("Xem HTTP://A.VN và WWW.b.vn", "xem và"),
        ("#xeđẹp ##review và C# 5 # x", "xeđẹp review và c# 5 # x"),
        ("  nhiều \t\r\n  khoảng   trắng\u00a0nhé ", "nhiều khoảng trắng nhé"),
        ("đẹp quá... thật… vậy", "đẹp quá. thật. vậy"),
        ("it\u2019s fine", "it's fine"),
        ("ẩn\u200bgiữa\u00adchữ\ufeff\x00", "ẩngiữachữ"),
        ("ok \ud800 nhé", "ok nhé"),
        ("\u202eabc\u202c", "abc"),
    ],
)
def test_a_text_is_written_as_a_reader_would(raw: str, clean: str) -> None:
    assert normalise(raw).text == clean


def test_an_english_article_stays_what_it_is() -> None:
    assert normalise("This is a good phone, a real one").text == "this is a good phone, a real one"


def test_in_vietnamese_a_single_letter_is_a_word() -> None:
    assert normalise("A ơi e k biết mua ở đâu").text == "anh ơi em không biết mua ở đâu"


@pytest.mark.parametrize("text", ["漢字かな交じり文です", "한국어 문장입니다", "中文句子", "نص عربي", "ⱶⰰ", "Ⓜ"])
def test_only_emoji_are_taken_for_emoji(text: str) -> None:
    """A single range from the first to the last of them would have all of these in it."""
    assert normalise(text).text == unicodedata.normalize("NFKC", text).lower()


@pytest.mark.parametrize("emoji", ["😍", "❤️", "👍🏽", "🇻🇳", "⭐", "✨", "👨‍👩‍👧", "☺️", "🫶", "➡️"])
def test_emoji_are_not_in_the_clean_text_and_part_words(emoji: str) -> None:
    assert normalise(f"đẹp{emoji}quá").text == "đẹp quá"


def test_the_vivid_text_has_the_emoji_behind_it() -> None:
    part = normalise("đẹp😍 quá ❤️ nha :((")

    assert part.text == "đẹp quá nha"
    assert part.vivid == "đẹp quá nha 😍 ❤ 🙁"
    assert part.words == ["đẹp", "quá", "nha", "😍", "❤", "🙁"]


@pytest.mark.parametrize(
    ("emoticon", "emoji"), [(":)", "🙂"), ("=))", "🙂"), (":-)", "🙂"), (";)", "🙂"), (":'(", "🙁"), ("<3", "❤")]
)
def test_emoticons_are_emoji(emoticon: str, emoji: str) -> None:
    assert normalise(f"vậy {emoticon} nha").vivid == f"vậy nha {emoji}"


@pytest.mark.parametrize("text", ["giá:(m) hay (l)", "x <30", "10:30"])
def test_marks_in_a_row_are_no_emoticon_if_a_word_follows(text: str) -> None:
    assert normalise(text).vivid == text


def test_transcription_caption_and_the_most_liked_comments_become_one_text() -> None:
    comments = tuple(comment(f"Bình luận {likes}!", likes) for likes in (1, 9, 3, 7, 5, 8, 2))

    clean = cleaned("Chú thích đây?!", " Lời nói nè... ", comments)

    liked = ". ".join(f"bình luận {likes}" for likes in (9, 8, 7, 5, 3))
    assert clean.text == f"lời nói nè. chú thích đây. {liked}"
    assert list(clean.comments) == [1, 5, 3, 4, 2]


def test_of_comments_with_as_many_likes_the_earlier_one_counts() -> None:
    comments = [comment(str(place), likes) for place, likes in enumerate([2, 5, 2, 5, 2])]

    assert most_liked(comments, 4) == [1, 3, 0, 2]


def test_a_caption_that_repeats_the_transcription_counts_once() -> None:
    assert cleaned("Giống nhau nhé", "Giống nhau nhé").text == "giống nhau nhé"


def test_own_words_are_those_before_the_comments() -> None:
    clean = cleaned("một hai", "ba", (comment("bốn"),))

    assert clean.words[: clean.own] == ["ba", ".", "một", "hai", "."]
    assert clean.words[clean.own :] == ["bốn", "."]


def test_every_part_is_read_in_its_own_language() -> None:
    assert cleaned("k đẹp lắm nha", "", (comment("this is a nice k"),)).text == "không đẹp lắm nha. this is a nice k"


def test_stats_of_a_usual_post() -> None:
    stats = cleaned("Liên hệ 0912.345.678 nhé #mua #ban", "Xin chào cả nhà").stats

    assert stats.total_length == len("xin chào cả nhà. liên hệ 0912.345.678 nhé mua ban")
    assert stats.hashtag_ratio == pytest.approx(2 / 10)
    assert stats.has_transcription
    assert stats.has_phone
    assert (stats.is_too_short, stats.is_cut, stats.has_spam_keyword) == (False, False, False)


def test_stats_of_an_empty_post() -> None:
    stats = cleaned().stats

    assert stats == (0, True, False, 0.0, 0.0, False, False, False)


def test_ten_characters_are_enough_to_go_by() -> None:
    assert cleaned("123456789").stats.is_too_short
    assert not cleaned("1234567890").stats.is_too_short
    assert cleaned("12345678 😍😍😍 https://a.vn").stats.is_too_short, "of the clean text"


def test_the_reduction_is_what_is_gone_and_never_less_than_nothing() -> None:
    assert cleaned("đẹp https://a.vn/12345678").stats.reduction_ratio == pytest.approx(1 - 3 / 25)
    assert cleaned("k k k k đẹp nhé").stats.reduction_ratio == 0.0, "slang becomes longer"


def test_there_are_no_more_hashtags_than_words() -> None:
    assert cleaned("#a#b#c").stats.hashtag_ratio == 1.0


def test_a_transcription_of_nothing_is_none() -> None:
    assert not cleaned("chú thích", "😍 \u200b").stats.has_transcription


@pytest.mark.parametrize(
    "text",
    [
        "0912345678",
        "gọi 0356789012 nhé",
        "0912.345.678",
        "0912 345 678",
        "+84912345678",
        "84 912 345 678",
        "01212345678",
    ],
)
def test_a_mobile_number_is_seen_also_in_groups(text: str) -> None:
    assert has_phone(text)


@pytest.mark.parametrize("text", ["", "0212345678", "091234567", "09123456789", "10912345678", "giá 1.000.000", "2024"])
def test_other_numbers_are_no_phones(text: str) -> None:
    assert not has_phone(text)


@pytest.mark.parametrize("text", ["VAY TIỀN NHANH trong ngày", "vay tien nhanh", "\uff36ay tiền nhanh lãi thấp"])
def test_spam_is_seen_however_it_is_written(text: str) -> None:
    assert cleaned(text).stats.has_spam_keyword


def test_a_comment_does_not_make_a_post_spam() -> None:
    clean = cleaned("Một bài viết bình thường", "", (comment("vay tiền nhanh", 100),))

    assert not clean.stats.has_spam_keyword


def test_a_word_that_only_contains_spam_is_none() -> None:
    assert not cleaned("sim số đẹpx").stats.has_spam_keyword


def test_of_a_huge_text_the_beginning_is_read() -> None:
    clean = cleaned("đẹp " * 300_000)

    assert clean.stats.is_cut
    assert len(clean.text) <= MOST_TEXT


def test_of_a_huge_comment_the_beginning_is_read() -> None:
    clean = cleaned("bài viết", "", (comment("x" * 1_000_000),))

    assert clean.stats.is_cut
    assert len(clean.text) < MOST_COMMENT + 20


def test_a_text_is_cut_as_it_was_written() -> None:
    assert len(normalise("e\u0323" * MOST_TEXT).text) == MOST_TEXT / 2


def test_thousands_of_marks_on_a_letter_are_not_put_in_order() -> None:
    assert normalise("a" + "\u0323\u0301" * 5000 + " ok").text == normalise("a" + "\u0323\u0301" * 15 + " ok").text


@pytest.mark.parametrize("piece", ["#", ":(", "http://", "k ", "09 ", "' ", "(", "...", "\u0323\u0301", "😍"])
def test_a_row_of_anything_is_read(piece: str) -> None:
    assert len(cleaned(piece * 500_000, "ok").text) <= MOST_TEXT + 10


def test_a_text_that_grows_is_cut_again() -> None:
    assert len(normalise("\ufdfa" * MOST_TEXT).text) <= MOST_TEXT


ODD = "akemj# .,!?:()<3=\u200d\ufe0f\u0323😍👍🏽\ud800\x00\u202e\ufdfaİ"
HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from(ODD)),
    max_size=60,
)


@given(HOSTILE)
@example("k" + "\u0323" * 50)
@example("((((((((((((:((((((((((((a")
def test_any_text_comes_out_clean(raw: str) -> None:
    part = normalise(raw)

    assert part.text == " ".join(part.text.split())
    assert part.words == words_of(part.vivid)
    assert "😍" not in part.text
    part.text.encode()  # nothing is left that could not be written


@given(HOSTILE)
def test_what_is_clean_stays_as_it_is(raw: str) -> None:
    """But for characters that small letters and composition bring about, once."""
    text = normalise(normalise(raw).text).text

    assert normalise(text).text == text
