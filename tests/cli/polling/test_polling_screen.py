"""What polling looks like: on a terminal of any size, without one, and with an upstream that draws itself."""

import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import msgspec
import pytest
from fake_polling import STATUS, status
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sanderling.cli.polling.news import TOGETHER, News, lines, notable
from sanderling.cli.polling.poll import overall
from sanderling.cli.polling.screen import Frame, KindPace, Plain, Screen, Terminal, chosen, fitting
from sanderling.cli.polling.status import words
from sanderling.cli.polling.words import host, lateness, line, milliseconds, now, often, punctual, troubles
from sanderling.cli.screen import Silent, Wordy
from sanderling.cli.strips import LONGEST, Strip, Strips, spread
from sanderling.observe.histogram import Histogram
from sanderling.polling.measures import Late
from sanderling.polling.status import AcceleratedStatus, PollingStatus, TargetCounts
from sanderling.stores.polling import Change, Op

HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"
PACES = (KindPace("event", 1, 10.0), KindPace("race", 12, 10.0), KindPace("results", 1, 0.0))
RACE = "e3559bae-1176-484f-b714-05829617f34f"
LIVE = AcceleratedStatus(kind="race", source_id=RACE, interval=0.2, left=29.0, late=0.001)


def change(seq: int = 1, **others: Any) -> Change:  # noqa: ANN401 - fields of a change
    usual = {"seq": seq, "at": STATUS.started + 5, "op": Op.INSERT, "table": "laps", "key": "k", "kind": "race"}
    return Change(**{**usual, "source_id": RACE, **others})


def lap(seconds: float, **others: Any) -> Change:  # noqa: ANN401 - fields of a change
    return change(values={"length_seconds": seconds, "lap_number": 2, "is_holeshot": False}, **others)


def drawn(screen: Terminal, columns: int, height: int) -> list[str]:
    """The frame as a person sees it."""
    seen = Console(file=StringIO(), width=columns, height=height)
    with seen.capture() as written:
        seen.print(screen)
    return [each.rstrip() for each in written.get().rstrip("\n").split("\n")]


def frame(
    *statuses: PollingStatus, columns: int = 100, height: int = 30, changes: tuple[Change, ...] = (), note: str = ""
) -> list[str]:
    """The last of some frames."""
    with Terminal(Console(file=StringIO(), force_terminal=True, width=columns, height=height)) as screen:
        screen.tell(changes)
        for each in statuses:
            screen.show(Frame(each, PACES))
        if note:
            screen.note(note)
        return drawn(screen, columns, height)


# The picture.


def test_the_frame_says_who_is_live_how_often_each_is_asked_for_and_what_changed() -> None:
    seen = frame(status(accelerated=(LIVE,), problems=()), changes=(lap(4.5), lap(5.25)))

    text = "\n".join(seen)
    assert seen[0] == "      1:40  polling trackside at race.example: 50 targets, 2 failing, 4 paused, 6 gone"
    assert seen[1] == "       now  race e3559bae is live: asked for every 200 ms"
    assert re.search(r"^     event  ·+  every 10 s$", text, re.MULTILINE)
    assert re.search(r"^      race  [·▁-█]+  every 200 ms: live$", text, re.MULTILINE)
    assert re.search(r"^   results  [·▁-█]+  switched off$", text, re.MULTILINE)
    assert "      runs  492, 5.4 a second; 2 failed, 3 missed" in seen
    assert "      late  live runs by 2.0 ms at the median, 99 of 100 by 11 ms at most" in seen
    assert "      host  answers in 60 ms; growing" in seen
    assert "      0:05  race e3559bae: laps +2 (4.50 s, 5.25 s)" in seen


def test_without_anyone_live_there_are_the_usual_paces() -> None:
    seen = frame(status(accelerated=(), current=f"race {RACE}"))

    assert seen[1] == "       now  nothing is live; the current race is e3559bae"
    assert any(each.endswith("every 10 s, 12 of them") for each in seen)


