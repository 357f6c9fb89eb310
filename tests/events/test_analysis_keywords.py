from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.aspects import MOST_KEYWORDS, MOST_PLACES, Aspects, Keyword, load_aspects
from sanderling.events.analysis.listing import WordListError
from sanderling.events.analysis.preprocess import normalise

SHIPPED = load_aspects()


def found(text: str, aspects: Aspects = SHIPPED) -> list[Keyword]:
    part = normalise(text)
    return aspects.find(part.text, part.words)


def names(text: str, aspects: Aspects = SHIPPED) -> dict[str, str]:
    return {keyword.keyword: keyword.aspect for keyword in found(text, aspects)}


def listed(folder: Path, text: str) -> Aspects:
    path = folder / "aspects.txt"
    path.write_text(text, encoding="utf-8")
    return load_aspects(path)


def test_the_aspects() -> None:
    assert SHIPPED.names == ["DESIGN", "PERFORMANCE", "PRICE", "SERVICE"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thiết kế đẹp, pin trâu", {"thiết kế": "DESIGN", "pin": "PERFORMANCE"}),
        ("thiet ke dep ma gia ca sao", {"thiết kế": "DESIGN", "giá cả": "PRICE"}),
        ("Great design, bad customer service", {"design": "DESIGN", "customer service": "SERVICE"}),
        ("Động cơ êm, tiền nào của nấy", {"động cơ": "PERFORMANCE", "tiền": "PRICE"}),
    ],
)
def test_words_say_what_a_text_is_about(text: str, expected: dict[str, str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize("text", ["giáo dục", "tiềnx", "xtiền", "pinky", "spinning", "repricing", "sapin"])
def test_a_keyword_within_a_word_is_none(text: str) -> None:
    assert names(text) == {}


def test_the_longest_keyword_counts() -> None:
    assert list(names("dịch vụ khách hàng")) == ["dịch vụ khách hàng"]


def test_a_keyword_has_a_score_and_a_source() -> None:
    (keyword,) = found("giá?")

    assert (keyword.score, keyword.source) == (1.0, "DICT")


def test_a_keyword_is_named_once_with_the_places_it_stands_at() -> None:
    (price,) = found("Giá nè. giáo án nói gía? giá thấp")

    assert (price.keyword, price.mentions) == ("giá", 2)
    assert price.places == ((0, 3), (25, 28))


def test_a_place_is_where_the_phrase_stands_and_not_a_part_of_it_before() -> None:
    text = "dịch bệnh qua rồi, dịch vụ lại mở"
    (service,) = found(text)

    ((start, end),) = service.places
    assert (text[start:end], start) == ("dịch vụ", 19)


@pytest.mark.parametrize("text", ["agiá giá", "giáa giá"])
def test_a_place_is_not_within_a_word(text: str) -> None:
    (price,) = found(text)

    assert price.places == ((5, 8),)


def test_words_may_have_a_dash_between() -> None:
    (keyword,) = found("touch-screen")

    assert (keyword.keyword, keyword.places) == ("touch screen", ((0, 12),))


def test_of_many_places_the_first_few_are_kept() -> None:
    (price,) = found("giá " * 50)

    assert (price.mentions, len(price.places)) == (50, MOST_PLACES)


def test_of_many_keywords_the_primary_ones_are_kept(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(40)]
    aspects = listed(tmp_path, f"[A]\nsecondary: {', '.join(words)}\n[B]\nprimary: p1, p2\n")

    keywords = found(" ".join([*words, "p1", "p2"]), aspects)

    assert len(keywords) == MOST_KEYWORDS == 30
    assert [keyword.keyword for keyword in keywords[:3]] == ["p1", "p2", "w0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[A B]\nprimary: x", "line 1: found '[A B]', expected [NAME], one word of at most 30 characters"),
        ("[A]\nx", "line 2: found ': x', expected primary: or secondary: before the words"),
        ("[A]\nfirst: x", "line 2: found 'first: x', expected primary: or secondary: before the words"),
        ("[A]\nprimary: x\n[B]\nsecondary: X", "line 4: found 'X', expected each word once; it is in line 2 too"),
        ("[A]\nprimary: x.", "line 2: found 'x.', expected one to 8 words"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WordListError) as caught:
        listed(tmp_path, text)

    assert message in str(caught.value)


TEXTS = st.lists(
    st.sampled_from(
        [
            "giá",
            "giáo",
            "dịch",
            "vụ",
            "dịch",
            "vụ,",
            "giá.",
            "design-look",
            "high",
            "-",
            "quality",
            "(pin)",
            "'giá'",
            "x😍giá",
        ]
    ),
    max_size=25,
).map(" ".join)


@given(TEXTS)
def test_at_every_place_stands_the_keyword(text: str) -> None:
    part = normalise(text)

    for keyword in SHIPPED.find(part.text, part.words):
        assert keyword.mentions >= len(keyword.places)
        assert list(keyword.places) == sorted(set(keyword.places))
        for start, end in keyword.places:
            assert part.text[start:end].replace("-", " ") == keyword.keyword
