"""Every term of the glossary is there once, and still lives where the glossary says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sanderling"
TERMS = re.findall(r"^\| ([a-z -]+) \| (.+) \| `(.+)` \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)

# What the design and the style guide call terms of ours: one word per idea.
WANTED = {
    *("host", "outcome", "task", "attempt", "target", "segment", "period", "frontier", "ledger", "permit", "scope"),
    *("set aside", "patience", "class", "station", "hand over", "dead letter", "lane", "gate", "window", "cursor"),
    *("margin", "gap", "missed", "due", "blame", "probe"),
}


def test_every_term_is_there_once() -> None:
    names = [term for term, _, _ in TERMS]

    assert {*names} >= WANTED
    assert len({*names}) == len(names)


@pytest.mark.parametrize(("term", "file"), [(term, file) for term, _, file in TERMS])
def test_a_term_is_still_used_where_it_lives(term: str, file: str) -> None:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\s-]+", " ", (PACKAGE / file).read_text())  # GuardRules, set_aside

    assert re.search(rf"\b{term}(s|es|d)?\b", spaced, re.IGNORECASE), f"{file} does not speak of {term!r}"


def test_a_meaning_is_one_sentence_without_a_stop() -> None:
    assert [term for term, meaning, _ in TERMS if meaning.endswith(".") or len(meaning) > 130] == []
