"""The C part of the analysis and its Python twins must not be told apart."""

import gc
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.events.analysis import scan, scan_python
from sanderling.events.analysis.lexicon import load_lexicon
from sanderling.events.analysis.scan import tree_of
from sanderling.events.analysis.scan_python import BREAK, BREAKS, CONCESSION, END, OTHER, Plain, locate, weigh, windows

native = pytest.importorskip(
    "sanderling.events.analysis._scan", reason="the C part was not built: no compiler when the package was installed"
)
# Marks, spaces of all sorts, letters of one to four bytes, marks on letters, signs without a width, halves of signs.
ODD = (
    f"{BREAKS}{OTHER}' ''  \t\n\r\x0b\x1c\x85\xa0\u2003\u3000\u2028\0aAwWzZ09éÉđĐơƯạỹỸß"
    "\u0130\u0301\u0323\u200b\ufeff😍👍🏽日\ud83d\udc4d"
)
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(), st.characters(categories=["Cs"])), max_size=120)
PLAIN = st.text(st.sampled_from("  .,;:!?abwWwWđĐẠỹ09Ươ\u00d7'x"), max_size=60)
HUGE = "không'' tốt...  www.a.b 😍😍😍 " * 20_000
WORDS = st.lists(st.sampled_from(["a", "b", "c", "!", ".", ",", "không", "😍"]), max_size=15)
PHRASES = st.lists(st.sampled_from(["a", "b", "c", "!", "không"]), min_size=1, max_size=4).map(" ".join)
NUMBERS = st.floats(-3, 3)


@given(TEXTS)
@example("")
@example("''' ' 'a'' ''b' 'c.' ('d') '")
@example(HUGE)
def test_both_cut_any_text_into_the_same_words(text: str) -> None:
    assert native.words_of(text) == scan_python.words_of(text)


@given(st.one_of(PLAIN, TEXTS))
@example("")
@example(" ")
@example("Đẹp WWW.a")
@example("awwwb.ww.c")
@example("a" * 300_000)
def test_both_take_the_same_texts_for_plain(text: str) -> None:
    assert native.plain_words(text) == scan_python.plain_words(text)


def test_every_character_is_the_same_to_both() -> None:
    for number in [*range(0x3200), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10100), *range(0x1F300, 0x1F650)]:
        text = f"a{chr(number)}b"
        assert native.words_of(text) == scan_python.words_of(text), hex(number)
        assert native.plain_words(text) == scan_python.plain_words(text), hex(number)


@given(st.one_of(st.text("ab\n\ud83d😍", max_size=12), TEXTS))
def test_both_see_the_same_letters_drawn_out(text: str) -> None:
    assert native.has_triple(text) == scan_python.has_triple(text)


@given(WORDS, st.dictionaries(PHRASES, st.integers(), max_size=12))
def test_both_find_the_same_phrases(words: list[str], table: dict[str, int]) -> None:
    first = tree_of(table)

    assert native.longest(first, words) == scan_python.longest(first, words)
    assert native.every(first, words) == scan_python.every(first, words)
    assert native.every(first, tuple(words)) == scan_python.every(first, tuple(words))


@given(
    WORDS,
    st.dictionaries(PHRASES, st.tuples(st.integers(END, CONCESSION + 2), NUMBERS, st.just(0.0) | NUMBERS), max_size=12),
    st.frozensets(st.sampled_from(["a", "!", "."])),
)
def test_both_weigh_the_same_to_the_last_bit(words: list[str], table: dict[str, Plain], asking: frozenset[str]) -> None:
    first = tree_of(table)

    assert repr(native.weigh(first, asking, words)) == repr(weigh(first, asking, words))


def test_both_weigh_what_people_write_the_same() -> None:
    lexicon = load_lexicon()
    said = {phrase: (each.kind, each.value, each.after) for phrase, each in lexicon.phrases.items()}
    first = tree_of({**said, ",": (BREAK, 0.0, 0.0), ".": (END, 0.0, 0.0), "!": (END, 0.0, 0.0)})
    known = [*sorted({word for phrase in said for word in phrase.split(" ")}), ",", ".", "!", "x"]
    rng = random.Random(1)

    for length in range(300):
        words = rng.choices(known, k=length)
        assert repr(native.weigh(first, lexicon.asking, words)) == repr(weigh(first, lexicon.asking, words))


LONG = st.lists(st.sampled_from([*" .,!?01a\u00a0đ😍", "a" * 10, "b " * 10, "ba" * 12]), max_size=15).map("".join)


@given(LONG, st.data())
def test_both_see_the_same_around_a_place(text: str, data: st.DataObject) -> None:
    bound = st.integers(0, len(text))
    spans = st.lists(st.tuples(bound, bound).map(lambda pair: (min(pair), max(pair))), max_size=4)
    pivots, places = data.draw(spans), data.draw(spans)

    assert native.windows(text, pivots, places) == windows(text, pivots, places)


@pytest.mark.parametrize("mark", [",5", ", 5", "5", " ", "."])
def test_both_see_the_same_where_a_window_ends(mark: str) -> None:
    for left, right in product(range(26, 34), repeat=2):
        text = f"a b{mark}{'x' * left} c {'y' * right}{mark}d e"
        places = [(text.index("c"), text.index("c") + 1)]
        assert native.windows(text, [], places) == windows(text, [], places), (left, right)


