"""What the reports of all systems are made of: what the engine and the limiter say of the process and its hosts."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from sanderling.engine.backlog import BacklogHost
from sanderling.engine.loop import Engine
from sanderling.limit import Limiter
from sanderling.limit.snapshot import HostView, explain, scope_words
from sanderling.observe.report import (
    TROUBLED,
    AnyReport,
    AtFault,
    HostCondition,
    HostReport,
    Process,
    Severity,
    Trouble,
    shorten,
)
from sanderling.stores.process_identity import own_process

SLOW = 1.0  # seconds; an answer that takes longer is slow whatever it was learned from
MOST_SHARED = 5
FLAKY = 0.05  # the share of answers that fail from which it is worth a word


class EngineStanding(NamedTuple):
    """What every system says in the same way."""

    process: Process
    hosts: tuple[HostReport, ...] = ()  # those that are asked most
    asked: int = 0  # requests to all hosts
    refused: int = 0  # of those, the ones that hosts did not accept
    shared: tuple[HostReport, ...] = ()  # what hosts share
    pace: str = "governor"  # what moves the pace of hosts
    classes: Mapping[str, int] = {}  # requests given to each class of work
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room

    @property
    def disk_troubles(self) -> list[Trouble]:
        """Return that the disk has no room, while it waits for that."""
        waits = self.disk_trouble and self.process.running
        return [Trouble(Severity.ERROR, self.disk_trouble)] if waits else []

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Return that, and what is wrong with hosts. Each is a warning: what waits for other hosts goes on."""
        hosts = (each for each in self.hosts if each.state in TROUBLED)
        return (*self.disk_troubles, *(Trouble(Severity.WARNING, f"{each.host}: {each.trouble}") for each in hosts))

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return a line for each key, domain or address that hosts share, and why it is asked as fast as it is."""
        shared = self.shared[:MOST_SHARED]
        return tuple(("shared", f"{scope_words(each.host)}: {explain(view_of(each))}") for each in shared)


def standing_of(
    engine: Engine[Any, Any, Any],
    limiter: Limiter,
    seconds: float,
    host: Callable[[HostView], HostReport | None] | None = None,
    *,
    top: int = 1000,
    running: bool = True,
) -> EngineStanding:
    """Say how a system stands that has run for so long; `host` reports one of its `top` hosts at most."""
    wanted, seen = engine.wanted, limiter.snapshot(top)
    return EngineStanding(
        process=this_process(seconds, engine.clock.wall(), running=running, paused=wanted.paused),
        hosts=tuple(each for each in map(host or report_host, seen.top) if each is not None),
        asked=seen.requests,
        refused=seen.rejected,
        shared=tuple(map(report_host, seen.shared)),
        pace=limiter.rules.strategy,
        classes=engine.given_by_name(),
        disk_trouble=wanted.disk_trouble,
    )


def join_standings(reports: Sequence[AnyReport], process: Process, top: int = 1000) -> EngineStanding:
    """Say how a system stands whose parts have reported, each its own hosts."""
    hosts = sorted((host for each in reports for host in each.hosts), key=lambda host: -host.requests)
    classes = Counter[str]()
    for each in reports:
        classes.update(each.classes)
    return EngineStanding(
        process=process,
        hosts=tuple(hosts[:top]),
        asked=sum(each.work.asked for each in reports),
        refused=sum(each.work.refused for each in reports),
        shared=_join_shared(shared for each in reports for shared in each.shared),
        pace=next((each.pace for each in reports), "governor"),
        classes=dict(classes),
    )


def _join_shared(reports: Iterable[HostReport]) -> tuple[HostReport, ...]:
    """What hosts share, of which every part that draws on it has said what it asked."""
    joined: dict[str, HostReport] = {}
    for each in reports:
        known = joined.setdefault(each.host, each)
        if known is not each:
            numbers = ("waiting", "in_flight", "requests", "refused", "callers")
            sums = {name: getattr(known, name) + getattr(each, name) for name in numbers}
            joined[each.host] = msgspec.structs.replace(known, **sums)
    return tuple(sorted(joined.values(), key=lambda each: -each.requests))


def this_process(seconds: float, wall: float, *, running: bool, paused: bool) -> Process:
    """Report the process that asks, which has run for so long."""
    # The clock may have been set since it began: the time it is counts for others, and how long it took for us.
    known = own_process()
    return Process(
        pid=os.getpid(),
        started=wall - seconds,
        wall=wall,
        running=running,
        paused=paused,
        space="" if known is None else known.space,
        start="" if known is None else known.start,
    )


def backlog_host(hosts: Mapping[str, BacklogHost[Any]], view: HostView) -> HostReport:
    """Make the report of a host of a frontier."""
    host = hosts.get(view.host)
    if host is None:  # nothing of it was met yet
        return report_host(view)
    said = host.trouble
    trouble = "" if said is None else " ".join(str(part) for part in (said.code, said.status, said.detail) if part)
    return report_host(view, max(0, host.waiting - host.inflight), trouble, aside=host.aside)


def report_host(
    view: HostView, waiting: int = 0, trouble: str = "", *, aside: bool = False, lasting: bool = False, due: float = 0.0
) -> HostReport:
    """Make the report of a host, by what the limiter knows of it and what waits for it.

    `trouble` is the last thing it said instead of a good answer, if that was the last thing it said. One that was set
    `aside` is not asked in this run; one that is asked again and again, and so is never done, is `lasting`.
    """
    state, said = _state(view, waiting, trouble, aside=aside, lasting=lasting), trouble
    at_fault = AtFault.ITEMS if trouble else None  # a failure is that of the item until the circuit opens
    if aside or state in TROUBLED:
        trouble, at_fault = trouble or view.why, AtFault.HOST
    elif view.not_before > 0 and state is HostCondition.THROTTLED:  # nothing has failed, whatever it said last
        trouble, at_fault = view.why, None
    return HostReport(
        host=view.host,
        state=state,
        waiting=waiting,
        in_flight=view.inflight,
        trouble=shorten(trouble),
        said=shorten(said),
        at_fault=at_fault,
        requests=view.requests,
        refused=view.rejected,
        rate=view.rate,
        ceiling=view.ceiling,
        learned=view.learned,
        cap=view.cap,
        cap_why=view.cap_why,
        latency=view.latency,
        p95=view.p95,
        usual=view.usual,
        error_rate=view.error_rate,
        circuit=view.state,
        failures=view.failures,
        not_before=view.not_before,
        callers=view.waiting,
        policy=view.policy,
        shares=view.shares,
        due=due,
        why=shorten(view.why),
    )


def view_of(host: HostReport) -> HostView:
    """What the limiter knew of a host, as far as its report says."""
    return HostView(
        host=host.host,
        requests=host.requests,
        rejected=host.refused,
        rate=host.rate,
        ceiling=host.ceiling,
        tokens=0.0,
        latency=host.latency,
        p95=host.p95,
        error_rate=host.error_rate,
        state=host.circuit,
        failures=host.failures,
        not_before=host.not_before,
        inflight=host.in_flight,
        waiting=host.callers,
        why=host.why,
        learned=host.learned,
        usual=host.usual,
        cap=host.cap,
        cap_why=host.cap_why,
        policy=host.policy,
        shares=host.shares,
    )


def _state(view: HostView, waiting: int, trouble: str, *, aside: bool, lasting: bool) -> HostCondition:
    if aside and waiting:
        return HostCondition.SET_ASIDE
    if view.state != "closed":
        return HostCondition.FAILING
    if not (lasting or waiting or view.inflight or view.waiting):
        return HostCondition.FAILED if trouble else HostCondition.DONE
    return _pace(view)


def _pace(view: HostView) -> HostCondition:
    """Say how a host is that is asked and answers."""
    queues = view.learned is not None and view.learned.startswith("latency")
    if view.not_before > 0 or (view.rejected and view.ceiling is not None and not queues):
        return HostCondition.THROTTLED
    if queues or (view.latency or 0.0) >= SLOW:
        return HostCondition.SLOW
    if view.error_rate >= FLAKY:
        return HostCondition.FLAKY
    return HostCondition.GOING if view.cap is None else HostCondition.CAPPED
