"""The metrics, read when Prometheus asks, so that the road itself pays nothing for being watched.

Those of a crawl of repos are in `metrics_repos`, of ids in `metrics_sequence`, of polling in
`metrics_polling`, of events in `metrics_events`.

Terms. A *snapshot* is what the limiter says of itself at one moment. A *scrape* is Prometheus asking for it over HTTP.

Tricky bits. Scrapes are answered in threads of their own, and a limiter belongs to the thread of its event loop: use
`on_loop` between the two. Only the busiest hosts have series of their own: a label with a value for every host would
cost Prometheus memory for each name a stranger ever put into a directory.
"""

import asyncio
import errno
import math
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from itertools import accumulate
from socketserver import TCPServer
from typing import Protocol, TypeVar

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from sanderling.observe import logs

# 13 series each: 260 for a limiter, however many hosts it crawls.
TOP_HOSTS = 20
STATES = ("closed", "open", "half-open")

LOOPBACK = "127.0.0.1"
OWN = "expected one of this machine's own, such as 127.0.0.1, or 0.0.0.0 for all of them"

log = logs.get(__name__)


class HostLike(Protocol):
    """What the limiter says of one host. Rates are permits a second, times are seconds."""

    @property
    def host(self) -> str:
        """Its one spelling."""

    @property
    def rate(self) -> float:
        """How fast it may be called now."""

    @property
    def ceiling(self) -> float | None:
        """The fastest it may ever be called, if anything is known of that."""

    @property
    def tokens(self) -> float:
        """Permits it has in hand; below 0 if some are promised."""

    @property
    def latency(self) -> float | None:
        """How long its answers take on average, once there was one."""

    @property
    def p95(self) -> float | None:
        """How long all but the slowest twentieth of its answers take."""

    @property
    def error_rate(self) -> float:
        """How many of its recent answers were errors, from 0 to 1."""

    @property
    def state(self) -> str:
        """Its circuit: closed, open or half-open."""

    @property
    def failures(self) -> int:
        """Failures in a row."""

    @property
    def not_before(self) -> float:
        """In how many seconds it may be called at all; 0 if now."""

    @property
    def inflight(self) -> int:
        """Requests that are under way."""

    @property
    def waiting(self) -> int:
        """Callers that wait for a permit."""


class SnapshotLike(Protocol):
    """What the limiter says of itself. Counts are since it was made."""

    @property
    def requests(self) -> int:
        """Permits given."""

    @property
    def throttled(self) -> int:
        """Those of them that had to wait."""

    @property
    def denied(self) -> int:
        """Callers turned away by an open circuit."""

    @property
    def retries(self) -> int:
        """Attempts after the first."""

    @property
    def rejected(self) -> int:
        """Answers that refused: 429, 503 and the like."""

    @property
    def hosts(self) -> int:
        """Hosts it keeps in mind."""

    @property
    def open(self) -> int:
        """Those of them with an open circuit."""

    @property
    def half_open(self) -> int:
        """Those of them with a half-open circuit."""

    @property
    def waits(self) -> Sequence[tuple[float, int]]:
        """How long permits were waited for: (at most this many seconds, how many of them), ascending, up to inf."""

    @property
    def waited(self) -> float:
        """Seconds waited for permits, altogether."""

    @property
    def top(self) -> Sequence[HostLike]:
        """The busiest hosts, busiest first."""


class PagesLike(Protocol):
    """How a crawl of pages stands."""

    @property
    def counts(self) -> Mapping[str, int]:
        """URLs that are decided, by their end."""

    @property
    def waiting(self) -> int:
        """URLs that are not."""

    @property
    def inflight(self) -> int:
        """Requests that are under way."""

    @property
    def bytes(self) -> int:
        """Of bodies, unpacked, in this run."""


Take = Callable[[], SnapshotLike]
TakePages = Callable[[], PagesLike]
T = TypeVar("T")
Samples = Iterable[tuple[Sequence[str], float]]


@dataclass(frozen=True, slots=True)
class _Series:
    """One metric: its name, what it means, its labels, and how to read it off a snapshot."""

    name: str
    meaning: str
    labels: Sequence[str]
    read: Callable[[SnapshotLike], Samples]


