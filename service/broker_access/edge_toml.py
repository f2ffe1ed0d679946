"""Write the ``edge.toml`` of a machine's agent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wire.identity import MachineId
from wire.timestamps import isoformat

_TIME_ZONE = re.compile(r"^timezone = .*\n", re.MULTILINE)


@dataclass(frozen=True)
class AgentAccess:
    """The broker's address for agents; ``ca`` is the PEM of the authority that signed its certificate."""

    host: str
    port: int
    tls: bool = False
    ca: str | None = None
    mqtt_version: str = "5"


def edge_toml(machine: MachineId, access: AgentAccess, *, username: str, password: str, time_zone: str) -> str:
    """Return an ``edge.toml``; only the path of the alarm log is left to correct."""
    lines = [
        "# This file contains the password of this machine: let only the agent read it (chmod 600).",
        "# Start the agent with: alarmcast-edge run --config edge.toml",
        f"site = {_quoted(machine.site)}",
        f"machine = {_quoted(machine.machine)}",
        "",
        "[source]",
        "# Correct the path: the file to which the controller appends a line for each alarm.",
        'kind = "tail"',
        'path = "/var/log/machine/alarms.csv"',
        f"timezone = {_quoted(time_zone)}",
        "",
        "[spool]",
        'path = "/var/lib/alarmcast/spool.sqlite3"',
        "",
        "[broker]",
        f"host = {_quoted(access.host)}",
        f"port = {access.port}",
        f"username = {_quoted(username)}",
        f"password = {_quoted(password)}",
    ]
    if access.mqtt_version != "5":
        lines.append(f"mqtt_version = {_quoted(access.mqtt_version)}")
    if access.tls:
        lines.append("tls = true")
    if access.tls and access.ca:
        lines += [
            "# The authority that signed the broker's certificate.",
            f"tls_ca_pem = '''\n{access.ca.strip()}'''",
        ]
    return "\n".join(lines) + "\n"


def source_lines(
    *,
    time_zone: str,
    serial: str | None,
    last_at: datetime,
    tail: Mapping[str, str | bool | Sequence[str]] | None = None,
    has_code_map: bool = False,
) -> str:
    """Return lines for ``[source]``: the agent continues after the last alarm of the imported history.

    ``tail`` says how the rows of the file are written.
    """
    since = isoformat(last_at + timedelta(microseconds=1))
    lines = [
        "# As in the imported history, which is not sent again.",
        f"timezone = {_quoted(time_zone)}",
        *([] if serial is None else [f"serial = {_quoted(serial)}"]),
        f"since = {since}",
    ]
    if has_code_map:
        lines += ["# Correct the path: the code map that was given with the history.", 'codes = "codes.csv"']
    if tail:
        lines += ["", "[tail]", *(f"{key} = {_value(value)}" for key, value in tail.items())]
    return "\n".join(lines) + "\n"


def with_source(edge_toml: str, lines: str) -> str:
    """Return an ``edge.toml`` with ``lines`` in place of its time zone."""
    return _TIME_ZONE.sub(lambda _match: lines, edge_toml, count=1)


def _value(value: str | bool | Sequence[str]) -> str:  # noqa: FBT001
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'
