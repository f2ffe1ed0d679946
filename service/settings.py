"""Every knob of the service, one described field each; built once, in bootstrap."""

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
EDGE_PREFIX = "ALARMCAST_EDGE_"  # the agent's own; a host may run both
CLIENT_SECRETS = ("key",)  # ALARMCAST_KEY: what the commands show a service elsewhere; no setting of the service
CONFIG = "config"  # ALARMCAST_CONFIG: a file of settings; itself no setting
_SHIFT = re.compile(r"(?P<name>[a-z0-9][a-z0-9_-]{0,30})=(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])")


class LogFormat(StrEnum):
    """How the log is written."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """From which weight on something is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class IntegrityCheck(StrEnum):
    """How thoroughly the database file is checked before the service starts."""

    QUICK = "quick"
    FULL = "full"
    OFF = "off"


class DynamicSecurity(StrEnum):
    """Whether the broker's dynamic-security plugin is used to say who may come in."""

    AUTO = "auto"  # if the broker has it
    ON = "on"  # it must be there
    OFF = "off"


class Settings(BaseSettings):
    """Read from ``ALARMCAST_…`` variables, of the environment or of a file; flags override single fields.

    A field that is not shown (``repr=False``) is a secret and may be given as a file: ``ALARMCAST_…_FILE``.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    data_dir: Path = Field(default=Path("data"), description="Database, weights and lock live here.")
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL; a SQLite file in data_dir unless given.", repr=False
    )
    roles: str = Field(
        default="api,ingest,worker",
        description="What this process does, by commas: api, ingest, worker. On SQLite one process does it all.",
    )
    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port the API listens on; 0 takes a free one.")
    allow_plain_http: bool = Field(
        default=False, description="Listen beyond loopback without TLS; passwords and keys can then be overheard."
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks of proxies, by commas, whose word is taken for where a request is from "
        "and whether it came over TLS.",
    )
    open_docs: bool = Field(default=False, description="Show the API's documentation to strangers too.")
    session_days: int = Field(default=30, ge=1, le=365, description="Whoever signed in must again after this.")
    session_idle_hours: int = Field(
        default=72, ge=1, description="Whoever has not asked for anything for this long must sign in again."
    )
    body_max_mb: int = Field(default=4, ge=1, description="Largest request; histories have their own limit.")
    rate_per_second: float = Field(
        default=200.0,
        ge=0,
        description="Requests a second that each user, key or session may make; 0 is no limit.",
    )
    rate_burst: int = Field(default=2000, ge=10, description="Requests that they may make at once.")
    connection_limit: int = Field(
        default=800,
        ge=10,
        description="Connections to the API that may be open at once, pages included.",
    )
    connections_per_address: int = Field(
        default=200,
        ge=1,
        description="Connections that one address may have open, an IPv6 network of 64 bits counting as one; "
        "those of trusted_proxies are not counted here.",
    )
    tls_cert: Path | None = Field(
        default=None, description="PEM file of the API's certificate, with its chain; the API then speaks TLS."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of that certificate's key.")
    broker_host: str = Field(default="127.0.0.1", description="Host of the MQTT broker.")
    broker_port: int = Field(default=1883, ge=1, le=65535, description="Port of the MQTT broker.")
    broker_username: str | None = Field(default=None, description="User name at the broker.")
    broker_password: str | None = Field(default=None, description="Password at the broker.", repr=False)
    broker_mqtt_version: MqttVersion = Field(default=MqttVersion.V5, description="5 or 3.1.1.")
    broker_client_id: str = Field(default="alarmcast-service", description="Stable, so the session survives.")
    broker_tls: bool = Field(default=False, description="Speak TLS; the broker's certificate is checked.")
    broker_tls_ca: Path | None = Field(
        default=None, description="PEM file of the authority that signed it; the system's own unless given."
    )
    broker_tls_cert: Path | None = Field(
        default=None, description="PEM file of our own certificate, where the broker wants one."
    )
    broker_tls_key: Path | None = Field(default=None, description="PEM file of that certificate's key.")
    broker_dynamic_security: DynamicSecurity = Field(
        default=DynamicSecurity.AUTO,
        description="Let Mosquitto's dynamic-security plugin say who comes in: on, off, or auto, if it answers.",
    )
    allow_open_broker: bool = Field(
        default=False,
        description="Listen beyond loopback though the broker's dynamic security is off; somebody else guards it.",
    )
    broker_public_host: str | None = Field(
        default=None, description="Host by which agents reach the broker, for their edge.toml; broker_host."
    )
    broker_public_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port by which agents reach the broker; broker_port."
    )
    broker_public_tls: bool | None = Field(
        default=None, description="Whether agents speak TLS with the broker; as broker_tls says unless given."
    )
    broker_queue_alarm: int = Field(
        default=50_000, ge=1, description="Messages in the broker's store beyond which status warns."
    )
    ingest_batch_events: int = Field(default=2000, ge=1, description="Commit after this many events …")
    ingest_batch_ms: int = Field(default=50, ge=1, description="… or this many milliseconds, whichever is first.")
    ingest_receive_maximum: int = Field(
        default=2000, ge=1, le=65535, description="Messages the broker may have under way to us unacked."
    )
    ingest_inbox_mb: int = Field(
        default=32, ge=1, description="Memory for messages that wait for a commit; what exceeds it is sent again."
    )
    stream_limit: int = Field(default=200, ge=0, description="Streams of events that may be open at once.")
    streams_per_user: int = Field(
        default=20, ge=1, description="Of these, how many one user or key may have open."
    )
    lookback_minutes: int = Field(default=1720, ge=1, description="Length of the evidence window.")
    horizon_minutes: int = Field(default=480, ge=1, description="Length of the horizon.")
    grid_minutes: int = Field(default=15, ge=1, description="Forecasts are stored this often, in plant time.")
    stale_minutes: int = Field(default=15, ge=1, description="An agent silent for longer makes forecasts stale.")
    future_minutes: int = Field(
        default=5, ge=0, description="Events further ahead of the plant clock are flagged."
    )
    scoring_grace_minutes: int = Field(
        default=5, ge=0, description="A horizon is scored this long after its end, in plant time."
    )
    memory_windows: int = Field(
        default=2000, ge=2, description="Windows kept in all for replay and calibration, the paper's M."
    )
    min_training_windows: int = Field(
        default=336, ge=1, description="Hourly windows a machine needs to learn from before it is learned."
    )
    learn_codes_per_machine: int = Field(
        default=500,
        ge=0,
        description="Codes outside of the catalogue that are learned of one machine; the rest count as unknown.",
    )
    learn_codes_in_model: int = Field(
        default=5000, ge=0, description="Codes outside of the catalogue that a model reads in all."
    )
    learn_code_days: int = Field(
        default=3,
        ge=1,
        description="Of a machine with more codes than that, those count that came on this many days.",
    )
    max_forgetting: float = Field(
        default=0.05, gt=0, le=1, description="What one machine may lose since its best before the gate closes."
    )
    refresh_days: int = Field(
        default=30, ge=0, description="A machine is learned again after this many plant days; 0 means never."
    )
    keep_versions: int = Field(
        default=10, ge=1, description="Newest versions whose weights are kept, needed by a forecast or not."
    )
    history_max_mb: int = Field(default=512, ge=1, description="Largest history file that may be uploaded.")
    history_uploads: int = Field(default=8, ge=1, description="History files that may be loaded at once.")
    history_uploads_per_site: int = Field(
        default=3, ge=1, description="Of these, how many for one site, and how many by one user or key."
    )
    retention_days: int = Field(
        default=400, ge=1, description="Events older than this are flagged on arrival and forgotten."
    )
    retention_confirmed_until: AwareDatetime | None = Field(
        default=None,
        description="Up to this moment the clock is known to be right: what is too old goes even if the newest "
        "events are much older than the clock says.",
    )
    retention_gb: float | None = Field(
        default=None,
        gt=0,
        description="If set, the oldest days go, events and forecasts, when the database holds more.",
    )
    quarantine_days: int = Field(default=90, ge=1, description="What was refused is kept this long.")
    notice_release: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="A notice ends when its probability is below this share of its threshold.",
    )
    notice_quiet_minutes: int = Field(
        default=60, ge=0, description="No new notice of the same alarm for this long after that, in plant time."
    )
    backup_max_age_hours: float = Field(
        default=48,
        ge=0,
        description="Status warns when the last backup is older than this, or failed; 0 never warns.",
    )
    webhook_networks: str = Field(
        default="",
        description="Networks by commas, like 10.0.0.0/8,127.0.0.0/8, that webhooks may be sent to although they "
        "are not public; otherwise webhooks only go to public addresses.",
    )
    shelf_max_hours: int = Field(default=168, ge=1, description="Longest time an alarm may be shelved for.")
    integrity_check: IntegrityCheck = Field(
        default=IntegrityCheck.QUICK,
        description="How SQLite's file is read through at the start: quick, full, off.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO, description="auto, json or text; auto is text on a terminal and JSON elsewhere."
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="debug, info, warning or error.")
    shifts: str = Field(
        default="early=06:00,late=14:00,night=22:00",
        description="When shifts start, in each plant's own time; each lasts until the next one starts.",
    )
    clock_wall_origin: AwareDatetime = Field(
        default=datetime(2000, 1, 1, tzinfo=UTC), description="Wall time at which the plant clock was set."
    )
    clock_plant_origin: AwareDatetime | None = Field(
        default=None, description="Plant time at that moment; the wall time itself unless given."
    )
    clock_speed: float = Field(default=1.0, gt=0, le=100_000, description="Plant seconds per wall second.")

    @model_validator(mode="after")
    def _another_speed_needs_an_origin(self) -> Self:
        if self.clock_speed != 1 and "clock_wall_origin" not in self.model_fields_set:
            raise ValueError("a clock_speed other than 1 needs clock_wall_origin, or plant time runs off")
        return self

    @model_validator(mode="after")
    def _certificates_have_keys(self) -> Self:
        for cert, key in (("tls_cert", "tls_key"), ("broker_tls_cert", "broker_tls_key")):
            if (getattr(self, cert) is None) != (getattr(self, key) is None):
                raise ValueError(f"{cert} and {key} go together; give both or neither")
        if self.broker_tls_cert is not None and not self.broker_tls:
            raise ValueError("broker_tls_cert is of no use without broker_tls")
        return self

    @model_validator(mode="after")
    def _only_postgresql_is_shared(self) -> Self:
        if self.process_roles != frozenset(ProcessRole) and (self.database_url or "sqlite").startswith("sqlite"):
            raise ValueError(
                f"on SQLite one process does it all, so the roles {self.roles} cannot be split off; leave out "
                "ALARMCAST_ROLES, or move to PostgreSQL with alarmcast admin copy-database and "
                "ALARMCAST_DATABASE_URL"
            )
        return self

    @field_validator("roles")
    @classmethod
    def _roles_are_known(cls, text: str) -> str:
        _process_roles(text)
        return text

    @field_validator("shifts")
    @classmethod
    def _shifts_can_be_told_apart(cls, text: str) -> str:
        _shift_starts(text)
        return text

    @field_validator("webhook_networks")
    @classmethod
    def _networks_can_be_read(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def receiver_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks that are not public and that webhooks may be sent to."""
        return _networks(self.webhook_networks)

    @property
    def process_roles(self) -> frozenset[ProcessRole]:
        """What this process does."""
        return _process_roles(self.roles)

    @property
    def shift_starts(self) -> dict[str, time]:
        """When each shift starts, in each plant's own time, the earliest first."""
        return _shift_starts(self.shifts)

    @property
    def stale_after(self) -> timedelta:
        """How long an agent may be silent before its machine's forecasts are stale."""
        return timedelta(minutes=self.stale_minutes)


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def _process_roles(text: str) -> frozenset[ProcessRole]:
    names = {part.strip() for part in text.split(",")}
    unknown = sorted(names - set(ProcessRole))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no role; write one or more of {', '.join(ProcessRole)}, by commas")
    return frozenset(ProcessRole(name) for name in names)


