"""What the demo has shown: for each host what it really allowed, and what was made of it, in numbers and in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sanderling.limit import HostView, Snapshot
from sanderling.worlds.showcase import CALLERS, Exhibit

NEXT = (
    "To try next: the lines of code in README.md, which put this limiter before hosts of your own; and "
    "`make bench`, which measures what you have just seen."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSummary:
    """One host. Rates are requests a second, times are the host's seconds; what was never learned is None."""

    host: str
    allows: float
    learned: float | None
    sent: int
    served: int
    possible: int
    refused: int
    failed: int
    latency: float | None  # of what was served, on average
    unloaded: float  # what an answer takes on average while nobody waits
    breaker: str
    down_for: float
    sent_while_down: int
    found_well_after: float | None  # from when it was well again until it was next asked
    fixed_pace: int  # what a limiter without a breaker would have sent meanwhile, at the pace the host allows
    unrestrained: int  # what the callers would have sent meanwhile without any limiter
    why: str


@dataclass(frozen=True, slots=True)
class LimiterSummary:
    """All hosts, after so many of their seconds."""

    elapsed: float
    complete: bool
    callers: int  # for each host
    hosts: tuple[HostSummary, ...]


def summarise(exhibits: Sequence[Exhibit], snapshot: Snapshot, elapsed: float, seconds: float) -> LimiterSummary:
    """The summary after `elapsed` of `seconds`; hosts that were never asked are left out."""
    views = {view.host: view for view in snapshot.top}
    hosts = tuple(_host(each, views[each.name], elapsed) for each in exhibits if each.name in views)
    return LimiterSummary(round(elapsed, 3), elapsed >= seconds, CALLERS, hosts)


def _host(exhibit: Exhibit, view: HostView, elapsed: float) -> HostSummary:
    answers, down_for = exhibit.answers, exhibit.down_for(elapsed)
    return HostSummary(
        host=exhibit.name,
        allows=exhibit.rate,
        learned=view.ceiling,
        sent=exhibit.sent,
        served=answers[200],
        possible=round(exhibit.possible(elapsed)),
        refused=answers[429],
        failed=answers[500],
        latency=exhibit.latency,
        unloaded=exhibit.unloaded,
        breaker=view.state,
        down_for=round(down_for, 3),
        sent_while_down=exhibit.sent_while_down,
        found_well_after=exhibit.found_well_after,
        fixed_pace=round(exhibit.rate * down_for),
        unrestrained=round(exhibit.unrestrained(elapsed)),
        why=view.why,
    )


def describe(summary: LimiterSummary) -> Iterator[str]:
    """The summary as paragraphs."""
    if not summary.complete:
        yield f"Ended early, after {summary.elapsed:.0f} s of the hosts' time."
    for host in summary.hosts:
        yield from ("", " ".join(STORIES[host.host](host)))
    yield from ("", NEXT)


def _quota(host: HostSummary) -> Iterator[str]:
    yield f"{host.host} allows {host.allows:.0f} a second and never says so."
    yield f"{_learned(host)}; {_served(host)}, {_refused(host)}."


def _queue(host: HostSummary) -> Iterator[str]:
    yield f"{host.host} gets {host.allows:.0f} a second done, and queues what comes faster."
    yield f"{_learned(host)}{'' if host.learned is None else ', from latency alone'}; {_served(host)}."
    if host.latency is not None:
        usual = f"{host.unloaded * 1000:.0f} ms when nobody else asks"
        yield f"On average an answer took {host.latency * 1000:.0f} ms; it takes {usual}."


def _failing(host: HostSummary) -> Iterator[str]:
    yield f"{host.host} serves {host.allows:.0f} a second."
    yield f"{_learned(host)}; {_served(host)}."
    if host.down_for == 0:
        yield "It had not failed yet."
        return
    yield f"For {host.down_for:.0f} s it failed every request, and was sent {host.sent_while_down:,} of them."
    yield f"Without a breaker, a fixed pace of {host.allows:.0f} a second would have sent {host.fixed_pace:,};"
    yield f"{CALLERS} callers without any limiter, about {host.unrestrained:,}."
    if host.found_well_after is not None:
        yield f"That it was well again was noticed {host.found_well_after:.0f} s later."
    yield _ENDED[host.breaker]


STORIES = {"quota.example": _quota, "queue.example": _queue, "failing.example": _failing}

_ENDED = {
    "closed": "Its breaker has closed again.",
    "open": "Its breaker is still open.",
    "half-open": "Its breaker is half open: one probe at a time finds out whether it is well.",
}


def _learned(host: HostSummary) -> str:
    return "Learned no limit yet" if host.learned is None else f"Learned {host.learned:.1f}"


def _served(host: HostSummary) -> str:
    return f"served {host.served:,} of {host.possible:,} possible ({_share(host.served, host.possible, digits=0)})"


def _refused(host: HostSummary) -> str:
    if host.refused == 0:
        return "never refused"
    times = "once" if host.refused == 1 else f"{host.refused:,} times"
    return f"refused {times} ({_share(host.refused, host.sent)})"


def _share(part: int, whole: int, digits: int = 1) -> str:
    return f"{100 * part / max(1, whole):.{digits}f}%"
