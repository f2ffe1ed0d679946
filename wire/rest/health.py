"""How the service is."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import ProcessRole
from wire.identity import Identifier
from wire.rest.quarantine import ReasonView
from wire.timestamps import UtcDatetime

# What probes and programs ask for elsewhere; here it is answered with what there is instead.
OTHER_PROBES = (
    "/healthz",
    "/health.json",
    "/health/",
    "/healthcheck",
    "/ready",
    "/live",
    "/ping",
    "/status",
    "/api/",
)


class Liveness(BaseModel):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "alive"}]})

    status: str = "alive"


class Readiness(BaseModel):
    """Whether events are taken and forecasts given."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"ready": True, "errors": {}},
                {"ready": False, "errors": {"broker": "No connection to the broker at 127.0.0.1:1883."}},
            ]
        }
    )

    ready: bool
    errors: dict[str, str] = Field(description="Each part that is not well, and why; nothing of it to strangers.")


class IngestView(BaseModel):
    """How fast events come in, and how long they were on their way."""

    per_second_1m: float = Field(description="Events stored a second, by all, over the last minute of wall time.")
    per_second_15m: float = Field(description="Over the last 15 minutes, or since the start.")
    lag_p50_seconds: float | None = Field(
        description="Plant seconds between an alarm and its commit; half of the recent live events took less."
    )
    lag_p95_seconds: float | None = Field(description="19 of 20 took less.")
    lag_events: int = Field(description="How many recent live events these are of.")
    backfilled: int = Field(
        default=0,
        description="Events since the start that were raised before their agent's connection began: a backlog, or "
        "an old log. They are no part of the lag.",
    )


class QuarantineTotals(BaseModel):
    """How much is quarantined now."""

    items: int
    reasons: list[ReasonView] = Field(description="Most first.")


class SpoolView(BaseModel):
    """A machine and how much waits there."""

    site: Identifier
    machine: Identifier
    spooled: int


class SkewView(BaseModel):
    """A machine and how far its agent's clock is off."""

    site: Identifier
    machine: Identifier
    skew_ms: int = Field(description="The service's plant clock minus the agent's.")


class AgentTotals(BaseModel):
    """All machines' agents together; `GET /v1/machines` has each of them."""

    machines: int
    online: int = Field(description="Seen lately.")
    stale: int = Field(description="Their last state is online, but they have sent nothing for too long.")
    offline: int
    never: int = Field(description="Never seen.")
    spooled: int = Field(description="Events that wait at all machines.")
    most_spooled: SpoolView | None = Field(description="Where most waits; null if nothing does.")
    worst_skew: SkewView | None = Field(description="Whose clock is off most; null if no agent has said.")
    skipped: int = Field(
        default=0, description="Rows of their sources that agents could not read, of all machines."
    )


class BrokerView(BaseModel):
    """The connection to the broker, and what the broker says of itself; null where it says nothing."""

    connected: bool
    address: str = Field(description="Host and port.")
    tls: bool
    mqtt_version: str
    error: str | None
    secured: bool | None = Field(
        default=None,
        description="Whether its dynamic security says who may come in; null until it has been asked.",
    )
    dropped: int | None = Field(description="Messages that the broker has dropped since its start.")
    queued: int | None = Field(description="Messages in the broker's store.")
    clients: int | None


class DiskView(BaseModel):
    """The disk of the data folder."""

    free_bytes: int
    total_bytes: int


class DatabaseView(BaseModel):
    """The database."""

    kind: str = Field(description="sqlite or postgresql.")
    version: str
    size_bytes: int
    schema_revision: str | None


class JobTotals(BaseModel):
    """Learnings under way and to come."""

    collecting: int = Field(description="Wait until their machine has been observed for long enough.")
    queued: int
    running: int


class ProcessView(BaseModel):
    """One of several processes that share a PostgreSQL database."""

    name: str
    roles: list[ProcessRole]
    since: UtcDatetime = Field(description="When it started, in wall time.")
    seen: UtcDatetime = Field(description="When it last said how it is, in wall time.")
    ready: bool
    errors: dict[str, str]
    leases: list[str] = Field(description="Leases that it holds: leader, agent_states.")
    events_per_second: float = Field(description="Events that it has stored a second, over the last minute.")


class SystemStatus(BaseModel):
    """How every part is, in figures; null what the database would have to tell while it does not answer."""

    uptime_seconds: float
    ingest: IngestView
    broker: BrokerView
    disk: DiskView | None
    versions: dict[str, str] = Field(description="Of the service and of what it stands on.")
    streams: int = Field(description="Open streams of events.")
    quarantine: QuarantineTotals | None
    agents: AgentTotals | None
    database: DatabaseView | None
    jobs: JobTotals | None
    processes: list[ProcessView] | None = Field(
        description="Who shares the database and was seen in the last seconds; none on SQLite."
    )


_EXAMPLE: dict[str, Any] = {
    "plant_time": "2026-11-16T08:20:00.000Z",
    "model_version": "v3",
    "ready": True,
    "errors": {},
    "warnings": {},
    "counts": {"stored": 18230, "duplicate": 12, "forecasts_stored": 576},
    "uptime_seconds": 86400.0,
    "ingest": {
        "per_second_1m": 3.2,
        "per_second_15m": 2.9,
        "lag_p50_seconds": 0.31,
        "lag_p95_seconds": 1.4,
        "lag_events": 10000,
        "backfilled": 214,
    },
    "broker": {
        "connected": True,
        "address": "127.0.0.1:1883",
        "tls": False,
        "mqtt_version": "5",
        "error": None,
        "secured": True,
        "dropped": 0,
        "queued": 12,
        "clients": 7,
    },
    "disk": {"free_bytes": 41200000000, "total_bytes": 64000000000},
    "versions": {"alarmcast": "0.1.0", "python": "3.13.5", "sqlite": "3.46.1", "mqtt": "5", "paho": "2.1.0"},
    "streams": 3,
    "quarantine": {
        "items": 2,
        "reasons": [{"reason": "bad_event", "items": 2, "last_at": "2026-11-16T07:59:00.000Z"}],
    },
    "agents": {
        "machines": 6,
        "online": 5,
        "stale": 0,
        "offline": 1,
        "never": 0,
        "spooled": 40,
        "most_spooled": {"site": "padova", "machine": "filler-1", "spooled": 40},
        "worst_skew": {"site": "padova", "machine": "filler-2", "skew_ms": -180},
        "skipped": 0,
    },
    "database": {"kind": "sqlite", "version": "3.46.1", "size_bytes": 94371840, "schema_revision": "0003"},
    "jobs": {"collecting": 1, "queued": 0, "running": 0},
    "processes": [],
}


class Status(SystemStatus):
    """What the service is doing."""

    model_config = ConfigDict(protected_namespaces=(), json_schema_extra={"examples": [_EXAMPLE]})

    plant_time: UtcDatetime
    model_version: str | None
    ready: bool
    errors: dict[str, str]
    warnings: dict[str, str] = Field(description="What works and is worth a look all the same.")
    counts: dict[str, int] = Field(description="Since the start: events by result, quarantined by reason.")
