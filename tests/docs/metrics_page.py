"""Build docs/reference/metrics.md from the metrics of a service on an empty store."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client.metrics_core import Metric

from service.app.service import Service
from service.app.stores import open_stores
from service.settings import Settings

_HEAD = """# Metrics

Written by `scripts/reference` from the service; a test compares the page with it.

`GET /metrics` serves the Prometheus text format. It contains figures of the whole fleet, so it needs a viewer's
key for all sites. Every process has its own `/metrics` and counts its own work. Labels are few and fixed: never
a machine, an alarm code or a path that a client sent. A value that only the database knows has no sample while
the database does not answer. Metrics of the process itself (`process_…`) are those of prometheus_client.

Alert rules are in [alerts.yml](../../deploy/prometheus/alerts.yml), dashboards in
[deploy/grafana](../../deploy/grafana), and the [runbook](../../deploy/runbook.md) explains every alert.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in sorted(_rows()))


def _rows() -> Iterator[tuple[str, ...]]:
    with TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        with open_stores(settings) as stores:
            for metric in Service(settings, stores).metrics.collect():
                yield f"`{_name(metric)}`", metric.type, _labels(metric), metric.documentation


def _name(metric: Metric) -> str:
    return metric.name + ("_total" if metric.type == "counter" else "")


def _labels(metric: Metric) -> str:
    return " ".join(f"`{label}`" for label in metric._labelnames)  # type: ignore[attr-defined]  # noqa: SLF001
