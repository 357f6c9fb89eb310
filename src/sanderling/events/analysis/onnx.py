"""Sentiment by a trained model: an ONNX file of three classes, such as an exported PhoBERT.

onnxruntime is an extra, and loaded by whoever makes a model. Texts are given to it without emoji, cut to 128 tokens and
in batches of texts of like length. PhoBERT was trained on Vietnamese whose words are joined ("sinh_viên"): `segment`
does that, if there is something that can; without it the model works, but less well.

What is wrong with a file is found when it is loaded, by asking about one word. What is wrong with a single answer (a
model may overflow) makes that text neutral, with a note; the others are as they were.

Tokens: `vocab.txt` and `bpe.codes` lie beside every PhoBERT, also an exported one, which need not have a
`tokenizer.json`; and reading them takes no library. The first numbers are those of the four special tokens, then come
the lines of the vocabulary. A word is cut into letters, which are put together again by the pairs of `bpe.codes`, the
earlier lines first; pieces but for the last have `@@` behind them. Without codes words are looked up as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from sanderling.events.analysis.preprocess import without_emoji
from sanderling.events.analysis.sentiment import Label, ModelError, Scores
from sanderling.extras import load

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
INTEGERS = "tensor(int64)"
CLASSES = 3


class Tokens(Protocol):
    """Whoever turns texts into the numbers that a model knows."""

    def ids(self, text: str, most: int) -> list[int]:
        """A text as at most so many numbers."""


@dataclass(frozen=True, slots=True)
class OnnxRules:
    """How a model is used. The defaults are those of PhoBERT as it is mostly trained for sentiment."""

    order: tuple[Label, Label, Label] = (Label.NEGATIVE, Label.POSITIVE, Label.NEUTRAL)  # of its classes
    logits: bool = True  # what comes out; False: it is likelihoods already
    most_tokens: int = 128
    batch: int = 32
    threads: int = 1  # for one text; more cores are better used by more processes

    def __post_init__(self) -> None:
        if sorted(self.order) != sorted(Label):
            raise ValueError(f"order is {', '.join(self.order)}; expected each of {', '.join(Label)} once")
        for name, least in (("most_tokens", 3), ("batch", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected {least} or more")


class OnnxModel:
    """A model in a file, and what turns texts into its numbers."""

    def __init__(
        self,
        path: Path,
        tokens: Tokens,
        rules: OnnxRules | None = None,
        segment: Callable[[str], str] | None = None,
    ) -> None:
        self._numpy, self._runtime = (load(each, "an ONNX model") for each in ("numpy", "onnxruntime"))
        self._path, self._tokens, self._rules = path, tokens, rules or OnnxRules()
        self._segment = segment or str
        self._session = self._load()
        self._inputs = self._checked_inputs()
        self.name, self.version = path.stem, f"onnx-{_checksum(path):08x}"
        self._probe()

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        """What the model says of each text."""
        ids = [self._ids(text) for text in texts]
        # Texts of one batch are filled up to the longest of them.
        places = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        found: dict[int, Scores] = {}
        for batch in _batches(places, self._rules.batch):
            rows = self._run([ids[place] for place in batch])
            found.update(zip(batch, (self._scores(row) for row in rows), strict=True))
        return [found[place] for place in range(len(ids))]

    def _ids(self, text: str) -> list[int]:
        return self._tokens.ids(self._segment(without_emoji(text)), self._rules.most_tokens)

    def _run(self, batch: list[list[int]]) -> list[list[float]]:
        """What comes out for each text of a batch."""
        longest = max(map(len, batch))
        ids = self._numpy.array([row + [PAD] * (longest - len(row)) for row in batch], dtype=self._numpy.int64)
        mask = self._numpy.array([[1] * len(row) + [0] * (longest - len(row)) for row in batch], dtype=ids.dtype)
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": self._numpy.zeros_like(ids)}
        try:
            out = self._session.run([self._output], {name: feeds[name] for name in self._inputs})[0]
        except self._errors() as error:
            raise ModelError(
                f"{self._path}: {len(batch)} texts of up to {longest} tokens: {_first_line(error)}"
            ) from None
        if out.shape != (len(batch), CLASSES):
            expected = f"{len(batch)} rows of {CLASSES} classes"
            raise ModelError(f"{self._path}: output {self._output} has the shape {out.shape}, expected {expected}")
        return [[float(number) for number in row] for row in out]

    def _scores(self, row: list[float]) -> Scores:
        if not all(map(isfinite, row)):
            return Scores(0.0, 1.0, 0.0, note=f"the model said {row}; taken for neutral")
        by_label = dict(zip(self._rules.order, softmax(row) if self._rules.logits else row, strict=True))
        return Scores(by_label[Label.NEGATIVE], by_label[Label.NEUTRAL], by_label[Label.POSITIVE])

    def _load(self) -> Any:  # noqa: ANN401 - onnxruntime has no types
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = self._rules.threads
        options.log_severity_level = 4  # what matters is raised
        try:
            return self._runtime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
        except self._errors() as error:
            raise ModelError(f"{self._path}: expected an ONNX model: {_first_line(error)}") from None

    def _errors(self) -> tuple[type[Exception], ...]:
        """What onnxruntime raises, which has no class in common."""
        kinds = vars(self._runtime.capi.onnxruntime_pybind11_state).values()
        return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception))

    def _checked_inputs(self) -> list[str]:
        inputs = {each.name: each.type for each in self._session.get_inputs()}
        wrong = [f"{name} {kind}" for name, kind in inputs.items() if name not in INPUTS or kind != INTEGERS]
        if wrong or "input_ids" not in inputs:
            expected = f"input_ids, and perhaps {INPUTS[1]} and {INPUTS[2]}, all {INTEGERS}"
            found = ", ".join(f"{name} {kind}" for name, kind in inputs.items())
            raise ModelError(f"{self._path}: it takes {found}; expected {expected}")
        return list(inputs)

    @property
    def _output(self) -> str:
        """The first, as exports of classifiers have it."""
        return str(self._session.get_outputs()[0].name)

    def _probe(self) -> None:
        """See whether the model can be asked, and whether it answers in the way the rules say."""
        row = self._run([self._ids("ok")])[0]
        if not all(map(isfinite, row)):
            raise ModelError(f"{self._path}: it says {row} to a single word; expected numbers")
        likelihoods = min(row) >= 0 and abs(sum(row) - 1) < 1e-3
        if likelihoods is self._rules.logits:
            kind, other = ("likelihoods", "logits=False") if likelihoods else ("logits", "logits=True")
            raise ModelError(f"{self._path}: it says {row}, which are {kind}; expected that with {other}")


def softmax(row: list[float]) -> list[float]:
    """Likelihoods from logits."""
    most = max(row)
    powers = [exp(number - most) for number in row]
    return [power / sum(powers) for power in powers]


def _batches(places: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _checksum(path: Path) -> int:
    """Of the file, so that rows say which model made them."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(2**20):
            checksum = crc32(piece, checksum)
    return checksum


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]


