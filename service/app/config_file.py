"""A file of settings: lines like ``ALARMCAST_PORT=8080``, as ``alarmcast admin broker-init`` writes one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.errors import InputRejected
from service.settings import CONFIG, PREFIX, given_variables, secret_names, unknown_variables
from wire.secret_files import SUFFIX


@dataclass(frozen=True)
class ConfigFile:
    """What a file gives, by setting, as :func:`given_variables` returns it; ``path`` is None without a file."""

    path: Path | None
    variables: Mapping[str, tuple[str, str]]


def read_config_file(path: Path | None, environ: Mapping[str, str]) -> ConfigFile:
    """Read the file that is given, or that ALARMCAST_CONFIG names; what the environment gives too is left out."""
    given = given_variables(environ)
    if path is None and CONFIG in given:
        named = given[CONFIG][1]
        path = Path(named) if named else None
    if path is None:
        return ConfigFile(None, {})
    found = given_variables(_read(path))
    taken = set(given)
    for name in secret_names():  # a secret is given as itself or as its file
        if {name, f"{name}{SUFFIX}"} & given.keys():
            taken |= {name, f"{name}{SUFFIX}"}
    return ConfigFile(path, {name: value for name, value in found.items() if name not in taken})


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputRejected(f"Cannot read the settings in {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputRejected(f"The settings in {path} are no text in UTF-8.") from None
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.startswith(PREFIX):
            raise InputRejected(f"Line {number} of {path} is no setting; write it like {PREFIX}PORT=8080.")
        if unknown_variables({name: value}) or name == f"{PREFIX}{CONFIG.upper()}":
            raise InputRejected(f"There is no setting {name}; correct line {number} of {path}.")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        variables[name] = value
    return variables
