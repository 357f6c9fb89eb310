"""What a crawl of pages reports, and how each of its hosts is."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_reports import host, pages
from small_web import Crawled, crawl, page, web

from sanderling.engine.host_report import report_host, view_of
from sanderling.limit import Limiter
from sanderling.observe.report import AtFault, HostCondition, HostReport, Report, Severity, Trouble
from sanderling.pages.report import PagesFacts, report_crawl
from sanderling.stores.status_file import is_running
from sanderling.testing import FakeClock, LoopClock, run_virtual

A, B = "http://a.example", "http://b.example"


def taken(done: Crawled) -> Report[PagesFacts]:
    """What a crawl reports that has ended."""

    async def look() -> Report[PagesFacts]:  # the limiter's clock is the loop's
        return report_crawl(done.crawl, 7.5, running=False)

    return run_virtual(look())


def test_a_crawl_reports_what_it_did(tmp_path: Path) -> None:
    ended = taken(crawl(tmp_path / "out", web(**{f"{A}/": page("/x", "/gone"), f"{A}/x": page()}), f"{A}/"))

    assert (ended.system, ended.doing, ended.process.paused) == ("pages", "ended with 2 pages, 0 URLs left", False)
    assert (ended.work.kept, ended.work.failed, ended.work.waiting, ended.set_aside) == (2, 1, 0, 0)
    assert (ended.work.asked, ended.classes, ended.process.seconds) == (4, {"new": 4}, 7.5), "robots.txt and three URLs"
    assert [(each.host, each.state, each.waiting, each.in_flight) for each in ended.hosts] == [
        ("a.example", HostCondition.DONE, 0, 0)
    ]
    assert (ended.facts.counts["fetched"], ended.facts.known, ended.facts.inflight) == (2, 3, 0)


def test_a_crawl_reports_what_waits_for_a_host_that_does_not_answer(tmp_path: Path) -> None:
    silent = {f"{B}/robots.txt": ConnectionRefusedError("refused")}

    ended = taken(crawl(tmp_path / "out", web(**{f"{A}/": page(), **silent}), f"{A}/", f"{B}/1", f"{B}/2"))

    assert (ended.work.kept, ended.work.waiting, ended.set_aside) == (1, 2, 2)
    assert ended.doing == "ended with 1 page, 2 URLs left, 2 of them for hosts that do not answer"
    (other,) = [each for each in ended.hosts if each.host == "b.example"]
    assert (other.state, other.waiting, other.at_fault) == (HostCondition.SET_ASIDE, 2, AtFault.HOST)
    assert other.trouble.startswith("CONNECTION_REFUSED robots.txt")


@pytest.mark.parametrize("by", [-3600.0, 86_400.0])
def test_a_clock_that_is_set_meanwhile_neither_ages_it_nor_makes_it_look_dead(tmp_path: Path, by: float) -> None:
    done = crawl(tmp_path / "out", web(**{f"{A}/": page()}), f"{A}/")
    clock = LoopClock(1_800_000_000.0 + by)
    done.crawl.engine.clock = clock

    async def look() -> tuple[float, bool]:
        now = report_crawl(done.crawl, 7.5)
        return now.process.seconds, is_running(now.process, clock.wall())

    assert run_virtual(look()) == (7.5, True)


@pytest.mark.parametrize(
    ("of", "state", "trouble", "at_fault"),
    [
        (host(), HostCondition.GOING, "", None),
        (host(waiting=0, inflight=0), HostCondition.DONE, "", None),
        (host(trouble="SERVER_ERROR 500"), HostCondition.GOING, "SERVER_ERROR 500", AtFault.ITEMS),
        (host(not_before=5.0, why="told to wait"), HostCondition.THROTTLED, "told to wait", None),
        (host(state="open", trouble="TIMEOUT"), HostCondition.FAILING, "TIMEOUT", AtFault.HOST),
        (host(state="half-open", why="a probe"), HostCondition.FAILING, "a probe", AtFault.HOST),
        (host(trouble="refused", aside=True), HostCondition.SET_ASIDE, "refused", AtFault.HOST),
        (host(waiting=0, inflight=0, trouble="no", aside=True), HostCondition.FAILED, "no", AtFault.HOST),
        (host(rejected=3, ceiling=4.0), HostCondition.THROTTLED, "", None),
        (host(rejected=3, ceiling=4.0, learned="latency: the host began to queue"), HostCondition.SLOW, "", None),
        (host(latency=1.0), HostCondition.SLOW, "", None),
        (host(error_rate=0.05), HostCondition.FLAKY, "", None),
        (host(cap=1.0), HostCondition.CAPPED, "", None),
        (host(rejected=3), HostCondition.GOING, "", None),
    ],
)
def test_each_host_has_one_word_for_how_it_is_and_the_reason(
    of: HostReport, state: HostCondition, trouble: str, at_fault: AtFault | None
) -> None:
    assert (of.state, of.trouble, of.at_fault) == (state, trouble, at_fault)


def test_a_host_that_is_asked_again_and_again_is_never_done() -> None:
    idle = view_of(host(waiting=0, inflight=0))

    assert report_host(idle).state is HostCondition.DONE
    assert report_host(idle, lasting=True).state is HostCondition.GOING


def test_what_the_limiter_knows_of_a_host_is_in_its_report() -> None:
    limiter = Limiter(clock=FakeClock())
    limiter.try_acquire("a.example")
    (view,) = limiter.snapshot(1).top

    told = view_of(report_host(view))

    assert {name for name in view.__slots__ if getattr(view, name) != getattr(told, name)} <= {"tokens"}


def test_the_troubles_are_those_of_hosts_that_fail_or_are_set_aside() -> None:
    hosts = host("a.example", trouble="500"), host("b.example", trouble="TIMEOUT", state="open")

    assert pages(*hosts, host("gone.example", trouble="refused", aside=True)).troubles == (
        Trouble(Severity.WARNING, "b.example: TIMEOUT"),
        Trouble(Severity.WARNING, "gone.example: refused"),
    )


HOSTS = st.builds(
    host,
    st.text(min_size=1, max_size=10),
    waiting=st.integers(0, 10**6),
    trouble=st.text(max_size=2000),
    state=st.sampled_from(["closed", "open", "half-open"]),
    not_before=st.floats(0, 1e6),
    inflight=st.integers(0, 100),
    requests=st.integers(0, 10**9),
    rejected=st.integers(0, 10**9),
)


@given(
    st.lists(HOSTS, max_size=5),
    st.dictionaries(st.sampled_from(["fetched", "unchanged", "moved", "failed", "left"]), st.integers(0, 10**9)),
    st.fixed_dictionaries({"waiting": st.integers(0, 10**6), "set_aside": st.integers(0, 10**6)}),
    st.fixed_dictionaries({"running": st.booleans(), "paused": st.booleans()}),
)
def test_a_report_agrees_with_its_facts_and_comes_back_from_json(
    hosts: list[HostReport], counts: dict[str, int], facts: dict[str, Any], process: dict[str, Any]
) -> None:
    made = pages(*hosts, process=process, counts=counts, **facts)

    assert (made.process.paused, made.set_aside, made.work.waiting) == (
        process["paused"],
        facts["set_aside"],
        facts["waiting"],
    )
    assert made.work.asked >= made.work.kept + made.work.failed
    assert made.hosts == tuple(hosts)
    assert made.doing
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report[PagesFacts]) == made
