from pathlib import Path

import pytest

from sanderling.events.analysis.onnx import END, START, UNKNOWN, PhobertTokens, merge
from sanderling.events.analysis.sentiment import ModelError

RANKS = {("l", "o"): 1, ("lo", "w</w>"): 2, ("e", "r</w>"): 3, ("lo", "w"): 4}


@pytest.fixture
def tokens(tmp_path: Path) -> PhobertTokens:
    (tmp_path / "vocab.txt").write_text("low 100\nlow@@ 50\ner 20\nđẹp 10\n", encoding="utf-8")
    (tmp_path / "bpe.codes").write_text("l o 9\nlo w</w> 8\ne r</w> 7\nlo w 6\n", encoding="utf-8")
    return PhobertTokens(tmp_path / "vocab.txt", tmp_path / "bpe.codes")


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("low", ["low"]),
        ("lower", ["low@@", "er"]),
        ("lolow", ["lo@@", "low"]),
        ("x", ["x"]),
        ("lx", ["l@@", "x"]),
        ("er", ["er"]),
    ],
)
def test_letters_are_put_together_by_the_best_pair_first(word: str, pieces: list[str]) -> None:
    assert merge(word, RANKS) == pieces


def test_a_text_is_its_pieces_between_start_and_end(tokens: PhobertTokens) -> None:
    assert tokens.ids("low lower", 128) == [START, 4, 5, 6, END]


def test_what_is_not_in_the_vocabulary_is_unknown(tokens: PhobertTokens) -> None:
    assert tokens.ids("xyz", 128) == [START, UNKNOWN, UNKNOWN, UNKNOWN, END]
    assert tokens.ids("x" * 101, 128) == [START, UNKNOWN, END], "too long to be taken apart"


def test_a_long_text_is_cut_before_its_end(tokens: PhobertTokens) -> None:
    ids = tokens.ids("lower " * 1000, 8)

    assert ids == [START, 5, 6, 5, 6, 5, 6, END]


def test_an_empty_text_is_start_and_end(tokens: PhobertTokens) -> None:
    assert tokens.ids("", 128) == [START, END]


def test_without_codes_words_are_looked_up_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("đẹp\nxấu\n", encoding="utf-8")

    tokens = PhobertTokens(tmp_path / "vocab.txt")

    assert tokens.ids("xấu đẹp lạ", 128) == [START, 5, 4, UNKNOWN, END]


def test_nobody_writes_special_tokens(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("đẹp 1\n", encoding="utf-8")

    assert PhobertTokens(tmp_path / "vocab.txt").ids("<s> </s> <pad>", 128) == [START, *[UNKNOWN] * 3, END]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    vocabulary, codes = tmp_path / "vocab.txt", tmp_path / "bpe.codes"

    with pytest.raises(ModelError, match=r"vocab\.txt: cannot be read: No such file"):
        PhobertTokens(vocabulary)
    vocabulary.write_bytes(b"ok\n\xff")
    with pytest.raises(ModelError, match=r"vocab\.txt, byte 3: expected UTF-8"):
        PhobertTokens(vocabulary)
    vocabulary.write_text("ok\n")
    codes.write_text("a b 1\nc\n")
    with pytest.raises(ModelError, match=r"bpe\.codes, line 2: found 'c', expected two pieces and a count"):
        PhobertTokens(vocabulary, codes)
