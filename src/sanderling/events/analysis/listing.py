"""Reads the lists that the analysis works from: sections of words, one format for all of them.

`[HEAD]` begins a section, `#` a comment. Other lines hold entries with commas between; `label:` before them says
something about all of them. Errors name the file and the line.
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, NoReturn
from unicodedata import normalize

from sanderling.events.analysis.scan import BREAKS, MOST_WORDS, words_of
from sanderling.events.analysis.vietnamese import SLANG, looks_vietnamese, spellings, unslang

MOST_BYTES = 4 * 2**20  # a list of some 200,000 phrases; what is longer is not a list of words
MOST_CHARACTERS = 200  # of an entry

_LABEL = re.compile(r"([\w.+-]{1,30}):(?:\s+|$)")


class WordListError(ValueError):
    """A list that cannot be used: where, what was found, what was expected."""


class ListEntry(NamedTuple):
    """One entry, where it stands, and the label of its line, which may be empty."""

    line: int
    label: str
    text: str


class ListSection(NamedTuple):
    """The words of a heading, and what stands below it."""

    line: int
    head: tuple[str, ...]
    entries: list[ListEntry]


class WordList:
    """A file that was read. `where` is how messages call it."""

    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self.sections: list[ListSection] = []
        for number, line in enumerate(text.splitlines(), 1):
            self._take(number, line.strip())

    def _take(self, number: int, line: str) -> None:
        if not line or line.startswith("#"):
            return
        if line.startswith("["):
            head = tuple(line[1:-1].split())
            if not line.endswith("]") or not head:
                self.refuse(number, line, "a heading like [NAME]")
            self.sections.append(ListSection(number, head, []))
        elif not self.sections:
            self.refuse(number, line, "a heading like [NAME] before the first entry")
        else:
            self.sections[-1].entries.extend(self._entries(number, line))

    def _entries(self, number: int, line: str) -> list[ListEntry]:
        found = _LABEL.match(line)
        label, rest = (found[1], line[found.end() :]) if found else ("", line)
        texts = [text.strip() for text in rest.split(",")]
        if any(not text for text in texts):
            self.refuse(number, line, "entries with one comma between")
        if longest := next((text for text in texts if len(text) > MOST_CHARACTERS), ""):
            self.refuse(number, longest, f"at most {MOST_CHARACTERS} characters")
        return [ListEntry(number, label, text) for text in texts]

    def spellings(self, entry: ListEntry) -> list[str]:
        """An entry as phrases of clean text, the form that was meant first."""
        words = words_of(" ".join(normalize("NFKC", entry.text).lower().split()))
        if not words or len(words) > MOST_WORDS or any(word in BREAKS for word in words):
            self.refuse(entry.line, entry.text, f"one to {MOST_WORDS} words without marks between")
        phrase = " ".join(words)
        forms = spellings(phrase)
        if not SLANG.isdisjoint(words):
            # Clean text has no slang, so a phrase with some would never be found.
            forms.append(unslang(phrase, everything=looks_vietnamese(phrase, words)))
        return list(dict.fromkeys(forms))

    def refuse(self, line: int, found: str, expected: str) -> NoReturn:
        """Say that something cannot be used."""
        raise WordListError(f"{self.where}, line {line}: found {found[:80]!r}, expected {expected}")


def read_listing(path: Path | None, default: str) -> WordList:
    """The file at `path`, or, if that is None, the one of that name that comes with the package."""
    if path is None:
        return WordList((files(__package__) / "data" / default).read_text("utf-8"), default)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise WordListError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        found = content[error.start : error.start + 1].hex()
        raise WordListError(f"{path}, line {line}: found byte 0x{found}, expected UTF-8") from None
    if len(content) > MOST_BYTES:
        raise WordListError(f"{path}: found more than {MOST_BYTES} bytes, expected a list of words")
    return WordList(text, str(path))