@pytest.mark.parametrize(("columns", "height"), [(80, 24), (100, 30), (200, 60), (40, 14), (60, 13)])
def test_it_fits(columns: int, height: int) -> None:
    changes = tuple(change(source_id=str(number)) for number in range(40))
    troubled = status(store_trouble="no disk " * 30, discovery_trouble="no host " * 30)

    seen = frame(STATUS, troubled, columns=columns, height=height, changes=changes, note="the admin API " * 20)

    assert max(map(len, seen)) <= columns
    assert len(seen) < height or height < 20


def test_nothing_jumps_from_frame_to_frame() -> None:
    """As many lines with changes as without, and every kind where it was."""
    before = frame(STATUS)
    after = frame(STATUS, changes=tuple(change(source_id=str(number)) for number in range(6)))

    def places(seen: list[str]) -> list[str]:
        return [each[:10].strip() for each in seen[:14]]

    assert places(before) == places(after)
    # What is empty at the end is not printed, so the note says where that is.
    assert len(frame(STATUS, note="x")) == len(frame(STATUS, note="x", changes=(lap(1.0), lap(2.0))))


def test_what_others_write_moves_no_cursor() -> None:
    written = StringIO()
    with Terminal(Console(file=written, force_terminal=True, width=80, height=24)) as screen:
        named = change(table="pilots", values={"name": HOSTILE}, kind=HOSTILE, source_id=HOSTILE)
        screen.tell((named, change(table=HOSTILE)))
        screen.show(
            Frame(status(discovery_trouble=HOSTILE, current=f"race {HOSTILE}", host=HOSTILE, accelerated=()), PACES)
        )
        screen.note(HOSTILE)
        screen.end([HOSTILE], {})

    assert "owned\x07" not in written.getvalue()
    assert "\x1b[2J\x1b]0" not in written.getvalue()


def test_of_too_many_kinds_those_are_shown_that_are_live() -> None:
    many = [KindPace(f"kind{number}", 1, 10.0) for number in range(30)]
    live = msgspec.structs.replace(LIVE, kind="kind29")

    shown = [pace.kind for pace in chosen(Frame(status(accelerated=(live,)), many), 5)]

    assert shown == ["kind0", "kind1", "kind2", "kind3", "kind29"]


# Strips.


def test_a_strip_is_as_high_as_there_were_runs_in_a_second() -> None:
    strip = Strip()
    for second, number in ((96, 1), (97, 5), (98, 5), (100, 8)):
        strip.add(second, number, failed=False, live=False)

    assert strip.drawn(6, 100.9).plain == "·▁▅▅·█"
    assert strip.drawn(3, 101.0).plain == "·█·", "time moves to the left"


def test_more_runs_than_there_are_heights_are_scaled() -> None:
    strip = Strip()
    for second, number in ((1, 80), (2, 40), (3, 1)):
        strip.add(second, number, failed=False, live=False)

    assert strip.drawn(3, 3.0).plain == "█▄▁"


def test_what_failed_and_what_was_live_stands_out() -> None:
    strip = Strip()
    strip.add(1, 1, failed=False, live=False)
    strip.add(2, 1, failed=False, live=True)
    strip.add(3, 1, failed=True, live=True)

    styles = {span.style for span in strip.drawn(3, 3.0).spans}

    assert styles == {"cyan", "bold green", "bold red"}


def test_strips_count_what_is_new_since_the_frame_before() -> None:
    strips = Strips()
    for seconds, runs in ((1.0, 2), (1.5, 3), (2.5, 8)):
        strips.add(status(runs={"race": {"OK": runs}}, wall=STATUS.started + seconds))

    drawn_ = strips.of("race").drawn(3, 2.5).plain

    assert drawn_ == "▂▃▃", "2 by then; 1, and half of 5; the rest of it"


@given(st.integers(0, 10_000), st.floats(0, 1e4), st.floats(0, 100))
def test_runs_are_spread_over_the_seconds_they_came_in_and_none_is_lost(
    number: int, since: float, seconds: float
) -> None:
    shares = dict(spread(number, since, since + seconds))

    assert sum(shares.values()) == number
    assert all(int(since) <= second <= since + seconds and share > 0 for second, share in shares.items())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 500)), max_size=300), st.integers(1, LONGEST))
def test_a_strip_is_as_wide_as_it_should_be(steps: list[tuple[int, int]], width: int) -> None:
    strip, second = Strip(), 0
    for step, number in steps:
        second += step
        strip.add(second, number, failed=False, live=False)

    assert len(strip.drawn(width, float(second)).plain) == width


