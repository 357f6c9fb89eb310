from collections.abc import Mapping, Sequence
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.preprocess import normalise
from sanderling.events.analysis.sentiment import (
    STAR_SCORES,
    UNKNOWN,
    Label,
    ModelError,
    Scores,
    judge,
    judge_all,
    label_of,
    star_of,
)


class Scripted:
    """A model that says what it was told to, and remembers what it was asked."""

    name, version = "scripted", "1"

    def __init__(self, said: Mapping[str, Scores]) -> None:
        self.said = said
        self.asked: list[list[str]] = []

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        self.asked.append(list(texts))
        return [self.said[text] for text in texts if text in self.said]


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (1.0, Label.POSITIVE),
        (0.2500001, Label.POSITIVE),
        (0.25, Label.NEUTRAL),
        (0.0, Label.NEUTRAL),
        (-0.25, Label.NEUTRAL),
        (-0.2500001, Label.NEGATIVE),
        (-1.0, Label.NEGATIVE),
    ],
)
def test_a_label_needs_more_than_a_quarter(score: float, label: Label) -> None:
    assert label_of(score) is label
    assert judge(Scores((1 - score) / 2, 0.0, (1 + score) / 2)).label is label


@pytest.mark.parametrize(("star", "score"), STAR_SCORES.items())
def test_stars_and_their_scores_are_each_others(star: int, score: float) -> None:
    assert star_of(score) == star
    assert star_of(max(-1.0, score - 0.2)) == star_of(min(1.0, score + 0.2)) == star


def test_a_sure_model_gives_one_three_or_five_stars() -> None:
    sure = [judge(scores) for scores in (Scores(1, 0, 0), Scores(0, 1, 0), Scores(0, 0, 1))]

    assert [(verdict.score, star_of(verdict.score)) for verdict in sure] == [(-1, 1), (0, 3), (1, 5)]


def test_the_confidence_is_how_likely_the_label_is() -> None:
    assert judge(Scores(0.1, 0.2, 0.7)).confidence == pytest.approx(0.7)
    assert judge(Scores(0.6, 0.3, 0.1)).confidence == pytest.approx(0.6)
    assert judge(Scores(0.45, 0.1, 0.45)).confidence == pytest.approx(0.1), "neutral, but of two minds"


@pytest.mark.parametrize(
    "scores",
    [
        Scores(nan, 0, 1),
        Scores(0, nan, 0),
        Scores(inf, 0, 0),
        Scores(0, 0, 0),
        Scores(-0.1, 0.5, 0.6),
        Scores(0, 0, -inf),
    ],
)
def test_what_is_no_likelihood_is_neutral_with_a_note(scores: Scores) -> None:
    verdict = judge(scores)

    assert (verdict.label, verdict.score, verdict.confidence) == (Label.NEUTRAL, 0.0, 0.0)
    assert verdict.scores.note.startswith("the model said ")
    assert verdict.scores[:3] == (0.0, 1.0, 0.0)


def test_what_a_model_does_not_stand_by_is_neutral() -> None:
    assert judge(Scores(0, 0, 1, note="overflow"))[:3] == UNKNOWN[:3]


LIKELY = st.floats(0, 1)


@given(LIKELY, LIKELY, LIKELY)
def test_a_verdict_is_within_its_bounds(negative: float, neutral: float, positive: float) -> None:
    verdict = judge(Scores(negative, neutral, positive))

    assert -1 <= verdict.score <= 1
    assert 0 <= verdict.confidence <= 1
    assert star_of(verdict.score) in STAR_SCORES


def test_a_model_is_asked_once_about_all_texts() -> None:
    model = Scripted({"good": Scores(0, 0, 1), "bad": Scores(1, 0, 0)})

    verdicts = judge_all(model, {"good": [normalise("good")], "bad": []})

    assert model.asked == [["good", "bad"]]
    assert [verdict.label for verdict in verdicts.values()] == [Label.POSITIVE, Label.NEGATIVE]


def test_an_empty_text_is_neutral_whatever_a_model_says() -> None:
    assert judge_all(Scripted({"": Scores(0, 0, 1)}), {"": []}) == {"": UNKNOWN}


def test_a_model_that_leaves_texts_out_is_found_out() -> None:
    with pytest.raises(ModelError, match="scripted gave 1 scores, expected one for each of 2 texts"):
        judge_all(Scripted({"a": Scores(0, 0, 1)}), {"a": [], "b": []})
