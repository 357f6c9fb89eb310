"""The hosts of a crawl as people look at them: in which mood each is, which matter most, how fast each is asked."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from sanderling.cli.host_table import Growth
from sanderling.engine.host_report import HostStatus
from sanderling.words import printable

RECENT = 5.0  # seconds that requests to a host are counted over: one that just stopped should look like it
SLOW = 1.0  # seconds; an answer that takes longer is slow whatever it was learned from
FLAKY = 0.05  # the share of answers that fail from which it is worth a word
BAD = 0.5  # and from which the host is failing, even if its circuit is still closed


class CrawlStatus(Protocol):
    """What a screen shows of a crawl, be it of pages or of a job's requests."""

    @property
    def wall(self) -> float:
        """When it was taken, in Unix seconds."""

    @property
    def seconds(self) -> float:
        """How long this run has taken so far."""

    @property
    def kept(self) -> int:
        """Pages, or records."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What was asked for, by end."""

    @property
    def known(self) -> int:
        """All that is to be asked for, or was."""

    @property
    def waiting(self) -> int:
        """Of these, what has no end yet."""

    @property
    def inflight(self) -> int:
        """Requests that are out."""

    @property
    def bytes(self) -> int:
        """That this run has read."""

    @property
    def hosts_known(self) -> int:
        """How many hosts there are."""

    @property
    def hosts(self) -> Sequence[HostStatus]:
        """Those that are asked most."""


class Mood(Enum):
    """What a host is like right now, in the word that people see. The worst come first."""

    SET_ASIDE = "set aside"
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
    if host.given_up:
        return Mood.SET_ASIDE
    return busy(host)


def busy(host: HostStatus) -> Mood:
    """The mood of a host that is being asked."""
    view = host.view
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


class Pace(Growth):
    """How fast things went over the last seconds."""

    def take(self, status: CrawlStatus) -> None:
        """Count what there is, unless that was just done."""
        self.count(status.wall, {"kept": status.kept}, status.hosts)

    @property
    def kept(self) -> float:
        """Pages or records a second."""
        return self.rate("kept")

    def requests(self, host: str, over: float = RECENT) -> float | None:
        """Requests a second to a host; None if it is not known yet."""
        return super().requests(host, over)
