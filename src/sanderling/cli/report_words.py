"""A report in words: the lines that `status`, `top` and every screen share. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from sanderling.observe.rates import Rates, Run
from sanderling.observe.report import (
    ALLOWED,
    ASKED,
    FAILED,
    KEPT,
    AnyReport,
    HostCondition,
    HostReport,
    Process,
    Severity,
    Trouble,
)
from sanderling.stores.status_file import age, is_gone, is_running
from sanderling.words import clock_face, duration

NAME = 10  # columns of what a line is about
MOST_HOSTS = MOST_EVENTS = 5
FLOW = {ASKED: "asked", ALLOWED: "accepted", KEPT: "kept", FAILED: "failed"}
FINE = (HostCondition.GOING, HostCondition.DONE)
WORST_FIRST = (
    *(HostCondition.SET_ASIDE, HostCondition.FAILING, HostCondition.FAILED, HostCondition.THROTTLED),
    *(HostCondition.SLOW, HostCondition.FLAKY, HostCondition.CAPPED, HostCondition.GOING, HostCondition.DONE),
)


def state(process: Process, wall: float) -> str:
    """Whether it runs, in words."""
    since = age(process, wall)
    if is_running(process, wall):
        then = "now" if since < 2 else f"{duration(since)} ago"
        return f"running for {clock_face(process.seconds)} as process {process.pid}, as of {then}"
    if not process.running:
        return f"which ended {duration(since)} ago" if since >= 2 else "which ended just now"
    if is_gone(process):
        return f"which was killed; it last said something {duration(since)} ago"
    return f"which has said nothing for {duration(since)} and is not running"


def line(name: str, text: str) -> str:
    """One thing about it."""
    return f"{name:>{NAME}}  {text}"


def rate(number: float) -> str:
    """So many a second."""
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"


def take_rates(rates: Rates, report: AnyReport) -> None:
    """Count what a report says, in all and for each host."""
    process = report.process
    hosts = {f"host {each.host}": each.requests for each in report.hosts}
    rates.take(Run(process.pid, process.started), process.wall, {**report.totals(), **hosts})


def flow(rates: Mapping[str, float | None], waiting: int, time_left: float | None) -> str:
    """What moves, what waits, and until when."""
    left = "" if time_left is None else f"; about {duration(time_left)} left"
    if rates.get(ASKED) is None:
        return f"{waiting:,} waiting; how much moves is not known yet{left}"
    each = ", ".join(f"{rate(rates[name] or 0.0)} {word}" for name, word in FLOW.items())
    return f"{each} a second; {waiting:,} waiting{left}"


def report_flow(report: AnyReport, rates: Rates) -> str:
    """The same of a report."""
    # What ended does not go on at the rate of its last seconds.
    left = report.time_left if report.process.running and report.work.waiting else None
    return flow({name: rates.rate(name) for name in FLOW}, report.work.waiting, left)


def numbers(report: AnyReport) -> str:
    """The figures that matter most, on one line."""
    return ", ".join(f"{label} {text}" for label, text in report.numbers)


def host_words(host: HostReport) -> str:
    """Why a host is as it is."""
    told = dict.fromkeys(text for text in (host.trouble, host.why) if text)
    return "; ".join(told)


def ranked(hosts: Iterable[HostReport], room: int) -> list[HostReport]:
    """The most troubled hosts first, `room` of them at most; then the busiest, then whatever is left."""
    order = sorted(hosts, key=lambda host: (WORST_FIRST.index(host.state), -host.requests, host.host))
    troubled = [host for host in order if host.state not in FINE]
    going = [host for host in order if host.state is HostCondition.GOING]
    done = [host for host in order if host.state is HostCondition.DONE]
    return [*troubled[:room], *going, *troubled[room:], *done]


def troubles_besides(report: AnyReport, hosts: Iterable[HostReport]) -> tuple[Trouble, ...]:
    """What is wrong, without the warnings about hosts that are shown with their trouble. No error is left out."""
    said = {f"{each.host}: {each.trouble}" for each in hosts}
    return tuple(each for each in report.troubles if each.severity is Severity.ERROR or each.text not in said)


def report_lines(report: AnyReport, *, running: bool) -> Iterator[str]:
    """All that a report says, but for its process and what is only drawn."""
    yield line("now" if running else "at the end", report.doing)
    if running and report.time_left is not None and report.work.waiting:
        yield line("time left", f"about {duration(report.time_left)}")
    if report.numbers:
        yield line("numbers", numbers(report))
    yield from (line(label, text) for label, text in report.lines)
    troubled = [host for host in ranked(report.hosts, len(report.hosts)) if host.state not in FINE]
    if report.hosts:
        known = max(report.hosts_known, len(report.hosts))
        yield line("hosts", f"{known:,}" + (f", {len(troubled):,} of them slow or in trouble" if troubled else ""))
    for host in troubled[:MOST_HOSTS]:
        yield line("host", f"{host.host}, {host.state}: {host_words(host)}")
    if len(troubled) > MOST_HOSTS:
        yield line("", f"and {len(troubled) - MOST_HOSTS:,} more: see sanderling why HOST")
    for each in troubles_besides(report, troubled[:MOST_HOSTS]):
        yield line("note" if each.severity is Severity.INFO else "trouble", each.text)
    for event in report.events[-MOST_EVENTS:]:
        yield line(datetime.fromtimestamp(event.wall, UTC).strftime("%H:%M:%S"), event.text)
