import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO
from urllib.request import urlopen

import pytest
from command_line import Done, called
from forked import Command
from terminals import environment, terminal

from sanderling.cli.demos.limiter_summary import HostSummary, LimiterSummary, describe

QUICK = ("--seconds", "3", "--speed", "40")
HOSTS = ["quota.example", "queue.example", "failing.example"]

Process = subprocess.Popen[str]


@contextmanager
def running(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator[Process]:
    command = ["demo", "limiter", *arguments]
    with Command[str](command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def run(*arguments: str) -> Done:
    with running(*arguments) as process:
        out, err = process.communicate(timeout=300)
    return Done(process.returncode, out, err)


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


def test_elsewhere_than_on_a_terminal_there_are_plain_lines_and_what_to_try_next() -> None:
    done = run("--seconds", "5", "--speed", "25")

    quota, queue, failing, after = done.out.strip().split("\n\n")
    assert done.code == 0
    assert (done.out + done.err).isascii()
    assert "\x1b" not in done.out + done.err
    assert "failing.example: circuit open" in done.err
    assert quota.startswith("quota.example allows 20 a second and never says so. Learned ")
    assert queue.startswith("queue.example gets 40 a second done, and queues what comes faster. Learned ")
    assert failing.startswith("failing.example serves 25 a second. Learned ")
    assert "README.md" in after
    assert "`make bench`" in after


def test_a_terminal_gets_a_table_that_is_redrawn_and_ctrl_c_ends_it_early() -> None:
    with terminal() as screen, running("--speed", "40", stdout=screen.theirs) as process:
        screen.read_until("quota.example")
        process.send_signal(signal.SIGINT)
        screen.read_until(LAST_WORDS)
        _, errors = process.communicate(timeout=300)

    assert (process.returncode, errors) == (130, "")
    assert all(host in screen.text for host in HOSTS)
    assert "Ended early, after " in screen.text
    assert screen.text.rindex("\x1b[?25h") > screen.text.rindex("\x1b[?25l"), "the cursor is given back"
    written = ESCAPES.sub("", screen.text).replace("\r", "\n").splitlines()
    assert max(map(len, written)) <= 80


def test_ctrl_c_leaves_whole_json() -> None:
    with running("--json", "--metrics-port", "0") as process:
        next(lines(process.stderr))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=300)

    assert (process.returncode, errors) == (130, "")
    assert not json.loads(out)["complete"]


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
    return list(filter(None, describe(LimiterSummary(150.4, complete, 32, hosts))))


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (QUOTA, "Learned 19.7; served 2,950 of 3,020 possible (98%), refused 9 times (0.3%)."),
        (replace(QUOTA, refused=1), "(98%), refused once (0.0%)."),
        (
            replace(QUOTA, refused=0, learned=None),
            "Learned no limit yet; served 2,950 of 3,020 possible (98%), never ",
        ),
        (replace(QUOTA, sent=0, served=0, possible=0), "served 0 of 0 possible (0%)"),
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
