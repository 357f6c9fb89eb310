import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.aspects import AspectSentiment, Keyword, load_aspects, sum_up, windows
from sanderling.events.analysis.preprocess import normalise
from sanderling.events.analysis.scan_python import RADIUS
from sanderling.events.analysis.sentiment import UNKNOWN, Label, Scores, Sentiment, judge

SHARES = st.just(0.0) | st.floats(1e-9, 1)  # of less, nothing is left when they are multiplied


def around(text: str, keyword: str) -> str:
    start = text.index(keyword)
    found = Keyword(keyword, "PRICE", primary=True, mentions=1, places=((start, start + len(keyword)),))
    return windows(text, [found])[0][0]


@pytest.mark.parametrize("mark", [". ", ", ", "; ", "! ", "? "])
def test_a_window_ends_at_marks(mark: str) -> None:
    assert around(f"một{mark}hai giá ba{mark}bốn", "giá") == "hai giá ba"


@pytest.mark.parametrize(
    "pivot", ["nhưng", "tuy nhiên", "mặc dù", "bù lại", "but", "however", "although", "mac du", "tuy nhien"]
)
def test_a_window_ends_at_pivots(pivot: str) -> None:
    assert around(f"một {pivot} hai giá ba {pivot} bốn", "giá") == "hai giá ba"


def test_a_pivot_is_a_whole_word() -> None:
    assert around("một nhungx giá ba butter bốn", "giá") == "một nhungx giá ba butter bốn"


def test_a_number_with_a_mark_in_it_stays_whole() -> None:
    assert around("giá 1,5 triệu, pin 6.5 giờ", "giá") == "giá 1,5 triệu"
    assert around("giá 1,5 triệu, pin 6.5 giờ", "pin") == "pin 6.5 giờ"


def test_a_window_reaches_thirty_characters_and_ends_between_words() -> None:
    words = " ".join(f"w{number:03}" for number in range(40))  # four letters and a space each
    text = f"{words} giá {words}"

    before, _, behind = around(text, "giá").partition("giá")

    assert before.split() == ["w034", "w035", "w036", "w037", "w038", "w039"]
    assert behind.split() == ["w000", "w001", "w002", "w003", "w004", "w005"]


def test_where_there_is_no_space_a_window_is_the_keyword() -> None:
    text = "x" * 50 + " giá " + "y" * 50

    assert around(text, "giá") == "giá"


def test_without_keywords_there_are_no_windows() -> None:
    assert windows("giá cao", []) == []


ASPECTS = load_aspects()


@given(
    st.lists(
        st.sampled_from(["giá", "pin", "đẹp", "nhưng", "but", ",", ".", "3.5", "dịch", "vụ", "x" * 20, "tuy", "nhiên"]),
        max_size=40,
    ).map(" ".join)
)
def test_every_window_has_its_keyword_and_no_mark(text: str) -> None:
    part = normalise(text)
    keywords = ASPECTS.find(part.text, part.words)

    for keyword, texts in zip(keywords, windows(part.text, keywords), strict=True):
        for window in texts:
            assert keyword.keyword in window
            assert len(window) <= 2 * RADIUS + len(keyword.keyword)
            assert window in part.text
            assert not {"nhưng", "but", ",", "."} & set(window.split())


def keyword(name: str, aspect: str, mentions: int = 1) -> Keyword:
    return Keyword(name, aspect, primary=True, mentions=mentions, places=((0, 1),) * mentions)


def verdict(score: float, confidence: float) -> Sentiment:
    return Sentiment(Label.NEUTRAL, score, confidence, Scores(0, 1, 0))


def test_the_surer_mentions_weigh_more() -> None:
    found = sum_up([keyword("giá", "PRICE", 2)], [[verdict(-1.0, 0.9), verdict(0.5, 0.3)]])

    assert found == {
        "PRICE": AspectSentiment(
            label=Label.NEGATIVE,
            score=round((-0.9 + 0.15) / 1.2, 3),
            confidence=0.6,
            rating=2,  # one star and four
            mentions=2,
            keywords=("giá",),
        )
    }


def test_every_aspect_is_summed_up_by_itself() -> None:
    found = sum_up(
        [keyword("giá", "PRICE"), keyword("pin", "PERFORMANCE"), keyword("tiền", "PRICE")],
        [[verdict(1.0, 1.0)], [verdict(-1.0, 1.0)], [verdict(0.5, 1.0)]],
    )

    assert {name: (aspect.score, aspect.keywords) for name, aspect in found.items()} == {
        "PRICE": (0.75, ("giá", "tiền")),
        "PERFORMANCE": (-1.0, ("pin",)),
    }


def test_scores_are_rounded_to_three_places() -> None:
    (aspect,) = sum_up([keyword("giá", "PRICE", 3)], [[verdict(1, 1), verdict(0, 1), verdict(0, 1)]]).values()

    assert (aspect.score, aspect.confidence) == (0.333, 1.0)


def test_what_nobody_is_sure_of_is_neutral() -> None:
    (aspect,) = sum_up([keyword("giá", "PRICE")], [[UNKNOWN]]).values()

    assert (aspect.label, aspect.score, aspect.confidence, aspect.rating) == (Label.NEUTRAL, 0.0, 0.0, 3)


def test_a_keyword_without_a_place_is_mentioned_nevertheless() -> None:
    (aspect,) = sum_up([keyword("giá", "PRICE", 2)], [[]]).values()

    assert (aspect.score, aspect.mentions, aspect.rating) == (0.0, 2, 3)


@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=8))
def test_a_sum_is_between_its_parts(triples: list[tuple[float, float, float]]) -> None:
    verdicts = [judge(Scores(*triple)) for triple in triples]

    (aspect,) = sum_up([keyword("giá", "PRICE", len(verdicts))], [verdicts]).values()

    sure = [each.score for each in verdicts if each.confidence > 0] or [0.0]
    assert min(sure) - 0.001 <= aspect.score <= max(sure) + 0.001
    assert 1 <= aspect.rating <= 5
