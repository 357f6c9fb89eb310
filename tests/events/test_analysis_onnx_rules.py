"""What needs no onnxruntime to be tested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.onnx import OnnxRules, softmax
from sanderling.events.analysis.sentiment import Label


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"order": (Label.NEGATIVE, Label.NEGATIVE, Label.NEUTRAL)},
            "expected each of NEGATIVE, NEUTRAL, POSITIVE once",
        ),
        ({"most_tokens": 2}, "most_tokens is 2; expected 3 or more"),
        ({"batch": 0}, "batch is 0; expected 1 or more"),
        ({"threads": 0}, "threads is 0; expected 1 or more"),
    ],
)
def test_rules_that_make_no_sense_cannot_be(rules: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OnnxRules(**rules)  # type: ignore[arg-type]


@given(st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3))
def test_likelihoods_of_any_logits_add_up(row: list[float]) -> None:
    likely = softmax(row)

    assert sum(likely) == pytest.approx(1)
    assert all(likely[a] <= likely[b] for a in range(3) for b in range(3) if row[a] <= row[b])
