"""The metrics of a job: `sanderling_job_…`."""

from collections.abc import Mapping
from typing import Protocol

from sanderling.observe.series import Shown, Table, by, one


class JobLike(Protocol):
    """What a job says of itself at one moment. Counts are those of all its runs, bytes those of this one."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Requests by end."""

    @property
    def requests(self) -> int:
        """That were sent."""

    @property
    def records(self) -> int:
        """That were kept."""

    @property
    def waiting(self) -> int:
        """Requests that are not decided yet."""

    @property
    def set_aside(self) -> int:
        """Of these, what is left to the next run."""

    @property
    def inflight(self) -> int:
        """Requests under way."""

    @property
    def bytes(self) -> int:
        """Of replies."""


JOB: Table[JobLike] = Table(
    "sanderling_job_",
    counters=(
        by("end", "decided", "Requests that are decided, by their end.", lambda seen: seen.counts),
        one("requests", "Requests that were sent.", lambda seen: seen.requests),
        one("records", "Records that were kept.", lambda seen: seen.records),
        one("bytes", "Bytes of replies, once unpacked.", lambda seen: seen.bytes),
    ),
    gauges=(
        one("waiting", "Requests that are not decided yet.", lambda seen: seen.waiting),
        one("set_aside", "Requests that are left to the next run.", lambda seen: seen.set_aside),
        one("inflight", "Requests under way.", lambda seen: seen.inflight),
    ),
)


class JobMetrics(Shown[JobLike]):
    """Shows Prometheus how a job stands at each scrape."""

    table = JOB
