import logging
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.files import FolderError
from sanderling.observe.log import configure, log
from sanderling.observe.metrics import serve_metrics
from sanderling.observe.render import plain, render, show_bytes, show_number, show_seconds
from sanderling.observe.report import (
    Fact,
    HostReport,
    Kind,
    Report,
    RunState,
    clean_report,
    count,
    gauge,
    seconds,
    size,
    text,
)
from sanderling.redact import Secret

REPORT = Report(
    system="toys",
    doing="counting",
    folder="out",
    facts=(
        count("stored", 1234, "Items stored."),
        count("failed", {"TIMEOUT": 2, "DNS_ERROR": 1}, "Items given up.", by="code"),
        gauge("waiting", None, "Items that wait."),
        seconds("oldest", 75.0, "Age of the oldest item."),
        size("kept", 1536, "Bytes kept."),
        text("last", "x", "The last item."),
        count("repos", 7, "Repos.", metric="crawler_repos", more=True),
    ),
    progress=(1234, 2000),
    hosts=(HostReport(host="a.example", rate=4, allowed=8, waiting=3, latency=0.12, why="your --rps 8"),),
    troubles=("the disk is full",),
    started=100.0,
    wall=220.0,
)


def test_each_fact_is_a_line_unless_it_is_unknown_or_more() -> None:
    lines = plain(render(REPORT)).splitlines()

    assert [line.split()[0] for line in lines[2:7]] == ["stored", "failed", "oldest", "kept", "last"]
    assert "TIMEOUT 2, DNS_ERROR 1" in lines[3]


@given(st.integers(1, 300), st.text(max_size=300))
def test_no_line_is_wider_than_the_terminal(width: int, words: str) -> None:
    report = clean_report(msgspec.structs.replace(REPORT, doing=words, troubles=(words,)))

    for line in render(report, width):
        assert sum(len(piece) for piece, _ in line) <= max(width, 8)
        assert "\n" not in plain([line])


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=3))
def test_what_is_shown_has_no_control_characters(texts: object) -> None:
    shown = clean_report(Report(system="toys", doing=str(texts), troubles=("\x1b]0;x\x07", str(texts) * 500)))

    assert shown.doing.isprintable()
    assert all(trouble.isprintable() and len(trouble) <= 500 for trouble in shown.troubles)


def test_no_secret_is_in_a_report() -> None:
    token = Secret.of("hunter2hunter2")

    shown = clean_report(Report(system="toys", doing=f"at https://me:pw@a.example/?key={token.reveal()}"))

    assert "hunter2" not in shown.to_json().decode()
    assert "pw" not in shown.to_json().decode()


def test_json_has_one_shape() -> None:
    assert msgspec.json.decode(REPORT.to_json(), type=Report) == REPORT
    assert msgspec.json.schema(Report)["$defs"]["Fact"]["required"] == ["kind", "name", "value", "help"]
    assert Fact(Kind.COUNT, "a", 1, "A.") == count("a", 1, "A.")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 s"),
        (0.0121, "12 ms"),
        (0.9999, "1 s"),
        (1.5, "1.5 s"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (75.2, "1 min 15 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86_400, "1 d"),
        (200_000, "2 d 7 h"),
    ],
)
def test_durations_are_read_at_a_glance(value: float, shown: str) -> None:
    assert show_seconds(value) == shown


def test_numbers_and_sizes_are_read_at_a_glance() -> None:
    assert [show_number(each) for each in (0, 1234, 0.25, 12.34)] == ["0", "1,234", "0.25", "12.3"]
    assert [show_bytes(each) for each in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.5 KB", "5 GB"]


@pytest.mark.parametrize(
    ("state", "code", "shown"),
    [
        (RunState.RUNNING, None, "running"),
        (RunState.KILLED, None, "killed"),
        (RunState.ENDED, 0, "done"),
        (RunState.ENDED, 1, "failed"),
        (RunState.ENDED, 3, "something is left"),
        (RunState.ENDED, 130, "stopped"),
    ],
)
def test_the_first_line_says_how_it_is(state: RunState, code: int | None, shown: str) -> None:
    assert shown in plain(render(msgspec.structs.replace(REPORT, state=state, exit=code))[:1])


@contextmanager
def served(report: Report) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serve_metrics(lambda: report, "127.0.0.1", port):
        yield f"http://127.0.0.1:{port}/metrics"


@pytest.mark.real
def test_each_number_is_a_metric() -> None:
    with served(REPORT) as url:
        lines = urllib.request.urlopen(url, timeout=10).read().decode().splitlines()

    for line in (
        "sanderling_toys_stored_total 1234.0",
        'sanderling_toys_failed_total{code="TIMEOUT"} 2.0',
        "sanderling_toys_oldest_seconds 75.0",
        "sanderling_toys_kept_bytes 1536.0",
        "crawler_repos_total 7.0",
        'sanderling_host_allowed_rate{host="a.example"} 8.0',
        "# HELP sanderling_toys_stored_total Items stored.",
    ):
        assert line in lines
    assert not any("toys_last" in line or "toys_waiting" in line for line in lines)


@pytest.mark.real
def test_a_port_that_is_taken_is_named() -> None:
    with served(REPORT) as url:
        taken = serve_metrics(lambda: REPORT, "127.0.0.1", int(url.split(":")[2].split("/")[0]))
        with pytest.raises(FolderError, match="--metrics-port"):
            taken.__enter__()


@pytest.fixture
def logs() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("sanderling")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def test_logs_are_text_or_json_and_have_no_secret(logs: None, capsys: pytest.CaptureFixture[str]) -> None:
    configure("text")
    log.info("host_parked", host="a.example", why="down for 3 s", url="https://me:hush@a.example/")
    log.debug("sent")
    logging.getLogger("aiohttp").warning("at https://me:hush@b.example/\x1b[2J")
    shown = capsys.readouterr().err
    configure("json", verbose=True)
    log.debug("sent", host="a.example")
    line = msgspec.json.decode(capsys.readouterr().err)

    assert "host_parked host=a.example why='down for 3 s'" in shown
    assert "warning at https://***@b.example/" in shown
    assert "hush" not in shown
    assert "\x1b" not in shown
    assert "sent" not in shown
    assert (line["event"], line["host"], line["level"]) == ("sent", "a.example", "debug")
