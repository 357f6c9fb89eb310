"""The screen of every system: any report fits any window, and nothing of what is wrong is hidden."""

import json
import re
from collections.abc import Iterator
from io import StringIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import REPORTS, Facts
from rich.cells import cell_len
from rich.console import Console

from sanderling.cli.report_screen import Plain, Screen, Terminal, bar, fitting
from sanderling.cli.screen import Silent
from sanderling.observe.report import (
    Activity,
    AnyReport,
    Event,
    HostCondition,
    HostReport,
    Process,
    Progress,
    Report,
    Severity,
    Trouble,
    WorkCounts,
)

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"


def host(name: str, state: HostCondition = HostCondition.GOING, **more: object) -> HostReport:
    return HostReport(host=name, state=state, **{"waiting": 10, "in_flight": 1, "requests": 5, **more})  # type: ignore[arg-type]


TROUBLED = (
    host("failing.example", HostCondition.FAILING, trouble="TIMEOUT", why="circuit open for another 4.0 s"),
    host("throttled.example", HostCondition.THROTTLED, refused=3, ceiling=4.0, why="cruising just below its ceiling"),
    host("slow.example", HostCondition.SLOW, latency=1.2, why="cruising"),
)
REPORT = Report(
    system="pages",
    doing="asking 3 hosts; 28 URLs wait",
    process=Process(pid=1, started=1000.0, wall=1100.0),
    troubles=(Trouble(Severity.ERROR, "the disk is full"), Trouble(Severity.WARNING, "failing.example: TIMEOUT")),
    time_left=7200.0,
    progress=Progress(done=70, whole=100, what="known URLs", failed=4),
    work=WorkCounts(asked=100, refused=3, kept=60, failed=4, waiting=28),
    hosts=TROUBLED,
    hosts_known=3,
    numbers=(("pages", "60"), ("failed", "4")),
    lines=(("why", "25 workers become 50"),),
    activity=(
        Activity(label="lag", value=3.0, text="3 s"),
        Activity(label="runs", value=9, text="9 runs", counts=True),
    ),
    events=(Event(1060.0, "5 workers become 9"),),
    facts=Facts(1, {}),
)


def changed(report: AnyReport = REPORT, **changes: object) -> AnyReport:
    return msgspec.structs.replace(report, **changes)


def later(seconds: float, **changes: object) -> AnyReport:
    """The report after so many seconds more."""
    return changed(REPORT, process=Process(pid=1, started=1000.0, wall=1100.0 + seconds), **changes)


def many(number: int) -> Iterator[HostReport]:
    return (host(f"host-{each}.example", requests=each) for each in range(number))


def frame(*reports: AnyReport, columns: int = 80, lines: int = 30, told: str = "") -> list[str]:
    """The last frame, as a person sees it."""
    console = Console(file=StringIO(), force_terminal=True, width=columns, height=lines)
    with Terminal(console, {"slow.example": "the slow one"}) as screen:
        for each in reports:
            screen.show(each)
        if told:
            screen.tell(told)
    seen = Console(file=StringIO(), width=columns, height=lines)
    with seen.capture() as written:
        seen.print(screen)
    return written.get().rstrip("\n").split("\n")


def drawn(report: AnyReport, *, columns: int = 80) -> str:
    """Everything that is written for one frame."""
    written = StringIO()
    with Terminal(Console(file=written, force_terminal=True, width=columns, height=30), {}) as screen:
        screen.show(report)
    return written.getvalue()


def harmful(text: str) -> list[str]:
    """What is left that could act on a terminal, beside what we wrote ourselves."""
    return [each for each in ESCAPES.sub("", text) if not each.isprintable() and each not in "\r\n"]


def squeezed(text: str) -> str:
    """The text as it is drawn, wherever lines are broken."""
    return "".join(each for each in text if each.isprintable() and not each.isspace())


ERRORS = st.lists(st.text("ab字 ", min_size=1, max_size=300), max_size=5)


@given(REPORTS, ERRORS, st.integers(24, 200), st.integers(10, 60))
def test_any_report_fits_any_window_and_begins_with_its_errors(
    report: Report[Facts], errors: list[str], columns: int, lines: int
) -> None:
    shown = changed(report, doing="at it", troubles=tuple(Trouble(Severity.ERROR, each) for each in errors))

    seen = frame(shown, columns=columns, lines=lines)
    tall = frame(shown, columns=columns, lines=400)

    assert max(map(cell_len, seen)) <= columns
    assert len(seen) < lines
    assert sum(line.strip().startswith("error") for line in seen) == len(errors), "each is begun"
    whole = squeezed("".join(line.removeprefix("     error") for line in tall))
    assert all(squeezed(each) in whole for each in errors), "where there is room, each is whole"


@given(REPORTS)
def test_plain_lines_name_every_error_and_are_harmless(report: Report[Facts]) -> None:
    said: list[str] = []

    class Noting(Plain):
        def note(self, text: str) -> None:
            said.append(text)

    screen = Noting({})
    for _ in range(2):  # at first nobody has asked anything
        screen.show(report)

    assert [each.partition("  ")[2] for each in said] == list(report.texts(*Severity))


