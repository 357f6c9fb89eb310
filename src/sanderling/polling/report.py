"""What polling does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.engine.host_report import HostStatus, report_host
from sanderling.observe.report import MOST_LISTED, MOST_NAMES, Report, WorkCounts, shorten
from sanderling.polling.measures import ACCELERATED, USUAL, Late
from sanderling.polling.status import ChangeStatus, PollingStatus
from sanderling.words import count, duration

SHORT = 8  # characters of an id that are said where all of it has no room


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How late runs began lately, in seconds."""

    p50: float
    p99: float


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is asked more often for now. Times are seconds."""

    kind: str
    id: str
    interval: float
    left: float
    late: float


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is soon to run. Times are seconds, `due` from now."""

    kind: str
    id: str
    due: float
    interval: float
    status: str


class PollingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Polling. Counts are those of the process."""

    targets: dict[str, int]
    late: dict[str, Lateness]
    accelerated: tuple[Live, ...]
    next: tuple[Next, ...]
    recent: tuple[ChangeStatus, ...]  # the oldest first
    followers: int
    newest: int
    rate: float  # runs a second
    series: tuple[str, ...] = ("late_p99",)


def report(status: PollingStatus) -> Report[PollingFacts]:
    """Make the report of polling."""
    host, late = status.limiter, _late(status)
    requests = status.ran if host is None else max(status.ran, host.requests)
    return Report(
        system=status.system,
        doing=_polling(status),
        paused=not status.enabled,
        troubles=tuple(_troubles(status)),
        work=WorkCounts(
            asked=requests,
            refused=0 if host is None else host.rejected,
            kept=status.changed,
            failed=status.failed,
            waiting=status.ready,
        ),
        hosts=() if host is None else (report_host(HostStatus(host, status.ready, None)),),
        classes=status.classes,
        gauges={"late_p99": None if late is None else late.p99},
        numbers=(
            ("targets", f"{status.targets.all:,}"),
            ("live", f"{status.targets.accelerated:,}"),
            ("runs a second", f"{status.rate:,.1f}"),
            ("late (p99)", "no runs" if late is None else duration(late.p99)),
            ("changes", f"{status.changed:,}"),
            ("failing", f"{status.targets.failing:,}"),
            ("missed runs", f"{sum(status.missed.values()):,}"),
            ("followers", f"{status.followers:,}"),
        ),
        facts=PollingFacts(
            targets=msgspec.structs.asdict(status.targets),
            late={shorten(pace): Lateness(p50=each.p50, p99=each.p99) for pace, each in _first(status.late)},
            accelerated=tuple(
                Live(kind=each.kind, id=shorten(each.source_id), interval=each.interval, left=each.left, late=each.late)
                for each in status.accelerated[:MOST_LISTED]
            ),
            next=tuple(
                Next(
                    kind=each.kind,
                    id=shorten(each.source_id),
                    due=each.due,
                    interval=each.interval,
                    status=shorten(each.status),
                )
                for each in status.next[:MOST_LISTED]
            ),
            recent=tuple(_change(each) for each in status.recent[-MOST_LISTED:]),
            followers=status.followers,
            newest=status.newest,
            rate=status.rate,
        ),
    )


def _first(late: dict[str, Late]) -> list[tuple[str, Late]]:
    return list(late.items())[:MOST_NAMES]


def _late(status: PollingStatus) -> Late | None:
    """Of the runs that matter most."""
    return status.late.get(ACCELERATED) or status.late.get(USUAL)


def _change(change: ChangeStatus) -> ChangeStatus:
    fields = tuple(shorten(each) for each in change.fields[:MOST_LISTED])
    return msgspec.structs.replace(change, table=shorten(change.table), key=shorten(change.key), fields=fields)


def _polling(status: PollingStatus) -> str:
    if not status.running:
        return f"ended after {count(status.ran, 'run')}"
    polled = status.targets.all - status.targets.paused
    if status.store_trouble or not status.enabled or not polled:
        return status.doing
    if not status.accelerated:
        return f"polling {count(polled, 'target')}, none of them live"
    first, *others = status.accelerated
    more = f", and {len(others)} more" if others else ""
    return f"{first.kind} {first.source_id[:SHORT]} is live: asked for every {duration(first.interval)}{more}"


def _troubles(status: PollingStatus) -> list[str]:
    found = [status.store_trouble] if status.store_trouble else []
    if status.discovery_trouble:
        found.append(f"what there is to poll could not be found out: {status.discovery_trouble}")
    found += status.problems
    found += [
        f"{each.name} is {count(each.behind, 'change')} behind: {each.trouble}"
        for each in status.subscribers
        if each.trouble
    ]
    if status.limiter is not None and status.limiter.state != "closed":
        found.append(f"{status.host}: {status.limiter.why}")
    return found
