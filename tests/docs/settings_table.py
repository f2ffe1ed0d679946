"""docs/settings.md from the settings themselves: ``scripts/settings`` writes it, a test holds it true."""

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

FILE = Path(__file__).parents[2] / "docs" / "settings.md"
_HEAD = """# Settings

Written by `scripts/settings` from `service/settings.py` and `edge_agent/settings.py`; a test holds it true.

A flag wins over a variable, a variable over the file of settings, that over the default. The agent's file is
`edge.toml`. The service's is named by `--config` or `ALARMCAST_CONFIG` and has lines like `ALARMCAST_PORT=8080`;
`alarmcast admin broker-init` writes one with all that the service needs to reach that broker. A variable that
names no setting is refused, and so is a value that cannot be. A *secret* may be given as a file instead: the
variable with `_FILE` at its end names a file that holds it in one line (mode 0600 or 0640), as Docker,
Kubernetes and systemd hand secrets over; the variable and its file together are refused.

`alarmcast config show [--json]` prints every value and where it was found, with secrets masked. `alarmcast
config check` looks at everything `alarmcast serve` would need and says what would not work; `alarmcast-edge
doctor` does so for an agent.

`ALARMCAST_KEY` (or `ALARMCAST_KEY_FILE`) is no setting of the service: it is the key that commands show a
service elsewhere.
"""


def table() -> str:
    """Return the whole page."""
    flags = set(inspect.signature(serve).parameters)
    parts = [
        _HEAD,
        "## The service\n",
        "| setting | variable | flag | what it is | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for name, field in service.settings.Settings.model_fields.items():
        flag = f"`--{_dashed(name)}`" if name in flags else ""
        parts.append(_row(name, _variable(service.settings.PREFIX, name, field), flag, field))
    parts += [
        "\n## The edge agent\n",
        "| `edge.toml` | variable | flag | what it is | default | meaning |",
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
    table, _, key = name.partition("_")
    return f"{table}.{key}" if key else name


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
        return "*must be given*"
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"`{value:%Y-%m-%dT%H:%M:%SZ}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    FILE.write_text(table(), encoding="utf-8")
