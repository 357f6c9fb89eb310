"""The hosts of all systems as rows of one table: searched, sorted, and by pages. Pure."""

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from sanderling.observe.report import HostCondition, HostReport
from sanderling.web.house import Found


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a system. Rates are requests a second, times are seconds; None for what is not known of it."""

    system: str
    host: str
    requests: int
    asked: float | None  # over the last seconds
    rate: float  # that is allowed
    ceiling: float | None
    latency: float | None
    p95: float | None
    error_rate: float | None
    state: str
    failures: int
    not_before: float
    inflight: int
    waiting: int
    cap: float | None
    why: str
    paused: bool
    queued: int
    trouble: str


class HostsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which hosts."""

    system: Annotated[str, Meta(max_length=500)] | None = None
    search: Annotated[str, Meta(max_length=300)] = ""
    sort: Annotated[str, Meta(max_length=50)] = "asked"  # a field of the rows
    descending: bool = True
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100

    def __post_init__(self) -> None:
        if self.sort not in HostRow.__struct_fields__:
            raise ValueError(f"sort is {self.sort!a}, expected one of {', '.join(HostRow.__struct_fields__)}")


class HostPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of them."""

    total: int
    matching: int
    hosts: tuple[HostRow, ...]


Asked = Callable[[str], float | None]  # how often a host is asked


def requests_of(found: Found) -> dict[str, int]:
    """How many requests were sent to each host of a system. What `events` lists are services, and no hosts."""
    if found.report is None or found.system == "events":
        return {}
    return {host.host: host.requests for host in found.report.hosts}


def rows_of(found: Found, asked: Asked) -> list[HostRow]:
    """The hosts of a system."""
    if found.report is None or found.system == "events":
        return []
    return [_row(found, host, asked) for host in found.report.hosts]


def page(rows: Iterable[HostRow], query: HostsQuery) -> HostPage:
    """The part of them that was asked for. What is not known comes last, in either order."""
    every = list(rows)
    wanted = query.search.strip().lower()
    matching = [row for row in every if wanted in row.host.lower()] if wanted else every
    known = [row for row in matching if getattr(row, query.sort) is not None]
    unknown = [row for row in matching if getattr(row, query.sort) is None]
    for several in (known, unknown):
        several.sort(key=lambda row: (row.host, row.system))
    known.sort(key=lambda row: getattr(row, query.sort), reverse=query.descending)
    ordered = known + unknown
    return HostPage(
        total=len(every),
        matching=len(matching),
        hosts=tuple(ordered[query.offset : query.offset + query.limit]),
    )


def _row(found: Found, host: HostReport, asked: Asked) -> HostRow:
    aside = host.state is HostCondition.SET_ASIDE
    return HostRow(
        system=found.name,
        host=host.host,
        requests=host.requests,
        asked=asked(host.host),
        rate=host.rate,
        ceiling=host.ceiling,
        latency=host.latency,
        p95=host.p95,
        error_rate=host.error_rate,
        state=host.state.value if aside else host.circuit,
        failures=host.failures,
        not_before=host.not_before,
        inflight=host.in_flight,
        waiting=host.callers,
        cap=host.cap,
        why=host.why,
        paused=host.host in found.control.hosts,
        queued=host.waiting,
        trouble=host.said,
    )