def _shift_starts(text: str) -> dict[str, time]:
    starts: dict[str, time] = {}
    for part in text.split(","):
        found = _SHIFT.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part.strip()!r} is no shift; write them like early=06:00,late=14:00,night=22:00")
        name, at = found["name"], time(int(found["hour"]), int(found["minute"]))
        if name in starts or at in starts.values():
            raise ValueError(f"two shifts are called {name} or start at {at:%H:%M}; each needs its own")
        starts[name] = at
    return dict(sorted(starts.items(), key=lambda shift: shift[1]))


def secret_names() -> list[str]:
    """Return the settings that nobody may read in a log; each may be given as a file, too."""
    return [name for name, field in Settings.model_fields.items() if not field.repr]


def given_variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return what the environment gives, by setting: the variable as it is spelled there, and its value."""
    return {
        name.upper().removeprefix(PREFIX).lower(): (name, value)
        for name, value in environ.items()
        if name.upper().startswith(PREFIX) and not name.upper().startswith(EDGE_PREFIX)
    }


def unknown_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return ``ALARMCAST_…`` variables that name no setting; pydantic-settings would overlook them."""
    secrets = [*secret_names(), *CLIENT_SECRETS]
    known = {*Settings.model_fields, "url", CONFIG, *CLIENT_SECRETS, *(f"{name}{SUFFIX}" for name in secrets)}
    return sorted(spelled for name, (spelled, _) in given_variables(environ).items() if name not in known)
