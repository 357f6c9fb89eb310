"""How one host of a crawl stands: as its status says it, and as the report does."""

from typing import Any

import msgspec

from sanderling.engine.backlog import BacklogHost
from sanderling.limit.snapshot import HostView
from sanderling.observe.report import AtFault, HostCondition, HostReport, shorten

TROUBLED = (HostCondition.FAILING, HostCondition.SET_ASIDE)


class HostStatus(msgspec.Struct, frozen=True):
    """One host: what the limiter knows of it, and what waits for it."""

    view: HostView
    queued: int
    trouble: str | None  # the last thing it said instead of a good answer, if that was the last thing it said
    given_up: bool = False  # for this run: what waits for it is asked for by the next one


def host_status(host: BacklogHost[Any] | None, view: HostView) -> HostStatus:
    """The status of a host, if it was met."""
    if host is None:
        return HostStatus(view, 0, None)
    trouble = None
    if (said := host.trouble) is not None:
        trouble = " ".join(str(part) for part in (said.code, said.status, said.detail) if part)
    return HostStatus(view, max(0, host.waiting - host.inflight), trouble, host.aside)


def report_host(host: HostStatus) -> HostReport:
    """Make the report of a host."""
    state = _state(host)
    trouble, at_fault = _trouble(host, state)
    return HostReport(
        host=host.view.host,
        state=state,
        waiting=host.queued,
        in_flight=host.view.inflight,
        trouble=shorten(trouble),
        at_fault=at_fault,
    )


def _trouble(host: HostStatus, state: HostCondition) -> tuple[str, AtFault | None]:
    """Say what is wrong with a host, and who caused it."""
    if host.given_up or state in TROUBLED:
        return host.trouble or host.view.why, AtFault.HOST
    if state is HostCondition.THROTTLED:  # nothing has failed, whatever it said last
        return host.view.why, None
    # A failure is that of the item until the circuit opens.
    return (host.trouble, AtFault.ITEMS) if host.trouble else ("", None)


def _state(host: HostStatus) -> HostCondition:
    view = host.view
    if host.given_up and host.queued:
        return HostCondition.SET_ASIDE
    if view.state != "closed":
        return HostCondition.FAILING
    if not (host.queued or view.inflight or view.waiting):
        return HostCondition.DONE
    return HostCondition.THROTTLED if view.not_before > 0 else HostCondition.GOING
