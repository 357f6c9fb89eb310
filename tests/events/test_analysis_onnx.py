"""A trained model at work: tiny ones, made here, and everything that may be wrong with one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sanderling.events.analysis.analyse import Analyser
from sanderling.events.analysis.onnx import OnnxModel, OnnxRules, PhobertTokens, softmax
from sanderling.events.analysis.sentiment import Label, ModelError, judge
from sanderling.events.posts import Post

np: Any = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
helper: Any = pytest.importorskip("onnx.helper", reason="onnx is not installed")

VOCABULARY = ["tốt", "tệ", "bàn", "vỡ"]
# For every token: how much it speaks for negative, positive, neutral. Of the special ones the second fills up batches;
# it would say much if it were not masked.
WEIGHTS = [[0, 0, 0], [9, 0, 0], [0, 0, 0], [0, 0, 0], [-3, 3, 0], [3, -3, 0], [0, 0, 1], [float("nan")] * 3]
NOT_LOGITS = OnnxRules(logits=False)
INPUTS = ("input_ids", "attention_mask")


def saved(
    path: Path,
    inputs: Sequence[str] = INPUTS,
    *,
    soft: bool = False,
    kind: int = 7,
    weights: Any = None,  # noqa: ANN401 - an array
) -> Path:
    """A model that adds up what its words say: rows of an embedding, weighed by the mask, summed."""
    weights = np.array(WEIGHTS if weights is None else weights, dtype=np.float32)
    nodes = [helper.make_node("Gather", ["weights", "input_ids"], ["rows"])]
    if "attention_mask" in inputs:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
            helper.make_node("Mul", ["rows", "column"], ["kept"]),
        ]
    summed = helper.make_node("ReduceSum", [nodes[-1].output[0], "middle"], ["sum" if soft else "logits"], keepdims=0)
    nodes.append(summed)
    if soft:
        nodes.append(helper.make_node("Softmax", ["sum"], ["logits"], axis=-1))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", weights.shape[1]])],
        [
            onnx.numpy_helper.from_array(weights, "weights"),
            onnx.numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            onnx.numpy_helper.from_array(np.array([1], dtype=np.int64), "middle"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> PhobertTokens:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{word} 1\n" for word in VOCABULARY), encoding="utf-8")
    return PhobertTokens(path)


def test_a_model_says_how_likely_each_label_is(tmp_path: Path, tokens: PhobertTokens) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens)

    good, bad, nothing = model.scores(["bàn tốt", "tệ 😡", "bàn bàn bàn"])

    negative, positive, neutral = softmax([-3, 3, 1])
    assert good[:3] == pytest.approx((negative, neutral, positive), abs=1e-6)
    assert [judge(scores).label for scores in (good, bad, nothing)] == [Label.POSITIVE, Label.NEGATIVE, Label.NEUTRAL]
    assert model.name == "tiny"
    assert model.version.startswith("onnx-")


def test_a_model_that_ends_in_a_softmax_is_taken_at_its_word(tmp_path: Path, tokens: PhobertTokens) -> None:
    logits = OnnxModel(saved(tmp_path / "a.onnx"), tokens).scores(["tốt", "tệ"])
    soft = OnnxModel(saved(tmp_path / "b.onnx", soft=True), tokens, NOT_LOGITS).scores(["tốt", "tệ"])

    assert [scores[:3] for scores in soft] == [pytest.approx(scores[:3], abs=1e-6) for scores in logits]


def test_the_order_of_the_classes_is_a_rule(tmp_path: Path, tokens: PhobertTokens) -> None:
    rules = OnnxRules(order=(Label.POSITIVE, Label.NEGATIVE, Label.NEUTRAL))

    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens, rules)

    assert judge(model.scores(["tốt"])[0]).label is Label.NEGATIVE


def test_in_batches_texts_are_what_they_are_alone(tmp_path: Path, tokens: PhobertTokens) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens, OnnxRules(batch=3))
    texts = ["tốt", "", "bàn " * 300, "tệ tệ tệ", "tốt bàn", "lạ", "bàn tệ"]

    together = model.scores(texts)

    assert [scores[:3] for scores in together] == [
        pytest.approx(model.scores([text])[0][:3], abs=1e-6) for text in texts
    ]
    assert model.scores([]) == []


def test_of_a_long_text_128_tokens_are_read(tmp_path: Path, tokens: PhobertTokens) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens)

    assert judge(model.scores(["lạ " * 126 + "tệ " * 500])[0]).label is Label.NEUTRAL
    assert judge(model.scores(["lạ " * 125 + "tệ " * 500])[0]).label is Label.NEGATIVE


class Heard:
    """Tokens of a model that is told nothing; what it was to be told is remembered."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def ids(self, text: str, most: int) -> list[int]:
        self.texts.append(text)
        return [0, 2][:most]


