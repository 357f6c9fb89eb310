"""May we call this host now?

Terms. *Host*: whom we ask, in canonical spelling. *Permit*: leave to send one request. *Gate*: everything known about
one host. *Strategy*: what moves its rate, `governor` or `aimd`. *Scope*: something shared that a request also draws on.
*Refusal*: the host said "not now" (429, 503). *Failure*: a 5xx or no answer. *Penalty*: a time before which we stay
away.

The road of a request: `limiter` → `lane` if nothing is in the way, else `turnstile` → `line` → `gate` (`breaker`,
`pace`, strategy) → Permit → the caller sends → Feedback → `gate` → strategy and `breaker` learn.

Tricky bits. Nothing here loops until a token is there: the pacer says when, one timer waits. Serial numbers of permits
tell which answers are too old to count. A host that is let go leaves a stone, and no penalty is ever shortened.
"""

from sanderling.limit.backoff import BackoffRules
from sanderling.limit.breaker import BreakerRules
from sanderling.limit.budget import BudgetRules
from sanderling.limit.feedback import Feedback
from sanderling.limit.hints import Quota
from sanderling.limit.lane import Permit
from sanderling.limit.limiter import Attempt, Limiter
from sanderling.limit.pace import PaceRules
from sanderling.limit.rules import LimiterRules
from sanderling.limit.sharing import Scope, Shared
from sanderling.limit.snapshot import HostView, Snapshot, explain
from sanderling.limit.turnstile import CircuitOpen
from sanderling.limit.unpaced import Unpaced

__all__ = [
    "Attempt",
    "BackoffRules",
    "BreakerRules",
    "BudgetRules",
    "CircuitOpen",
    "Feedback",
    "HostView",
    "Limiter",
    "LimiterRules",
    "PaceRules",
    "Permit",
    "Quota",
    "Scope",
    "Shared",
    "Snapshot",
    "Unpaced",
    "explain",
]
