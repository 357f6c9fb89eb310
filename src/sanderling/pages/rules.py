"""How a crawl of pages goes about it."""

from dataclasses import dataclass

from sanderling.pages.leave_out import LeaveOut


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Times in seconds."""

    together: int = 256  # requests in flight, over all hosts
    per_host: int = 8  # and to one of them: the limiter sets the pace, this bounds what a slow one can hold
    max_pages: int | None = None
    # Until what failed is tried once more, on top of the fetch's own tries; the last again and again, while the host
    # seems to be at fault.
    again: tuple[float, ...] = (2.0, 10.0, 30.0)
    patience: float = 600.0  # with a host that does not answer any more, or that asks us to stay away
    first_patience: float = 15.0  # with one that never answered: most likely it does not exist
    leave_out: LeaveOut | None = None  # decides anew, if there is one, what an earlier run has left out
    robots_held: int = 64 * 2**20  # bytes of rules in memory; those of six thousand hosts, if they are usual ones
