"""Metrics for Prometheus: one for each fact of the report, and the hosts that matter most."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from sanderling.files import Exit, FolderError
from sanderling.observe.report import Fact, Kind, Report

_UNITS = {Kind.SECONDS: "_seconds", Kind.BYTES: "_bytes"}


def metric_name(system: str, fact: Fact) -> str:
    """The name of a fact's metric, without the `_total` that a count's gets."""
    unit = _UNITS.get(fact.kind, "")
    return fact.metric or f"sanderling_{system}_{fact.name.removesuffix(unit)}{unit}"


class ReportCollector:
    """Gives Prometheus the last report, whenever it is asked for it."""

    def __init__(self, last_report: Callable[[], Report]) -> None:
        self._last_report = last_report

    def collect(self) -> Iterator[Metric]:
        """One family for each fact that has a number."""
        report = self._last_report()
        for fact in report.facts:
            if isinstance(fact.value, str) or fact.value is None:
                continue
            name = metric_name(report.system, fact)
            kind = CounterMetricFamily if fact.kind is Kind.COUNT else GaugeMetricFamily
            if fact.kind is Kind.HISTOGRAM and isinstance(fact.value, Mapping):
                *buckets, (_, whole) = fact.value.items()
                yield HistogramMetricFamily(name, fact.help, buckets=buckets, sum_value=whole)
                continue
            if isinstance(fact.value, Mapping):
                labels = (fact.by or "name").split(",")
                family = kind(name, fact.help, labels=labels)
                for label, value in fact.value.items():
                    family.add_metric(label.split(",", len(labels) - 1), value)
            else:
                family = kind(name, fact.help, value=fact.value)
            yield family
        yield from _hosts(report)
        yield GaugeMetricFamily("sanderling_report_time_seconds", "When the report was made.", value=report.wall)
        yield GaugeMetricFamily("sanderling_troubles", "What is wrong now.", value=len(report.troubles))


def _hosts(report: Report) -> Iterator[Metric]:
    figures = (
        ("rate", "Requests a second sent lately.", [each.rate for each in report.hosts]),
        ("allowed_rate", "Requests a second allowed.", [each.allowed for each in report.hosts]),
        ("waiting", "Items that wait.", [each.waiting for each in report.hosts]),
        ("latency_seconds", "Latency of most responses.", [each.latency for each in report.hosts]),
    )
    for name, help_, values in figures:
        family = GaugeMetricFamily(f"sanderling_host_{name}", help_, labels=["host"])
        for host, value in zip(report.hosts, values, strict=True):
            if value is not None:
                family.add_metric([host.host], value)
        yield family


@contextmanager
def serve_metrics(last_report: Callable[[], Report], bind: str, port: int) -> Iterator[None]:
    """Serve metrics at http://BIND:PORT/metrics, in a thread of their own."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ReportCollector(last_report))
    try:
        server, thread = start_http_server(port, bind, registry)
    except OSError as error:
        raise FolderError(
            f"cannot serve metrics at {bind}:{port}: {error.strerror or error}",
            "choose another --metrics-port or --metrics-bind",
            Exit.WRONG,
        ) from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
