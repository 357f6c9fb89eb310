"""What a crawl of ids counts, for the metrics and for people."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, histogram

# Fine up to a minute and a half, where a crawl at the head lives; then up to the three days of a long catching up.
LAG_BUCKETS = (
    *range(5, 50, 5),
    *(60, 90, 300, 1800, 7200, 14_400, 21_600, 28_800, 36_000, 43_200, 57_600, 72_000, 86_400, 172_800, 259_200),
)
REQUEST_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.75, 1, 1.5, 2, 5)
# An id that needs more is rare, and each label value costs every histogram another set of series.
MOST_ATTEMPTS = 5
FIRST = "1"
# What is worth a remark, if the answer says why: a failure, or a record that is kept in spite of something odd.
REMARKABLE = (Status.SUCCESS, Status.BAD_FORMAT, Status.ERROR)
MOST_NAMES = 50  # of errors; a host must not fill our memory with names of its own


@dataclass(slots=True)
class SequenceMeasures:
    """Counts of one run."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)  # of the main lane: status, which attempt
    lags: dict[tuple[str, str], Histogram] = field(default_factory=dict)
    requests: dict[str, Histogram] = field(default_factory=dict)  # seconds, by the API's name for the answer
    probes: Counter[str] = field(default_factory=Counter)
    rechecks: Counter[str] = field(default_factory=Counter)
    decisions: Counter[bool] = field(default_factory=Counter)  # by whether the number of workers changed
    gaps: int = 0
    skipped: int = 0  # ids of gaps
    remarks: dict[str, str] = field(default_factory=dict)  # the last id of each status with something odd, and what
    took: float = 0.0  # seconds of requests, and how many of them: since the last decision
    sent: int = 0

    def remark(self, number: int, answer: NumberedAnswer) -> None:
        """Remember what was odd about an answer, if it says so."""
        if answer.outcome.detail and answer.status in REMARKABLE:
            self.remarks[answer.status.value] = f"id {number}: {answer.outcome.detail}"

    def request(self, answer: NumberedAnswer, seconds: float) -> None:
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
        key = (status.value, str(attempt) if attempt <= MOST_ATTEMPTS else "more")
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

    def by_status(self) -> dict[str, int]:
        """Answers of the main lane."""
        counts: Counter[str] = Counter()
        for (status, _), number in self.answers.items():
            counts[status] += number
        return dict(counts)

    def metrics(self) -> Iterator[Metric]:
        """All of it, for Prometheus."""
        yield counter("answers", "Answers of the main lane.", self.answers, "status", "attempts")
        yield counter("probes", "Questions that only asked whether an id exists.", self.probes, "result")
        yield counter("gaps", "Gaps that were skipped.", self.gaps)
        yield counter("skipped_ids", "Ids in the gaps that were skipped.", self.skipped)
        yield counter("rechecks", "Missed ids that were asked for again.", self.rechecks, "result")
        decisions = {str(changed).lower(): number for changed, number in self.decisions.items()}
        yield counter("decisions", "Decisions about the number of workers.", decisions, "changed")
        meaning = "How old records of the main lane were when they came."
        yield histogram("lag_seconds", meaning, self.lags, "status", "attempts")
        yield histogram("request_seconds", "One request, its body included.", self.requests, "error")
