import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO
from urllib.request import urlopen

import pytest
from command_line import Done, called
from forked import Command
from terminals import Terminal, environment, terminal

from sanderling.cli.demos.limiter_screen import HEADS, ROWS, chart
from sanderling.cli.demos.limiter_summary import HostSummary, Summary, words

QUICK = ("--seconds", "3", "--speed", "40")
HOSTS = ["quota.example", "queue.example", "failing.example"]

Process = subprocess.Popen[str]


@contextmanager
def running(*arguments: str, stdout: int = subprocess.PIPE, **more: str) -> Iterator[Process]:
    begin: type[Process] = Command
    command = ["demo", "limiter", *arguments]
    if "PYTHONIOENCODING" in more:  # which counts when an interpreter begins
        begin, command = subprocess.Popen, [sys.executable, "-W", "error", "-m", "sanderling", *command]
    with begin(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment(**more)) as process:
        try:
            yield process
        finally:
            process.kill()


def run(*arguments: str) -> Done:
    with running(*arguments) as process:
        out, err = process.communicate(timeout=300)
    return Done(process.returncode, out, err)


@pytest.fixture
def screen() -> Iterator[Terminal]:
    with terminal() as opened:
        yield opened


def lines(stream: IO[str] | None) -> Iterator[str]:
    assert stream is not None
    return iter(stream.readline, "")


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LAST_WORDS = "measures what you have just"


@pytest.fixture(scope="module")
def as_json() -> Done:
    # Half as fast as the others: on a machine that is busy too little would happen in too little time.
    return run("--seconds", "6", "--speed", "20", "--json")


def test_the_summary_as_json_is_all_there_is(as_json: Done) -> None:
    summary = json.loads(as_json.out)

    assert (as_json.code, as_json.err) == (0, "")
    assert summary["complete"]
    assert summary["elapsed"] == 120
    assert [host["host"] for host in summary["hosts"]] == HOSTS


def test_the_hosts_are_learned_and_the_failing_one_is_left_alone(as_json: Done) -> None:
    """Loosely, as the clock is real: `tests/worlds/test_showcase.py` is exact about it."""
    quota, queue, failing = json.loads(as_json.out)["hosts"]

    assert 10 < quota["learned"] < 40
    assert 0 < quota["refused"] < 0.05 * quota["sent"]
    assert 20 < queue["learned"] < 80
    assert queue["refused"] == 0
    assert failing["sent_while_down"] < 0.1 * failing["fixed_pace"]
    assert failing["fixed_pace"] < failing["unrestrained"]


@pytest.fixture(scope="module")
def piped() -> Done:
    return run("--seconds", "5", "--speed", "25")


def test_elsewhere_than_on_a_terminal_there_are_plain_lines(piped: Done) -> None:
    title, heads, *rest = piped.out.split("\n\n")[0].splitlines()

    assert (piped.code, piped.err) == (0, "")
    assert piped.out.isascii()
    assert "\x1b" not in piped.out
    assert title == "One limiter learns three hosts at once: 32 callers each, time 25x as fast."
    assert heads.split() == ["s", *(head for head in HEADS if head != "tokens"), "why"]
    assert [line.split()[1] for line in rest] == [*HOSTS, *HOSTS], "after four seconds, and at the end"


def test_it_ends_with_what_was_learned_and_what_to_try_next(piped: Done) -> None:
    quota, queue, failing, after = piped.out.split("\n\n")[1:]

    assert quota.startswith("quota.example allows 20 a second and never says so. Learned ")
    assert queue.startswith("queue.example gets 40 a second done, and queues what comes faster. Learned ")
    assert failing.startswith("failing.example serves 25 a second. Learned ")
    assert "README.md" in after
    assert "`make bench`" in after


def test_a_terminal_gets_a_table_that_is_redrawn(screen: Terminal) -> None:
    with running(*QUICK, stdout=screen.theirs) as process:
        screen.read_until(LAST_WORDS)
        _, errors = process.communicate(timeout=300)

    frames = screen.text.split("One limiter learns three hosts at once")
    assert (process.returncode, errors) == (0, "")
    assert len(frames) > 8, "four frames a second"
    assert all(host in frames[-1] for host in HOSTS)
    assert "█" in frames[-1]
    assert "\x1b[1;31mopen" in screen.text, "an open breaker is red"
    assert "3 s, done" in frames[-1]
    assert screen.text.rindex("\x1b[?25h") > screen.text.rindex("\x1b[?25l"), "the cursor is given back"
    written = ESCAPES.sub("", screen.text).replace("\r", "\n").splitlines()
    assert max(map(len, written)) <= 80
    assert any(line.startswith("quota.example") and len(line) == 80 for line in written), "nothing is cut off"


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_terminal_that_cannot_or_shall_not_draw_gets_plain_lines(screen: Terminal, more: dict[str, str]) -> None:
    with running("--seconds", "1", "--speed", "40", stdout=screen.theirs, **more) as process:
        screen.read_until(LAST_WORDS)
        process.communicate(timeout=300)

    assert process.returncode == 0
    assert "\x1b" not in screen.text
    assert all(len(line) <= 80 for line in screen.text.splitlines())
    assert "40 quota.example" in screen.text


