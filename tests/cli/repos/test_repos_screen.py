"""What a crawl of repos looks like: on a terminal of any size, without one, and with hosts that draw themselves."""

import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from statuses import VIEW

from sanderling.cli.repos.screen import Pace, Plain, State, Terminal, bar, counters, fitting, state_of
from sanderling.cli.screen import Silent
from sanderling.repos.status import HostStatus, RepoStatus

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"


def host(name: str = "a.example", **changes: Any) -> HostStatus:  # noqa: ANN401 - fields of the status or the view
    own = {key: changes.pop(key) for key in ("size", "waiting", "failures", "blocked", "trouble") if key in changes}
    made = HostStatus(replace(VIEW, host=name, **changes), 500, 100, 0, blocked=False, trouble="")
    return replace(made, **own)


STATUS = RepoStatus(
    seconds=100.0,
    ended={"archived": 600, "not_found": 20, "timeout": 4},
    records=12_000,
    bytes_read=50_000_000,
    bytes_written=9_000_000,
    waiting=300,
    inflight=12,
    known=1000,
    before=30,
    segment=2,
    segment_bytes=1_500_000,
    hosts_known=2,
    hosts_blocked=1,
    hosts=(host(), host("b.example", blocked=True, failures=11)),
)


def frame(now: RepoStatus, *, columns: int = 80, lines: int = 24) -> list[str]:
    """One frame, as a person sees it."""
    console = Console(file=StringIO(), force_terminal=True, width=columns, height=lines)
    with Terminal(console, {}) as screen:
        screen.show(now)
    seen = Console(file=StringIO(), width=columns, height=lines)
    with seen.capture() as written:
        seen.print(screen)
    return written.get().rstrip("\n").split("\n")


def test_the_frame_says_how_it_goes() -> None:
    text = "\n".join(frame(STATUS, columns=120))

    assert "1:40    600 repos  0.0/s" in text
    assert "segment 2: 1.5 MB  1 set aside" in text
    assert "65 % of 1,000 DIDs" in text
    assert "20 not_found  4 timeout" in text


def test_the_worst_hosts_come_first() -> None:
    rows = [line for line in frame(STATUS) if ".example" in line]

    assert [row.split()[0] for row in rows] == ["b.example", "a.example"]
    assert rows[0].split()[-4:] == ["11", "100", "set", "aside"]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (200, 60), (60, 12)])
def test_it_fits(columns: int, lines: int) -> None:
    crowd = replace(STATUS, hosts=tuple(host(f"host-{number}.example") for number in range(100)), hosts_known=5000)

    seen = frame(crowd, columns=columns, lines=lines)

    assert max(map(len, seen)) <= columns
    assert len(seen) == lines - 1
    assert "more hosts" in seen[-1]


def test_what_hosts_are_called_moves_no_cursor() -> None:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=80, height=24)
    with Terminal(console, {"a.example": HOSTILE}) as screen:
        screen.show(STATUS)

    assert "owned\x07" not in written.getvalue()
    assert "\x1b[2J\x1b]0" not in written.getvalue()


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"blocked": True}, State.SET_ASIDE),
        ({"waiting": 0, "inflight": 0}, State.DONE),
        ({"failures": 2}, State.FAILING),
        ({"state": "open"}, State.FAILING),
        ({"not_before": 3.0}, State.THROTTLED),
        ({"rejected": 3, "ceiling": 4.0}, State.THROTTLED),
        ({"latency": 2.5}, State.SLOW),
        ({}, State.GOING),
    ],
)
def test_a_host_is_in_one_state(changes: dict[str, Any], state: State) -> None:
    assert state_of(host(**changes)) is state


def test_rates_and_the_time_left_come_from_the_last_seconds() -> None:
    pace = Pace()
    pace.take(STATUS)
    later = replace(STATUS, seconds=110.0, ended={"archived": 700}, records=13_000, bytes_read=60_000_000)
    later = replace(later, hosts=(host(requests=150),))
    pace.take(later)

    assert (pace.rate("archived"), pace.rate("records"), pace.rate("bytes")) == (10, 100, 1e6)
    assert pace.requests("a.example") == 5
    assert "10.0/s" in counters(later, pace)
    # Of a thousand, 30 were complete before and 700 are now; 8 a second became so.
    assert "73 % of 1,000 DIDs, 34 s left" in bar(later, pace, 80).plain


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    screen = fitting(json=False)
    assert isinstance(screen, Plain)
    with screen:
        screen.show(replace(STATUS, seconds=1.0))
        screen.show(replace(STATUS, seconds=6.0))
        screen.show(replace(STATUS, seconds=7.0))
    screen.end(["That was it …"], {})

    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "0:06, 600 repos, " in said.err
    assert "20 not_found, 4 timeout" in said.err
    assert said.out == "That was it ?\n"


def test_with_json_there_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    screen = fitting(json=True)
    assert isinstance(screen, Silent)
    with screen:
        screen.show(STATUS)
        screen.note("a word\x1b")
    screen.end(["nothing"], {"archived": 600})

    said = capsys.readouterr()
    assert json.loads(said.out) == {"archived": 600}
    assert said.err == "a word\N{REPLACEMENT CHARACTER}\n"
