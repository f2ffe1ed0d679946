"""The agent's settings; precedence: flag, environment, file, default."""

import json
import logging
import os
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from edge_agent.errors import ConfigRejected
from wire.identity import Identifier
from wire.mqtt import BrokerConfig, MqttVersion
from wire.secret_files import SUFFIX, SecretRejected, take_secrets

log = logging.getLogger(__name__)

ENV_PREFIX = "ALARMCAST_EDGE_"


class SourceKind(StrEnum):
    """The source of alarms."""

    REPLAY = "replay"
    TAIL = "tail"
    SIMULATED = "simulated"
    MODBUS = "modbus"
    S7 = "s7"
    OPCUA = "opcua"
    MQTT = "mqtt"
    HTTP = "http"
    SQL = "sql"
    SPARKPLUG = "sparkplug"


_KINDS = frozenset(kind.value for kind in SourceKind)
_FILE_KINDS = (SourceKind.REPLAY, SourceKind.TAIL)


class Settings(BaseModel):
    """The agent's settings. A table of ``edge.toml`` prefixes its keys: ``broker.host`` is ``broker_host``.

    A field with ``repr=False`` is a secret and may be given as a file: ``broker.password_file``, or
    ``ALARMCAST_EDGE_BROKER_PASSWORD_FILE``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    site: Identifier = Field(description="The plant this machine stands in.")
    machine: Identifier = Field(description="This machine's id within its site.")
    spool_path: Path = Field(default=Path("spool.sqlite3"), description="SQLite file that holds unacked events.")
    spool_max_events: int = Field(
        default=1_000_000,
        ge=1000,
        description="Beyond this the oldest events are evicted and leave a gap record.",
    )
    spool_max_mb: int = Field(
        default=256,
        ge=1,
        le=1_000_000,
        description="Size at which the oldest events are evicted; at most half of the disk.",
    )
    stop_drain_seconds: float = Field(
        default=5.0, ge=0, le=3600, description="How long a stop waits for acks; unacked events stay in the spool."
    )
    broker_host: str = Field(default="127.0.0.1", description="Host of the MQTT broker.")
    broker_port: int = Field(default=1883, ge=1, le=65535, description="Port of the MQTT broker.")
    broker_username: str | None = Field(default=None, description="User name at the broker.")
    broker_password: str | None = Field(default=None, description="Password at the broker.", repr=False)
    broker_tls: bool = Field(default=False, description="Use TLS and verify the broker's certificate.")
    broker_tls_ca: Path | None = Field(
        default=None,
        description="PEM file of the authority that signed it; the system's authorities unless given.",
    )
    broker_tls_ca_pem: str | None = Field(
        default=None, description="That authority's certificate itself, instead of a file."
    )
    broker_tls_cert: Path | None = Field(
        default=None, description="PEM file of the client certificate, if the broker requires one."
    )
    broker_tls_key: Path | None = Field(default=None, description="PEM file of that certificate's key.")
    broker_mqtt_version: MqttVersion = Field(default=MqttVersion.V5, description="5 or 3.1.1.")
    source_kind: SourceKind = Field(description="The source of alarms.")
    source_path: Path | None = Field(default=None, description="File to replay or to tail.")
    source_serial: str | None = Field(default=None, description="Read only rows of this serial.")
    source_timezone: str = Field(
        default="UTC", description="Time zone of timestamps without one.", validate_default=True
    )
    source_pace: str = Field(
        default="plant",
        pattern="^(plant|at_once)$",
        description="Replay: 'plant' shifts the log to now and keeps its pace, 'at_once' sends it unchanged.",
    )
    source_seed: int = Field(default=1, description="Simulated: seed of the fleet.")
    source_index: int = Field(default=0, ge=0, description="Simulated: which machine of the fleet.")
    source_since: AwareDatetime | None = Field(
        default=None,
        description="Ignore alarms before this time, for example because they were imported as history.",
    )
    source_codes: Path | None = Field(
        default=None, description="CSV file with the columns name and code: the numbers of named alarms."
    )
    source_password: str | None = Field(
        default=None, description="Password or token of the source, if it requires one.", repr=False
    )
    source_options: dict[str, Any] = Field(
        default={},
        description="The source's own table, [modbus] for example; as a flag or variable it is JSON.",
    )
    clock_wall_origin: AwareDatetime = Field(
        default=datetime(2000, 1, 1, tzinfo=UTC), description="Wall time at which the plant clock was set."
    )
    clock_plant_origin: AwareDatetime | None = Field(
        default=None, description="Plant time at that moment; the wall time itself unless given."
    )
    clock_speed: float = Field(default=1.0, gt=0, le=100_000, description="Plant seconds per wall second.")

    @field_validator("source_options", mode="before")
    @classmethod
    def _options_may_be_json(cls, options: Any) -> Any:
        try:
            return json.loads(options) if isinstance(options, str) else options
        except ValueError:
            raise ValueError("it is not JSON") from None

    @field_validator("source_timezone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            if not available_timezones():  # Windows has none
                raise ValueError("this computer knows no time zones; pip install tzdata") from None
            raise ValueError(f"{name!r} is not a known time zone; write one like Europe/Rome") from None
        return name

    @model_validator(mode="after")
    def _another_speed_needs_an_origin(self) -> Self:
        if self.clock_speed != 1 and "clock_wall_origin" not in self.model_fields_set:
            raise ValueError("a clock_speed other than 1 needs clock_wall_origin")
        return self

    @model_validator(mode="after")
    def _tls_is_complete(self) -> Self:
        if (self.broker_tls_cert is None) != (self.broker_tls_key is None):
            raise ValueError("broker_tls_cert and broker_tls_key go together; give both or neither")
        if self.broker_tls_ca is not None and self.broker_tls_ca_pem is not None:
            raise ValueError("broker_tls_ca and broker_tls_ca_pem exclude each other; give one of them")
        return self

    @model_validator(mode="after")
    def _file_sources_name_a_file(self) -> Self:
        if self.source_kind in _FILE_KINDS and self.source_path is None:
            raise ValueError(f"a source of kind {self.source_kind.value!r} needs source_path")
        return self


def broker_config(settings: Settings) -> BrokerConfig:
    """Return how to reach the broker."""
    return BrokerConfig(
        host=settings.broker_host,
        port=settings.broker_port,
        version=settings.broker_mqtt_version,
        username=settings.broker_username,
        password=settings.broker_password,
        tls=settings.broker_tls,
        tls_ca=settings.broker_tls_ca,
        tls_ca_pem=settings.broker_tls_ca_pem,
        tls_cert=settings.broker_tls_cert,
        tls_key=settings.broker_tls_key,
    )


def load(
    config: Path | None, flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ
) -> Settings:
    """Merge file, environment and flags into settings, or raise :class:`ConfigRejected` with one sentence."""
    try:
        return Settings.model_validate(_merge(config, flags, environ))
    except ValidationError as error:
        raise ConfigRejected(_sentence(error)) from None


def load_all(
    config: Path | None, flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ
) -> list[Settings]:
    """Return the settings of each of ``[[machines]]``, or of the one machine of a file without them."""
    machines = _machines(_read_tables(config), config) if config else []
    if not machines or _machine(flags, environ):
        return [load(config, flags, environ)]
    loaded = [load(config, {**flags, "machine": str(one.get("machine"))}, environ) for one in machines]
    if len({settings.spool_path for settings in loaded}) < len(loaded):
        raise ConfigRejected("Two of [[machines]] have the same spool.path; give each its own.")
    return loaded


def spool_path(
    config: Path | None, flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ
) -> Path:
    """Return the path of the spool, even if nothing else is configured."""
    values = (_from_file(config, _machine(flags, environ)) if config else {}) | _from_environment(environ)
    return Path(flags.get("spool_path") or values.get("spool_path", Settings.model_fields["spool_path"].default))


def secret_names() -> list[str]:
    """Return the secret settings; each may be given as a file, too."""
    return [name for name, field in Settings.model_fields.items() if not field.repr]


def _merge(config: Path | None, flags: Mapping[str, str | None], environ: Mapping[str, str]) -> dict[str, Any]:
    machine = _machine(flags, environ)
    values: dict[str, Any] = _with_secrets(_from_file(config, machine), "") if config else {}
    values |= _with_secrets(_from_environment(environ), ENV_PREFIX)
    return _with_options(values | {name: value for name, value in flags.items() if value is not None})


def _with_options(values: dict[str, Any]) -> dict[str, Any]:
    """Take the table that is named after the source's kind as its options."""
    kind = str(values.get("source_kind", ""))
    tables = {name: table for name, table in values.items() if isinstance(table, dict) and name in _KINDS}
    for name, table in tables.items():
        if name != kind:
            raise ConfigRejected(f'The table [{name}] needs kind = "{name}" in [source]; there it is "{kind}".')
        values = {"source_options": table, **values}
    return {name: value for name, value in values.items() if name not in tables}