# What changed.


def told(*changes: Change) -> list[tuple[float, str]]:
    news = News()
    news.add(changes, STATUS.started)
    return list(lines(news))


def test_what_a_document_says_within_some_seconds_is_one_line() -> None:
    at = STATUS.started
    first, soon, later = lap(1.0, at=at), lap(2.0, at=at + TOGETHER - 0.1), lap(3.0, at=at + TOGETHER)
    other = change(at=at + 1, table="results", kind="results", source_id="another")

    assert told(first, other, soon, later) == [
        (0.0, "race e3559bae: laps +2 (1.00 s, 2.00 s)"),
        (1.0, "results another: results +1"),
        (TOGETHER, "race e3559bae: laps +1 (3.00 s)"),
    ]


def test_what_is_worth_a_word_comes_first_and_rows_are_counted() -> None:
    started = change(
        op=Op.UPDATE, table="races", fields=("start_local",), values={"start_local": "2026-05-03T09:04:05"}
    )
    rows = [
        change(table="detections"),
        change(table="detections", op=Op.DELETE),
        *(lap(4.0) for _ in range(6)),
        started,
    ]

    ((_, said),) = told(*rows)

    assert said == "race e3559bae: races ~1 (started), laps +6 (4.00 s, 4.00 s, 4.00 s, 4.00 s, …), detections +1 -1"


def test_a_purge_is_told_apart_from_what_was_before_and_what_comes_after() -> None:
    purge = change(op=Op.PURGE, table="", key="", kind="", source_id="")
    found = change(table="events", kind="", source_id="")

    assert [said for _, said in told(lap(1.0), found, purge, found, lap(2.0))] == [
        "race e3559bae: laps +1 (1.00 s)",
        "events +1",
        "everything was removed",
        "events +1",
        "race e3559bae: laps +1 (2.00 s)",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": "races", "fields": ("end_local",), "values": {"end_local": "2026-05-03T09:04:05"}}, "ended"),
        ({"table": "races", "fields": ("end_local",), "values": {"end_local": None}}, "not ended after all"),
        ({"table": "laps", "fields": ("counts",), "values": {"counts": False, "length_seconds": 4.0}}, "struck out"),
        ({"table": "laps", "fields": (), "values": {"length_seconds": 1.2, "is_holeshot": True}}, ""),
        ({"table": "pilots", "fields": ("name",), "values": {"name": "Wren"}}, "Wren"),
        ({"table": "pilots", "fields": ("name",), "values": {"name": "W" * 100}}, "W" * 23 + "…"),
        ({"table": "match", "fields": ("active", "record"), "values": {"active": True}}, "live"),
        ({"table": "match", "fields": ("active",), "values": {"active": False}}, "over"),
        ({"table": "match", "fields": ("record",), "values": {"active": True}}, ""),
        ({"table": "laps", "op": Op.DELETE}, ""),
    ],
)
def test_what_happened_to_a_row_is_said_in_a_word(changed: dict[str, Any], said: str) -> None:
    assert notable(change(**{"op": Op.UPDATE, **changed})) == said


