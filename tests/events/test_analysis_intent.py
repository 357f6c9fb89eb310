from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.intent import NOTHING_FOUND, Intent, Intents, load_intents
from sanderling.events.analysis.listing import WordListError
from sanderling.events.analysis.preprocess import normalise

SHIPPED = load_intents()


def intent(text: str, intents: Intents = SHIPPED) -> Intent:
    return intents.classify(normalise(text).words)


def listed(folder: Path, text: str) -> Intents:
    path = folder / "intents.txt"
    path.write_text(text, encoding="utf-8")
    return load_intents(path)


def test_the_families_and_their_priorities() -> None:
    assert [(family.name, family.priority, family.skip) for family in SHIPPED.families] == [
        ("CRISIS", 10, False),
        ("SEEDING", 9, True),
        ("SPAM", 9, True),
        ("COMPLAINT", 7, False),
        ("LEAD", 5, False),
        ("SUPPORT", 4, False),
        ("DISCUSSION", 1, False),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CRISIS", "Pin sạc dự phòng phát nổ trong đêm, cả nhà hoảng hồn"),
        ("CRISIS", "keu goi tay chay hang nay"),
        ("CRISIS", "The charger caught fire last night"),
        ("CRISIS", "Rò rỉ thông tin khách hàng rồi mọi người ơi"),
        ("SEEDING", "Chị nào cần thì inbox em nha, giá sỉ luôn"),
        ("SEEDING", "Get yours, link in my bio"),
        ("SEEDING", "Bấm vào giỏ hàng để lấy giá tốt"),
        ("SPAM", "Vay tiền nhanh lãi suất thấp, giải ngân trong ngày"),
        ("SPAM", "Earn money from home while you sleep"),
        ("SPAM", "nha cai uy tin nap rut 24h"),
        ("COMPLAINT", "Mới mua đã hỏng, gọi mãi không ai nghe máy"),
        ("COMPLAINT", "hang loi ma shop khong chiu doi tra, that vong qua"),
        ("COMPLAINT", "I want a refund, it stopped working after a day"),
        ("COMPLAINT", "Terrible service, never again"),
        ("LEAD", "Mẫu này giá bao nhiêu vậy shop"),
        ("LEAD", "cho em xin gia voi a"),
        ("LEAD", "How much is it and where can I buy one?"),
        ("LEAD", "Còn hàng không ạ, mình muốn mua một cái"),
        ("SUPPORT", "Làm sao để kết nối với tivi ạ"),
        ("SUPPORT", "quen mat khau thi lam sao"),
        ("SUPPORT", "How do I reset it? I forgot my password"),
        ("SUPPORT", "Bảo hành mấy năm vậy ạ"),
        ("DISCUSSION", "Theo mình thì bản cũ vẫn hợp hơn"),
        ("DISCUSSION", "What do you think about it?"),
        ("DISCUSSION", "Hôm nay trời đẹp"),
    ],
)
def test_what_a_text_is_for(name: str, text: str) -> None:
    assert intent(text).name == name


@pytest.mark.parametrize(
    "text",
    [
        "Mình vay tiền mua xe, trả góp ba năm",
        "how to get more likes on my videos",
        "I recall buying it last year",
        "you killed it, what a performance",
        "có ngay lập tức, tức là không phải chờ",
    ],
)
def test_ordinary_talk_is_no_spam_crisis_or_complaint(text: str) -> None:
    assert intent(text).name not in {"CRISIS", "SEEDING", "SPAM", "COMPLAINT"}


@pytest.mark.parametrize("text", ["", "...", "😍", "một hai ba"])
def test_what_nothing_is_found_in_is_discussion(text: str) -> None:
    assert intent(text) == NOTHING_FOUND == Intent("DISCUSSION", 1.0, should_skip=False, matches=())


def test_the_highest_priority_wins_whatever_comes_first(tmp_path: Path) -> None:
    intents = listed(tmp_path, "[LOW 1]\none, two, three\n[HIGH 2]\nfour\n")

    assert intent("one two three four", intents).name == "HIGH"


