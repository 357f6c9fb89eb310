"""Keep to a rate that somebody has set: only what a host says about its limits may lower it.

For hosts that are asked on a schedule, such as one document every 200 ms. The schedule bounds the load already, so a
slow answer is not a queue of our making, and an outage says nothing about a quota. Refusals (429, or any Retry-After)
and rate headers are heeded and learned from, as the governor does.
"""

from sanderling.limit.governor import Governor
from sanderling.limit.lane import AMPLE_ROOM, Lane
from sanderling.limit.latency import Verdict
from sanderling.limit.pace import PaceRules


class Contract(Governor):
    """One host's rate under a contract: the governor, deaf to latency and failures."""

    __slots__ = ()

    def __init__(self, rules: PaceRules, lane: Lane, now: float, rate: float) -> None:
        super().__init__(rules, lane, now, rate)
        lane.room = AMPLE_ROOM  # the schedule bounds what is in flight

    trusts_503 = False  # one that names no time is an outage, and no quota

    def failed(self, lane: Lane, now: float) -> bool:  # noqa: ARG002 - governor's
        """A 5xx or no answer at all: the breaker's business."""
        return False

    def _judge(self, lane: Lane, now: float) -> Verdict:  # noqa: ARG002 - governor's
        return Verdict.FINE

    def _make_room(self, lane: Lane, served: float) -> None:
        """It stays as it is."""
