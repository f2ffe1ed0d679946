"""System status for the API and the page Health."""

import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeVar

from service import __version__
from service.app.stores import Stores
from service.broker_access.models import BrokerAuthState
from service.database.info import DatabaseInfo, DatabaseInfoReader
from service.errors import Unavailable
from service.http.principal import Sites
from service.ingest.thread import Ingester
from service.machines.connection_status import connection_status
from service.machines.quarantine_store import QuarantineStore
from service.messaging.broker_stats import BrokerStats
from service.messaging.mqtt_client import MqttClient
from service.messaging.process import Process
from service.messaging.pubsub import EventBus
from service.settings import Settings
from wire.clock import PlantClock
from wire.enums import ConnectionStatus, JobState
from wire.rest.health import (
    AgentTotals,
    BrokerView,
    DatabaseView,
    DiskView,
    IngestView,
    JobTotals,
    ProcessView,
    QuarantineTotals,
    SkewView,
    SpoolView,
    SystemStatus,
)
from wire.rest.quarantine import ReasonView

T = TypeVar("T")
_CACHE_TTL_S = 1.0
_MAX_CACHED = 100  # sets of sites


@dataclass
class StatusService:
    """Reads the status of all components; values of the database are None while it is unavailable."""

    settings: Settings
    stores: Stores
    clock: PlantClock
    ingester: Ingester
    link: MqttClient
    watch: BrokerStats
    feed: EventBus
    quarantine: QuarantineStore
    present: Callable[[], list[Process]] = list  # processes that share the database
    guard: Callable[[], BrokerAuthState] = lambda: BrokerAuthState.UNKNOWN
    monotonic: Callable[[], float] = time.monotonic
    _began: float = field(init=False)
    _cache: dict[Sites, tuple[float, SystemStatus]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self.monotonic()

    def read(self, sites: Sites = None) -> SystemStatus:
        """Return the status, cached for a second, with machines of the given sites only."""
        now = self.monotonic()
        cached = self._cache.get(sites)
        if cached is None or now - cached[0] > _CACHE_TTL_S:
            cached = (now, self._read(now, sites))
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache[sites] = cached
        return cached[1]

    def _read(self, now: float, sites: Sites) -> SystemStatus:
        info = _or_none(DatabaseInfoReader(self.stores.database).read)
        processes = _or_none(self._processes)
        return SystemStatus(
            uptime_seconds=round(now - self._began, 1),
            ingest=self._ingest(processes or []),
            broker=self._broker(),
            disk=self._disk(),
            versions=self._versions(info),
            streams=self.feed.subscriber_count,
            quarantine=_or_none(lambda: self._quarantine(sites)),
            agents=_or_none(lambda: self._agents(sites)),
            database=info
            and DatabaseView(
                kind=info.kind, version=info.version, size_bytes=info.size, schema_revision=info.revision
            ),
            jobs=_or_none(self._jobs),
            processes=processes,
        )

    def _processes(self) -> list[ProcessView]:
        return [
            ProcessView(
                name=one.name,
                roles=sorted(one.roles),
                since=one.since,
                seen=one.seen,
                ready=one.report.ready,
                errors=one.report.errors,
                leases=list(one.report.leases),
                events_per_second=one.report.events_per_second,
            )
            for one in self.present()
        ]

    def _ingest(self, processes: list[ProcessView]) -> IngestView:
        """Return ingest rate and lag, summed over all processes."""
        pace = self.ingester.pace
        lag = pace.lag()
        everywhere = [one.events_per_second for one in processes] or [pace.rate(60)]
        return IngestView(
            per_second_1m=round(sum(everywhere), 3),
            per_second_15m=round(pace.rate(900), 3),
            lag_p50_seconds=lag.median,
            lag_p95_seconds=lag.p95,
            lag_events=lag.events,
            backfilled=pace.backfilled,
        )

    def _broker(self) -> BrokerView:
        counts = self.watch.counts
        return BrokerView(
            connected=self.link.connected,
            address=f"{self.settings.broker_host}:{self.settings.broker_port}",
            tls=self.settings.broker_tls,
            mqtt_version=self.settings.broker_mqtt_version.value,
            error=self.link.error,
            secured={BrokerAuthState.ON: True, BrokerAuthState.OFF: False}.get(self.guard()),
            dropped=counts.get("broker_dropped"),
            queued=counts.get("broker_queued"),
            clients=counts.get("broker_clients"),
        )

    def _disk(self) -> DiskView | None:
        try:
            usage = shutil.disk_usage(self.settings.data_dir)
        except OSError:
            return None
        return DiskView(free_bytes=usage.free, total_bytes=usage.total)

    def _versions(self, info: DatabaseInfo | None) -> dict[str, str]:
        return {
            "alarmcast": __version__,
            "python": platform.python_version(),
            **({info.kind: info.version} if info else {}),
            "mqtt": self.settings.broker_mqtt_version.value,
            "paho": version("paho-mqtt"),
        }

    def _quarantine(self, sites: Sites) -> QuarantineTotals:
        reasons = [ReasonView(**one._asdict()) for one in self.quarantine.reasons(sites=sites)]
        return QuarantineTotals(items=sum(one.items for one in reasons), reasons=reasons)

    def _agents(self, sites: Sites) -> AgentTotals:
        known = [one for one in self.stores.machines.all() if sites is None or one.id.site in sites]
        agents, now = self.stores.machines.agents(), self.clock.now()
        found = {one.id: agents.get(one.id) for one in known}
        stale_after = self.settings.stale_after
        states = [connection_status(agent, now, stale_after=stale_after) for agent in found.values()]
        spooled = {machine: agent.spooled for machine, agent in found.items() if agent and agent.spooled}
        skews = {machine: agent.skew_ms for machine, agent in found.items() if agent and agent.skew_ms is not None}
        fullest = max(spooled, key=lambda machine: spooled[machine], default=None)
        worst = max(skews, key=lambda machine: abs(skews[machine]), default=None)
        return AgentTotals(
            machines=len(known),
            online=states.count(ConnectionStatus.ONLINE),
            stale=states.count(ConnectionStatus.STALE),
            offline=states.count(ConnectionStatus.OFFLINE),
            never=states.count(ConnectionStatus.NEVER),
            spooled=sum(spooled.values()),
            most_spooled=fullest and SpoolView(**fullest._asdict(), spooled=spooled[fullest]),
            worst_skew=worst and SkewView(**worst._asdict(), skew_ms=skews[worst]),
            skipped=sum(agent.skipped for agent in found.values() if agent),
        )

    def _jobs(self) -> JobTotals:
        counts = self.stores.jobs.counts()
        return JobTotals(
            collecting=counts.get(JobState.COLLECTING, 0),
            queued=counts.get(JobState.QUEUED, 0),
            running=counts.get(JobState.RUNNING, 0),
        )


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Unavailable:
        return None
