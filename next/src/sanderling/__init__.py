"""Collects every record from sites and APIs: as fast as each host allows, never faster, losing nothing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sanderling.limit import CircuitOpen, Limiter, LimitOptions, ThreadLimiter
    from sanderling.records.collection import open  # noqa: A004 - said as sanderling.open("posts")

# Imported when they are first used: a program that wants the limiter alone loads no HTTP client.
_WHERE = {
    "CircuitOpen": "sanderling.limit",
    "LimitOptions": "sanderling.limit",
    "Limiter": "sanderling.limit",
    "ThreadLimiter": "sanderling.limit",
    "open": "sanderling.records.collection",
}

__all__ = ["CircuitOpen", "LimitOptions", "Limiter", "ThreadLimiter", "open"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has that name
    if name not in _WHERE:
        raise AttributeError(f"module 'sanderling' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
