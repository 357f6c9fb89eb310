"""What a crawl of ids looks like: on a terminal of any size, without one, and with a host that draws itself."""

import json
import re
from io import StringIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sequence_statuses import DECISION, STATUS, status

from sanderling.cli.screen import Silent, Wordy
from sanderling.cli.sequence.screen import SPAN, Plain, Screen, Terminal, Trace, fitting
from sanderling.cli.sequence.words import MEANINGS, News, age, answers, counters, kept, missed
from sanderling.observe.alerts import Alert
from sanderling.sequence import messages
from sanderling.sequence.retries import Reason
from sanderling.sequence.status import SequenceStatus, StoreStatus

FULL = StoreStatus(stored=17, duplicates=0, buried=0, retried=0, workers=4, trouble="full")
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"


def drawn(screen: Terminal, columns: int, lines: int) -> list[str]:
    """The frame as a person sees it."""
    seen = Console(file=StringIO(), width=columns, height=lines)
    with seen.capture() as written:
        seen.print(screen)
    return written.get().rstrip("\n").split("\n")


def frame(*statuses: SequenceStatus, columns: int = 100, lines: int = 30, alerts: tuple[Alert, ...] = ()) -> list[str]:
    """The last of some frames."""
    with Terminal(Console(file=StringIO(), force_terminal=True, width=columns, height=lines)) as screen:
        for each in statuses:
            screen.show(each)
        for alert in alerts:
            screen.tell(alert)
    return drawn(screen, columns, lines)


def test_the_frame_says_how_it_goes() -> None:
    text = "\n".join(frame(STATUS))

    assert "1:40  catching up  bungie at stats.bungie.example" in text
    assert "all below 16,000,000,500 have their fate; the head is 5,500 ids ahead" in text
    assert "2 min 15 s, 42.0 records/s" in text
    assert "50, 48 busy, 7 ids wait for another try" in text
    assert "why  135 s behind: 25 workers become 50." in text
    assert "490 records, 20 wanted, 2.0 % not found, 2 failed, 1 refused, 3 hidden" in text
    assert "9,999 ids to be asked again: 9,996 in gaps, 3 hidden for now; 1 gap skipped" in text
    assert "20 queued, 3 wait there, 17 stored" in text
    assert "61.5 requests/s, 160 ms: growing" in text


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (200, 60), (40, 14), (60, 12)])
def test_it_fits(columns: int, lines: int) -> None:
    gap = messages.gap_skipped(16_000_000_500, 16_000_010_497, 9996)

    seen = frame(STATUS, columns=columns, lines=lines, alerts=(gap,) * 20)

    assert max(map(len, seen)) <= columns
    assert len(seen) < lines


def test_what_others_write_moves_no_cursor() -> None:
    written = StringIO()
    assert STATUS.limiter is not None
    limiter = msgspec.structs.replace(STATUS.limiter, why=HOSTILE)
    plan = msgspec.structs.replace(STATUS.plan, why=HOSTILE)
    with Terminal(Console(file=written, force_terminal=True, width=80, height=24)) as screen:
        screen.show(status(limiter=limiter, plan=plan, missed={HOSTILE: 3}))
        screen.show(status(trouble=HOSTILE))

    assert "owned\x07" not in written.getvalue()
    assert "\x1b[2J\x1b]0" not in written.getvalue()


def test_charts_show_how_it_got_there() -> None:
    trace = Trace()
    for second in range(101):
        trace.add(float(second), 100.0 - second)

    chart = trace.drawn(10)

    assert (chart[0], chart[-1], len(chart)) == ("█", "▁", 10)
    assert list(chart) == sorted(chart, reverse=True)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.none() | st.floats(0, 1e9)), max_size=400),
    st.integers(1, 60),
)
def test_a_chart_is_as_wide_as_it_should_be(steps: list[tuple[float, float | None]], width: int) -> None:
    trace, now = Trace(), 0.0
    for step, value in steps:
        now += step
        trace.add(now, value)

    assert len(trace.drawn(width)) == width
    assert set(trace.drawn(width)) <= set(" ▁▂▃▄▅▆▇█")


def test_a_chart_forgets_what_is_long_ago() -> None:
    trace = Trace()
    trace.add(0.0, 1000.0)
    trace.add(SPAN + 1, 1.0)

    assert trace.drawn(5) == "█████"


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({}, {}, []),
        ({"decisions": ()}, {}, ["25 workers become 50: 5 min 0 s behind, 1.2 % not found (slew, little)"]),
        ({}, {"looking": True}, ["nothing is found behind 16000000505: a gap, or the head?"]),
        ({"looking": True}, {"looking": True, "at_head": True}, ["it is the head: waiting for new ids"]),
        ({"looking": True, "at_head": True}, {}, ["ids are there again: going on"]),
        ({"looking": True}, {"gaps": 2}, []),  # which is an alert
        ({}, {"trouble": "no broker"}, ["the queue takes nothing: no broker"]),
        ({"trouble": "no broker"}, {}, ["the queue is back"]),
        ({}, {"store": FULL}, ["the store takes nothing: full"]),
        ({"store": FULL}, {}, ["the store is back"]),
    ],
)
def test_what_changes_is_news(before: dict[str, object], now: dict[str, object], says: list[str]) -> None:
    news = News()

    assert list(news.of_status(status(**before))) == []
    assert list(news.of_status(status(**now))) == says


