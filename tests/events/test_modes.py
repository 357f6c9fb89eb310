"""The modes: those to begin with, as the environment says them, and those of the file."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.modes import FILE, NO, YES, Modes, modes_from, read_modes

WORDS = st.sampled_from([*((word, True) for word in YES), *((word, False) for word in NO)])


@given(new=WORDS, legacy=WORDS, data=st.data())
def test_a_word_of_either_kind_is_read_in_any_case(
    new: tuple[str, bool], legacy: tuple[str, bool], data: st.DataObject
) -> None:
    def spelled(word: str) -> str:
        return data.draw(st.sampled_from([word, word.upper(), word.title(), f" {word}\n"]))

    found = modes_from({"NEW_MODE_ENABLED": spelled(new[0]), "LEGACY_MODE_ENABLED": spelled(legacy[0])})

    assert found == Modes(new=new[1], legacy=legacy[1])


@pytest.mark.parametrize("environment", [{}, {"NEW_MODE_ENABLED": "", "LEGACY_MODE_ENABLED": "  "}])
def test_what_is_not_said_is_as_usual(environment: dict[str, str]) -> None:
    assert modes_from(environment) == Modes(new=True, legacy=True, inline=True, canary=1.0)


def test_each_variable_switches_its_own_format() -> None:
    assert modes_from({"NEW_MODE_ENABLED": "false"}) == Modes(new=False)
    assert modes_from({"LEGACY_MODE_ENABLED": "off"}) == Modes(legacy=False)


@pytest.mark.parametrize("name", ["NEW_MODE_ENABLED", "LEGACY_MODE_ENABLED"])
def test_any_other_word_is_refused_with_all_that_helps(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is 'Maybe', expected one of true, 1, .* or false, 0, .*nothing$"):
        modes_from({name: "Maybe"})


@given(st.text())
def test_whatever_it_says_it_is_read_or_refused(text: str) -> None:
    if text.strip().lower() in ("", *YES, *NO):
        assert modes_from({"NEW_MODE_ENABLED": text}).new == (text.strip().lower() not in NO)
    else:
        with pytest.raises(ValueError, match=r"^NEW_MODE_ENABLED is ") as refused:
            modes_from({"NEW_MODE_ENABLED": text})
        assert len(str(refused.value)) < 600


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"new": "\xff"}', b'{"new": 1}', b""])
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, body: bytes) -> None:
    (tmp_path / FILE).write_bytes(body)

    with pytest.raises(ValueError, match=FILE):
        read_modes(tmp_path)


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)

    with pytest.raises(ValueError, match=FILE):
        read_modes(tmp_path)