@given(st.text(max_size=60))
def test_no_text_whatever_acts_on_the_terminal(text: str) -> None:
    bad = changed(
        doing=text,
        troubles=(Trouble(Severity.ERROR, text), Trouble(Severity.WARNING, text)),
        hosts=(host("a.example", HostCondition.FAILING, trouble=text, why=text),),
        progress=Progress(done=1, whole=2, what=text),
        numbers=((text, text),),
        lines=((text, text),),
        activity=(Activity(label=text, value=1.0, text=text),),
        events=(Event(1.0, text),),
    )

    assert harmful(drawn(bad)) == []


def test_what_hosts_say_is_shown_and_is_only_text() -> None:
    text = drawn(changed(hosts=(host("a.example", HostCondition.FAILING, trouble=HOSTILE),)))

    assert "owned" in text
    assert "[bold red]" in text, "markup is text"
    assert "\x1b[2J" not in text


@pytest.mark.parametrize(
    "line",
    [
        "      1:41  asking 3 hosts; 28 URLs wait",
        "     error  the disk is full",
        "      flow  40.0 asked, 40.0 accepted, 20.0 kept, 0.0 failed a second; 28 waiting; about 2 h 0 min left",
        "pages 60   failed 4",
        "       why  25 workers become 50",
        "      1:00  5 workers become 9",
        "  TIMEOUT; circuit open for another 4.0 s",
    ],
)
def test_a_picture_says(line: str) -> None:
    grown = WorkCounts(asked=140, refused=3, kept=80, failed=4, waiting=28)

    assert line in [each.rstrip() for each in frame(REPORT, later(1.0, work=grown), columns=110)]


def test_a_picture_draws_how_far_it_is_its_hosts_and_what_is_plotted() -> None:
    text = "\n".join(frame(REPORT, *(later(second, activity=REPORT.activity) for second in (1.0, 2.0))))

    assert re.search(r"━+ 70 % of 100 known URLs", text)
    assert re.search(r"lag +█+  3 s", text)
    assert re.search(r"runs +▁+  9 runs", text), "a count that does not grow is at rest"
    assert re.search(r"the slow one +0.0 +- +1.2 s +0 +10  slow", text)
    assert re.search(r"throttled.example +0.0 +4.0 +- +3 +10  throttled", text)
    assert "failing.example: TIMEOUT" not in text, "it is said with its host"


def test_what_is_told_stands_under_the_picture() -> None:
    assert frame(REPORT, told="the API is back")[-1].rstrip() == "      1:40  the API is back"


def test_more_room_shows_more_hosts_and_the_words_beside_them() -> None:
    report = changed(hosts=(*TROUBLED, *many(40)), hosts_known=500)
    small, large = frame(report), frame(report, columns=160, lines=70)

    assert sum(".example" in line for line in small) < sum("host-" in line for line in large) == 40
    assert any(re.search(r"failing +TIMEOUT; circuit open for another 4.0 s", line) for line in large)
    assert "and 457 more hosts" in "\n".join(large)


def test_the_rows_do_not_change_places_with_each_frame() -> None:
    def order(*reports: AnyReport) -> list[str]:
        return re.findall(r"([ab])\.example", "\n".join(frame(*reports)))

    first = changed(hosts=(host("a.example", requests=2), host("b.example", requests=1)))
    others = (host("a.example", requests=2), host("b.example", requests=9))

    assert order(first, later(0.5, hosts=others)) == ["a", "b"]
    assert order(first, later(3.0, hosts=others)) == ["b", "a"]


COUNTS = st.integers(0, 10**6)


@given(COUNTS, COUNTS, COUNTS, st.integers(40, 200))
def test_the_bar_is_as_long_as_there_is_room(good: int, failed: int, waiting: int, width: int) -> None:
    whole = good + failed + waiting
    text = bar(Progress(done=good + failed, whole=whole, what="URLs", failed=failed), width).plain

    assert len(text) == width
    assert ("100 %" in text) == (waiting == 0 and whole > 0)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain({"failing.example": "the failing one"})
    for frames in range(22):
        screen.show(
            later(frames / 2, doing=f"asking {frames} hosts; 28 URLs wait" if frames < 20 else "paused; 28 URLs wait")
        )
    screen.tell("the API is back")

    out, err = capsys.readouterr()
    assert out == ""
    assert [line[:4] for line in err.splitlines()] == ["1:40", "1:40", "1:44", "1:49", "1:50", "1:50"]
    assert err.splitlines()[0].endswith("the disk is full")
    assert err.splitlines()[4] == "1:50  paused; 28 URLs wait"
    assert err.splitlines()[1] == "1:40  the failing one: TIMEOUT"
    assert "; 28 waiting; about 2 h 0 min left; pages 60, failed 4" in err


def test_pipes_get_plain_lines_and_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    silent: Screen = fitting(json=True)
    with silent:
        silent.show(REPORT)
        silent.tell("the API is back")
    silent.end(["words"], {"pages": 60})

    assert isinstance(silent, Silent)
    assert isinstance(fitting(json=False), Plain)
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"pages": 60}, "")
