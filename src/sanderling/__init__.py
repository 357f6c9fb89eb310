"""Collect every record from APIs you do not own: as fast as each host allows, never faster, and losing nothing.

The map, from the ground up; imports only point down (`tests/test_floors.py` sees to it):

- `ids`, `outcome`, `task`, `clock`: the words everyone speaks.
- `limit`: may we call this host now?  `observe`: metrics, logs, snapshots.
- `cli`: what people touch.
- aside: `worlds` are simulated upstreams, `testing` holds fakes and virtual time.

The names below are the library for those who only want the limiter.
"""

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
