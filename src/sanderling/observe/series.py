"""Metrics as tables: what each is called, what it means, and how it is read off what a system says of itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics import cumulative

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]
Filled = Iterable[tuple[Labels, list[tuple[float, int]], float]]  # labels, buckets (not cumulated) and sum
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Series(Generic[R]):
    """One counter or gauge: its name, what it means, its labels, and how to read it."""

    name: str
    meaning: str
    labels: Labels
    read: Callable[[R], Samples]


@dataclass(frozen=True, slots=True)
class Spread(Generic[R]):
    """One histogram, likewise."""

    name: str
    meaning: str
    labels: Labels
    read: Callable[[R], Filled]


def one(name: str, meaning: str, read: Callable[[R], float | None]) -> Series[R]:
    """A number; None where there is nothing to say yet."""

    def samples(seen: R) -> Samples:
        value = read(seen)
        return [] if value is None else [((), value)]

    return Series(name, meaning, (), samples)


def by(label: str, name: str, meaning: str, read: Callable[[R], Mapping[str, int]]) -> Series[R]:
    """A number for each value of a label."""
    return Series(name, meaning, (label,), lambda seen: (((value,), n) for value, n in read(seen).items()))


def spread(name: str, meaning: str, read: Callable[[R], Histogram]) -> Spread[R]:
    """A histogram."""
    return Spread(name, meaning, (), lambda seen: filled({(): read(seen)}))


def spread_by(label: str, name: str, meaning: str, read: Callable[[R], Mapping[str, Histogram]]) -> Spread[R]:
    """A histogram for each value of a label."""
    return Spread(
        name, meaning, (label,), lambda seen: filled({(value,): found for value, found in read(seen).items()})
    )


def filled(histograms: Mapping[Labels, Histogram]) -> Filled:
    """These histograms by their labels."""
    return ((labels, found.buckets, found.total) for labels, found in histograms.items())


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """The metrics of one system. Their names begin with `prefix`."""

    prefix: str
    counters: tuple[Series[R], ...] = ()
    gauges: tuple[Series[R], ...] = ()
    spreads: tuple[Spread[R], ...] = ()

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which a registry knows if a name is taken."""
        yield from (CounterMetricFamily(self.prefix + each.name, each.meaning) for each in self.counters)
        yield from (GaugeMetricFamily(self.prefix + each.name, each.meaning) for each in self.gauges)
        yield from (HistogramMetricFamily(self.prefix + each.name, each.meaning) for each in self.spreads)

    def collect(self, seen: R) -> Iterator[Metric]:
        """The metrics with the values they have in `seen`."""
        for kind, several in ((CounterMetricFamily, self.counters), (GaugeMetricFamily, self.gauges)):
            for series in several:
                family = kind(self.prefix + series.name, series.meaning, labels=series.labels)
                for labels, value in series.read(seen):
                    family.add_metric(labels, value)
                yield family
        for each in self.spreads:
            histogram = HistogramMetricFamily(self.prefix + each.name, each.meaning, labels=each.labels)
            for labels, buckets, total in each.read(seen):
                histogram.add_metric(labels, cumulative(buckets), total)
            yield histogram


class Shown(Generic[R]):
    """Shows Prometheus a system at each scrape. A subclass says by which table."""

    table: Table[R]

    def __init__(self, registry: CollectorRegistry, take: Callable[[], R]) -> None:
        self._take = take
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which the registry knows if a name is taken."""
        return self.table.describe()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; one reading for all, so that they agree with each other."""
        return self.table.collect(self._take())
