from pathlib import Path

import pytest

from sanderling.events.analysis.listing import MOST_BYTES, ListEntry, WordList, WordListError, read_listing


def test_a_list_has_sections_of_labelled_entries() -> None:
    listing = WordList("# about\n\n[WORDS and 3]\n2: good, very good\nplain\n[REST]\n", "here")

    first, second = listing.sections

    assert (first.line, first.head) == (3, ("WORDS", "and", "3"))
    assert first.entries == [ListEntry(4, "2", "good"), ListEntry(4, "2", "very good"), ListEntry(5, "", "plain")]
    assert (second.head, second.entries) == (("REST",), [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word", "here, line 1: found 'word', expected a heading like [NAME] before the first entry"),
        ("[A]\n[B", "here, line 2: found '[B', expected a heading like [NAME]"),
        ("[ ]", "here, line 1: found '[ ]', expected a heading like [NAME]"),
        ("[A]\na,, b", "here, line 2: found 'a,, b', expected entries with one comma between"),
        ("[A]\n2: ", "here, line 2: found '2:', expected entries with one comma between"),
        ("[A]\n" + "x" * 201, f"here, line 2: found {'x' * 80!r}, expected at most 200 characters"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(WordListError) as caught:
        WordList(text, "here")

    assert str(caught.value) == message


def test_a_file_may_begin_with_a_mark_of_its_order(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbf[A]\r\nm\xc3\xaa\r\n")

    assert read_listing(path, "").sections[0].entries == [ListEntry(2, "", "mê")]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WordListError, match=r"none\.txt: cannot be read: No such file"):
        read_listing(tmp_path / "none.txt", "")


def test_a_file_that_is_not_text_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"[A]\nok\n\xff\n")

    with pytest.raises(WordListError, match=r"list\.txt, line 3: found byte 0xff, expected UTF-8"):
        read_listing(path, "")


def test_a_file_beyond_all_measure_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"#" * (MOST_BYTES + 1))

    with pytest.raises(WordListError, match="found more than 4194304 bytes"):
        read_listing(path, "")


def spelled(text: str) -> list[str]:
    listing = WordList("[A]\n", "here")
    return listing.spellings(ListEntry(2, "", text))


def test_phrases_are_found_without_marks_and_with_either_place_of_the_tone() -> None:
    assert spelled("Rất Khỏe") == ["rất khỏe", "rất khoẻ", "rat khoe"]


def test_single_words_keep_their_marks() -> None:
    assert spelled("bán") == ["bán"]


def test_marks_that_were_typed_apart_are_put_together() -> None:
    assert spelled("me\u0302 ly") == ["mê ly", "me ly"]


def test_a_phrase_with_slang_is_found_in_text_that_has_none() -> None:
    assert "không nên mua" in spelled("ko nên mua")


@pytest.mark.parametrize("text", ["good, bad"[:5] + ".", "a: b", "one two three four five six seven eight nine", "--"])
def test_what_no_clean_text_has_is_no_phrase(text: str) -> None:
    with pytest.raises(WordListError, match=r"here, line 2: found .*, expected one to 8 words without marks between"):
        spelled(text)
