"""Numbers, sizes, times and texts in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.words import clock_face, count, duration, printable, size


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (1_550_000, "1.6 MB"), (2 * 10**9, "2.0 GB"), (4e12, "4.0 TB")],
)
def test_sizes(number: float, said: str) -> None:
    assert size(number) == said


@pytest.mark.parametrize(("number", "said"), [(0, "0 ids"), (1, "1 id"), (1234, "1,234 ids")])
def test_numbers_of_things(number: int, said: str) -> None:
    assert count(number, "id") == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((None, "unknown"), (0, "0 s"), (0.26, "260 ms"), (5, "5.0 s"), (9.97, "10 s"), (59.6, "60 s"), (99, "99 s")),
        *((153, "2 min 33 s"), (240, "4 min"), (599.7, "10 min"), (650, "11 min"), (3600, "60 min")),
        *((7260, "2 h 1 min"), (20_000, "5 h 33 min"), (1e7, "115 days")),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
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