START, PAD, END, UNKNOWN = range(4)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MOST_BYTES = 64 * 2**20  # of either file; those of PhoBERT have 1 MB
MOST_LETTERS = 100  # of a word; a longer one is none, and its pairs would take their time
MOST_REMEMBERED = 50_000  # words whose pieces are known


class PhobertTokens:
    """A vocabulary, and how other words are put together from it."""

    def __init__(self, vocabulary: Path, codes: Path | None = None) -> None:
        self._ids = {token: number for number, token in enumerate(SPECIAL)}
        for line in _lines(vocabulary):
            # "word count" in the files of PhoBERT; a plain list of words will do as well.
            self._ids.setdefault(line.rsplit(" ", 1)[0], len(self._ids))
        self._ranks: dict[tuple[str, str], int] = {}
        for number, line in enumerate(_lines(codes) if codes else [], 1):
            parts = line.split(" ")
            if len(parts) < 2:
                raise ModelError(f"{codes}, line {number}: found {line[:80]!r}, expected two pieces and a count")
            self._ranks[parts[0], parts[1]] = number
        self._remembered: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self, text: str, most: int) -> list[int]:
        """A text as numbers, with start and end, at most so many; what is beyond is left out."""
        numbers = [START]
        for word in text.split():
            numbers += self._pieces(word)
            if len(numbers) >= most:
                break
        return [*numbers[: most - 1], END]

    def _pieces(self, word: str) -> list[int]:
        known = self._remembered.get(word)
        if known is None:
            known = [self._number(piece) for piece in self._cut(word)]
            if len(self._remembered) < MOST_REMEMBERED:
                self._remembered[word] = known
        return known

    def _cut(self, word: str) -> list[str]:
        return merge(word, self._ranks) if self._ranks and len(word) <= MOST_LETTERS else [word]

    def _number(self, piece: str) -> int:
        # Who writes "<s>" in a comment has written a word, and not the start of a text.
        return UNKNOWN if piece in SPECIAL else self._ids.get(piece, UNKNOWN)


def merge(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """A word in pieces: its letters, put together pair by pair, the best pair first, wherever it occurs."""
    pieces = [*word[:-1], word[-1] + "</w>"]
    while len(pieces) > 1:
        best = min(pairwise(pieces), key=lambda pair: ranks.get(pair, len(ranks) + 1))
        if best not in ranks:
            break
        pieces = _join_pair(pieces, best)
    return [f"{piece}@@" for piece in pieces[:-1]] + [pieces[-1].removesuffix("</w>")]


def _join_pair(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    at = 0
    while at < len(pieces):
        if tuple(pieces[at : at + 2]) == pair:
            joined.append(pair[0] + pair[1])
            at += 2
        else:
            joined.append(pieces[at])
            at += 1
    return joined


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}, byte {error.start}: expected UTF-8") from None
    if len(content) > MOST_BYTES:
        raise ModelError(f"{path}: found more than {MOST_BYTES} bytes, expected a list of words")
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]
