"""The hosts of a crawl as people look at them: in which mood each is, which matter most, how fast each is asked."""

from collections import deque
from collections.abc import Sequence
from enum import Enum

from sanderling.cli.pages_summary import printable
from sanderling.pages.status import HostStatus, Status

SECONDS = 10.0  # that pages a second are counted over
RECENT = 5.0  # and requests to a host: a host that just stopped should look like it
STEP = 0.5  # seconds between two counts
SLOW = 1.0  # seconds; an answer that takes longer is slow whatever it was learned from
FLAKY = 0.05  # the share of answers that fail from which it is worth a word
BAD = 0.5  # and from which the host is failing, even if its circuit is still closed


class Mood(Enum):
    """What a host is like right now, in the word that people see. The worst come first."""

    FAILING = "failing"
    FAILED = "failed"
    THROTTLED = "throttled"
    SLOW = "slow"
    FLAKY = "flaky"
    CAPPED = "capped"
    GOING = "going"
    DONE = "done"

    @property
    def troubled(self) -> bool:
        """Whether somebody may want to know why."""
        return self not in (Mood.GOING, Mood.DONE)


_RANK = {mood: rank for rank, mood in enumerate(Mood)}


def mood(host: HostStatus) -> Mood:
    """The mood of a host."""
    view = host.view
    if not (host.queued or view.inflight or view.waiting):
        return Mood.DONE if host.trouble is None else Mood.FAILED
    if view.state != "closed" or (host.trouble is not None and view.error_rate >= BAD):
        return Mood.FAILING
    queues = view.learned is not None and view.learned.startswith("latency")
    if view.not_before > 0 or (view.rejected and view.ceiling is not None and not queues):
        return Mood.THROTTLED
    if queues or (view.latency or 0.0) >= SLOW:
        return Mood.SLOW
    if view.error_rate >= FLAKY:
        return Mood.FLAKY
    return Mood.CAPPED if view.cap is not None else Mood.GOING


def words_of(host: HostStatus) -> str:
    """Why the host is in its mood, on one line."""
    return printable(host.view.why if host.trouble is None else f"{host.trouble}; {host.view.why}")


def ranked(hosts: Sequence[HostStatus], room: int) -> list[HostStatus]:
    """The most troubled hosts first, `room` of them at most; then the busiest, then whatever is left."""
    order = sorted(hosts, key=lambda host: (_RANK[mood(host)], -host.view.requests, host.view.host))
    troubled = [host for host in order if mood(host).troubled]
    rest = order[len(troubled) :]
    busy = [host for host in rest if mood(host) is Mood.GOING]
    return [*troubled[:room], *busy, *troubled[room:], *rest[len(busy) :]]


class Pace:
    """How fast things went over the last seconds."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int, dict[str, int]]] = deque()  # when, pages, requests by host

    def take(self, status: Status) -> None:
        """Count what there is, unless that was just done."""
        if self._counts and 0 <= status.wall - self._counts[-1][0] < STEP:
            return
        if self._counts and status.wall < self._counts[-1][0]:
            self._counts.clear()  # somebody has set the clock back
        self._counts.append((status.wall, status.pages, {host.view.host: host.view.requests for host in status.hosts}))
        while status.wall - self._counts[0][0] > SECONDS:
            self._counts.popleft()

    @property
    def pages(self) -> float:
        """Pages a second."""
        if len(self._counts) < 2:
            return 0.0
        (began, before, _), (ended, after, _) = self._counts[0], self._counts[-1]
        return (after - before) / (ended - began)

    def requests(self, host: str) -> float | None:
        """Requests a second to a host; None if it is not known yet."""
        if len(self._counts) < 2:
            return None
        ended, _, after = self._counts[-1]
        began, _, before = next(count for count in self._counts if ended - count[0] <= RECENT)
        return max(0, after.get(host, 0) - before.get(host, 0)) / (ended - began) if ended > began else None