def test_a_model_is_shown_no_emoji(tmp_path: Path) -> None:
    heard = Heard()

    OnnxModel(saved(tmp_path / "tiny.onnx"), heard).scores(["bàn tốt 😍 ❤"])

    assert heard.texts[-1] == "bàn tốt"


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask", "token_type_ids")])
def test_models_may_take_fewer_or_more_inputs(tmp_path: Path, tokens: PhobertTokens, inputs: tuple[str, ...]) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx", inputs), tokens)

    assert judge(model.scores(["tốt"])[0]).label is Label.POSITIVE


def test_words_may_be_joined_before_the_model_sees_them(tmp_path: Path, tokens: PhobertTokens) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens, segment=lambda text: text.replace("không tệ", "tốt"))

    assert judge(model.scores(["không tệ"])[0]).label is Label.POSITIVE


def test_an_answer_that_is_no_number_is_neutral_with_a_note(tmp_path: Path, tokens: PhobertTokens) -> None:
    """And the others of its batch are as they would be without it."""
    model = OnnxModel(saved(tmp_path / "tiny.onnx"), tokens)

    broken, good = model.scores(["vỡ", "tốt"])

    assert "taken for neutral" in broken.note
    assert judge(broken)[:3] == (Label.NEUTRAL, 0.0, 0.0)
    assert judge(good).label is Label.POSITIVE


def test_a_model_does_for_whole_posts(tmp_path: Path, tokens: PhobertTokens) -> None:
    analyser = Analyser(OnnxModel(saved(tmp_path / "tiny.onnx"), tokens))

    found = analyser.analyse(Post(id="1", platform="tiktok", text="Giá tệ, thiết kế tốt tốt tốt"))

    assert (found.sentiment, found.model) == (Label.POSITIVE, "tiny")
    assert found.aspects["PRICE"].label is Label.NEGATIVE


def test_a_file_that_is_no_model_is_named(tmp_path: Path, tokens: PhobertTokens) -> None:
    path = tmp_path / "tiny.onnx"

    with pytest.raises(ModelError, match=r"tiny\.onnx: expected an ONNX model: .*"):
        OnnxModel(path, tokens)
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"tiny\.onnx: expected an ONNX model: .*"):
        OnnxModel(path, tokens)
    saved(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ModelError, match=r"tiny\.onnx: expected an ONNX model: .*"):
        OnnxModel(path, tokens)


def test_a_model_of_other_classes_is_refused(tmp_path: Path, tokens: PhobertTokens) -> None:
    path = saved(tmp_path / "tiny.onnx", weights=[[0, 0]] * 8)

    with pytest.raises(ModelError, match=r"output logits has the shape \(1, 2\), expected 1 rows of 3 classes"):
        OnnxModel(path, tokens)


def test_a_model_that_takes_something_else_is_refused(tmp_path: Path, tokens: PhobertTokens) -> None:
    with pytest.raises(ModelError, match=r"it takes input_ids tensor\(int32\), .*; expected input_ids, and perhaps"):
        OnnxModel(saved(tmp_path / "a.onnx", kind=onnx.TensorProto.INT32), tokens)
    with pytest.raises(ModelError, match=r"it takes input_ids .*, pixels .*; expected input_ids"):
        OnnxModel(saved(tmp_path / "b.onnx", ("input_ids", "pixels")), tokens)


def test_a_vocabulary_larger_than_the_model_is_found_out(tmp_path: Path, tokens: PhobertTokens) -> None:
    model = OnnxModel(saved(tmp_path / "tiny.onnx", weights=WEIGHTS[:6]), tokens)

    with pytest.raises(ModelError, match=r"tiny\.onnx: 1 texts of up to 3 tokens: "):
        model.scores(["bàn"])


@pytest.mark.parametrize(("soft", "rules"), [(True, OnnxRules()), (False, NOT_LOGITS)])
def test_what_comes_out_must_be_what_the_rules_say(
    tmp_path: Path,
    tokens: PhobertTokens,
    soft: bool,  # noqa: FBT001 - a column of the table
    rules: OnnxRules,
) -> None:
    with pytest.raises(ModelError, match=r"which are (likelihoods|logits); expected that with logits="):
        OnnxModel(saved(tmp_path / "tiny.onnx", soft=soft), tokens, rules)


def test_a_model_that_knows_no_number_is_refused(tmp_path: Path, tokens: PhobertTokens) -> None:
    path = saved(tmp_path / "tiny.onnx", weights=[[float("nan")] * 3] * 8)

    with pytest.raises(ModelError, match=r"it says \[nan, nan, nan\] to a single word; expected numbers"):
        OnnxModel(path, tokens)