def test_a_decision_made_before_any_record_says_that_the_lag_is_not_known() -> None:
    news, early = News(), msgspec.structs.replace(DECISION, lag=None, missing=None, held=())
    list(news.of_status(status(decisions=())))

    said = list(news.of_status(status(decisions=(early,))))

    assert said == ["25 workers become 50: how far behind is not known yet"]


def test_a_decision_that_changes_nothing_is_no_news() -> None:
    news, same = News(), msgspec.structs.replace(DECISION, workers=25)
    list(news.of_status(status(decisions=())))

    assert list(news.of_status(status(decisions=(same,)))) == []


@pytest.mark.parametrize(
    ("alert", "says"),
    [
        (messages.gap_skipped(10, 110, 99), "gap: 99 ids behind 10 do not exist; going on at 110"),
        (messages.api_disabled("bungie"), "the API says that it is switched off: waiting until it is back"),
        (messages.api_back("bungie", 90.0), "the API is back after 1m 30s"),
        (messages.high_404(0.9, 60), "90.000% of the last 60 were not found: looking for what is ahead"),
        (messages.runaway(10, 600.0), "nothing exists behind 10, for 10m now"),
        (messages.starting_up(), None),
        (messages.status_update(1.0, 0.1, 0.1, 5), None),
        (messages.unresolved(10, 5.0), None),
    ],
)
def test_alerts_are_said_in_words(alert: Alert, says: str | None) -> None:
    assert News().of_alert(alert) == says


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == {reason.value for reason in Reason}


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (None, "unknown"),
        (4.2, "4.2 s"),
        (99.4, "99 s"),
        (135.0, "2 min 15 s"),
        (3599.9, "60 min 0 s"),
        (7200.0, "2 h 0 min"),
    ],
)
def test_ages_are_said_as_people_say_them(seconds: float | None, says: str) -> None:
    assert age(seconds) == says


def test_what_is_not_known_is_not_said() -> None:
    bare = status(queue=None, store=None, behind=None, lag=None, limiter=None, missed={}, gaps=0, answers={})

    assert kept(bare) == "20 queued"
    assert missed({}) == "nothing"
    assert answers(bare) == ["0 records", "0 wanted", "0.0 % not found"]
    assert counters(bare)[1:3] == ["at 16000000500", "42.0 records/s"]
    assert "host" not in "\n".join(frame(bare)).replace("at stats", "")


def test_elsewhere_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    with screen:
        for seconds in range(20):
            screen.show(status(wall=1_800_000_000.0 + seconds))
        screen.tell(messages.api_disabled("bungie"))
        screen.tell(messages.starting_up())
    screen.end(["done…"], {})

    seen = capsys.readouterr()
    assert seen.out == "done?\n"
    first, second, last = seen.err.splitlines()
    assert first.startswith("0:09  catching up, at 16000000500, 5,500 ids behind, lag 2 min 15 s, 42.0 records/s")
    assert second.startswith("0:19  ")
    assert last == "0:19  the API says that it is switched off: waiting until it is back"


def test_what_is_in_the_log_is_not_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    screen: Screen = Wordy()
    for _ in range(30):
        screen.show(STATUS)
    screen.tell(messages.api_disabled("bungie"))
    screen.end(["done"], {})

    assert capsys.readouterr() == ("done\n", "")


def test_as_json_there_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    screen: Screen = Silent()
    screen.show(STATUS)
    screen.tell(messages.api_disabled("bungie"))
    screen.end(["done"], {"complete": True})

    seen = capsys.readouterr()
    assert (json.loads(seen.out), seen.err) == ({"complete": True}, "")


def test_the_screen_fits_where_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees colours through a pipe."""
    assert isinstance(fitting(json=True), Silent)
    assert isinstance(fitting(json=False), Plain)
    assert isinstance(fitting(json=False, logs=True), Wordy)
    assert not isinstance(fitting(json=False, logs=True), Plain)
    monkeypatch.setenv("NO_COLOR", "1")
    assert isinstance(fitting(json=False), Plain)


def test_the_end_is_broken_where_the_window_ends_and_commands_are_not() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=40, height=24)
    screen = Terminal(console)
    command = "    sanderling sequence crawl --out somewhere/far/away/from/here"
    with console.capture() as written:
        screen.end(["a line of words that does not fit into forty columns", command], {})

    lines = re.sub(r"\x1b\[[0-9;]*m", "", written.get()).splitlines()
    assert lines == ["a line of words that does not fit into", "forty columns", command]
