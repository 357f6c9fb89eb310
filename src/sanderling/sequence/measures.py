"""What a crawl of ids counts, for the metrics and for people."""

from collections import Counter
from dataclasses import dataclass, field

from sanderling.apis.numbered import Answer, Status
from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics_sequence import LAG_BUCKETS, REQUEST_BUCKETS

MOST_ATTEMPTS = 6  # more are one label
# What is worth a remark, if the answer says why: a failure, or a record that is kept in spite of something odd.
REMARKABLE = (Status.SUCCESS, Status.BAD_FORMAT, Status.ERROR)
MOST_NAMES = 50  # of errors; a host must not fill our memory with names of its own


@dataclass(slots=True)
class Measures:
    """Counts of one run."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)  # of the main lane: status, how many attempts
    lags: dict[tuple[str, int], Histogram] = field(default_factory=dict)
    requests: dict[str, Histogram] = field(default_factory=dict)  # seconds, by the API's name for the answer
    probes: Counter[str] = field(default_factory=Counter)
    rechecks: Counter[str] = field(default_factory=Counter)
    decisions: Counter[bool] = field(default_factory=Counter)  # by whether the number of workers changed
    gaps: int = 0
    skipped: int = 0  # ids of gaps
    remarks: dict[str, str] = field(default_factory=dict)  # the last id of each status with something odd, and what
    took: float = 0.0  # seconds of requests, and how many of them: since the last decision
    sent: int = 0

    def remark(self, number: int, answer: Answer) -> None:
        """Remember what was odd about an answer, if it says so."""
        if answer.outcome.detail and answer.status in REMARKABLE:
            self.remarks[answer.status.value] = f"id {number}: {answer.outcome.detail}"

    def request(self, answer: Answer, seconds: float) -> None:
        """Count a request of any lane."""
        name = answer.error or answer.status.value
        if name not in self.requests:
            name = name if len(self.requests) < MOST_NAMES else "other"
            self.requests.setdefault(name, Histogram(REQUEST_BUCKETS))
        self.requests[name].add(seconds)
        self.took += seconds
        self.sent += 1

    def answer(self, status: Status, attempt: int, lag: float | None) -> None:
        """Count an answer of the main lane."""
        key = (status.value, min(attempt, MOST_ATTEMPTS))
        self.answers[key] += 1
        if lag is not None and lag >= 0 and status in (Status.SUCCESS, Status.SKIPPED):
            if key not in self.lags:
                self.lags[key] = Histogram(LAG_BUCKETS)
            self.lags[key].add(lag)

    def latency(self) -> float | None:
        """The mean of a request since this was last asked; None if there was none."""
        mean = self.took / self.sent if self.sent else None
        self.took, self.sent = 0.0, 0
        return mean

    def total(self, *statuses: Status) -> int:
        """Answers of the main lane that had one of these."""
        return sum(number for (status, _), number in self.answers.items() if status in statuses)
