"""Words of a text as the numbers that PhoBERT and its kin know: `vocab.txt` and `bpe.codes`.

These two files lie beside every PhoBERT, also an exported one, which need not have a `tokenizer.json`; and reading them
takes no library. The first numbers are those of the four special tokens, then come the lines of the vocabulary. A word
is cut into letters, which are put together again by the pairs of `bpe.codes`, the earlier lines first; pieces but for
the last have `@@` behind them. Without codes words are looked up as they are.
"""

from itertools import pairwise
from pathlib import Path

from sanderling.events.analysis.sentiment import ModelError

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
        pieces = _together(pieces, best)
    return [f"{piece}@@" for piece in pieces[:-1]] + [pieces[-1].removesuffix("</w>")]


def _together(pieces: list[str], pair: tuple[str, str]) -> list[str]:
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
