"""How one host stands, for whoever looks: what the limiter knows of it, and what waits for it."""

import msgspec

from sanderling.engine.hosts import HostState
from sanderling.limit.snapshot import HostView


class HostStatus(msgspec.Struct, frozen=True):
    """One host."""

    view: HostView
    queued: int
    trouble: str | None  # the last thing it said instead of a good answer, if that was the last thing it said
    given_up: bool = False  # for this run: what waits for it is asked for by the next one


def host_status(view: HostView, host: HostState | None, waiting: int) -> HostStatus:
    """The status of a host that is known, or is not yet, with so many items that wait or are in flight."""
    if host is None:
        return HostStatus(view, 0, None)
    said = host.trouble
    trouble = None if said is None else " ".join(str(part) for part in (said.code, said.status, said.detail) if part)
    return HostStatus(view, max(0, waiting - host.inflight), trouble, host.aside)