def _with_secrets(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Replace secret files by their content."""
    spelled = {name: f"{prefix}{name.upper()}" if prefix else name for name in values}
    try:
        secrets = take_secrets(values, secret_names(), spelled)
    except SecretRejected as error:
        raise ConfigRejected(str(error)) from None
    for secret in secrets.values():
        if secret.warning:
            log.warning("%s", secret.warning)
    rest = {name: value for name, value in values.items() if name.removesuffix(SUFFIX) not in secrets}
    return rest | {name: secret.value for name, secret in secrets.items()}


def _machine(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> str | None:
    return flags.get("machine") or environ.get(f"{ENV_PREFIX}MACHINE")


def _from_file(path: Path, machine: str | None) -> dict[str, Any]:
    """Return the settings of a file; of ``[[machines]]`` those of one, over what all of them share."""
    tables = _read_tables(path)
    machines = _machines(tables, path)
    shared = _flatten({name: table for name, table in tables.items() if name != "machines"})
    if not machines:
        return shared
    chosen = [one for one in machines if machine in (None, one.get("machine"))]
    if len(chosen) != 1:
        names = ", ".join(str(one.get("machine")) for one in machines)
        raise ConfigRejected(f"{path} has the machines {names}; name one of them with --machine.")
    return shared | _flatten(chosen[0])


def _read_tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigRejected(f"Cannot read {path}: {error.strerror}. Give an existing file to --config.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigRejected(f"{path} is not valid TOML: {error}.") from None


def _machines(tables: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    machines = tables.get("machines", [])
    if not isinstance(machines, list) or not all(isinstance(one, dict) for one in machines):
        raise ConfigRejected(f"machines in {path} is not a list of tables; write [[machines]].")
    return machines


def _flatten(tables: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict) and name not in _KINDS:
            flat |= {f"{name}_{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(ENV_PREFIX)
    }


def _sentence(error: ValidationError) -> str:
    """Return a message about the first wrong setting."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    spellings = f"{name} (flag --{name.replace('_', '-')}, variable {ENV_PREFIX}{name.upper()})"
    if first["type"] == "missing":
        return f"The setting {spellings} is missing."
    if first["type"] == "extra_forbidden":
        return f"There is no setting {name}; see alarmcast-edge run --help for all settings."
    message = first["msg"].removeprefix("Value error, ")
    return f"The setting {spellings} is wrong: {message}." if name else f"The configuration is wrong: {message}."
