"""What a crawl of pages reports, from its status."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_web import Crawled, crawl, page, web
from statuses import VIEW, host, status

from sanderling.engine.host_report import HostStatus, report_host
from sanderling.observe.report import AtFault, HostCondition, HostReport, Report, Severity, Trouble
from sanderling.pages.report import PagesFacts, report
from sanderling.pages.status import Status
from sanderling.pages.status import status as take_status
from sanderling.testing import run_virtual

A, B = "http://a.example", "http://b.example"


def taken(done: Crawled) -> Report[PagesFacts]:
    """What a crawl reports that has ended."""

    async def look() -> Report[PagesFacts]:  # the limiter's clock is the loop's
        return report(take_status(done.crawl, 7.5, running=False))

    return run_virtual(look())


def test_a_crawl_reports_what_it_did(tmp_path: Path) -> None:
    ended = taken(crawl(tmp_path / "out", web(**{f"{A}/": page("/x", "/gone"), f"{A}/x": page()}), f"{A}/"))

    assert (ended.system, ended.doing, ended.process.paused) == ("pages", "ended with 2 pages, 0 URLs left", False)
    assert (ended.work.kept, ended.work.failed, ended.work.waiting, ended.set_aside) == (2, 1, 0, 0)
    assert [(each.host, each.state, each.waiting, each.in_flight) for each in ended.hosts] == [
        ("a.example", HostCondition.DONE, 0, 0)
    ]
    assert ended.facts.counts["fetched"] == 2


def test_a_crawl_reports_what_waits_for_a_host_that_does_not_answer(tmp_path: Path) -> None:
    silent = {f"{B}/robots.txt": ConnectionRefusedError("refused")}

    ended = taken(crawl(tmp_path / "out", web(**{f"{A}/": page(), **silent}), f"{A}/", f"{B}/1", f"{B}/2"))

    assert (ended.work.kept, ended.work.waiting, ended.set_aside) == (1, 2, 2)
    assert ended.doing == "ended with 1 page, 2 URLs left, 2 of them for hosts that do not answer"
    (other,) = [each for each in ended.hosts if each.host == "b.example"]
    assert (other.state, other.waiting, other.at_fault) == (HostCondition.SET_ASIDE, 2, AtFault.HOST)
    assert other.trouble.startswith("CONNECTION_REFUSED robots.txt")


GIVEN_UP = HostStatus(replace(VIEW, host="gone.example", inflight=0), 7, "CONNECT_FAILED refused", given_up=True)
IDLE = host("idle.example", queued=0, inflight=0)


@pytest.mark.parametrize(
    ("of", "state", "trouble", "at_fault"),
    [
        (host(), HostCondition.GOING, "", None),
        (IDLE, HostCondition.DONE, "", None),
        (host(trouble="SERVER_ERROR 500"), HostCondition.GOING, "SERVER_ERROR 500", AtFault.ITEMS),
        (
            host(not_before=5.0, why="told to wait another 5.0 s"),
            HostCondition.THROTTLED,
            "told to wait another 5.0 s",
            None,
        ),
        (host(state="open", trouble="TIMEOUT"), HostCondition.FAILING, "TIMEOUT", AtFault.HOST),
        (
            host(state="half-open", why="one probe at a time"),
            HostCondition.FAILING,
            "one probe at a time",
            AtFault.HOST,
        ),
        (GIVEN_UP, HostCondition.SET_ASIDE, "CONNECT_FAILED refused", AtFault.HOST),
        (msgspec.structs.replace(GIVEN_UP, queued=0), HostCondition.FAILED, "CONNECT_FAILED refused", AtFault.HOST),
    ],
)
def test_each_host_has_its_state_and_the_reason(
    of: HostStatus, state: HostCondition, trouble: str, at_fault: AtFault | None
) -> None:
    (found,) = report(status(of)).hosts

    assert found == HostReport(
        host=of.view.host,
        state=state,
        waiting=of.queued,
        in_flight=of.view.inflight,
        trouble=trouble,
        at_fault=at_fault,
        requests=100,
        latency=0.05,
        why=of.view.why,
    )


def test_the_troubles_are_those_of_hosts_that_fail_or_are_set_aside() -> None:
    hosts = (
        host("a.example", trouble="SERVER_ERROR 500"),
        host("b.example", state="open", trouble="TIMEOUT"),
        GIVEN_UP,
    )

    assert report(status(*hosts)).troubles == (
        Trouble(Severity.WARNING, "b.example: TIMEOUT"),
        Trouble(Severity.WARNING, "gone.example: CONNECT_FAILED refused"),
    )


@pytest.mark.parametrize(
    ("view", "state"),
    [
        ({"not_before": 5.0}, HostCondition.THROTTLED),
        ({"rejected": 3, "ceiling": 4.0}, HostCondition.THROTTLED),
        ({"rejected": 3, "ceiling": 4.0, "learned": "latency: the host began to queue"}, HostCondition.SLOW),
        ({"latency": 1.0}, HostCondition.SLOW),
        ({"error_rate": 0.05}, HostCondition.FLAKY),
        ({"cap": 1.0}, HostCondition.CAPPED),
        ({"rejected": 3}, HostCondition.GOING),
        ({"state": "open", "latency": 9.0}, HostCondition.FAILING),
    ],
)
def test_a_host_that_is_asked_has_one_word_for_how_it_is(view: dict[str, Any], state: HostCondition) -> None:
    assert report_host(host(**view)).state is state


def test_a_host_that_is_asked_again_and_again_is_never_done() -> None:
    assert report_host(IDLE).state is HostCondition.DONE
    assert report_host(IDLE, lasting=True).state is HostCondition.GOING


def test_what_is_set_aside_is_said() -> None:
    running = report(status(GIVEN_UP, set_aside=7))
    ended = report(status(GIVEN_UP, set_aside=7, running=False))

    assert (running.set_aside, ended.set_aside) == (7, 7)
    assert running.doing == "asking 1 host; 30 URLs wait, 7 of them for hosts that do not answer"
    assert ended.doing == "ended with 60 pages, 30 URLs left, 7 of them for hosts that do not answer"


HOSTS = st.builds(
    host,
    st.text(min_size=1, max_size=10),
    queued=st.integers(0, 10**6),
    trouble=st.none() | st.text(max_size=2000),
    state=st.sampled_from(["closed", "open", "half-open"]),
    not_before=st.floats(0, 1e6),
    inflight=st.integers(0, 100),
    requests=st.integers(0, 10**9),
    rejected=st.integers(0, 10**9),
)
STATUSES = st.builds(
    lambda hosts, counts, waiting, aside, *, running, paused: status(
        *hosts,
        counts={"fetched": 0, "unchanged": 0, **counts},
        waiting=waiting + aside,
        set_aside=aside,
        running=running,
        paused=paused,
    ),
    st.lists(HOSTS, max_size=5),
    st.dictionaries(st.sampled_from(["fetched", "unchanged", "moved", "failed", "left"]), st.integers(0, 10**9)),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    running=st.booleans(),
    paused=st.booleans(),
)


@given(STATUSES)
def test_a_report_agrees_with_its_status_and_comes_back_from_json(of: Status) -> None:
    made = report(of)

    assert (made.process.paused, made.set_aside, made.work.waiting) == (of.paused, of.set_aside, of.waiting)
    assert made.work.kept == of.pages
    assert made.work.asked >= made.work.kept + made.work.failed
    assert [each.host for each in made.hosts] == [each.view.host for each in of.hosts]
    assert len(made.troubles) == sum(
        each.state in (HostCondition.FAILING, HostCondition.SET_ASIDE) for each in made.hosts
    )
    assert made.doing
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report[PagesFacts]) == made
