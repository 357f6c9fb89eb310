"""What the words around a word make of it, and how a list is read."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sanderling.events.analysis.lexicon import LexiconModel, load_lexicon
from sanderling.events.analysis.listing import WordListError
from sanderling.events.analysis.preprocess import normalise
from sanderling.events.analysis.scan_python import VALENCE
from sanderling.events.analysis.sentiment import UNKNOWN, Label, ReadsParts, judge, judge_all

LEXICON = load_lexicon()
MODEL = LexiconModel(LEXICON)


def score(text: str, model: LexiconModel = MODEL) -> float:
    return judge(model.scores([normalise(text).vivid])[0]).score


def listed(folder: Path, text: str) -> LexiconModel:
    path = folder / "lexicon.txt"
    path.write_text(text, encoding="utf-8")
    return LexiconModel(load_lexicon(path))


def test_the_score_weighs_the_good_against_the_bad(tmp_path: Path) -> None:
    model = listed(tmp_path, "[words]\n2: good\n3: great\n-1: bad\n")

    assert score("good", model) == pytest.approx(2 / 3)
    assert score("bad", model) == pytest.approx(-1 / 2)
    assert score("good. great. bad", model) == pytest.approx((5 - 1) / (5 + 1 + 1))


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("đẹp", "rất đẹp"),
        ("đẹp", "đẹp quá"),
        ("rất đẹp", "rất đẹp luôn"),
        ("hơi đẹp", "đẹp"),
        ("good", "extremely good"),
        ("a bit good", "good"),
        ("good", "good!"),
        ("good!", "good!!"),
        ("good", "gooood"),
        ("đẹp", "đẹppppp"),
        ("ngon", "ngon kinh khủng"),
        ("đẹp", "đẹp 😍"),
        ("đẹp nhưng đắt", "đắt nhưng đẹp"),
        ("tuyệt vời mặc dù đắt", "tuyệt vời"),
        ("mặc dù đắt, đẹp", "mặc dù hơi đắt, đẹp"),
        ("đẹp và đắt", "đẹp mặc dù đắt"),
        ("mặc dù đắt nó đẹp", "mặc dù đắt, nó đẹp"),
        ("good but bad", "bad but good"),
        ("tốt không ạ", "tốt"),
        ("tốt không, mọi người", "tốt, mọi người"),
        ("is it good or not?", "it is good"),
    ],
)
def test_what_makes_a_text_better(weaker: str, stronger: str) -> None:
    assert score(weaker) < score(stronger)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("không đẹp", -1),
        ("chẳng hề ngon", -1),
        ("chưa hài lòng", -1),
        ("not good", -1),
        ("isn't good", -1),
        ("never been a good place", -1),
        ("không tệ", 1),
        ("not bad", 1),
        ("never disappointed", 1),
        ("không phải không đẹp", 1),
        ("không đẹp không bền", -1),
        ("không đẹp, bền", 1),
        ("không bao giờ mua nữa 😡", -1),
        ("chưa từng chê 😍", 1),
        ("dep qua", 1),
        ("that vong qua", -1),
        ("khoẻ", 1),
        ("khỏe", 1),
        ("sooo good", 1),
        ("😍", 1),
        ("👎🏽", -1),
        ("❤️❤️", 1),
        (":((", -1),
    ],
)
def test_which_way_a_text_is_meant(text: str, sign: int) -> None:
    assert score(text) * sign > 0


@pytest.mark.parametrize(
    "text",
    ["uống cà phê", "vui lòng liên hệ", "ngay lập tức", "khách sạn", "on a table", "đẹp không?", "phần mềm", "so so"],
)
def test_words_that_only_look_good_or_bad_say_nothing(text: str) -> None:
    assert abs(score(text)) <= 0.25


def test_after_a_negation_neither_kind_of_degree_adds() -> None:
    assert score("không đẹp lắm") == score("không đẹp") == score("không quá đẹp")
    assert score("not very good") == score("not good")
    assert score("rất không đẹp") < score("không đẹp"), "this one is about the negation"


def test_a_word_said_again_at_once_counts_a_quarter(tmp_path: Path) -> None:
    model = listed(tmp_path, "[words]\n2: good\n")

    assert score("good good", model) == pytest.approx(2.5 / 3.5)
    assert score("good, good", model) == pytest.approx(4 / 5)


def test_no_negation_reaches_beyond_a_mark_or_four_words(tmp_path: Path) -> None:
    model = listed(tmp_path, "[words]\n2: good\n[negations]\nnot\n")

    assert score("not a b c good", model) < 0
    assert score("not a b c d good", model) > 0
    assert score("not, good", model) > 0


def test_a_phrase_behind_a_word_changes_it_and_elsewhere_speaks_for_itself() -> None:
    assert score("dã man") < 0 < score("đẹp") < score("đẹp dã man")


def test_what_is_listed_goes_before_what_is_inferred(tmp_path: Path) -> None:
    model = listed(tmp_path, "[words]\n2: đẹp ý\n[nothing]\ndep y\n")

    assert (score("đẹp ý", model) > 0, score("dep y", model)) == (True, 0.0)


def test_another_list_has_another_version(tmp_path: Path) -> None:
    first, second = listed(tmp_path, "[words]\n2: good\n"), listed(tmp_path, "[words]\n1: good\n")

    assert first.version != second.version
    assert MODEL.version == LexiconModel().version


def test_the_list_is_long_enough() -> None:
    valences = [phrase for phrase, said in LEXICON.phrases.items() if said.kind == VALENCE]
    vietnamese = [phrase for phrase in valences if not phrase.isascii()]

    assert len(vietnamese) >= 700
    assert len([phrase for phrase in valences if phrase.isascii()]) - len(vietnamese) >= 600


def test_an_empty_text_is_neutral_and_nothing_is_known() -> None:
    assert judge_all(MODEL, {"": []}) == {"": UNKNOWN}
    assert UNKNOWN[:3] == (Label.NEUTRAL, 0.0, 0.0)


def test_a_text_without_a_known_word_is_neutral_and_half_sure() -> None:
    verdict = judge(MODEL.scores(["xyz"])[0])

    assert (verdict.label, verdict.score, verdict.confidence) == (Label.NEUTRAL, 0.0, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[good]\nx", "line 1: found '[good]', expected one of [words], [before]"),
        ("[words]\nx", "line 2: found 'x', expected a number from -3 to 3 and a colon first"),
        ("[words]\n4: x", "line 2: found '4: x', expected a number from -3 to 3"),
        ("[words]\nnan: x", "line 2: found 'nan: x', expected a number from -3 to 3"),
        ("[before]\n0: x", "line 2: found '0: x', expected a number from 0.2 to 3"),
        ("[negations]\n2: x", "line 2: found '2: x', expected no number in [negations]"),
        ("[words]\n1: x\n2: X", "line 3: found 'X', expected each phrase once; it is in line 2 too"),
        ("[words]\n1: x\n[pivots]\nx", "line 4: found 'x', expected each phrase once; it is in line 2 too"),
        ("[words]\n1: x!", "line 2: found 'x!', expected one to 8 words"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WordListError) as caught:
        listed(tmp_path, text)

    assert message in str(caught.value)


PLAIN = [phrase for phrase, said in LEXICON.phrases.items() if said.kind == VALENCE and not said.after and said.value]
WORDS = st.sampled_from(PLAIN)
BEFORE = st.sampled_from(["rất", "cực kỳ", "siêu", "very", "extremely", "so"])
AFTER = st.sampled_from(["quá", "lắm", "ghê"])
NEGATIONS = st.sampled_from(["không", "chẳng", "chưa", "chả", "đừng", "not", "never", "isn't", "không hề"])
FRAMES = st.sampled_from(["{}", "mình thấy {}", "it is {} , đẹp", "xấu . {}", "đẹp nhưng {}", "mặc dù {} , ok"])


def said(text: str) -> float:
    return judge(MODEL.scores([text])[0]).score


def begins_a_phrase(words: str) -> bool:
    """Whether there is a phrase of these words, or of these and more: then they are not what they are apart."""
    return any(f"{phrase} ".startswith(f"{words} ") for phrase in LEXICON.phrases)


@given(WORDS, BEFORE, FRAMES)
def test_an_intensifier_before_a_word_never_weakens_it(word: str, intensifier: str, frame: str) -> None:
    assume(not begins_a_phrase(f"{intensifier} {word.partition(' ')[0]}"))
    plain, strong = said(frame.format(word)), said(frame.format(f"{intensifier} {word}"))

    assert strong >= plain if LEXICON.phrases[word].value > 0 else strong <= plain


@given(WORDS, AFTER, FRAMES)
def test_an_intensifier_behind_a_word_never_weakens_it(word: str, intensifier: str, frame: str) -> None:
    assume(not begins_a_phrase(f"{word} {intensifier}"))
    plain, strong = said(frame.format(word)), said(frame.format(f"{word} {intensifier}"))

    assert strong >= plain if LEXICON.phrases[word].value > 0 else strong <= plain


@given(WORDS, NEGATIONS)
def test_a_negation_turns_a_word_over_and_weakens_it(word: str, negation: str) -> None:
    first = word.partition(" ")[0]
    assume(first not in LEXICON.asking and not begins_a_phrase(f"{negation} {first}"))
    plain, negated = said(word), said(f"{negation} {word}")

    assert plain * negated <= 0
    assert abs(negated) < abs(plain)


@given(st.text(max_size=200))
def test_any_text_has_scores_that_add_up(text: str) -> None:
    part = normalise(text)
    scores = MODEL.scores([part.vivid])[0]

    assert sum(scores[:3]) == pytest.approx(1)
    assert min(scores[:3]) > 0


@given(
    st.lists(
        st.sampled_from(["đẹp", "không", "rất", ".", ",", "!", "but", "😍", "tệ", "quá", "sooo", "x"]), max_size=20
    ).map(" ".join)
)
def test_with_parts_that_are_known_the_scores_are_the_same(text: str) -> None:
    part = normalise(text)

    assert isinstance(MODEL, ReadsParts)
    assert MODEL.scores_of_parts({part.vivid: [part]}) == MODEL.scores([part.vivid])
    assert MODEL.scores_of_parts({part.vivid: []}) == MODEL.scores([part.vivid])


@given(st.lists(st.sampled_from(["đẹp quá!", "đẹp không", "tệ lắm 😡", "sooo good", "nhưng đắt", "", "x"]), max_size=6))
def test_a_text_is_the_sum_of_its_parts(raws: list[str]) -> None:
    parts = [normalise(raw) for raw in raws]
    whole = " . ".join(part.vivid for part in parts)
    texts = {part.vivid: (part,) for part in parts} | {f"{whole} ": parts}

    *_, together = MODEL.scores_of_parts(texts)

    assert together[:3] == pytest.approx(MODEL.scores([whole])[0][:3])
