"""What a model says about a text, and what that comes to: a label, a score, how sure it is."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import floor, inf
from typing import NamedTuple, Protocol, runtime_checkable

from sanderling.events.analysis.preprocess import Part

# From here on a score is more than a shade.
CLEAR = 0.25
# What a score means in stars, which is how reviews are given.
STAR_SCORES = {1: -1.0, 2: -0.5, 3: 0.0, 4: 0.5, 5: 1.0}


class Label(StrEnum):
    """How a text was meant."""

    NEGATIVE = "NEGATIVE"
    NEUTRAL = "NEUTRAL"
    POSITIVE = "POSITIVE"


class Scores(NamedTuple):
    """How likely each label is; together 1. A note says what was wrong, if they are not to be relied on."""

    negative: float
    neutral: float
    positive: float
    note: str = ""


class SentimentModel(Protocol):
    """Whoever can judge texts. They come in small letters, with emoji, possibly empty, and many at once."""

    name: str
    version: str

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        """One for each text, in their order."""


@runtime_checkable
class ReadsParts(Protocol):
    """A model for which a text is the sum of its parts, and which is spared to read a part twice."""

    def scores_of_parts(self, texts: Mapping[str, Sequence[Part]]) -> list[Scores]:
        """One for each text, in their order; of one without parts they are not known."""


class ModelError(Exception):
    """A model that cannot be loaded, or does not keep to what it promised."""


class Sentiment(NamedTuple):
    """A verdict: the score is between -1 and 1, the confidence how likely the label is."""

    label: Label
    score: float
    confidence: float
    scores: Scores


NOTHING_SAID = Scores(0.0, 1.0, 0.0)
UNKNOWN = Sentiment(Label.NEUTRAL, 0.0, 0.0, NOTHING_SAID)


def judge_all(model: SentimentModel, texts: Mapping[str, Sequence[Part]]) -> dict[str, Sentiment]:
    """The verdict on each text, which come with their parts where these are known. The model is asked once."""
    scores = model.scores_of_parts(texts) if isinstance(model, ReadsParts) else model.scores(list(texts))
    if len(scores) != len(texts):
        raise ModelError(f"{model.name} gave {len(scores)} scores, expected one for each of {len(texts)} texts")
    return {text: judge(said) if text else UNKNOWN for text, said in zip(texts, scores, strict=True)}


def judge(scores: Scores) -> Sentiment:
    """The verdict that follows.

    The score is what is to be expected if negative means one star and positive five; so a sure model's scores are
    those of its stars, and an undecided one's lie between.
    """
    negative, neutral, positive, note = scores
    total = negative + neutral + positive
    if note or not (negative >= 0 and neutral >= 0 and positive >= 0 and 0 < total < inf):
        note = note or f"the model said {negative}, {neutral}, {positive}; taken for neutral"
        return UNKNOWN._replace(scores=NOTHING_SAID._replace(note=note))
    score = (positive - negative) / total
    if score > CLEAR:
        return Sentiment(Label.POSITIVE, score, positive / total, scores)
    if score < -CLEAR:
        return Sentiment(Label.NEGATIVE, score, negative / total, scores)
    return Sentiment(Label.NEUTRAL, score, neutral / total, scores)


def label_of(score: float) -> Label:
    """The label for a score."""
    if score > CLEAR:
        return Label.POSITIVE
    return Label.NEGATIVE if score < -CLEAR else Label.NEUTRAL


def star_of(score: float) -> int:
    """The stars whose score is nearest, as STAR_SCORES has them; of two, the more."""
    return floor(2 * score + 0.5) + 3
