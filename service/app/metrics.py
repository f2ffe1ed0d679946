"""Every metric of the service, in one place: read from the parts when somebody asks, so that no part is slowed."""

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service import __version__
from service.app.backup_age import BackupWatch
from service.app.prometheus import counter, gauge, histogram
from service.app.stores import Stores
from service.errors import NoChampion, Unavailable
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import ChampionCache
from service.forecasts.service import ForecastService
from service.forecasts.version import Version
from service.http.health import Health
from service.http.histogram import Counted
from service.http.request_metrics import HttpMetrics
from service.ingest.thread import Ingester
from service.machines.silence import SilenceDetector
from service.notifications.delivery_store import DeliveryStore
from service.notifications.webhook_store import WebhookStore
from service.settings import Settings
from wire.clock import PlantClock
from wire.enums import JobState, MachineState
from wire.forecasts import ForecastStatus
from wire.rest.health import SystemStatus

T = TypeVar("T")
_REFUSED = "quarantined:"
_FIGURES = ("average_precision", "brier_skill", "macro_f1")


@dataclass(frozen=True, eq=False)
class Metrics(Collector):
    """Asks the parts; what only the database knows has no sample while that does not answer.

    Labels are few and known beforehand: never a machine, never an alarm code, never a path that somebody typed.
    """

    settings: Settings
    stores: Stores
    clock: PlantClock
    wall: Callable[[], datetime]
    health: Callable[[], Health]
    condition: Callable[[], SystemStatus]
    ingester: Ingester
    desk: ForecastService
    newest: ForecastCache
    champion: ChampionCache
    silence: SilenceDetector
    traffic: HttpMetrics
    attempts: Callable[[], Mapping[str, int]]  # to deliver notices, by what came of them
    backups: BackupWatch
    certificates: Callable[[], Mapping[str, datetime]] = dict  # when each of them ends, by what it is for

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
        yield from self._learning()
        yield from self._notices(health.counts)
        yield from self._store(health.counts, condition)

    def _service(self, health: Health, condition: SystemStatus) -> Iterator[Metric]:
        build = {(__version__, platform.python_version()): 1}
        yield gauge("build_info", "Which version runs.", build, "version", "python")
        yield gauge("ready", "Whether events can be taken and forecasts given, as /readyz says.", health.ready)
        parts = {part: part in health.errors for part in health.parts}
        yield gauge("trouble", "Whether a part is not well; /readyz says why.", parts, "part")
        warnings = dict.fromkeys(health.warnings, 1)
        yield gauge("warning", "What works and is worth a look; /v1/status says why.", warnings, "about")
        ends = {use: (end - self.wall()).total_seconds() for use, end in self.certificates().items()}
        yield gauge("certificate_expiry_seconds", "Time left until a certificate ends.", ends, "use")
        yield gauge("streams_open", "Streams of events that are open.", condition.streams)
        yield gauge("pages_open", "Pages that are open in browsers.", self.traffic.pages)

    def _web(self) -> Iterator[Metric]:
        answers = dict(self.traffic.answers)
        meaning = "Answers to requests, by route and class of status."
        yield counter("http_requests", meaning, answers, "method", "route", "status")
        taken: dict[tuple[str, ...], Counted] = {
            named: one.read() for named, one in list(self.traffic.seconds.items())
        }
        yield histogram("http_request_duration_seconds", "Until an answer began.", taken, "method", "route")

    def _ingest(self, counts: Mapping[str, int], condition: SystemStatus) -> Iterator[Metric]:
        stored, lags, backfilled, late = self.ingester.pace.totals()
        believed = lags.all + backfilled
        refused = {name.removeprefix(_REFUSED): n for name, n in counts.items() if name.startswith(_REFUSED)}
        events = {
            "stored": believed - late,
            "late": late,
            "flagged": stored - believed,
            "duplicate": counts.get("duplicate", 0),
            "quarantined": sum(refused.values()),
        }
        yield counter(
            "events",
            "Events that came over the broker, by what became of them. Late ones, more than an hour after they "
            "were raised, and flagged ones, whose time is not believed, are stored too.",
            events,
            "result",
        )
        yield counter("quarantined", "What was refused since the start, by reason.", refused, "reason")
        quarantine = condition.quarantine
        held = {one.reason: one.items for one in quarantine.reasons} if quarantine else None
        yield gauge("quarantine_items", "What the quarantine holds, by reason.", held, "reason")
        meaning = "Events of a backlog or an old log, raised before their agent's connection began."
        yield counter("backfilled_events", meaning, backfilled)
        meaning = "Plant time between an alarm and its commit, of live events whose time is believed."
        yield histogram("event_lag_seconds", meaning, {(): lags})
        messages = {
            "rejected": counts.get("rejected", 0),
            "unregistered": counts.get("unregistered", 0),
            "another_agent": counts.get("states_of_another_agent", 0),
            "dropped": counts.get("dropped", 0),
        }
        yield counter("messages_set_aside", "Messages of which nothing was stored, and why.", messages, "why")
        yield counter("failed_batches", "Commits that met a defect.", counts.get("failed_batches", 0))
        waiting, size = self.ingester.waiting
        yield gauge("inbox_messages", "Messages that wait for a commit.", waiting)
        yield gauge("inbox_bytes", "Bytes of the messages that wait for a commit.", size)
        yield gauge("inbox_limit_bytes", "Bytes that may wait.", self.settings.ingest_inbox_mb << 20)

    def _broker(self, condition: SystemStatus) -> Iterator[Metric]:
        broker = condition.broker
        yield gauge("broker_connected", "Whether the broker lets us listen.", broker.connected)
        yield counter("broker_dropped_messages", "What the broker has dropped since its start.", broker.dropped)
        yield gauge("broker_queued_messages", "Messages in the broker's store.", broker.queued)
        yield gauge("broker_clients", "Who is connected to the broker.", broker.clients)

    def _fleet(self, condition: SystemStatus) -> Iterator[Metric]:
        agents = condition.agents
        words = ("online", "stale", "offline", "never")
        presence = {word: int(getattr(agents, word)) for word in words} if agents else None
        yield gauge("agents", "Machines by how their agent is heard.", presence, "presence")
        most = (agents.most_spooled.spooled if agents.most_spooled else 0) if agents else None
        skew = (abs(agents.worst_skew.skew_ms) / 1000 if agents.worst_skew else 0) if agents else None
        yield gauge("spooled_events", "Events that wait at all machines.", agents.spooled if agents else None)
        yield gauge("spooled_events_most", "Events that wait at the machine where most do.", most)
        yield gauge("agent_skew_seconds", "How far the clock of that agent is off that is off most.", skew)
        skipped = agents.skipped if agents else None
        yield gauge("skipped_rows", "Rows of their sources that agents could not read as alarms.", skipped)
        machines = _told(lambda: self.stores.machines.all(retired=True))
        states = None if machines is None else _each(MachineState, Counter(one.state for one in machines))
        yield gauge("machines", "Machines by how far they are with learning.", states, "state")
        yield gauge("machines_silent", "Machines that are silent against their rhythm.", len(self.silence.silent))
        twins = self.ingester.twins.recent(self.clock.now())
        yield gauge("machines_contested", "Machines as which two agents speak in turns.", len(twins))

    def _forecasts(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield counter("forecasts_stored", "Forecasts stored on the grid.", counts["forecasts_stored"])
        yield counter("forecasts_scored", "Forecasts whose outcome was found.", counts["forecasts_scored"])
        machines = _told(self.stores.machines.all)
        kept = [one for machine in machines or () if (one := self.newest.get(machine.id))]
        trust = Counter(one.forecast.status for one in kept)
        statuses = None if machines is None else _each(ForecastStatus, trust)
        yield gauge("forecasts", "Newest forecasts by how far to trust them.", statuses, "status")
        meaning = "One pass over all machines that want a new forecast."
        yield histogram("forecast_duration_seconds", meaning, {(): self.desk.durations.read()})

    def _learning(self) -> Iterator[Metric]:
        version = self._version()
        yield gauge("model_info", "Which model serves, if any.", {version.name: 1} if version else None, "version")
        learned = len(version.learned) if version else None
        yield gauge("model_machines", "Machines that the model has learned.", learned)
        figures = (_told(lambda: self.stores.exams.means(version.id)) if version else None) or {}
        for name in _FIGURES:
            meaning = f"The model's mean {name.replace('_', ' ')} over every machine's newest exam."
            yield gauge(f"model_{name}", meaning, figures.get(name))
        jobs = _told(self.stores.jobs.counts)
        states = None if jobs is None else _each(JobState, jobs)
        yield gauge("jobs", "Learnings by how far they are or how they ended.", states, "state")

    def _notices(self, counts: Mapping[str, int]) -> Iterator[Metric]:
        yield counter("notices_opened", "Notices that were opened.", counts["notices_opened"])
        yield counter("deliveries", "Attempts to deliver a notice.", self.attempts(), "result")
        waiting = _told(DeliveryStore(self.stores.database).backlog)
        number, age = (None, None) if waiting is None else (waiting.number, self._age(waiting.since))
        yield gauge("deliveries_waiting", "Deliveries that are still to be made.", number)
        yield gauge("deliveries_oldest_seconds", "How long the oldest of them has waited.", age)
        webhooks = _told(WebhookStore(self.stores.database).all)
        enabled = sum(one.enabled for one in webhooks or ())
        states = None if webhooks is None else {"enabled": enabled, "disabled": len(webhooks) - enabled}
        yield gauge("webhooks", "Who is told of notices over HTTP.", states, "state")

    def _store(self, counts: Mapping[str, int], condition: SystemStatus) -> Iterator[Metric]:
        size = condition.database.size_bytes if condition.database else None
        yield gauge("database_size_bytes", "What the database takes.", size)
        free, total = (condition.disk.free_bytes, condition.disk.total_bytes) if condition.disk else (None, None)
        yield gauge("disk_free_bytes", "Room on the disk of the data folder.", free)
        yield gauge("disk_size_bytes", "Size of the disk of the data folder.", total)
        yield counter("events_forgotten", "Events let go by retention.", counts["events_forgotten"])
        yield from self._backups()

    def _backups(self) -> Iterator[Metric]:
        """Yield how backups went, where they are made by us."""
        known, record, most = self.backups.applies, self.backups.record, self.backups.max_age
        at = record.made_at.timestamp() if record.made_at else 0
        meaning = "When the last backup was made, 0 if never; nobody tells us of PostgreSQL's."
        yield gauge("last_backup_timestamp_seconds", meaning, at if known else None)
        yield gauge("backup_failed", "Whether the last backup failed.", record.failed if known else None)
        meaning = "Age from which on a backup is too old, as backup_max_age_hours says; 0 is never."
        yield gauge("backup_max_age_seconds", meaning, (most.total_seconds() if most else 0) if known else None)

    def _age(self, since: datetime | None) -> float:
        return max(0.0, (self.wall() - since).total_seconds()) if since else 0.0

    def _version(self) -> Version | None:
        try:
            return self.champion.current().version
        except (NoChampion, Unavailable):
            return None


def _told(ask: Callable[[], T]) -> T | None:
    """Return what the database says, or None while it does not answer."""
    try:
        return ask()
    except Unavailable:
        return None


def _each(words: type[T], counts: Mapping[T, int]) -> dict[str, int]:
    """Return a count for every word there is, so that none of them comes and goes."""
    return {str(word): counts.get(word, 0) for word in words}  # type: ignore[attr-defined]  # an enum's class
