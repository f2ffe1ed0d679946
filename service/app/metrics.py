"""All metrics of the service, collected from the components at scrape time."""

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service import __version__
from service.app.health import Health
from service.errors import NoChampion, Unavailable
from service.forecasts.version import Version
from service.http.histogram import Counted
from service.learning.enrolment_service import wall_now
from service.notifications.store import DeliveryStore, WebhookStore
from wire.enums import JobState, MachineState
from wire.forecasts import ForecastStatus
from wire.rest.health import SystemStatus

if TYPE_CHECKING:
    from service.app.service import Service

T = TypeVar("T")
_PREFIX = "alarmcast_"
_QUARANTINED = "quarantined:"
# One value, or a value per label or tuple of labels; None: unknown, so the metric has no sample.
Value = Mapping[str, float] | Mapping[tuple[str, str], float] | Mapping[tuple[str, str, str], float] | float | None
_SCORES = ("average_precision", "brier_skill", "macro_f1")


@dataclass(frozen=True, eq=False)
class Metrics(Collector):
    """Collects all metrics; values from the database have no sample while it is unavailable.

    Labels are few and fixed: never a machine, an alarm code or a path that a client sent.
    """

    service: "Service"

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        health, status = self.service.health(), self.service.status.read()
        yield from self._service(health, status)
        yield from self._web()
        yield from self._ingest(health.counts, status)
        yield from self._broker(status)
        yield from self._fleet(status)
        yield from self._forecasts(health.counts)
        yield from self._learning()
        yield from self._notifications(health.counts)
        yield from self._store(health.counts, status)

    def _service(self, health: Health, status: SystemStatus) -> Iterator[Metric]:
        build = {(__version__, platform.python_version()): 1}
        yield _gauge("build_info", "Running version.", build, "version", "python")
        yield _gauge("ready", "Whether the service is ready, as reported by /readyz.", health.ready)
        components = {part: part in health.errors for part in health.parts}
        meaning = "Whether a component reports an error; /readyz gives the reason."
        yield _gauge("component_error", meaning, components, "component")
        warnings = dict.fromkeys(health.warnings, 1)
        yield _gauge("warning", "Active warnings; /v1/status gives the reasons.", warnings, "kind")
        ends = {use: (end - wall_now()).total_seconds() for use, end in self.service.certificates.ends().items()}
        yield _gauge("certificate_expiry_seconds", "Time until a certificate expires.", ends, "use")
        yield _gauge("streams_open", "Open server-sent event streams.", status.streams)
        yield _gauge("pages_open", "Pages open in browsers.", self.service.http_metrics.pages)

    def _web(self) -> Iterator[Metric]:
        answers = dict(self.service.http_metrics.answers)
        meaning = "Responses by route and status class."
        yield _counter("http_requests", meaning, answers, "method", "route", "status")
        taken: dict[tuple[str, ...], Counted] = {
            named: one.read() for named, one in list(self.service.http_metrics.seconds.items())
        }
        yield _histogram(
            "http_request_duration_seconds", "Time to the start of the response.", taken, "method", "route"
        )

    def _ingest(self, counts: Mapping[str, int], status: SystemStatus) -> Iterator[Metric]:
        stored, lags, backfilled, late = self.service.ingest.ingester.pace.totals()
        believed = lags.all + backfilled
        refused = {
            name.removeprefix(_QUARANTINED): n for name, n in counts.items() if name.startswith(_QUARANTINED)
        }
        events = {
            "stored": believed - late,
            "late": late,
            "flagged": stored - believed,
            "duplicate": counts.get("duplicate", 0),
            "transition": counts.get("transitions", 0),
            "quarantined": sum(refused.values()),
        }
        yield _counter(
            "events",
            "Events received over the broker, by result. Late events (more than an hour after they were raised) "
            "and flagged events (with an implausible time) are stored too, as are transitions: cleared and "
            "acknowledged alarms, and stops.",
            events,
            "result",
        )
        yield _counter("quarantined", "Items quarantined since the start, by reason.", refused, "reason")
        quarantine = status.quarantine
        held = {one.reason: one.items for one in quarantine.reasons} if quarantine else None
        yield _gauge("quarantine_items", "Items in the quarantine, by reason.", held, "reason")
        meaning = "Events of a backlog or an old log, raised before their agent's connection began."
        yield _counter("backfilled_events", meaning, backfilled)
        meaning = "Plant time between an alarm and its commit, for live events with a plausible time."
        yield _histogram("ingest_lag_seconds", meaning, {(): lags})
        messages = {
            "inbox_full": counts.get("rejected", 0),
            "unregistered": counts.get("unregistered", 0),
            "duplicate_agent": counts.get("states_of_another_agent", 0),
            "dropped": counts.get("dropped", 0),
        }
        yield _counter("messages_not_stored", "Messages that were not stored, by reason.", messages, "reason")
        yield _counter(
            "ingest_batch_failures", "Commits that failed with an internal error.", counts.get("failed_batches", 0)
        )
        waiting, size = self.service.ingest.ingester.waiting
        yield _gauge("inbox_messages", "Messages waiting for a commit.", waiting)
        yield _gauge("inbox_bytes", "Bytes of the messages waiting for a commit.", size)
        yield _gauge(
            "inbox_limit_bytes",
            "Limit of bytes waiting for a commit.",
            self.service.settings.ingest_inbox_mb << 20,
        )

    def _broker(self, status: SystemStatus) -> Iterator[Metric]:
        broker = status.broker
        yield _gauge("broker_connected", "Whether the service is connected to the broker.", broker.connected)
        yield _counter(
            "broker_dropped_messages", "Messages dropped by the broker since its start.", broker.dropped
        )
        yield _gauge("broker_queued_messages", "Messages in the broker's store.", broker.queued)
        yield _gauge("broker_clients", "Clients connected to the broker.", broker.clients)

    def _fleet(self, status: SystemStatus) -> Iterator[Metric]:
        agents = status.agents
        names = ("online", "stale", "offline", "never")
        statuses = {name: int(getattr(agents, name)) for name in names} if agents else None
        yield _gauge("agents", "Machines by connection status of their agent.", statuses, "status")
        most = (agents.most_spooled.spooled if agents.most_spooled else 0) if agents else None
        skew = (abs(agents.worst_skew.skew_ms) / 1000 if agents.worst_skew else 0) if agents else None
        yield _gauge("spooled_events", "Events buffered at all machines.", agents.spooled if agents else None)
        yield _gauge("spooled_events_max", "Largest number of events buffered at one machine.", most)
        yield _gauge("agent_clock_skew_seconds", "Largest clock offset of any agent.", skew)
        skipped = agents.skipped if agents else None
        yield _gauge("skipped_rows", "Source rows that agents could not parse.", skipped)
        machines = _or_none(lambda: self.service.stores.machines.all(retired=True))
        states = None if machines is None else _each(MachineState, Counter(one.state for one in machines))
        yield _gauge("machines", "Machines by learning state.", states, "state")
        yield _gauge(
            "machines_silent",
            "Machines that have sent no alarms for unusually long.",
            len(self.service.machines.silence.silent),
        )
        duplicates = self.service.ingest.ingester.twins.recent(self.service.clock.now())
        yield _gauge(
            "machines_with_duplicate_agents", "Machines with two agents that replace each other.", len(duplicates)
        )

    def _forecasts(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield _counter("forecasts_stored", "Forecasts stored on the grid.", counts["forecasts_stored"])
        yield _counter("forecasts_scored", "Forecasts that were scored.", counts["forecasts_scored"])
        machines = _or_none(self.service.stores.machines.all)
        kept = [one for machine in machines or () if (one := self.service.forecasts.cache.get(machine.id))]
        trust = Counter(one.forecast.status for one in kept)
        statuses = None if machines is None else _each(ForecastStatus, trust)
        yield _gauge("forecasts", "Newest forecasts by status.", statuses, "status")
        meaning = "Duration of one run over all machines that need a new forecast."
        yield _histogram(
            "forecast_duration_seconds", meaning, {(): self.service.forecasts.service.durations.read()}
        )

    def _learning(self) -> Iterator[Metric]:
        version = self._version()
        yield _gauge("model_info", "Active model, if any.", {version.name: 1} if version else None, "version")
        learned = len(version.learned) if version else None
        yield _gauge("model_machines", "Machines that the active model was trained on.", learned)
        figures = (_or_none(lambda: self.service.stores.exams.means(version.id)) if version else None) or {}
        for name in _SCORES:
            meaning = (
                f"Mean {name.replace('_', ' ')} of the active model over the newest holdout set of every machine."
            )
            yield _gauge(f"model_{name}", meaning, figures.get(name))
        jobs = _or_none(self.service.stores.jobs.counts)
        states = None if jobs is None else _each(JobState, jobs)
        yield _gauge("training_jobs", "Training jobs by state.", states, "state")

    def _notifications(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield _counter("notifications_opened", "Notifications opened.", counts["notifications_opened"])
        sender = self.service.notifications.sender
        attempts = {"delivered": sender.delivered, "failed": sender.failed}
        yield _counter("webhook_deliveries", "Webhook delivery attempts.", attempts, "result")
        waiting = _or_none(DeliveryStore(self.service.stores.database).backlog)
        number, age = (None, None) if waiting is None else (waiting.number, self._age(waiting.since))
        yield _gauge("webhook_deliveries_pending", "Webhook deliveries not finished yet.", number)
        yield _gauge("webhook_oldest_pending_seconds", "Age of the oldest pending webhook delivery.", age)
        webhooks = _or_none(WebhookStore(self.service.stores.database).all)
        enabled = sum(one.enabled for one in webhooks or ())
        states = None if webhooks is None else {"enabled": enabled, "disabled": len(webhooks) - enabled}
        yield _gauge("webhooks", "Webhooks by state.", states, "state")

    def _store(self, counts: Mapping[str, int], status: SystemStatus) -> Iterator[Metric]:
        size = status.database.size_bytes if status.database else None
        yield _gauge("database_size_bytes", "Disk space used by the database.", size)
        free, total = (status.disk.free_bytes, status.disk.total_bytes) if status.disk else (None, None)
        yield _gauge("disk_free_bytes", "Free space on the disk of the data folder.", free)
        yield _gauge("disk_size_bytes", "Size of the disk of the data folder.", total)
        yield _counter("events_deleted", "Events deleted by retention.", counts["events_deleted"])
        yield from self._backups()

    def _backups(self) -> Iterator[Metric]:
        backups = self.service.backups
        known, record, most = backups.applies, backups.record, backups.max_age
        at = record.made_at.timestamp() if record.made_at else 0
        meaning = "Time of the last backup, 0 if none; only for backups made by Alarmcast."
        yield _gauge("last_backup_timestamp_seconds", meaning, at if known else None)
        yield _gauge("backup_failed", "Whether the last backup failed.", record.failed if known else None)
        meaning = "Maximum backup age (setting backup_max_age_hours); 0: no limit."
        yield _gauge("backup_max_age_seconds", meaning, (most.total_seconds() if most else 0) if known else None)

    def _age(self, since: datetime | None) -> float:
        return max(0.0, (wall_now() - since).total_seconds()) if since else 0.0

    def _version(self) -> Version | None:
        try:
            return self.service.forecasts.service.champion.current().version
        except (NoChampion, Unavailable):
            return None


def _gauge(name: str, meaning: str, value: Value, *labels: str) -> Metric:
    return _with_samples(GaugeMetricFamily(_PREFIX + name, meaning, labels=labels), value)


def _counter(name: str, meaning: str, value: Value, *labels: str) -> Metric:
    return _with_samples(CounterMetricFamily(_PREFIX + name, meaning, labels=labels), value)


def _with_samples(family: GaugeMetricFamily | CounterMetricFamily, value: Value) -> Metric:
    if isinstance(value, Mapping):
        for labels, number in value.items():
            family.add_metric([labels] if isinstance(labels, str) else list(labels), float(number))
    elif value is not None:
        family.add_metric([], float(value))
    return family


def _histogram(name: str, meaning: str, counted: Mapping[tuple[str, ...], Counted], *labels: str) -> Metric:
    family = HistogramMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, one in counted.items():
        bounds = [*(str(float(bound)) for bound in one.bounds), "+Inf"]
        family.add_metric(list(values), list(zip(bounds, map(float, one.below), strict=True)), one.total)
    return family


def _or_none(read: Callable[[], T]) -> T | None:
    """Return what the database says, or None while it is unavailable."""
    try:
        return read()
    except Unavailable:
        return None


def _each(words: type[T], counts: Mapping[T, int]) -> dict[str, int]:
    """Return a count for every member of an enum, so that all series exist from the start."""
    return {str(word): counts.get(word, 0) for word in words}  # type: ignore[attr-defined]  # an enum's class
