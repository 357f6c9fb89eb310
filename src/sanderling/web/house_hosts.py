"""The hosts of all systems as rows of one table: searched, sorted, and by pages. Pure."""

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from sanderling.jobs.status import JobStatus
from sanderling.limit import HostView
from sanderling.observe.report import shorten
from sanderling.pages.status import Status as PagesStatus
from sanderling.polling.status import PollingStatus
from sanderling.repos.status import RepoStatus
from sanderling.sequence.status import SequenceStatus
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
    """How many requests were sent to each host of a system."""
    match found.status:
        case PagesStatus() | JobStatus() | RepoStatus() as crawl:
            return {host.view.host: host.view.requests for host in crawl.hosts}
        case SequenceStatus() as sequence if sequence.limiter is not None:
            return {sequence.host: sequence.limiter.requests}
        case PollingStatus() as polling if polling.limiter is not None:
            return {polling.limiter.host: polling.limiter.requests}
    return {}


def rows_of(found: Found, asked: Asked) -> list[HostRow]:
    """The hosts of a system."""
    paused = found.control.hosts
    match found.status:
        case PagesStatus() | JobStatus() as crawl:
            return [
                _row(found.name, host.view, paused, asked, queued=host.queued, trouble=host.trouble or "")
                for host in crawl.hosts
            ]
        case RepoStatus() as repos:
            return [
                _row(
                    found.name,
                    host.view,
                    paused,
                    asked,
                    queued=host.waiting,
                    trouble=host.trouble,
                    state="set aside" if host.blocked else host.view.state,
                    failures=host.failures,
                )
                for host in repos.hosts
            ]
        case SequenceStatus() as sequence:
            return _of_sequence(found.name, sequence, paused, asked)
        case PollingStatus() as polling if polling.limiter is not None:
            return [_row(found.name, polling.limiter, paused, asked, queued=polling.ready)]
    return []


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


def _row(  # noqa: PLR0913 - a column each
    system: str,
    view: HostView,
    paused: frozenset[str],
    asked: Asked,
    *,
    queued: int,
    trouble: str = "",
    state: str = "",
    failures: int | None = None,
) -> HostRow:
    return HostRow(
        system=system,
        host=view.host,
        requests=view.requests,
        asked=asked(view.host),
        rate=view.rate,
        ceiling=view.ceiling,
        latency=view.latency,
        p95=view.p95,
        error_rate=view.error_rate,
        state=state or view.state,
        failures=view.failures if failures is None else failures,
        not_before=view.not_before,
        inflight=view.inflight,
        waiting=view.waiting,
        cap=view.cap,
        why=shorten(view.why),
        paused=view.host in paused,
        queued=queued,
        trouble=shorten(trouble),
    )


def _of_sequence(name: str, status: SequenceStatus, paused: frozenset[str], asked: Asked) -> list[HostRow]:
    """Its one host, of which it says less than others do."""
    host = status.limiter
    if host is None:
        return []
    return [
        HostRow(
            system=name,
            host=status.host,
            requests=host.requests,
            asked=asked(status.host),
            rate=host.rate,
            ceiling=host.ceiling,
            latency=host.latency,
            p95=None,
            error_rate=status.errors,
            state="closed" if status.available else "open",
            failures=0,
            not_before=0.0,
            inflight=status.inflight,
            waiting=0,
            cap=None,
            why=shorten(host.why),
            paused=status.host in paused,
            queued=status.waiting,
            trouble=shorten(status.trouble),
        )
    ]
