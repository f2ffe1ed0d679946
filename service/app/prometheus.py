"""Figures in the shape that Prometheus reads."""

from collections.abc import Iterable, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from service.http.histogram import Counted

PREFIX = "alarmcast_"
# By the value of one label, or of several; or one number; or None for what is not known now.
Value = Mapping[str, float] | Mapping[tuple[str, str], float] | Mapping[tuple[str, str, str], float] | float | None


def gauge(name: str, meaning: str, value: Value, *labels: str) -> Metric:
    """Return a figure that goes up and down; one that is not known has a name and no sample."""
    return _filled(GaugeMetricFamily(PREFIX + name, meaning, labels=labels), value)


def counter(name: str, meaning: str, value: Value, *labels: str) -> Metric:
    """Return a figure that only grows until the next start."""
    return _filled(CounterMetricFamily(PREFIX + name, meaning, labels=labels), value)


def histogram(
    name: str, meaning: str, counted: Mapping[tuple[str, ...], Counted], *labels: str
) -> HistogramMetricFamily:
    """Return how many took how long, by labels."""
    family = HistogramMetricFamily(PREFIX + name, meaning, labels=labels)
    for named, one in counted.items():
        edges = [*(str(float(bound)) for bound in one.bounds), "+Inf"]
        buckets = [(edge, float(below)) for edge, below in zip(edges, one.below, strict=True)]
        family.add_metric(list(named), buckets, one.total)
    return family


def _filled(family: GaugeMetricFamily | CounterMetricFamily, value: Value) -> Metric:
    if isinstance(value, Mapping):
        for named, number in value.items():
            family.add_metric(_labels(named), float(number))
    elif value is not None:
        family.add_metric([], float(value))
    return family


def _labels(named: str | Iterable[str]) -> list[str]:
    return [named] if isinstance(named, str) else list(named)
