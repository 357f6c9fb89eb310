"""Numbers, sizes, times and texts in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.cli.words import clock_face, duration, printable, size


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (2 * 10**9, "2.0 GB")]
)
def test_sizes(number: int, said: str) -> None:
    assert size(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.26, "0.3 s"), (59.6, "60 s"), (150, "2 min"), (3600, "60 min"), (7260, "2 h 1 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(0, "0:00"), (65.9, "1:05"), (3725, "1:02:05")])
def test_clock_faces(seconds: float, said: str) -> None:
    assert clock_face(seconds) == said


@given(st.text())
def test_printable_text_keeps_its_length_and_cannot_act(text: str) -> None:
    shown = printable(text)

    assert shown.isprintable()
    assert len(shown) == len(text)


def test_plain_text_stays_as_it_is() -> None:
    assert printable("Grüße, 世界: 5 %") == "Grüße, 世界: 5 %"