def test_of_equal_priorities_the_first_in_the_file_wins(tmp_path: Path) -> None:
    assert intent("one two", listed(tmp_path, "[A 3]\ntwo\n[B 3]\none\n")).name == "A"
    assert intent("one two", listed(tmp_path, "[B 3]\none\n[A 3]\ntwo\n")).name == "B"


@pytest.mark.parametrize(("count", "confidence"), [(1, 0.6), (2, 0.7), (4, 0.9), (5, 1.0), (7, 1.0)])
def test_confidence_grows_with_the_patterns_that_were_found(tmp_path: Path, count: int, confidence: float) -> None:
    intents = listed(tmp_path, "[A 1]\nw1, w2, w3, w4, w5, w6, w7\n[B 0]\nx\n")
    words = " ".join(f"w{number}" for number in range(1, count + 1))

    assert intent(f"{words} x {words}", intents).confidence == pytest.approx(confidence)


def test_a_pattern_stands_for_all_its_alternatives(tmp_path: Path) -> None:
    intents = listed(tmp_path, "[A 1]\n(want|need) to (buy|order|) now\n")

    assert all(intent(f"i {text}", intents).matches for text in ("want to buy now", "need to order now", "need to now"))
    assert not intent("i want buy now", intents).matches


def test_a_pattern_is_whole_words_and_not_across_a_break(tmp_path: Path) -> None:
    intents = listed(tmp_path, "[A 1]\nhàng lỗi\n")

    assert intent("hàng lỗi rồi", intents).name == "A"
    assert intent("hang loi roi", intents).name == "A"
    assert intent("nhàng lỗi, khách hàng, lỗi rồi", intents).name == "DISCUSSION"


def test_a_comment_can_raise_a_crisis_but_not_silence_a_post() -> None:
    own = normalise("Mình thấy mẫu này đẹp").words

    def under(comment: str) -> str:
        return SHIPPED.classify([*own, ".", *normalise(comment).words], len(own)).name

    assert under("cháy nổ rồi kìa") == "CRISIS"
    assert under("nhà cái uy tín, inbox em để nhận quà") == "DISCUSSION"
    assert SHIPPED.classify(normalise("nhà cái uy tín").words).should_skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[A]\nx", "line 1: found '[A]', expected [NAME priority]"),
        ("[A ten]\nx", "line 1: found '[A ten]', expected [NAME priority]"),
        ("[A 1 drop]\nx", "line 1: found '[A 1 drop]', expected [NAME priority]"),
        ("[A 1]\n[A 2]", "line 2: found 'A', expected each family once"),
        (f"[{'A' * 21} 1]", "expected a name of at most 20 characters"),
        ("[A 1]\n(a|b", "line 2: found '(a|b', expected parentheses in pairs"),
        ("[A 1]\n((a|b) c|d)", "expected parentheses in pairs, and none within others"),
        ("[A 1]\n" + "(a|b)" * 10, "expected at most 1000 forms of one pattern, not 1024"),
        ("[A 1]\n(a|)", "line 2: found '', expected one to 8 words"),
        ("[A 1]\na. b", "line 2: found 'a. b', expected one to 8 words"),
        ("[spam keywords]\na!", "line 2: found 'a!', expected one to 8 words"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WordListError) as caught:
        listed(tmp_path, text)

    assert str(caught.value).startswith(str(tmp_path / "intents.txt"))
    assert message in str(caught.value)


def test_marks_of_regular_expressions_mean_nothing(tmp_path: Path) -> None:
    """So there is none that could take for ever."""
    intents = listed(tmp_path, "[A 1]\n(a+)+b, a*\n")

    assert intent("a" * 5000 + "!", intents).name == "DISCUSSION"


@given(st.lists(st.sampled_from(["w1", "w2", "w3", "x", ".", "đẹp"]), max_size=20))
def test_more_words_never_lower_the_priority(words: list[str]) -> None:
    priorities = {family.name: family.priority for family in SHIPPED.families}
    before = SHIPPED.classify(words)

    after = SHIPPED.classify([*words, ".", "tẩy", "chay"])

    assert priorities[after.name] >= priorities[before.name]
    assert after.name == "CRISIS"