@given(st.text(" .'-ab\u00a0\n", max_size=40), st.text("ab .", min_size=1, max_size=4), st.integers(0, 45))
@example("xa a a", "a a", 0)
def test_both_find_a_phrase_at_the_same_place(text: str, phrase: str, at: int) -> None:
    assert native.locate(text, phrase, at) == locate(text, phrase, at)


class Loud(str):
    """A text that might do anything when it is asked for its hash."""

    __slots__ = ()


WRONG: list[tuple[Callable[..., object], Sequence[object]]] = [
    (native.words_of, [b"a"]),
    (native.words_of, [Loud("a")]),
    (native.plain_words, [None]),
    (native.has_triple, [1]),
    (native.longest, [{}]),
    (native.longest, [[], ["a"]]),
    (native.longest, [{}, None]),
    (native.longest, [{}, ["a", 1]]),
    (native.longest, [{}, [Loud("a")]]),
    (native.longest, [{"a": 1}, ["a"]]),
    (native.longest, [{"a": (1,)}, ["a"]]),
    (native.longest, [{"a": (None, None)}, ["a", "b"]]),
    (native.every, [{"a": (1, [])}, ["a"]]),
    (native.weigh, [{}, frozenset(), ["a"], 1]),
    (native.weigh, [{}, {"a"}, ["a"]]),
    (native.weigh, [{"a": (1, {})}, frozenset(), ["a"]]),
    (native.weigh, [{"a": ((1, "b", 0.0), {})}, frozenset(), ["a"]]),
    (native.weigh, [{"a": ((None, 0.0, 0.0), {})}, frozenset(), ["a"]]),
    (native.locate, ["a", "a"]),
    (native.locate, [Loud("a"), "a", 0]),
    (native.locate, ["a", b"a", 0]),
    (native.locate, ["a", "a", 0.0]),
    (native.windows, ["a", []]),
    (native.windows, [1, [], []]),
    (native.windows, ["a", None, []]),
    (native.windows, ["a", [], [(0,)]]),
    (native.windows, ["a", [(0, "b")], []]),
]


@pytest.mark.parametrize(("function", "arguments"), WRONG)
def test_the_c_refuses_what_is_not_for_it(function: Callable[..., object], arguments: Sequence[object]) -> None:
    with pytest.raises(TypeError):
        function(*arguments)


@pytest.mark.parametrize("span", [(-1, 1), (0, 4), (2, 1), (3, 2**62)])
def test_the_c_refuses_a_place_outside_of_the_text(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="within the text"):
        native.windows("abc", [], [span])
    with pytest.raises(ValueError, match="within the text"):
        native.windows("abc", [span], [(0, 1)])
    with pytest.raises(OverflowError):
        native.windows("abc", [], [(0, 2**70)])


@pytest.mark.parametrize(("phrase", "at"), [("", 0), ("a", -1)])
def test_the_c_refuses_to_look_for_nothing_or_before_the_text(phrase: str, at: int) -> None:
    with pytest.raises(ValueError, match="not empty"):
        native.locate("abc", phrase, at)


class Spoiler:
    """A key or a number that empties what is looked at, the words and the tree, while it is compared or read."""

    def __init__(self, like: str) -> None:
        self._like = like
        self.words = ["a", "b"] * 20
        self.tree: Any = {}
        self.armed = False

    def _spoil(self) -> None:
        if self.armed:
            self.words.clear()
            self.tree.clear()
            gc.collect()

    def __hash__(self) -> int:
        return hash(self._like)

    def __eq__(self, other: object) -> bool:
        self._spoil()
        return False

    def __index__(self) -> int:
        self._spoil()
        return 0


@pytest.mark.parametrize("find", [native.longest, native.every])
def test_a_tree_that_changes_while_it_is_read_does_no_harm(find: Callable[..., list[object]]) -> None:
    spoiler = Spoiler("b")
    spoiler.tree["a"] = (None, {spoiler: (1, {}), "b": ((2,), {})})
    spoiler.armed = True

    found = find(spoiler.tree, spoiler.words)

    # The first phrase was being read, and all the words were there; for the second one the tree had gone.
    assert found in ([(0, 2, (2,))], [(0, (2,))])
    assert (spoiler.words, spoiler.tree) == ([], {})


def test_a_number_that_changes_the_tree_does_no_harm() -> None:
    spoiler = Spoiler("a")
    spoiler.tree["a"] = ((spoiler, 1.0, 0.0), {})
    spoiler.armed = True

    assert native.weigh(spoiler.tree, frozenset(), spoiler.words) == (1.0, 0.0, 0)


def test_the_words_that_are_kept_are_never_more_than_some() -> None:
    numbers = count()
    fill = 20_000
    for _ in range(fill):
        native.words_of(f"w{next(numbers)} x")
    before = sys.getallocatedblocks()

    for _ in range(3 * fill):
        native.words_of(f"w{next(numbers)} x")

    assert sys.getallocatedblocks() - before < 1_000


@pytest.mark.skipif(scan.ACTIVE != "c", reason="this is the run with the Python twins")
def test_the_analysis_passes_with_the_python_twins_too() -> None:
    """All tests of the analysis but those of this file, which ask both of them anyway."""
    here = Path(__file__).parent
    files = sorted(str(each) for each in here.glob("test_analysis_*.py") if each.name != Path(__file__).name)
    # Without the plugin that none of them needs, and that takes long to load.
    flags = ["-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "--hypothesis-profile=brief"]
    done = subprocess.run(  # noqa: S603 - pytest itself
        [sys.executable, "-m", "pytest", *flags, *files],
        env=os.environ | {"SANDERLING_PURE": "1"},
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:]
