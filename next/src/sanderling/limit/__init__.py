"""Rate limits for hosts: how fast each may be requested, when it is left alone, and when a failure is tried again."""

from sanderling.limit.limiter import Limiter
from sanderling.limit.permit import Attempt, Permit
from sanderling.limit.queue import CircuitOpen
from sanderling.limit.rules import LimitOptions
from sanderling.limit.snapshot import HostFigures, Snapshot
from sanderling.limit.threads import ThreadLimiter

__all__ = ["Attempt", "CircuitOpen", "HostFigures", "LimitOptions", "Limiter", "Permit", "Snapshot", "ThreadLimiter"]
