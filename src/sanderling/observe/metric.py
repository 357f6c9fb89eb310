"""One metric of a system as it is now: a number, or a histogram, for each combination of its labels."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeVar

import msgspec

from sanderling.observe.histogram import Histogram

L = TypeVar("L", bound=str | tuple[str, ...])  # the value of each label; that of a single one may stand alone


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number; or a histogram: how many values are up to each bound and above the last, and `value` is their sum."""

    labels: tuple[str, ...]
    value: float
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class Metric(msgspec.Struct, frozen=True):
    """Made by `counter`, `gauge` and `histogram`."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: tuple[Sample, ...]


def counter(name: str, meaning: str, value: float | Mapping[L, int] | Mapping[L, float], *labels: str) -> Metric:
    """What only grows: a number, or one for each value of the labels."""
    return Metric("counter", name, meaning, labels, tuple(_samples(value)))


def gauge(name: str, meaning: str, value: float | Mapping[L, int] | Mapping[L, float] | None, *labels: str) -> Metric:
    """What goes up and down; None where nothing is known of it."""
    return Metric("gauge", name, meaning, labels, tuple(_samples(value)))


def histogram(name: str, meaning: str, value: Histogram | Mapping[L, Histogram], *labels: str) -> Metric:
    """How values are spread, or those of each value of the labels."""
    several = value.items() if isinstance(value, Mapping) else [((), value)]
    samples = (Sample(_tuple(each), found.total, found.bounds, tuple(found.counts)) for each, found in several)
    return Metric("histogram", name, meaning, labels, tuple(samples))


def join_metrics(of_parts: Iterable[Iterable[Metric]]) -> tuple[Metric, ...]:
    """The metrics of several parts of a system as one: numbers and histograms of the same labels are added up."""
    known: dict[str, Metric] = {}
    sums: dict[str, dict[tuple[str, ...], Sample]] = {}
    for metric in (each for metrics in of_parts for each in metrics):
        known.setdefault(metric.name, metric)
        samples = sums.setdefault(metric.name, {})
        for each in metric.samples:
            before = samples.get(each.labels)
            samples[each.labels] = each if before is None else _added(before, each)
    return tuple(msgspec.structs.replace(each, samples=tuple(sums[name].values())) for name, each in known.items())


def _added(one: Sample, other: Sample) -> Sample:
    counts = tuple(map(sum, zip(one.counts, other.counts, strict=True)))
    return msgspec.structs.replace(one, value=one.value + other.value, counts=counts)


def _samples(value: float | Mapping[L, int] | Mapping[L, float] | None) -> Iterator[Sample]:
    if isinstance(value, Mapping):
        yield from (Sample(_tuple(labels), float(number)) for labels, number in value.items())
    elif value is not None:
        yield Sample((), float(value))


def _tuple(labels: str | tuple[str, ...]) -> tuple[str, ...]:
    return (labels,) if isinstance(labels, str) else labels
