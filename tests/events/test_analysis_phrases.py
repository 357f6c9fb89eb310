from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.scan import BREAKS, Phrases, words_of

SOME = Phrases({"giá": 1, "giá trị": 2, "trị giá cao": 3, "không hề": 4, "không hề rẻ chút": 5})


def test_words_are_cut_at_spaces_and_marks_and_breaks_are_words() -> None:
    assert words_of('đẹp,rẻ "bền" (và) high-quality!!') == [
        *("đẹp", ",", "rẻ", "bền", "(", "và", ")", "high", "quality", "!", "!")
    ]


def test_an_apostrophe_belongs_to_a_word_only_within_it() -> None:
    assert words_of("don't say 'good' now") == ["don't", "say", "good", "now"]


def test_the_longest_phrase_counts_and_its_words_are_used_up() -> None:
    assert SOME.longest(["giá", "trị", "giá", "cao"]) == [(0, 2, 2), (2, 3, 1)]


def test_all_phrases_are_also_those_within_others() -> None:
    assert SOME.all(["giá", "trị", "giá", "cao"]) == [(0, 1), (0, 2), (1, 3), (2, 1)]


def test_a_phrase_that_only_begins_is_the_shorter_one() -> None:
    assert SOME.longest(["không", "hề", "rẻ"]) == [(0, 2, 4)]
    assert SOME.longest(["không"]) == []


def test_a_phrase_at_the_very_end_ends_there() -> None:
    """Fewer words may be left than the longest phrase has."""
    assert SOME.longest(["x", "không", "hề"]) == [(1, 3, 4)]


def test_a_phrase_is_never_part_of_a_word_nor_across_a_break() -> None:
    assert SOME.longest(words_of("giáo trị giá, cao")) == [(2, 3, 1)]


def test_whether_there_is_any() -> None:
    assert SOME.any(["x", "giá"])
    assert not SOME.any(["x", "không"]), "it begins like one"
    assert not SOME.any([])


WORDS = st.lists(st.sampled_from("abc"), max_size=12)
TABLES = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(" ".join), st.integers(1, 9), max_size=12
)


@given(WORDS, TABLES)
def test_phrases_are_what_a_slow_search_finds(words: list[str], table: dict[str, int]) -> None:
    spans = [(start, end) for start in range(len(words)) for end in range(start + 1, len(words) + 1)]
    slow = [(start, table[" ".join(words[start:end])]) for start, end in spans if " ".join(words[start:end]) in table]
    longest, at = [], 0
    while at < len(words):
        ends = [end for end in range(len(words), at, -1) if " ".join(words[at:end]) in table]
        if ends:
            longest.append((at, ends[0], table[" ".join(words[at : ends[0]])]))
        at = ends[0] if ends else at + 1

    phrases = Phrases(table)

    assert phrases.all(words) == slow
    assert phrases.longest(words) == longest
    assert phrases.any(words) == bool(slow)


@given(st.text())
def test_no_word_has_a_mark_or_a_space_in_it(text: str) -> None:
    for word in words_of(text):
        assert word in BREAKS or not set(word) & set(BREAKS + ' "/-#')
        assert word == word.strip() != ""
