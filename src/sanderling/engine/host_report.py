"""How one host of a crawl stands: as its status says it, and as the report does."""

from collections.abc import Sequence
from typing import Any

import msgspec

from sanderling.engine.backlog import BacklogHost
from sanderling.limit.snapshot import HostView, explain, scope_words
from sanderling.observe.report import TROUBLED, AtFault, HostCondition, HostReport, shorten

SLOW = 1.0  # seconds; an answer that takes longer is slow whatever it was learned from
MOST_SHARED = 5
FLAKY = 0.05  # the share of answers that fail from which it is worth a word


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


def report_host(host: HostStatus, *, lasting: bool = False) -> HostReport:
    """Make the report of a host; one that is asked again and again, and so is never done, is `lasting`."""
    state = _state(host, lasting=lasting)
    trouble, at_fault = _trouble(host, state)
    return HostReport(
        host=host.view.host,
        state=state,
        waiting=host.queued,
        in_flight=host.view.inflight,
        trouble=shorten(trouble),
        at_fault=at_fault,
        requests=host.view.requests,
        refused=host.view.rejected,
        ceiling=host.view.ceiling,
        latency=host.view.latency,
        why=shorten(host.view.why),
    )


def shared_lines(shared: Sequence[HostView]) -> tuple[tuple[str, str], ...]:
    """Return a line for each key, domain or address that hosts share, and why it is asked as fast as it is."""
    return tuple(("shared", f"{scope_words(view.host)}: {explain(view)}") for view in shared[:MOST_SHARED])


def _trouble(host: HostStatus, state: HostCondition) -> tuple[str, AtFault | None]:
    """Say what is wrong with a host, and who caused it."""
    if host.given_up or state in TROUBLED:
        return host.trouble or host.view.why, AtFault.HOST
    if host.view.not_before > 0 and state is HostCondition.THROTTLED:  # nothing has failed, whatever it said last
        return host.view.why, None
    # A failure is that of the item until the circuit opens.
    return (host.trouble, AtFault.ITEMS) if host.trouble else ("", None)


def _state(host: HostStatus, *, lasting: bool) -> HostCondition:
    view = host.view
    if host.given_up and host.queued:
        return HostCondition.SET_ASIDE
    if view.state != "closed":
        return HostCondition.FAILING
    if not (lasting or host.queued or view.inflight or view.waiting):
        return HostCondition.DONE if host.trouble is None else HostCondition.FAILED
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
