"""A report in words: nothing of what is wrong is left out, and hosts are named with the reason, the worst first."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import REPORTS, Facts

from sanderling.cli.report_words import MOST_HOSTS, flow, line, ranked, report_lines
from sanderling.observe.report import HostCondition, HostReport, Report, Severity, Trouble


def host(name: str, state: HostCondition, **more: Any) -> HostReport:  # noqa: ANN401 - fields of it
    return HostReport(host=name, state=state, waiting=0, in_flight=0, **more)


@given(REPORTS, st.booleans())
def test_every_error_number_and_line_is_said(report: Report[Facts], running: bool) -> None:  # noqa: FBT001 - drawn
    said = list(report_lines(report, running=running))

    assert said[0] == line("now" if running else "at the end", report.doing)
    assert all(line("trouble", text) in said for text in report.texts(Severity.ERROR))
    assert all(line(label, text) in said for label, text in report.lines)


@given(REPORTS)
def test_a_warning_about_a_host_is_said_once_and_an_error_in_any_case(report: Report[Facts]) -> None:
    bad = host("bad.example", HostCondition.FAILING, trouble="TIMEOUT", why="its circuit is open")
    shown = msgspec.structs.replace(
        report,
        hosts=(bad,),
        troubles=tuple(Trouble(severity, "bad.example: TIMEOUT") for severity in (Severity.ERROR, Severity.WARNING)),
    )

    said = list(report_lines(shown, running=True))

    assert line("host", "bad.example, failing: TIMEOUT; its circuit is open") in said
    assert said.count(line("trouble", "bad.example: TIMEOUT")) == 1


def test_of_many_hosts_in_trouble_the_worst_are_named_and_the_rest_is_counted() -> None:
    slow = [host(f"{number}.example", HostCondition.SLOW, requests=number) for number in range(9)]
    going, down = host("a.example", HostCondition.GOING), host("b.example", HostCondition.FAILING)

    order = ranked([going, *slow, down], 3)

    assert [each.host for each in order[:4]] == ["b.example", "8.example", "7.example", "a.example"]
    assert len(order) == 11
    assert MOST_HOSTS < 9


RATES = {"asked": 140.0, "allowed": 9.5, "kept": 1.0, "failed": None}


@pytest.mark.parametrize(
    ("rates", "left", "says"),
    [
        (RATES, 90.0, "140 asked, 9.5 accepted, 1.0 kept, 0.0 failed a second; 1,000 waiting; about 90 s left"),
        (RATES, None, "140 asked, 9.5 accepted, 1.0 kept, 0.0 failed a second; 1,000 waiting"),
        ({"asked": None}, None, "1,000 waiting; how much moves is not known yet"),
    ],
)
def test_the_flow_is_what_moves_and_until_when(rates: dict[str, float | None], left: float | None, says: str) -> None:
    assert flow(rates, 1000, left) == says
