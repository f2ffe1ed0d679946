"""What ``discover`` needs of each protocol: how to connect, and a proposed configuration."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ALARM = re.compile(
    r"alarm|fault|error|warn|trip|stör|stoer|fehler|meldung|allarm|guasto|défaut|defaut|alarma", re.IGNORECASE
)
MAX_SIGNALS = 500


@dataclass(frozen=True)
class Access:
    """Address and credentials of what is browsed."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls_ca: Path | None = None


@dataclass(frozen=True)
class Proposal:
    """The lines of the table ``[kind]``, and names of alarms that need numbers.

    ``table`` is empty if nothing was found; ``hint`` says what to do then.
    """

    kind: str
    summary: str
    table: Sequence[str]
    names: Sequence[str] = ()
    hint: str = ""


def toml_text(text: str) -> str:
    """Return a TOML string."""
    escaped = "".join(char if char.isprintable() and char not in '"\\' else f"\\u{ord(char):04x}" for char in text)
    return f'"{escaped}"'


def connection_lines(access: Access) -> list[str]:
    """Return the lines of address and credentials."""
    lines = [f"url = {toml_text(access.url)}"]
    if access.username is not None:
        lines.append(f"username = {toml_text(access.username)}  # the password: ALARMCAST_EDGE_SOURCE_PASSWORD")
    if access.tls_ca is not None:
        lines.append(f"tls_ca = {toml_text(str(access.tls_ca))}")
    return lines
