"""Settings in, the values that the parts are given out."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from paho.mqtt.enums import MQTTProtocolVersion
from pydantic import ValidationError

from forecasting.window import WindowSpec
from service.app.config_file import read_config_file
from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.edge_toml import AgentAccess
from service.errors import InputRejected
from service.learning.code_limits import CodeLimits
from service.learning.enrolment import TrainingDataPolicy
from service.messaging.broker_config import BrokerAddress
from service.settings import (
    CLIENT_SECRETS,
    CONFIG,
    PREFIX,
    MqttVersion,
    Settings,
    given_variables,
    secret_names,
    unknown_variables,
)
from service.settings import DynamicSecurity as Mode
from wire.clock import PlantClock
from wire.secret_files import SecretFile, SecretRejected, take_secrets

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Configuration:
    """The settings, and where each was found that is not a default."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from a file, the environment and secret files, with flags on top.

    The flag ``config`` names the file, or ALARMCAST_CONFIG does. A mistake is one sentence.
    """
    configured = configuration(**overrides)
    for warning in configured.warnings:
        log.warning("%s", warning)
    return configured.settings


def configuration(**overrides: Any) -> Configuration:
    """Read the settings as above and remember where they were found."""
    unknown = unknown_variables()
    if unknown:
        raise InputRejected(f"There is no setting {unknown[0]}; unset it or correct its name.")
    file = read_config_file(overrides.pop(CONFIG, None), os.environ)
    variables = given_variables(os.environ)
    files = _secrets({**file.variables, **variables}, secret_names())
    flags = {name: value for name, value in overrides.items() if value is not None}
    written = {name: value for name, (_, value) in file.variables.items() if name in Settings.model_fields}
    origins = dict.fromkeys(written, f"file, {file.path}")
    origins |= {name: f"environment, {spelled}" for name, (spelled, _) in variables.items()}
    origins |= {name: f"file, {found.path}" for name, found in files.items()}
    origins |= dict.fromkeys(flags, "flag")
    try:
        settings = Settings(**written | {name: found.value for name, found in files.items()} | flags)
    except ValidationError as error:
        raise InputRejected(_sentence(error)) from None
    warnings = tuple(found.warning for found in files.values() if found.warning)
    kept = {name: origin for name, origin in origins.items() if name in Settings.model_fields}
    return Configuration(settings, kept, warnings)


def client_key(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the key that commands show a service elsewhere: ALARMCAST_KEY, or the file that holds it."""
    variables = given_variables(environ)
    (name,) = CLIENT_SECRETS
    found = _secrets(variables, CLIENT_SECRETS)
    if name in found:
        return found[name].value
    return variables[name][1] if name in variables else None


def _secrets(variables: Mapping[str, tuple[str, str]], names: Iterable[str]) -> dict[str, SecretFile]:
    values = {name: value for name, (_, value) in variables.items()}
    spelled = {name: spelling for name, (spelling, _) in variables.items()}
    try:
        return take_secrets(values, names, spelled)
    except SecretRejected as error:
        raise InputRejected(str(error)) from None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"The settings are wrong: {message}."
    name = str(first["loc"][0])
    return f"The setting {name} ({PREFIX}{name.upper()}) is wrong: {message}."


def plant_clock(settings: Settings) -> PlantClock:
    """Return the plant's clock."""
    return PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)


def window_spec(settings: Settings) -> WindowSpec:
    """Return how far forecasts look back and ahead."""
    return WindowSpec(timedelta(minutes=settings.lookback_minutes), timedelta(minutes=settings.horizon_minutes))


def curriculum(settings: Settings) -> TrainingDataPolicy:
    """Return how a machine's windows are shared out, and how many there must be."""
    codes = CodeLimits(settings.max_codes_per_machine, settings.max_codes_per_model, settings.min_code_days)
    keep = timedelta(days=settings.retention_days)
    return TrainingDataPolicy(min_windows=settings.min_training_windows, keep=keep, codes=codes)


def broker_address(settings: Settings) -> BrokerAddress:
    """Return where the broker is and how to speak to it."""
    v5 = settings.broker_mqtt_version is MqttVersion.V5
    return BrokerAddress(
        settings.broker_host,
        settings.broker_port,
        MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311,
        settings.broker_username,
        settings.broker_password,
        settings.broker_tls,
        settings.broker_tls_ca,
        settings.broker_tls_cert,
        settings.broker_tls_key,
    )


def dynamic_security(settings: Settings) -> DynamicSecurityClient | None:
    """Return the way to the broker's security, unless it is none of ours."""
    if settings.broker_dynamic_security is Mode.OFF:
        return None
    return DynamicSecurityClient(broker_address(settings), client_id=settings.broker_client_id)


def agent_access(settings: Settings) -> AgentAccess:
    """Return where agents find the broker, as their edge.toml says it."""
    tls = settings.broker_tls if settings.broker_public_tls is None else settings.broker_public_tls
    ca = settings.broker_tls_ca if tls else None
    try:
        authority = None if ca is None else ca.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputRejected(f"Cannot read {ca}, the setting broker_tls_ca: {error}.") from None
    return AgentAccess(
        settings.broker_public_host or settings.broker_host,
        settings.broker_public_port or settings.broker_port,
        tls,
        authority,
        settings.broker_mqtt_version.value,
    )


def sqlite_url(data_dir: Path) -> str:
    """Return where the database is unless another one is named."""
    return f"sqlite:///{data_dir.resolve() / 'alarmcast.sqlite3'}"
