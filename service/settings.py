"""All settings of the service."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from wire.enums import ProcessRole
from wire.mqtt import MqttVersion
from wire.secret_files import SUFFIX

PREFIX = "ALARMCAST_"
EDGE_PREFIX = "ALARMCAST_EDGE_"  # settings of the agent; a host may run both
CLIENT_SECRETS = ("key",)  # ALARMCAST_KEY: used by commands, not a setting of the service
CONFIG = "config"  # ALARMCAST_CONFIG: path of a settings file, not a setting
_SHIFT = re.compile(r"(?P<name>[a-z0-9][a-z0-9_-]{0,30})=(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])")


class LogFormat(StrEnum):
    """Format of the log."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """Minimum level of logged messages."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class IntegrityCheck(StrEnum):
    """Check of the database file at startup."""

    QUICK = "quick"
    FULL = "full"
    OFF = "off"


class DynamicSecurity(StrEnum):
    """Use of the broker's dynamic security plugin."""

    AUTO = "auto"  # if available
    ON = "on"  # required
    OFF = "off"


class Settings(BaseSettings):
    """Settings from ``ALARMCAST_…`` variables or a file; command line options override them.

    A field with ``repr=False`` is a secret and may be given as a file: ``ALARMCAST_…_FILE``.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    data_dir: Path = Field(
        default=Path("data"), description="Folder of the database, the weights and the lock file."
    )
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL; default: a SQLite file in data_dir.", repr=False
    )
    roles: str = Field(
        default="api,ingest,worker",
        description="Roles of this process, separated by commas: api, ingest, worker. SQLite needs all in one "
        "process.",
    )
    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port the API listens on; 0 takes a free one.")
    allow_plain_http: bool = Field(
        default=False,
        description="Allow the API beyond loopback without TLS; passwords and keys are then sent in clear text.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks of proxies, separated by commas, whose forwarded headers (client "
        "address, TLS) are trusted.",
    )
    open_docs: bool = Field(default=False, description="Show the API documentation without authentication.")
    session_days: int = Field(default=30, ge=1, le=365, description="Sessions expire after this time.")
    session_idle_hours: int = Field(
        default=72, ge=1, description="Sessions expire after this time without a request."
    )
    body_max_mb: int = Field(
        default=4, ge=1, description="Largest request body; history files have their own limit."
    )
    rate_per_second: float = Field(
        default=200.0,
        ge=0,
        description="Requests per second for each user, key or session; 0: no limit.",
    )
    rate_burst: int = Field(default=2000, ge=10, description="Requests that each of them may send at once.")
    connection_limit: int = Field(
        default=800,
        ge=10,
        description="Maximum number of open connections to the API, pages included.",
    )
    connections_per_address: int = Field(
        default=200,
        ge=1,
        description="Maximum number of open connections per address (IPv6: per /64 network), except those of "
        "trusted_proxies.",
    )
    tls_cert: Path | None = Field(
        default=None, description="PEM file of the API certificate with its chain; enables TLS."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of the key of tls_cert.")
    broker_host: str = Field(default="127.0.0.1", description="Host of the MQTT broker.")
    broker_port: int = Field(default=1883, ge=1, le=65535, description="Port of the MQTT broker.")
    broker_username: str | None = Field(default=None, description="User name at the broker.")
    broker_password: str | None = Field(default=None, description="Password at the broker.", repr=False)
    broker_mqtt_version: MqttVersion = Field(default=MqttVersion.V5, description="5 or 3.1.1.")
    broker_client_id: str = Field(
        default="alarmcast-service", description="MQTT client ID; keep it stable, so that the session persists."
    )
    broker_tls: bool = Field(default=False, description="Use TLS; the broker's certificate is verified.")
    broker_tls_ca: Path | None = Field(
        default=None, description="PEM file of the CA of the broker's certificate; default: the CAs of the system."
    )
    broker_tls_cert: Path | None = Field(
        default=None, description="PEM file of the client certificate, if the broker requires one."
    )
    broker_tls_key: Path | None = Field(default=None, description="PEM file of the key of broker_tls_cert.")
    broker_dynamic_security: DynamicSecurity = Field(
        default=DynamicSecurity.AUTO,
        description="Manage MQTT clients with Mosquitto's dynamic security plugin: on, off or auto (if present).",
    )
    allow_open_broker: bool = Field(
        default=False,
        description="Allow the API beyond loopback without the broker's dynamic security, if the broker is "
        "protected otherwise.",
    )
    broker_public_host: str | None = Field(
        default=None, description="Host of the broker for agents, written to edge.toml; default: broker_host."
    )
    broker_public_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port of the broker for agents; default: broker_port."
    )
    broker_public_tls: bool | None = Field(
        default=None, description="Whether agents use TLS; default: broker_tls."
    )
    broker_queue_warning: int = Field(
        default=50_000, ge=1, description="Status warns above this number of messages in the broker's store."
    )
    ingest_batch_events: int = Field(default=2000, ge=1, description="Commit after this number of events …")
    ingest_batch_ms: int = Field(
        default=50, ge=1, description="… or after this number of milliseconds, whichever is first."
    )
    ingest_receive_maximum: int = Field(
        default=2000, ge=1, le=65535, description="MQTT receive maximum: unacked messages in flight."
    )
    ingest_inbox_mb: int = Field(
        default=32,
        ge=1,
        description="Memory for messages waiting for a commit; messages above it are rejected and resent.",
    )
    stream_limit: int = Field(default=200, ge=0, description="Maximum number of open event streams.")
    streams_per_user: int = Field(
        default=20, ge=1, description="Maximum number of open event streams per user or key."
    )
    lookback_minutes: int = Field(default=1720, ge=1, description="Length of the evidence window.")
    horizon_minutes: int = Field(default=480, ge=1, description="Length of the forecast horizon.")
    grid_minutes: int = Field(default=15, ge=1, description="Interval of stored forecasts, in plant time.")
    stale_minutes: int = Field(
        default=15, ge=1, description="Forecasts are stale if the agent has sent nothing for longer than this."
    )
    future_minutes: int = Field(
        default=5, ge=0, description="Events further ahead of the plant clock are flagged."
    )
    scoring_grace_minutes: int = Field(
        default=5,
        ge=0,
        description="Forecasts are scored this long after the end of their horizon, in plant time.",
    )
    memory_windows: int = Field(
        default=20_000,
        ge=2,
        description="Most windows in the replay memory (M in the paper), calibration included; every machine "
        "keeps at least 8.",
    )
    memory_windows_per_machine: int = Field(
        default=1500, ge=8, description="Windows of one machine in the replay memory while there is room."
    )
    min_training_windows: int = Field(
        default=336, ge=1, description="Hourly windows a machine needs before training."
    )
    max_codes_per_machine: int = Field(
        default=500,
        ge=0,
        description="Maximum number of codes outside of the catalogue per machine; others count as unknown.",
    )
    max_codes_per_model: int = Field(
        default=5000, ge=0, description="Maximum number of codes outside of the catalogue that a model uses."
    )
    min_code_days: int = Field(
        default=3,
        ge=1,
        description="Above these limits a code counts only if it occurred on this many days.",
    )
    max_forgetting: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="Largest loss of a machine since its best result that the gate accepts.",
    )
    refresh_days: int = Field(
        default=30, ge=0, description="A machine is retrained after this many plant days; 0: never."
    )
    keep_versions: int = Field(
        default=10, ge=1, description="Number of newest model versions whose weights are kept in any case."
    )
    history_max_mb: int = Field(default=512, ge=1, description="Largest history file that may be uploaded.")
    history_uploads: int = Field(
        default=8, ge=1, description="Maximum number of history files loaded at the same time."
    )
    history_uploads_per_site: int = Field(
        default=3, ge=1, description="Maximum number of them per site, and per user or key."
    )
    retention_days: int = Field(default=400, ge=1, description="Older events are flagged on arrival and deleted.")
    retention_confirmed_until: AwareDatetime | None = Field(
        default=None,
        description="Confirms that the clock is right up to this time: old data is deleted even if the newest "
        "events are much older than the clock.",
    )
    retention_gb: float | None = Field(
        default=None,
        gt=0,
        description="If set, the oldest days of events and forecasts are deleted when the database is larger.",
    )
    quarantine_days: int = Field(default=90, ge=1, description="Quarantined items are kept this long.")
    notification_release_ratio: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="A notification closes when its probability falls below this share of its threshold.",
    )
    notification_quiet_minutes: int = Field(
        default=60,
        ge=0,
        description="After that, no new notification of the same alarm for this long, in plant time.",
    )
    backup_max_age_hours: float = Field(
        default=48,
        ge=0,
        description="Status warns if the last backup is older or failed; 0: never.",
    )
    public_url: str = Field(
        default="",
        pattern="^(https?://.*[^/])?$",
        description="Address of the page for links in notifications: https://alarmcast.example.",
    )
    webhook_networks: str = Field(
        default="",
        description="Private networks, separated by commas (10.0.0.0/8,127.0.0.0/8), that webhooks may be sent "
        "to; otherwise only public addresses.",
    )
    shelving_max_hours: int = Field(default=168, ge=1, description="Longest time an alarm may be shelved.")
    integrity_check: IntegrityCheck = Field(
        default=IntegrityCheck.QUICK,
        description="Check of the SQLite file at startup: quick, full or off.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO, description="auto, json or text; auto: text on a terminal, otherwise JSON."
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="debug, info, warning or error.")
    shifts: str = Field(
        default="early=06:00,late=14:00,night=22:00",
        description="Start of each shift in plant time; a shift lasts until the next one starts.",
    )
    clock_wall_origin: AwareDatetime = Field(
        default=datetime(2000, 1, 1, tzinfo=UTC), description="Wall time at which the plant clock was set."
    )
    clock_plant_origin: AwareDatetime | None = Field(
        default=None, description="Plant time at that moment; default: the wall time."
    )
    clock_speed: float = Field(default=1.0, gt=0, le=100_000, description="Plant seconds per wall second.")

    @model_validator(mode="after")
    def _check_clock_speed(self) -> Self:
        if self.clock_speed != 1 and "clock_wall_origin" not in self.model_fields_set:
            raise ValueError("a clock_speed other than 1 needs clock_wall_origin, or plant time drifts")
        return self

    @model_validator(mode="after")
    def _check_certificates(self) -> Self:
        for cert, key in (("tls_cert", "tls_key"), ("broker_tls_cert", "broker_tls_key")):
            if (getattr(self, cert) is None) != (getattr(self, key) is None):
                raise ValueError(f"{cert} and {key} go together; give both or neither")
        if self.broker_tls_cert is not None and not self.broker_tls:
            raise ValueError("broker_tls_cert is of no use without broker_tls")
        return self

    @model_validator(mode="after")
    def _check_shared_database(self) -> Self:
        if self.process_roles != frozenset(ProcessRole) and (self.database_url or "sqlite").startswith("sqlite"):
            raise ValueError(
                f"SQLite needs all roles in one process, so the roles {self.roles} cannot be split; remove "
                "ALARMCAST_ROLES, or move to PostgreSQL with alarmcast admin copy-database and "
                "ALARMCAST_DATABASE_URL"
            )
        return self

    @field_validator("roles")
    @classmethod
    def _check_roles(cls, text: str) -> str:
        _process_roles(text)
        return text

    @field_validator("shifts")
    @classmethod
    def _check_shifts(cls, text: str) -> str:
        _shift_starts(text)
        return text

    @field_validator("webhook_networks")
    @classmethod
    def _check_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def receiver_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Private networks that webhooks may be sent to."""
        return _networks(self.webhook_networks)

    @property
    def process_roles(self) -> frozenset[ProcessRole]:
        return _process_roles(self.roles)

    @property
    def shift_starts(self) -> dict[str, time]:
        """Start of each shift in plant time, sorted."""
        return _shift_starts(self.shifts)

    @property
    def stale_after(self) -> timedelta:
        return timedelta(minutes=self.stale_minutes)


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def _process_roles(text: str) -> frozenset[ProcessRole]:
    names = {part.strip() for part in text.split(",")}
    unknown = sorted(names - set(ProcessRole))
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a role; use one or more of {', '.join(ProcessRole)}, separated by commas"
        )
    return frozenset(ProcessRole(name) for name in names)


