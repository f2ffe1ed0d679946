"""Load the settings and derive the configuration of the components."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from service.errors import InputRejected
from service.ingest.service import TimePolicy
from service.settings import (
    CLIENT_SECRETS,
    CONFIG,
    PREFIX,
    Settings,
    given_variables,
    secret_names,
    unknown_variables,
)
from wire.clock import PlantClock
from wire.secret_files import SUFFIX, SecretFile, SecretRejected, take_secrets

log = logging.getLogger(__name__)
Variables = Mapping[str, tuple[str, str]]  # spelled name and value by setting, as of given_variables


@dataclass(frozen=True)
class Configuration:
    """The settings and the origin of each that is not a default."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load_settings(**overrides: Any) -> Settings:
    """Load the settings from a file (``config`` or ALARMCAST_CONFIG), the environment, secret files and options.

    Later sources override earlier ones. An error is a single sentence.
    """
    configured = configuration(**overrides)
    for warning in configured.warnings:
        log.warning("%s", warning)
    return configured.settings


def configuration(**overrides: Any) -> Configuration:
    """Load the settings as :func:`load_settings` does, with their origins."""
    unknown = unknown_variables()
    if unknown:
        raise InputRejected(f"There is no setting {unknown[0]}; unset it or correct its name.")
    variables = given_variables(os.environ)
    path, in_file = _read_file(overrides.pop(CONFIG, None), variables)
    files = _secrets({**in_file, **variables}, secret_names())
    flags = {name: value for name, value in overrides.items() if value is not None}
    written = {name: value for name, (_, value) in in_file.items() if name in Settings.model_fields}
    origins = dict.fromkeys(written, f"file, {path}")
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


def _read_file(path: Path | None, given: Mapping[str, tuple[str, str]]) -> tuple[Path | None, Variables]:
    """Read the given file, or that of ALARMCAST_CONFIG, without variables that the environment sets too."""
    if path is None and CONFIG in given:
        named = given[CONFIG][1]
        path = Path(named) if named else None
    if path is None:
        return None, {}
    found = given_variables(_parse_file(path))
    taken = set(given)
    for name in secret_names():  # a secret is given by value or by file
        if {name, f"{name}{SUFFIX}"} & given.keys():
            taken |= {name, f"{name}{SUFFIX}"}
    return path, {name: value for name, value in found.items() if name not in taken}


def _parse_file(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputRejected(f"Cannot read the settings in {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputRejected(f"The settings in {path} are not UTF-8 text.") from None
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.startswith(PREFIX):
            raise InputRejected(f"Line {number} of {path} is not a setting; write it like {PREFIX}PORT=8080.")
        if unknown_variables({name: value}) or name == f"{PREFIX}{CONFIG.upper()}":
            raise InputRejected(f"There is no setting {name}; correct line {number} of {path}.")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        variables[name] = value
    return variables


def client_key(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the API key for commands: ALARMCAST_KEY, or the file of ALARMCAST_KEY_FILE."""
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
    """Return the plant clock."""
    return PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)


def time_policy(settings: Settings) -> TimePolicy:
    """Return the range of plausible event times."""
    return TimePolicy(timedelta(minutes=settings.future_minutes), timedelta(days=settings.retention_days))


def sqlite_url(data_dir: Path) -> str:
    """Return the URL of the default database."""
    return f"sqlite:///{data_dir.resolve() / 'alarmcast.sqlite3'}"