def _count(name: str, meaning: str, read: Callable[[SnapshotLike], int]) -> _Series:
    return _Series(f"sanderling_limiter_{name}", meaning, (), lambda snapshot: [((), read(snapshot))])


def _per_host(name: str, meaning: str, read: Callable[[HostLike], float | None]) -> _Series:
    def samples(snapshot: SnapshotLike) -> Samples:
        values = ((host.host, read(host)) for host in snapshot.top[:TOP_HOSTS])
        return [((host,), value) for host, value in values if value is not None]

    return _Series(f"sanderling_limiter_host_{name}", meaning, ("host",), samples)


def _circuits(snapshot: SnapshotLike) -> Samples:
    closed = snapshot.hosts - snapshot.open - snapshot.half_open
    return [((state,), count) for state, count in zip(STATES, (closed, snapshot.open, snapshot.half_open), strict=True)]


def _host_circuits(snapshot: SnapshotLike) -> Samples:
    hosts = snapshot.top[:TOP_HOSTS]
    return [((host.host, state), float(host.state == state)) for host in hosts for state in STATES]


COUNTERS = (
    _count("permits", "Permits given to call a host.", lambda seen: seen.requests),
    _count("throttled", "Permits that had to be waited for.", lambda seen: seen.throttled),
    _count("denied", "Callers turned away by an open circuit.", lambda seen: seen.denied),
    _count("rejected", "Answers that refused: 429, 503 and the like.", lambda seen: seen.rejected),
    _count("retries", "Attempts after the first.", lambda seen: seen.retries),
)
GAUGES = (
    _count("hosts", "Hosts the limiter keeps in mind.", lambda seen: seen.hosts),
    _Series("sanderling_limiter_circuits", "Hosts by the state of their circuit.", ("state",), _circuits),
    _per_host("rate", "Permits a second the host gets now.", lambda host: host.rate),
    _per_host("ceiling", "Permits a second the host gets at most, if known.", lambda host: host.ceiling),
    _per_host("tokens", "Permits in hand; below 0 if some are promised.", lambda host: host.tokens),
    _per_host("latency_seconds", "Mean latency of recent answers.", lambda host: host.latency),
    _per_host("latency_p95_seconds", "95th percentile of recent latencies.", lambda host: host.p95),
    _per_host("error_ratio", "Errors among recent answers, from 0 to 1.", lambda host: host.error_rate),
    _per_host("failures", "Failures in a row.", lambda host: host.failures),
    _per_host("not_before_seconds", "Seconds until the host may be called at all.", lambda host: host.not_before),
    _per_host("inflight", "Requests under way.", lambda host: host.inflight),
    _per_host("waiting", "Callers waiting for a permit.", lambda host: host.waiting),
    _Series("sanderling_limiter_host_circuit", "1 for the circuit's state.", ("host", "state"), _host_circuits),
)
WAITS = "sanderling_limiter_wait_seconds"


class LimiterMetrics:
    """Shows Prometheus what `take` returns at each scrape."""

    def __init__(self, registry: CollectorRegistry, take: Take) -> None:
        self._take = take
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which the registry knows if a name is taken."""
        yield from (CounterMetricFamily(series.name, series.meaning) for series in COUNTERS)
        yield from (GaugeMetricFamily(series.name, series.meaning) for series in GAUGES)
        yield _waits()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; one snapshot for all, so that they agree with each other."""
        snapshot = self._take()
        for series in COUNTERS:
            yield _filled(CounterMetricFamily(series.name, series.meaning, labels=series.labels), series, snapshot)
        for series in GAUGES:
            yield _filled(GaugeMetricFamily(series.name, series.meaning, labels=series.labels), series, snapshot)
        waits = _waits()
        waits.add_metric((), cumulative(snapshot.waits), snapshot.waited)
        yield waits


