"""How often the lexicon is right, on sentences somebody has labelled.

On those it was tuned on, that says that nothing was broken since. On those it was not, it says what to expect: most of
what it gets wrong has no good or bad word in it ("the zipper got stuck on the first day") and is taken for neutral.
"""

from collections import Counter
from pathlib import Path

import pytest

from sanderling.events.analysis.lexicon import LexiconModel
from sanderling.events.analysis.preprocess import normalise
from sanderling.events.analysis.sentiment import Label, judge

HERE = Path(__file__).parent
LABELS = {"+": Label.POSITIVE, "-": Label.NEGATIVE, "0": Label.NEUTRAL}
MODEL = LexiconModel()

Pairs = Counter[tuple[Label, Label]]  # what was meant, and what was found


def found(name: str) -> Pairs:
    lines = [line for line in (HERE / name).read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines)) > 100
    marks, texts = zip(*[line.split("\t") for line in lines], strict=True)
    scores = MODEL.scores([normalise(text).vivid for text in texts])
    return Counter((LABELS[mark], judge(said).label) for mark, said in zip(marks, scores, strict=True))


def accuracy(pairs: Pairs) -> float:
    return sum(count for (meant, said), count in pairs.items() if meant is said) / pairs.total()


def macro_f1(pairs: Pairs) -> float:
    def f1(label: Label) -> float:
        meant = sum(count for pair, count in pairs.items() if pair[0] is label)
        said = sum(count for pair, count in pairs.items() if pair[1] is label)
        return 2 * pairs[label, label] / (meant + said)

    return sum(map(f1, Label)) / len(Label)


def taken_sides(pairs: Pairs) -> float:
    """How often it is right where it does not say neutral."""
    sides = [(pair, count) for pair, count in pairs.items() if pair[1] is not Label.NEUTRAL]
    return sum(count for pair, count in sides if pair[0] is pair[1]) / sum(count for _, count in sides)


@pytest.mark.parametrize(("name", "least"), [("sentences_tuned.txt", 0.95), ("sentences_held_out.txt", 0.78)])
def test_the_lexicon_is_mostly_right(name: str, least: float) -> None:
    pairs = found(name)

    assert accuracy(pairs) >= least, f"accuracy {accuracy(pairs):.3f}"
    assert macro_f1(pairs) >= least, f"macro F1 {macro_f1(pairs):.3f}"


@pytest.mark.parametrize("name", ["sentences_tuned.txt", "sentences_held_out.txt"])
def test_where_it_takes_a_side_it_is_nearly_always_the_right_one(name: str) -> None:
    pairs = found(name)

    assert taken_sides(pairs) >= 0.95
    assert pairs[Label.POSITIVE, Label.NEGATIVE] + pairs[Label.NEGATIVE, Label.POSITIVE] <= 0.02 * pairs.total()