def test_ctrl_c_ends_it_early_with_a_summary(screen: Terminal) -> None:
    with running(stdout=screen.theirs) as process:
        screen.read_until("█")
        process.send_signal(signal.SIGINT)
        screen.read_until(LAST_WORDS)
        _, errors = process.communicate(timeout=300)

    assert (process.returncode, errors) == (130, "")
    assert "Ended early, after " in screen.text
    assert "It had not failed yet." in screen.text.replace("\r\n", " ")


def test_ctrl_c_leaves_whole_json() -> None:
    with running("--json", "--metrics-port", "0") as process:
        next(lines(process.stderr))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=300)

    assert (process.returncode, errors) == (130, "")
    assert not json.loads(out)["complete"]


def test_a_reader_who_has_seen_enough_ends_it_without_a_word() -> None:
    with running("--speed", "40") as process:
        next(lines(process.stdout))
        assert process.stdout is not None
        process.stdout.close()
        errors = "".join(lines(process.stderr))

    assert errors == ""
    assert process.returncode == 130


def test_metrics_are_served_meanwhile() -> None:
    with running("--speed", "10", "--json", "--metrics-port", "0") as process:
        url = next(lines(process.stderr)).removeprefix("metrics: ").strip()
        with urlopen(url, timeout=300) as answer:  # noqa: S310 - our own server
            text = answer.read().decode()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)

    assert all(f'sanderling_limiter_host_rate{{host="{host}"}}' in text for host in HOSTS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seconds", "0"], "--seconds. Must be >= 1"),
        (["--seconds", "3601"], "--seconds. Must be <= 3600"),
        (["--seconds", "nan"], "--seconds"),
        (["--speed", "0.5"], "--speed. Must be >= 1"),
        (["--speed", "fast"], "--speed"),
        (["--quiet"], "--quiet"),
        (["extra"], "extra"),
        (["--metrics-port", "-1"], "--metrics-port. Must be >= 0"),
    ],
)
def test_wrong_flags_are_refused(arguments: list[str], said: str) -> None:
    done = called("demo", "limiter", *arguments)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "See: sanderling demo --help" in done.err
    assert "Traceback" not in done.err


def test_the_flags_are_explained() -> None:
    done = called("demo", "limiter", "--help")

    for flag in ("--seconds", "--speed", "--json", "--metrics-port"):
        assert flag in done.out


def test_a_chart_spans_a_minute_and_the_highest_value_fills_it() -> None:
    path = [(0.0, 2.0), (31.0, 1.0), (46.0, 0.0)]

    assert chart(path, now=60.0, columns=8) == [
        "████    ",
        "████▄▄  ",
        "██████  ",
    ]


def test_a_chart_is_empty_before_its_first_value() -> None:
    assert chart([(50.0, 3.0)], now=60.0, columns=6) == ["    ██"] * ROWS
    assert chart([(60.0, 0.0)], now=60.0, columns=6) == ["      "] * ROWS


QUOTA = HostSummary(
    host="quota.example",
    allows=20.0,
    learned=19.74,
    sent=2959,
    served=2950,
    possible=3020,
    refused=9,
    failed=0,
    latency=0.1,
    unloaded=0.1,
    breaker="closed",
    down_for=0.0,
    sent_while_down=0,
    found_well_after=None,
    fixed_pace=0,
    unrestrained=0,
    why="",
)
QUEUE = replace(QUOTA, host="queue.example", allows=40.0, latency=0.14)
FAILING = replace(QUOTA, host="failing.example", down_for=40.0, sent_while_down=12, fixed_pace=800, unrestrained=8026)


def told(*hosts: HostSummary, complete: bool = True) -> list[str]:
    return [each.replace("\N{NO-BREAK SPACE}", " ") for each in words(Summary(150.4, complete, 32, hosts))]


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (QUOTA, "Learned 19.7; served 2,950 of 3,020 possible (98 %), refused 9 times (0.3 %)."),
        (replace(QUOTA, refused=1), "(98 %), refused once (0.0 %)."),
        (
            replace(QUOTA, refused=0, learned=None),
            "Learned no limit yet; served 2,950 of 3,020 possible (98 %), never ",
        ),
        (replace(QUOTA, sent=0, served=0, possible=0), "served 0 of 0 possible (0 %)"),
        (QUEUE, "Learned 19.7, from latency alone; "),
        (QUEUE, "On average an answer took 140 ms; it takes 100 ms when nobody else asks."),
        (replace(QUEUE, learned=None), "Learned no limit yet; "),
        (FAILING, "For 40 s it failed every request, and was sent 12 of them."),
        (FAILING, "a fixed pace of 20 a second would have sent 800; 32 callers without any limiter, about 8,026."),
        (replace(FAILING, down_for=0.0), "It had not failed yet."),
        (replace(FAILING, breaker="open"), "Its breaker is still open."),
        (replace(FAILING, found_well_after=11.2), "noticed 11 s later. Its breaker has closed again."),
    ],
)
def test_the_summary_in_words(host: HostSummary, said: str) -> None:
    assert said in told(host)[0]


def test_an_answer_that_never_came_has_no_average() -> None:
    assert "On average" not in told(replace(QUEUE, latency=None))[0]


def test_a_run_cut_short_says_so_first() -> None:
    assert told(QUOTA, complete=False)[0] == "Ended early, after 150 s of the hosts' time."
