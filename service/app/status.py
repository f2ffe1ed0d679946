"""System status for the API and the page Health."""

import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

from service import __version__
from service.broker_access.models import BrokerAuthState
from service.database.info import DatabaseInfo, DatabaseInfoReader
from service.errors import Unavailable
from service.http.principal import Sites
from service.machines.models import connection_status
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

if TYPE_CHECKING:
    from service.app.service import Service

T = TypeVar("T")
_CACHE_TTL_S = 1.0
_MAX_CACHED = 100  # sets of sites


@dataclass
class StatusService:
    """Reads the status of all components; values of the database are None while it is unavailable."""

    service: "Service"
    _started: float = field(init=False, default_factory=time.monotonic)
    _cache: dict[Sites, tuple[float, SystemStatus]] = field(init=False, default_factory=dict)

    def read(self, sites: Sites = None) -> SystemStatus:
        """Return the status, cached for a second, with machines of the given sites only."""
        now = time.monotonic()
        cached = self._cache.get(sites)
        if cached is None or now - cached[0] > _CACHE_TTL_S:
            cached = (now, self._read(now, sites))
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache[sites] = cached
        return cached[1]

    def _read(self, now: float, sites: Sites) -> SystemStatus:
        info = _or_none(DatabaseInfoReader(self.service.stores.database).read)
        processes = _or_none(self._processes)
        return SystemStatus(
            uptime_seconds=round(now - self._started, 1),
            ingest=self._ingest(processes or []),
            broker=self._broker(),
            disk=self._disk(),
            versions=self._versions(info),
            streams=self.service.forecasts.streams.count,
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
            for one in self.service.cluster.processes()
        ]

    def _ingest(self, processes: list[ProcessView]) -> IngestView:
        """Return ingest rate and lag, summed over all processes."""
        pace = self.service.ingest.ingester.pace
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
        settings, mqtt = self.service.settings, self.service.ingest.mqtt
        counts = self.service.ingest.broker_stats.counts
        auth_state = self.service.broker_access.credentials.auth_state
        return BrokerView(
            connected=mqtt.connected,
            address=f"{settings.broker_host}:{settings.broker_port}",
            tls=settings.broker_tls,
            mqtt_version=settings.broker_mqtt_version.value,
            error=mqtt.error,
            secured={BrokerAuthState.ON: True, BrokerAuthState.OFF: False}.get(auth_state),
            dropped=counts.get("broker_dropped"),
            queued=counts.get("broker_queued"),
            clients=counts.get("broker_clients"),
        )

    def _disk(self) -> DiskView | None:
        try:
            usage = shutil.disk_usage(self.service.settings.data_dir)
        except OSError:
            return None
        return DiskView(free_bytes=usage.free, total_bytes=usage.total)

    def _versions(self, info: DatabaseInfo | None) -> dict[str, str]:
        return {
            "alarmcast": __version__,
            "python": platform.python_version(),
            **({info.kind: info.version} if info else {}),
            "mqtt": self.service.settings.broker_mqtt_version.value,
            "paho": version("paho-mqtt"),
        }

    def _quarantine(self, sites: Sites) -> QuarantineTotals:
        reasons = [ReasonView(**one._asdict()) for one in self.service.machines.quarantine.reasons(sites=sites)]
        return QuarantineTotals(items=sum(one.items for one in reasons), reasons=reasons)

    def _agents(self, sites: Sites) -> AgentTotals:
        known = [one for one in self.service.stores.machines.all() if sites is None or one.id.site in sites]
        agents, now = self.service.stores.machines.agents(), self.service.clock.now()
        found = {one.id: agents.get(one.id) for one in known}
        stale_after = self.service.settings.stale_after
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
        counts = self.service.stores.jobs.counts()
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
