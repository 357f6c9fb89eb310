"""Collect every record from APIs you do not own: as fast as each host allows, never faster, and losing nothing.

The map, from the ground up; imports only point down (`tests/test_floors.py` sees to it):

- `ids`, `outcome`, `task`, `clock`: the words everyone speaks.
- `limit`: may we call this host now?  `observe`: metrics, logs, snapshots.
- `fetch`: ask the network, safely, and say in one word how it went.
- `cli`: what people touch.
- aside: `worlds` are simulated upstreams, `testing` holds fakes and virtual time.

The names below are the library for those who only want the limiter.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sanderling.ids import Host, HostError, domain_of, host_of
    from sanderling.limit import CircuitOpen, Feedback, Limiter, LimiterRules, PaceRules, Permit, Scope
    from sanderling.outcome import Code, Outcome

__all__ = [
    "CircuitOpen",
    "Code",
    "Feedback",
    "Host",
    "HostError",
    "Limiter",
    "LimiterRules",
    "Outcome",
    "PaceRules",
    "Permit",
    "Scope",
    "domain_of",
    "host_of",
]


def __getattr__(name: str) -> object:
    """Fetch a public name when it is first used: `sanderling --help` must not load an event loop."""
    if name in __all__:
        for home in ("sanderling.limit", "sanderling.ids", "sanderling.outcome"):
            if hasattr(module := import_module(home), name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