def _shift_starts(text: str) -> dict[str, time]:
    starts: dict[str, time] = {}
    for part in text.split(","):
        found = _SHIFT.fullmatch(part.strip())
        if found is None:
            raise ValueError(
                f"{part.strip()!r} is not a shift; write for example early=06:00,late=14:00,night=22:00"
            )
        name, at = found["name"], time(int(found["hour"]), int(found["minute"]))
        if name in starts or at in starts.values():
            raise ValueError(f"two shifts have the name {name} or the start {at:%H:%M}")
        starts[name] = at
    return dict(sorted(starts.items(), key=lambda shift: shift[1]))


def secret_names() -> list[str]:
    """Return the secret settings; each may also be given as a file."""
    return [name for name, field in Settings.model_fields.items() if not field.repr]


def given_variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the variable name as spelled in the environment and its value, by setting."""
    return {
        name.upper().removeprefix(PREFIX).lower(): (name, value)
        for name, value in environ.items()
        if name.upper().startswith(PREFIX) and not name.upper().startswith(EDGE_PREFIX)
    }


def unknown_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return ``ALARMCAST_…`` variables that name no setting; pydantic-settings ignores them."""
    secrets = [*secret_names(), *CLIENT_SECRETS]
    known = {*Settings.model_fields, "url", CONFIG, *CLIENT_SECRETS, *(f"{name}{SUFFIX}" for name in secrets)}
    return sorted(spelled for name, (spelled, _) in given_variables(environ).items() if name not in known)
