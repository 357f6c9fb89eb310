"""What consuming looks like: on a terminal of any size, without one, and with items that draw themselves."""

import json
from io import StringIO

import msgspec
import pytest
from fake_events import STATUS, status
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from sanderling.cli.events.numbers import Hour, Numbers
from sanderling.cli.events.report import Report
from sanderling.cli.events.screen import (
    WIDEST,
    Columns,
    Plain,
    Screen,
    Terminal,
    View,
    alerted,
    fitting,
)
from sanderling.cli.screen import Silent, Wordy
from sanderling.events.lately import ShortError
from sanderling.events.status import EventsStatus
from sanderling.observe.alerts import Alert, Field, Level

HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"
ALERT = Alert("buried", "Message Buried", (Field("Count", "3"), Field("Why", "no path")), Level.ERROR)
REPORT = Report(Numbers((Hour(0.0, positive=2, negative=1),), {"content": 1}))


def found(**changes: str) -> ShortError:
    return msgspec.structs.replace(STATUS.recent[0], **changes)


def drawn(screen: Terminal, columns: int, height: int) -> list[str]:
    """The frame as a person sees it."""
    seen = Console(file=StringIO(), width=columns, height=height)
    with seen.capture() as written:
        seen.print(screen)
    return [each.rstrip() for each in written.get().rstrip("\n").split("\n")]


def frame(
    *statuses: EventsStatus,
    columns: int = 100,
    height: int = 40,
    alerts: int = 0,
    note: str = "",
    view: View = View(),  # noqa: B008 - frozen
) -> list[str]:
    """The last of some frames."""
    with Terminal(Console(file=StringIO(), force_terminal=True, width=columns, height=height), view) as screen:
        for _ in range(alerts):
            screen.tell(ALERT)
        for each in statuses:
            screen.show(each)
        if note:
            screen.note(note)
        return drawn(screen, columns, height)


# The picture.


def test_the_frame_says_what_is_in_the_rows_what_waits_and_what_failed() -> None:
    seen = frame(STATUS, alerts=1, note="API: http://127.0.0.1:8080")

    for line in (
        "         1:40  106 batches: 4,290 posts, 310 errors",
        "          now  at 3 batches; 46 items a second, in 1.1 batches",
        "               items, second by second",
        "               ■ positive 900 ■ neutral 2,000 ■ negative 70 ■ errors 310",
        "        queue  40 waiting, 3 in hand, 7 for later, 2 given up",
        "     messages  110 done, 4 seen before, 5 put off, 2 given up",
        "          why  6.7%: rate_limiting 250, parsing 50, generic 10",
        "        codes  RATE_LIMITED 250, PARSE_ERROR 50, other 10",
        "    platforms  tiktok 4,000, youtube 600",
        "        modes  new, legacy, of the new ones 10%",
        "         sent  analyze.result 106, crawl.retry 18; 11 messages in the outbox",
        "rate_limiting  tiktok 7441234567890123456: RATE_LIMITED: 429 Too Many Requests",
        "error: Message Buried: Count 3, Why no path",
    ):
        assert line in seen
    assert seen[-1] == "API: http://127.0.0.1:8080"


def test_what_is_wrong_stands_in_the_picture() -> None:
    seen = frame(status(trouble="the database is gone"))

    assert "          now  waiting for what is not to be had; 46 items a second, in 1.1 batches" in seen
    assert "      trouble  the database is gone" in seen


@pytest.mark.parametrize(("columns", "height"), [(80, 24), (100, 30), (200, 60), (40, 14), (60, 18)])
def test_it_fits(columns: int, height: int) -> None:
    troubled = status(
        trouble="no disk " * 30, outbox_trouble="nobody " * 30, recent=(found(message="x" * 300),) * 20, queue=None
    )

    seen = frame(STATUS, troubled, columns=columns, height=height, alerts=5, note="the API " * 40)

    assert max(map(len, seen)) <= columns
    assert len(seen) < height + 4 or height < 24, "three troubles at once may cost the lowest lines"


@pytest.mark.parametrize(("columns", "height"), [(80, 24), (120, 40)])
def test_a_picture_without_troubles_is_whole(columns: int, height: int) -> None:
    seen = frame(STATUS, columns=columns, height=height, alerts=3, note="it goes on")

    assert len(seen) < height
    assert seen[-1] == "it goes on"
    assert "errors 310" in "\n".join(seen)


def test_nothing_jumps_from_frame_to_frame() -> None:
    """As many lines with errors as without, and every line where it was."""
    before = frame(status(recent=()), note="x")
    after = frame(status(recent=(found(),) * 20), note="x")

    assert len(before) == len(after)
    assert [each[:13].strip() for each in before[:24]] == [each[:13].strip() for each in after[:24]]


