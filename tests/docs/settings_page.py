"""Build docs/reference/settings.md from the settings themselves."""

import inspect
import types
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AwareDatetime
from pydantic.fields import FieldInfo

import edge_agent.settings
import service.settings
from service.cli.serve import serve
from wire.identity import Identifier

_HEAD = """# Settings

Written by `scripts/reference` from `service/settings.py` and `edge_agent/settings.py`; a test compares the page
with them.

A flag takes precedence over a variable, a variable over the settings file, the file over the default. The
agent's file is `edge.toml`. The service's file is named by `--config` or `ALARMCAST_CONFIG` and has lines such
as `ALARMCAST_PORT=8080`; `alarmcast admin broker-init` writes one with everything the service needs to reach
that broker. An unknown variable and an invalid value are errors. A *secret* may be given as a file instead: the
variable with the suffix `_FILE` names a file that contains it in one line (mode 0600 or 0640), as Docker,
Kubernetes and systemd provide secrets. The variable and its file together are an error.

`alarmcast config show [--json]` prints every value and where it comes from, with secrets masked. `alarmcast
config check` checks everything that `alarmcast serve` needs and reports what would not work; `alarmcast-edge
doctor` does so for an agent.

`ALARMCAST_KEY` (or `ALARMCAST_KEY_FILE`) is not a setting of the service: it is the API key that commands send
to a service on another computer.
"""


def page() -> str:
    """Return the whole page."""
    flags = set(inspect.signature(serve).parameters)
    parts = [
        _HEAD,
        "## The service\n",
        "| setting | variable | flag | type | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for name, field in service.settings.Settings.model_fields.items():
        flag = f"`--{_dashed(name)}`" if name in flags else ""
        parts.append(_row(name, _variable(service.settings.PREFIX, name, field), flag, field))
    parts += [
        "\n## The edge agent\n",
        "| `edge.toml` | variable | flag | type | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for name, field in edge_agent.settings.Settings.model_fields.items():
        variable = _variable(edge_agent.settings.ENV_PREFIX, name, field)
        parts.append(_row(_key(name), variable, f"`--{_dashed(name)}`", field))
    return "\n".join(parts) + "\n"


def _row(name: str, variable: str, flag: str, field: FieldInfo) -> str:
    words = (f"`{name}`", variable, flag, _kind(field), _default(field), str(field.description))
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def _variable(prefix: str, name: str, field: FieldInfo) -> str:
    variable = f"`{prefix}{name.upper()}`"
    return variable if field.repr else f"{variable} or `…_FILE`"


def _key(name: str) -> str:
    section, _, key = name.partition("_")
    return f"{section}.{key}" if key else name


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _kind(field: FieldInfo) -> str:
    kind: Any = field.annotation
    if get_origin(kind) is types.UnionType:
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(f"`{one.value}`" for one in kind)
    word = _WORDS.get(kind, str(kind))
    if any("pattern" in str(part) for part in field.metadata) and kind is str:
        word = "id" if Identifier.__metadata__[0] in field.metadata else "word"  # type: ignore[attr-defined]
    bounds = [_BOUNDS[type(part)](part) for part in field.metadata if type(part) in _BOUNDS]
    secret = "" if field.repr else "secret "
    return secret + " ".join([word, *bounds])


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    datetime: "moment",
    AwareDatetime: "moment",
    dict[str, Any]: "table",
}
_BOUNDS: dict[type, Callable[[Any], str]] = {
    Ge: lambda part: f"≥ {part.ge}",
    Gt: lambda part: f"> {part.gt}",
    Le: lambda part: f"≤ {part.le}",
    Lt: lambda part: f"< {part.lt}",
}


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "*required*"
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"`{value:%Y-%m-%dT%H:%M:%SZ}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
