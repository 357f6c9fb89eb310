"""What a crawl of repos counts on its way, for whoever looks. Nothing here decides anything."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from sanderling.clock import Clock
from sanderling.fetch.attempts import EXPECTED, Sends
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, histogram
from sanderling.repos.packing import Packed
from sanderling.task import Reply, Task

# Bounds from what repos are like: most have under a hundred records and come within a second, a few have half a
# million and take a minute.
SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
RECORDS = (0, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 500_000)
COLLECTIONS = (0, 1, 2, 5, 10, 20, 50)
BYTES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
LATENCY = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
ARCHIVED, SUCCESS = "archived", "success"  # how repos end that are, and the name that dashboards know it by
DIDS = (0, 100, 500, 1_000, 5_000, 10_000, 25_000, 50_000)


@dataclass(slots=True)
class RepoMeasures:
    """Of one run."""

    pages: int = 0  # of the directory
    dispatched: int = 0
    blocked: int = 0  # times that a host was set aside
    records: Histogram = field(default_factory=lambda: Histogram(RECORDS))
    collections: Histogram = field(default_factory=lambda: Histogram(COLLECTIONS))
    sizes: Histogram = field(default_factory=lambda: Histogram(BYTES))
    page_dids: Histogram = field(default_factory=lambda: Histogram(DIDS))

    def archived(self, packed: Packed) -> None:
        """Count a repo that was archived."""
        self.records.add(packed.stats.records)
        self.collections.add(packed.collections)
        self.sizes.add(len(packed.block))

    def metrics(self, ended: Mapping[str, int], exchanges: "Exchanges", durations: Histogram) -> Iterator[Metric]:
        """What was counted, here and by those who ask, for Prometheus."""
        results = {SUCCESS if end == ARCHIVED else end: number for end, number in ended.items()}
        yield counter("repos_processed", "Repos that were seen to, by what came of them.", results, "result")
        statuses = exchanges.statuses
        yield counter("http_requests", "HTTP requests, by the answer's status.", statuses, "status_code")
        yield counter("dids_processed", "DIDs that were seen to.", sum(ended.values()))
        yield counter("pages_fetched", "Pages read from the directory.", self.pages)
        yield counter("dispatched", "DIDs that were asked for.", self.dispatched)
        yield counter("pds_blocked", "Hosts that were blocked.", self.blocked)
        yield histogram("repo_duration_seconds", "Fetching and reading of a repo.", durations)
        yield histogram("repo_records", "Records of a repo.", self.records)
        yield histogram("repo_collections", "Collections of a repo.", self.collections)
        yield histogram("repo_compressed_bytes", "Bytes of a repo in its segment.", self.sizes)
        yield histogram("http_request_duration_seconds", "One exchange, its body included.", exchanges.latencies)
        yield histogram("page_dids", "DIDs of a page that were not complete.", self.page_dids)


class Exchanges:
    """A client that counts what it sends. `statuses` has "none" for what got no answer."""

    def __init__(self, http: Sends, clock: Clock) -> None:
        self.statuses: Counter[str] = Counter()
        self.urls: dict[Hashable, str] = {}  # where the answer for an item is read from now, redirects followed
        self.latencies = Histogram(LATENCY)
        self.bytes = 0  # of bodies, unpacked
        self._http = http
        self._clock = clock

    async def send(self, task: Task) -> Reply:
        """The reply. Raises what the client raises."""
        started, item = self._clock.now(), None if task.blame is None else task.blame.item
        self.urls[item] = task.url
        try:
            reply = await self._http.send(task)
        except EXPECTED:
            self.statuses["none"] += 1
            raise
        finally:
            self.urls.pop(item, None)
            self.latencies.add(self._clock.now() - started)
        self.statuses[str(reply.status)] += 1
        self.bytes += len(reply.body)
        return reply
