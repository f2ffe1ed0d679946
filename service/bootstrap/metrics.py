"""Every metric of the service, in one place: read from the parts when somebody asks, so that no part is slowed."""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service import __version__
from service.bootstrap.condition import told
from service.bootstrap.stores import Stores
from service.broker.ingester import Ingester
from service.core.health import Health
from service.core.histogram import Counted
from service.core.pace import LATE
from service.errors import NoChampion, Unavailable
from service.flows.champion import Champion
from service.flows.forecast import ForecastDesk
from service.flows.newest import NewestForecasts
from service.flows.silence import SilenceWatch
from service.settings import Settings
from service.store.backup import last_backup
from service.store.deliveries import DeliveryStore
from service.store.webhooks import WebhookStore
from service.web.observed import Traffic
from wire.clock import PlantClock
from wire.forecasts import ForecastStatus
from wire.rest.health import Condition
from wire.words import JobState, MachineState

_REFUSED = "quarantined:"
Labelled = Mapping[str, float] | Mapping[tuple[str, str, str], float]  # by the value of one label, or of several


@dataclass(frozen=True, eq=False)
class Metrics(Collector):
    """Asks the parts; what only the database knows is left out while that does not answer.

    Labels are few and known beforehand: never a machine, never an alarm code, never a path that somebody typed.
    """

    settings: Settings
    stores: Stores
    clock: PlantClock
    wall: Callable[[], datetime]
    health: Callable[[], Health]
    condition: Callable[[], Condition]
    ingester: Ingester
    desk: ForecastDesk
    newest: NewestForecasts
    champion: Champion
    silence: SilenceWatch
    traffic: Traffic
    attempts: Callable[[], Mapping[str, int]]  # to deliver notices, by what came of them

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        health, condition = self.health(), self.condition()
        yield from self._service(health, condition)
        yield from self._web()
        yield from self._ingest(health.counts, condition)
        yield from self._broker(condition)
        yield from self._fleet(condition)
        yield from self._forecasts(health.counts)
        yield from self._model()
        yield from self._learning()
        yield from self._notices(health.counts)
        yield from self._store(health.counts, condition)

    def _service(self, health: Health, condition: Condition) -> Iterator[Metric]:
        build = GaugeMetricFamily("alarmcast_build_info", "Which version runs.", labels=["version", "python"])
        build.add_metric([__version__, platform.python_version()], 1)
        yield build
        yield _gauge("ready", "Whether events can be taken and forecasts given, as /readyz says.", health.ready)
        parts = {part: float(part in health.troubles) for part in health.parts}
        yield _gauge("trouble", "Whether a part is not well; /readyz says why.", parts, "part")
        warnings = dict.fromkeys(health.warnings, 1.0)
        yield _gauge("warning", "What works and is worth a look; /v1/status says why.", warnings, "about")
        yield _gauge("streams_open", "Streams of events that are open.", condition.streams)
        yield _gauge("pages_open", "Pages that are open in browsers.", self.traffic.pages)

    def _web(self) -> Iterator[Metric]:
        answers = dict(self.traffic.answers)
        labels = ("method", "route", "status")
        yield _counter("http_requests", "Answers to requests, by route and class of status.", answers, *labels)
        family = HistogramMetricFamily(
            "alarmcast_http_request_duration_seconds", "Until an answer began.", labels=["method", "route"]
        )
        for named, histogram in list(self.traffic.seconds.items()):
            _add(family, named, histogram.read())
        yield family

    def _ingest(self, counts: Mapping[str, int], condition: Condition) -> Iterator[Metric]:
        stored, lags = self.ingester.pace.totals()
        refused = {name.removeprefix(_REFUSED): n for name, n in counts.items() if name.startswith(_REFUSED)}
        late = lags.beyond(LATE)
        events = {
            "stored": lags.all - late,
            "late": late,
            "flagged": stored - lags.all,
            "duplicate": counts.get("duplicate", 0),
            "quarantined": sum(refused.values()),
        }
        yield _counter(
            "events",
            "Events that came over the broker, by what became of them. Late ones, more than an hour after they "
            "were raised, and flagged ones, whose time is not believed, are stored too.",
            events,
            "result",
        )
        yield _counter("quarantined", "What was refused since the start, by reason.", refused, "reason")
        held = {one.reason: one.items for one in condition.quarantine.reasons} if condition.quarantine else None
        yield from _known("quarantine_items", "What the quarantine holds, by reason.", held, "reason")
        family = HistogramMetricFamily(
            "alarmcast_event_lag_seconds", "Plant time between an alarm and its commit, of believed events."
        )
        _add(family, (), lags)
        yield family
        messages = {
            "sent_back": counts.get("sent_back", 0),
            "unregistered": counts.get("unregistered", 0),
            "another_agent": counts.get("states_of_another_agent", 0),
            "dropped": counts.get("dropped", 0),
        }
        yield _counter("messages_set_aside", "Messages of which nothing was stored, and why.", messages, "why")
        yield _counter("failed_batches", "Commits that met a defect.", counts.get("failed_batches", 0))
        waiting, size = self.ingester.waiting
        yield _gauge("inbox_messages", "Messages that wait for a commit.", waiting)
        yield _gauge("inbox_bytes", "Bytes of the messages that wait for a commit.", size)
        yield _gauge("inbox_limit_bytes", "Bytes that may wait.", self.settings.ingest_inbox_mb << 20)

    def _broker(self, condition: Condition) -> Iterator[Metric]:
        broker = condition.broker
        yield _gauge("broker_connected", "Whether the broker lets us listen.", broker.connected)
        if broker.dropped is not None:
            yield _counter(
                "broker_dropped_messages", "Messages the broker dropped since its start.", broker.dropped
            )
        yield from _known("broker_queued_messages", "Messages in the broker's store.", broker.queued)
        yield from _known("broker_clients", "Who is connected to the broker.", broker.clients)

    def _fleet(self, condition: Condition) -> Iterator[Metric]:
        agents = condition.agents
        if agents is not None:
            presence = {word: getattr(agents, word) for word in ("online", "stale", "offline", "never")}
            yield _gauge("agents", "Machines by how their agent is heard.", presence, "presence")
            yield _gauge("spooled_events", "Events that wait at all machines.", agents.spooled)
            most = agents.most_spooled.spooled if agents.most_spooled else 0
            yield _gauge("spooled_events_most", "Events that wait at the machine where most do.", most)
            skew = abs(agents.worst_skew.skew_ms) / 1000 if agents.worst_skew else 0
            yield _gauge("agent_skew_seconds", "How far the clock of the agent is off that is off most.", skew)
        machines = told(lambda: self.stores.machines.all(retired=True))
        if machines is not None:
            states = Counter(dict.fromkeys(MachineState, 0))
            states.update(one.state for one in machines)
            yield _gauge("machines", "Machines by how far they are with learning.", _words(states), "state")
        yield _gauge("machines_silent", "Machines that are silent against their rhythm.", len(self.silence.found))
        twins = self.ingester.twins.seen(self.clock.now())
        yield _gauge("machines_contested", "Machines as which two agents speak in turns.", len(twins))

    def _forecasts(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield _counter("forecasts_stored", "Forecasts stored on the grid.", counts["forecasts_stored"])
        yield _counter("forecasts_scored", "Forecasts whose outcome was found.", counts["forecasts_scored"])
        machines = told(self.stores.machines.all)
        if machines is not None:
            kept = [self.newest.kept(machine.id) for machine in machines]
            statuses = Counter(dict.fromkeys(ForecastStatus, 0))
            statuses.update(one.forecast.status for one in kept if one)
            yield _gauge("forecasts", "Newest forecasts by how far to trust them.", _words(statuses), "status")
        family = HistogramMetricFamily(
            "alarmcast_forecast_duration_seconds",
            "One pass that makes the forecasts of all machines that want one.",
        )
        _add(family, (), self.desk.durations.read())
        yield family

    def _model(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("alarmcast_model_info", "Which model serves, if any.", labels=["version"])
        try:
            version = self.champion.current().version
            figures = self.stores.exams.means(version.number)
        except (NoChampion, Unavailable):
            yield info
            return
        info.add_metric([version.name], 1)
        yield info
        yield _gauge("model_machines", "Machines that the model has learned.", len(version.learned))
        for name, value in figures.items():
            meaning = name.replace("_", " ")
            yield _gauge(f"model_{name}", f"The model's mean {meaning} over every machine's newest exam.", value)

    def _learning(self) -> Iterator[Metric]:
        counts = told(self.stores.jobs.counts)
        if counts is not None:
            jobs = {state: counts.get(state, 0) for state in JobState}
            yield _gauge("jobs", "Learnings by how far they are or how they ended.", _words(jobs), "state")

    def _notices(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield _counter("notices_opened", "Notices that were opened.", counts["notices_opened"])
        yield _counter("deliveries", "Attempts to deliver a notice.", self.attempts(), "result")
        waiting = told(DeliveryStore(self.stores.database).waiting)
        if waiting is not None:
            yield _gauge("deliveries_waiting", "Deliveries that are still to be made.", waiting.number)
            age = max(0.0, (self.wall() - waiting.since).total_seconds()) if waiting.since else 0.0
            yield _gauge("deliveries_oldest_seconds", "How long the oldest of them has waited.", age)
        webhooks = told(WebhookStore(self.stores.database).all)
        if webhooks is not None:
            enabled = sum(one.enabled for one in webhooks)
            states = {"enabled": enabled, "disabled": len(webhooks) - enabled}
            yield _gauge("webhooks", "Who is told of notices over HTTP.", states, "state")

    def _store(self, counts: Mapping[str, int], condition: Condition) -> Iterator[Metric]:
        if condition.database:
            yield _gauge("database_size_bytes", "What the database takes.", condition.database.size_bytes)
        if condition.disk:
            yield _gauge("disk_free_bytes", "Room on the disk of the data folder.", condition.disk.free_bytes)
            yield _gauge("disk_size_bytes", "Size of the disk of the data folder.", condition.disk.total_bytes)
        yield _counter("events_forgotten", "Events let go by retention.", counts["events_forgotten"])
        if self.stores.database.is_sqlite:
            made = last_backup(self.settings.data_dir)
            meaning = "When the last backup was made; 0 if never."
            yield _gauge("last_backup_timestamp_seconds", meaning, made.timestamp() if made else 0)


def _gauge(name: str, meaning: str, value: Labelled | float, *labels: str) -> Metric:
    return _family(GaugeMetricFamily, name, meaning, value, labels)


def _counter(name: str, meaning: str, value: Labelled | float, *labels: str) -> Metric:
    return _family(CounterMetricFamily, name, meaning, value, labels)


def _known(name: str, meaning: str, value: Labelled | float | None, *labels: str) -> Iterator[Metric]:
    """Yield a gauge of what is known, or nothing."""
    if value is not None:
        yield _gauge(name, meaning, value, *labels)


def _family(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    name: str,
    meaning: str,
    value: Labelled | float,
    labels: Iterable[str],
) -> Metric:
    family = kind(f"alarmcast_{name}", meaning, labels=list(labels))
    if not isinstance(value, Mapping):
        family.add_metric([], float(value))
        return family
    for named, number in value.items():
        family.add_metric([named] if isinstance(named, str) else list(named), float(number))
    return family


def _add(family: HistogramMetricFamily, labels: Iterable[str], counted: Counted) -> None:
    edges = [*(str(float(bound)) for bound in counted.bounds), "+Inf"]
    buckets = [(edge, float(count)) for edge, count in zip(edges, counted.below, strict=True)]
    family.add_metric(list(labels), buckets, counted.total)


def _words(counts: Mapping[JobState, int] | Mapping[MachineState, int] | Mapping[ForecastStatus, int]) -> Labelled:
    return {word.value: float(number) for word, number in counts.items()}
