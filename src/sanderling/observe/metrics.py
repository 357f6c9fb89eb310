"""The metrics, read when Prometheus asks, so that the road itself pays nothing for being watched.

Tricky bits. Scrapes are answered in threads of their own, and a system belongs to the thread of its event loop: use
`on_loop` between the two.
"""

import asyncio
import errno
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import ThreadingHTTPServer
from itertools import accumulate
from socketserver import TCPServer
from typing import TypeVar

import msgspec
from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

from sanderling.observe import logs
from sanderling.observe.metric import Metric, counter, gauge
from sanderling.observe.report import AnyReport, Severity

LOOPBACK = "127.0.0.1"
OWN = "expected one of this machine's own, such as 127.0.0.1, or 0.0.0.0 for all of them"
# Dashboards of such crawls and services know their metrics by these names; all others are `sanderling_SYSTEM_…`.
PREFIXES = {"jobs": "sanderling_job_", "repos": "crawler_", "events": "analytics_"}

T = TypeVar("T")

log = logs.get(__name__)


class Metrics:
    """Shows Prometheus what `take` returns at each scrape; one reading for all, so that they agree with each other."""

    def __init__(self, registry: CollectorRegistry, take: Callable[[], Iterable[Metric]]) -> None:
        self._take = take
        registry.register(self)

    def collect(self) -> Iterator[Family]:
        """The metrics as they are now."""
        return map(_family, self._take())


def report_metrics(report: AnyReport) -> Iterator[Metric]:
    """All that a report has for Prometheus: what every system counts, by system, and its own metrics."""
    work, process = report.work, report.process
    wrong = {each.value: sum(trouble.severity is each for trouble in report.troubles) for each in Severity}
    common = (
        counter("asked", "Requests sent, or messages taken.", work.asked),
        counter("refused", "Those that were not accepted.", work.refused),
        counter("kept", "Items stored.", work.kept),
        counter("failed", "Items given up.", work.failed),
        gauge("waiting", "Items that wait.", work.waiting),
        gauge("set_aside", "Of these, those of hosts that do not answer.", report.set_aside),
        gauge("hosts", "Hosts that are known.", report.hosts_known),
        gauge("paused", "1 while it is paused.", process.paused),
        gauge("time_left_seconds", "Until all is done.", report.time_left),
        gauge("troubles", "What is wrong, by how bad it is.", wrong, "severity"),
    )
    yield from (_of_system(each, report.system) for each in common)
    prefix = PREFIXES.get(report.system, f"sanderling_{report.system}_")
    yield from (prefixed(each, prefix) for each in report.metrics)


def _of_system(metric: Metric, system: str) -> Metric:
    samples = tuple(msgspec.structs.replace(each, labels=(system, *each.labels)) for each in metric.samples)
    name, labels = f"sanderling_{metric.name}", ("system", *metric.labels)
    return msgspec.structs.replace(metric, name=name, labels=labels, samples=samples)


def prefixed(metric: Metric, prefix: str) -> Metric:
    """The same under its whole name."""
    return msgspec.structs.replace(metric, name=prefix + metric.name)


def _family(metric: Metric) -> Family:
    if metric.kind == "histogram":
        spread = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        for each in metric.samples:
            # Each bucket counts all that are below its bound.
            spread.add_metric(
                each.labels,
                list(zip((*map(str, each.bounds), "+Inf"), accumulate(each.counts), strict=True)),
                each.value,
            )
        return spread
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=metric.labels)
    for each in metric.samples:
        family.add_metric(each.labels, each.value)
    return family


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
