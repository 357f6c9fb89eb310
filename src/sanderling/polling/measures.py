"""What polling counts, for the metrics and for people, and how punctual it was lately."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator

import msgspec

from sanderling.clock import Clock
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, gauge, histogram
from sanderling.outcome import code_of
from sanderling.stores.polling import Op

ACCELERATED, USUAL = "accelerated", "usual"
OTHER = "other"  # for every name that is not ours; each label value costs Prometheus memory
EVERYTHING = "all"  # the table of a purge
OPS = frozenset(Op)
# Why a target was made due: it is live; somebody asked, a person or a webhook; what it waited for is there.
REASONS = ("active", "admin", "parent")

# Fine around a quarter of a second, where a live target begins to look late; up to a minute, where anything does.
LATE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
RUN_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30)
BATCH_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)

LATELY = 10.0  # seconds that punctuality is taken over: steady, and still of now
# At more than 200 runs a second these are of less than that. A hundredth of them is still 20.
MOST_RUNS = 2000


class Late(msgspec.Struct, frozen=True):
    """How late runs started lately, in seconds: half of them by at most `p50`, all but a hundredth by at most `p99`."""

    p50: float
    p99: float
    runs: int


class Punctuality:
    """How late the last runs were."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._runs: deque[tuple[float, float]] = deque(maxlen=MOST_RUNS)  # when it was counted, how late it was

    def add(self, late: float) -> None:
        """Count a run."""
        self._runs.append((self._clock.now(), late))

    def lately(self) -> Late | None:
        """How late they were; None if there were none."""
        late = sorted(late for _, late in self._recent())
        if not late:
            return None
        return Late(_quantile(late, 50), _quantile(late, 99), len(late))

    def rate(self) -> float:
        """Runs a second lately."""
        recent = self._recent()
        # If there were more than are kept, they reach back only so far.
        since = recent[0][0] if len(recent) == MOST_RUNS else self._began
        seconds = min(LATELY, self._clock.now() - since)
        return len(recent) / seconds if seconds > 0 else 0.0

    def _recent(self) -> deque[tuple[float, float]]:
        oldest = self._clock.now() - LATELY
        while self._runs and self._runs[0][0] <= oldest:
            self._runs.popleft()
        return self._runs


def _quantile(ascending: list[float], percent: int) -> float:
    """The least value that so many percent of all do not exceed."""
    return ascending[-(-percent * len(ascending) // 100) - 1]


class PollingMeasures:
    """Counts of one process. `kinds` and `tables` are those of the source."""

    def __init__(self, kinds: Iterable[str], tables: Iterable[str], clock: Clock) -> None:
        self._clock = clock
        self._kinds, self._tables = frozenset(kinds), frozenset(tables)
        # What begins at 0 is seen to rise; a series that begins with its first count is not.
        self.runs: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()
        self.misses: Counter[str] = Counter(dict.fromkeys(self._kinds, 0))
        self.promotions: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        self.discoveries: Counter[str] = Counter(ok=0, failed=0)
        self.lateness = {pace: Histogram(LATE_BUCKETS) for pace in (ACCELERATED, USUAL)}
        self.seconds: dict[str, Histogram] = {}
        self.batches = Histogram(BATCH_BUCKETS)
        self.punctuality = {pace: Punctuality(clock) for pace in (ACCELERATED, USUAL)}
        self._discovered = clock.now()

    def ran(self, kind: str, code: str, *, late: float, seconds: float, accelerated: bool) -> None:
        """Count a run that is over: how it ended, how many seconds after it was due it began, and how long it took."""
        kind, outcome, late = self._kind(kind), code_of(code), max(0.0, late)
        self.runs[kind, outcome.value] += 1
        if outcome.category is not None:
            self.errors[kind, outcome.category.value] += 1
        pace = ACCELERATED if accelerated else USUAL
        self.lateness[pace].add(late)
        self.punctuality[pace].add(late)
        if kind not in self.seconds:
            self.seconds[kind] = Histogram(RUN_BUCKETS)
        self.seconds[kind].add(max(0.0, seconds))

    def missed(self, kind: str, runs: int) -> None:
        """Count runs that should have been and were not."""
        self.misses[self._kind(kind)] += runs

    def promoted(self, why: str) -> None:
        """Count a target that was made due at once; `why` is one of REASONS."""
        self.promotions[why if why in REASONS else OTHER] += 1

    def changed(self, table: str, op: str, n: int = 1) -> None:
        """Count rows that came, changed or went."""
        if op == Op.PURGE:
            table = EVERYTHING
        elif table not in self._tables:
            table = OTHER
        self.changes[table, str(op) if op in OPS else OTHER] += n

    def discovered(self, ok: bool) -> None:  # noqa: FBT001 - the one thing there is to say of it
        """Count a look for what there is to poll."""
        self.discoveries["ok" if ok else "failed"] += 1
        if ok:
            self._discovered = self._clock.now()

    def wrote(self, targets: int) -> None:
        """Count a batch that was written back."""
        self.batches.add(targets)

    @property
    def discovery_age(self) -> float:
        """Seconds since a discovery last went well; since the start, if none has."""
        return self._clock.now() - self._discovered

    @property
    def rate(self) -> float:
        """Runs a second lately."""
        return sum(each.rate() for each in self.punctuality.values())

    @property
    def late(self) -> dict[str, Late]:
        """How late runs were lately, by pace; of a pace without runs there is nothing to say."""
        found = {pace: each.lately() for pace, each in self.punctuality.items()}
        return {pace: late for pace, late in found.items() if late is not None}

    def metrics(self) -> Iterator[Metric]:
        """All of it, for Prometheus. No label has values that strangers choose."""
        yield counter("runs", "Runs of targets, by outcome.", self.runs, "kind", "code")
        yield counter("errors", "Runs that went wrong, by category.", self.errors, "kind", "category")
        yield counter("changes", "Rows that came, changed or went.", self.changes, "table", "op")
        yield counter("missed", "Runs that should have been and were not.", self.misses, "kind")
        yield counter("promotions", "Targets that were made due at once.", self.promotions, "reason")
        yield counter("discoveries", "Looks for what there is to poll.", self.discoveries, "result")
        yield gauge("discovery_age_seconds", "Since a discovery last went well.", self.discovery_age)
        yield histogram("lateness_seconds", "From due to start.", self.lateness, "pace")
        yield histogram("run_seconds", "One run: asking, reading, storing.", self.seconds, "kind")
        yield histogram("write_batch_targets", "Targets that were written back at once.", self.batches)

    def _kind(self, kind: str) -> str:
        return kind if kind in self._kinds else OTHER