def test_what_others_write_moves_no_cursor() -> None:
    written = StringIO()
    hostile = status(
        trouble=HOSTILE,
        codes={HOSTILE: 1},
        categories={HOSTILE: 1},
        recent=(found(code=HOSTILE, category=HOSTILE, platform=HOSTILE, content_id=HOSTILE, message=HOSTILE),),
    )
    with Terminal(Console(file=written, force_terminal=True, width=80, height=24)) as screen:
        screen.tell(Alert("x", HOSTILE, (Field(HOSTILE, HOSTILE),), Level.ERROR))
        screen.show(hostile)
        screen.note(HOSTILE)
        screen.end([HOSTILE, REPORT], {})

    assert "owned\x07" not in written.getvalue()
    assert "\x1b[2J\x1b]0" not in written.getvalue()


def test_the_caption_is_what_it_is_told_each_time() -> None:
    hours = iter(("it is 9:00", "it is 9:00", "it is 12:00", "it is 15:00"))

    seen = frame(STATUS, STATUS, view=View(lambda: next(hours), 0.25))

    assert any(line.startswith("               it is ") for line in seen)
    assert "               items, second by second" not in seen


# What came lately.


def at(seconds: float, errors: int, **sentiments: int) -> EventsStatus:
    return status(wall=STATUS.started + seconds, sentiments=sentiments, errors=errors)


def test_columns_have_what_is_new_since_the_frame_before() -> None:
    columns = Columns(1.0)
    for each in (at(1.0, 0, POSITIVE=4), at(2.0, 1, POSITIVE=4, NEGATIVE=2), at(4.0, 1, POSITIVE=8, NEGATIVE=2)):
        columns.add(each)

    seen = columns.last(5)

    assert [each.at for each in seen] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [each.positive for each in seen] == [4, 0, 2, 2, 0], "four in two seconds are two in each"
    assert [(each.negative, each.errors) for each in seen] == [(0, 0), (2, 1), (0, 0), (0, 0), (0, 0)]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0.01, 40), st.integers(0, 500), st.integers(0, 9)), max_size=30), st.booleans())
def test_columns_lose_nothing_that_there_is_room_for(steps: list[tuple[float, int, int]], fine: bool) -> None:  # noqa: FBT001 - drawn
    columns = Columns(0.25 if fine else 20.0)
    seconds, posts, errors = 0.0, 0, 0
    for passed, more, failed in steps:
        seconds, posts, errors = seconds + passed, posts + more, errors + failed
        columns.add(at(seconds, errors, NEUTRAL=posts))

    seen = columns.last(WIDEST)

    assert len(seen) == WIDEST
    assert all(each.judged >= 0 and each.errors >= 0 for each in seen)
    if seconds / (0.25 if fine else 20.0) < WIDEST - 1:
        assert (sum(each.neutral for each in seen), sum(each.errors for each in seen)) == (posts, errors)


# In words.


def test_plain_lines_say_what_is_wrong_when_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    screen.show(status(queue=None))
    screen.show(STATUS)
    screen.show(status(trouble="the disk is full", wall=STATUS.wall + 1))
    screen.show(status(trouble="the disk is full", wall=STATUS.wall + 2))
    screen.show(status(wall=STATUS.wall + 3))
    screen.tell(ALERT)

    assert capsys.readouterr().err.splitlines() == [
        "1:41  the disk is full",
        "1:43  all is well again",
        "error: Message Buried: Count 3, Why no path",
    ]


def test_plain_lines_say_now_and_then_how_it_stands_in_plain_letters(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    for _ in range(20):
        screen.show(status(trouble=HOSTILE))

    said = capsys.readouterr().err

    assert said.isascii()
    assert "\x1b" not in said
    assert said.count("106 batches: 4,290 posts, 310 errors; ") == 2


def test_an_alert_is_one_line() -> None:
    assert alerted(ALERT) == "error: Message Buried: Count 3, Why no path"


# Where it goes.


def test_the_screen_is_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")

    assert isinstance(fitting(json=True), Silent)
    assert isinstance(fitting(json=False), Plain)
    assert isinstance(fitting(json=False, logs=True), Wordy)
    assert not isinstance(fitting(json=False, logs=True), Plain)


def test_the_end_is_said_in_words_and_plots_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen: Screen = Silent()
    screen.end(["words", REPORT], {"posts": 7})
    assert json.loads(capsys.readouterr().out) == {"posts": 7}

    Plain().end(["words …", REPORT], {"posts": 7})
    said = capsys.readouterr().out
    assert said.startswith("words ?\nHow people felt, hour by hour (UTC)\n")
    assert said.isascii()
    assert max(map(len, said.splitlines())) <= 80


def test_the_end_on_a_terminal_has_colours_and_fits_it() -> None:
    written = StringIO()
    Terminal(Console(file=written, force_terminal=True, color_system="standard", width=70, height=24)).end(
        ["many words " * 20, REPORT], {}
    )

    assert "\x1b[31m" in written.getvalue(), "red"
    plain = Console(file=StringIO(), width=70)
    with plain.capture() as seen:
        Terminal(plain).end(["many words " * 20, REPORT], {})
    assert max(len(each.rstrip()) for each in seen.get().splitlines()) <= 70