class PagesMetrics:
    """Shows Prometheus how a crawl of pages stands at each scrape."""

    def __init__(self, registry: CollectorRegistry, take: TakePages) -> None:
        self._take = take
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which the registry knows if a name is taken."""
        yield from (family for family, _ in _pages(None))

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        for family, samples in _pages(self._take()):
            for labels, value in samples:
                family.add_metric(labels, value)
            yield family


def _pages(seen: PagesLike | None) -> Iterator[tuple[CounterMetricFamily | GaugeMetricFamily, Samples]]:
    """Each metric of a crawl of pages, and what there is to say of it."""
    name = "sanderling_pages_{}".format
    ends = CounterMetricFamily(name("urls"), "URLs that are decided, by their end.", labels=("end",))
    yield ends, () if seen is None else [((end,), number) for end, number in seen.counts.items()]
    read = CounterMetricFamily(name("bytes"), "Bytes of bodies, once unpacked.")
    yield read, () if seen is None else [((), seen.bytes)]
    waiting = GaugeMetricFamily(name("waiting"), "URLs that are not decided yet.")
    yield waiting, () if seen is None else [((), seen.waiting)]
    inflight = GaugeMetricFamily(name("inflight"), "Requests under way.")
    yield inflight, () if seen is None else [((), seen.inflight)]


def _filled(family: CounterMetricFamily | GaugeMetricFamily, series: _Series, snapshot: SnapshotLike) -> Metric:
    for labels, value in series.read(snapshot):
        family.add_metric(labels, value)
    return family


def _waits() -> HistogramMetricFamily:
    return HistogramMetricFamily(WAITS, "How long permits were waited for.")


def cumulative(waits: Sequence[tuple[float, int]]) -> list[tuple[str, float]]:
    """The buckets as Prometheus wants them: each counts all that are below its bound."""
    bounds = ["+Inf" if math.isinf(bound) else str(bound) for bound, _ in waits]
    return list(zip(bounds, accumulate(count for _, count in waits), strict=True))


def on_loop(loop: asyncio.AbstractEventLoop, take: Callable[[], T], patience: float = 5.0) -> Callable[[], T]:
    """`take` for other threads: it is run by the event loop, which must come round to it within `patience` seconds."""

    async def taken() -> T:
        return take()

    return lambda: asyncio.run_coroutine_threadsafe(taken(), loop).result(patience)


class PortError(OSError):
    """Metrics cannot be served on the port that was asked for; the message says what to do."""


class BindError(OSError):
    """The address that metrics were to be served on is none of this machine's; the message says what to do."""


class _Scrape(MetricsHandler):
    # A scraper that connects and says nothing must not keep us from closing.
    timeout = 2


class Exposition(ThreadingHTTPServer):
    """Answers scrapes until it is closed; made by `serve`."""

    # Scrapes under way are waited for when closing; as daemons they would outlive what they look at.
    daemon_threads = False
    # Some Python versions share the port by default: two crawlers would answer scrapes in turn.
    allow_reuse_port = False

    def __init__(self, registry: CollectorRegistry, address: tuple[str, int], family: socket.AddressFamily) -> None:
        self.address_family = family
        super().__init__(address, _Scrape.factory(registry))
        # 0.1 s is how long closing takes at most when nobody scrapes; an idle thread wakes as often.
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="metrics", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Take the address. HTTPServer would also ask a name server for our name, and may wait long for it."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where Prometheus finds it."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/metrics"

    def close(self) -> None:
        """Stop, and return when no thread is left. Call it from outside the event loop, on which scrapes may wait."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a scrape that failed, where the library would print it."""
        del request, client_address
        log.warning("scrape_failed", exc_info=sys.exc_info()[1])


def serve(registry: CollectorRegistry, port: int, bind: str = LOOPBACK) -> Exposition:
    """Answer scrapes on that port of that address until closed; 0 takes any free port. Raises PortError, BindError."""
    try:
        (family, *_, address), *_ = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return Exposition(registry, (str(address[0]), port), family)
    except (socket.gaierror, UnicodeError) as error:
        raise BindError(f"{bind[:100]!r} is no address ({error}); {OWN}") from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise BindError(f"{bind} is no address of this machine; {OWN}") from None
        hint = "free it, or choose another (0 takes any that is free)"
        raise PortError(f"port {port} of {bind}: {error.strerror}; {hint}") from None
