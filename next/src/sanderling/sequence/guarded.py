"""How many requests may be in flight: the default, which follows what is needed, all the time. Pure.

A rate of so many a second, each of which takes so long, keeps rate × latency requests in flight (Little). In a backlog
the rate is what the limiter allows, at the head what comes to be; more would only wait. A third more leaves room.
"""

from math import ceil

ROOM = 1.34
FASTEST_RISE = 2.0  # from one decision to the next


def workers_for(allowed: float, latency: float, head_rate: float | None, now: int, least: int, most: int) -> int:
    """Workers for the next seconds; `head_rate` is None in a backlog."""
    rate = allowed if head_rate is None else min(allowed, 2 * head_rate + 1)
    wanted = ceil(min(most, rate * latency * ROOM))  # a rate may have no end
    return max(least, min(wanted, ceil(now * FASTEST_RISE) + 1))