@given(st.text(max_size=20), st.sampled_from(list(Op)), st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_any_change_can_be_told(table: str, op: Op, values: dict[str, str]) -> None:
    told(*(change(table=name, op=op, values=values, fields=tuple(values)) for name in (table, "laps", "races")))


# Words.


def test_plain_lines_say_what_becomes_live_and_what_goes_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    screen.show(Frame(status(accelerated=(), current="")))
    screen.show(Frame(status(accelerated=(LIVE,), wall=STATUS.wall + 1)))
    screen.show(Frame(status(accelerated=(LIVE,), wall=STATUS.wall + 2, store_trouble="the disk is full")))
    screen.show(Frame(status(accelerated=(LIVE,), wall=STATUS.wall + 3)))

    said = capsys.readouterr().err.splitlines()

    lasting = list(troubles(STATUS))
    assert said == [
        "1:40  nothing is live",
        *(f"1:40  {each}" for each in lasting),
        "1:41  race e3559bae is live: asked for every 200 ms",
        "1:42  waiting for the database",
        "1:42  the disk is full",
        *(f"1:42  {each}" for each in lasting),
        "1:43  race e3559bae is live: asked for every 200 ms",
        *(f"1:43  {each}" for each in lasting or ["all is well again"]),
    ]


def test_plain_lines_say_now_and_then_how_it_stands_in_plain_letters(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    for _ in range(20):
        screen.show(Frame(status(accelerated=(), current=f"race {HOSTILE}")))

    said = capsys.readouterr().err

    assert said.isascii()
    assert "\x1b" not in said
    assert said.count("50 targets, 2 failing, 4 paused, 6 gone, 492 runs, ") == 2


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"enabled": False}, "paused: nothing is polled until somebody resumes it"),
        ({"store_trouble": "no disk"}, "waiting for the database"),
        ({"targets": TargetCounts()}, "looking for what to poll"),
        ({"targets": TargetCounts(all=3, paused=3)}, "all targets are paused"),
        ({"accelerated": (LIVE, LIVE)}, "race e3559bae is live: asked for every 200 ms, and 1 more"),
    ],
)
def test_what_it_is_at_is_said_in_a_few_words(changed: dict[str, Any], says: str) -> None:
    assert now(status(**changed)) == says


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "200 ms"), (0.0505, "50.5 ms"), (1.5, "1.5 s"), (60, "60 s"), (3600, "60 min")]
)
def test_an_interval_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert often(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(0.0004, "0.4 ms"), (0.25, "250 ms"), (3.2, "3,200 ms"), (32, "32 s")])
def test_a_lateness_is_said_with_as_many_digits_as_matter(seconds: float, said: str) -> None:
    assert milliseconds(seconds) == said


def test_lateness_is_that_of_the_live_ones_if_there_are_any() -> None:
    late = {"accelerated": Late(0.001, 0.02, 50), "usual": Late(0.1, 0.2, 50)}

    assert punctual(status(late=late)) == "live runs by 1.0 ms at the median, 99 of 100 by 20 ms at most"
    assert punctual(status(late={"usual": late["usual"]})).startswith("runs by 100 ms")
    assert punctual(status(late={})) == "no runs lately"
    assert "live runs 1.0 ms late" in line(status(late=late))


def test_of_a_host_that_was_not_asked_nothing_is_known() -> None:
    assert host(status(limiter=None)) == "not asked yet"
    assert next(words(status(limiter=None, host=""), 0.0)).endswith("trackside, not asked yet")
    assert STATUS.limiter is not None
    assert host(status(limiter=replace(STATUS.limiter, latency=None, why="closed for 3 s"))) == "closed for 3 s"


def test_a_refusal_of_our_own_guard_says_which_flag_lifts_it() -> None:
    (said, *_) = troubles(status(discovery_trouble="REFUSED: address 127.0.0.1 is loopback", store_trouble=""))

    assert said == "what there is to poll could not be found out: REFUSED: address 127.0.0.1 is loopback; see --private"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
def test_the_lateness_of_all_runs_is_never_told_too_low(late: list[float]) -> None:
    histogram = Histogram((0.001, 0.01, 0.1, 1, 10))
    for each in late:
        histogram.add(each)

    found = overall(histogram)

    ordered = sorted(late)
    assert found.runs == len(late)
    assert found.p50 >= ordered[-(-len(late) // 2) - 1]
    assert found.p99 >= ordered[-(-len(late) * 99 // 100) - 1]


def test_lateness_beyond_all_measure_is_said_so() -> None:
    assert lateness(Late(0.001, float("inf"), 9)) == "half began within 1.0 ms of their time, 99 of 100 at any time"


# Where it goes.


def test_the_screen_is_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")

    assert isinstance(fitting(json=True), Silent)
    assert isinstance(fitting(json=False), Plain)
    assert isinstance(fitting(json=False, logs=True), Wordy)
    assert not isinstance(fitting(json=False, logs=True), Plain)


def test_the_end_is_said_in_words_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen: Screen = Silent()
    screen.end(["words"], {"runs": 7})
    assert json.loads(capsys.readouterr().out) == {"runs": 7}

    Plain().end(["words …"], {"runs": 7})
    assert capsys.readouterr().out == "words ?\n"
