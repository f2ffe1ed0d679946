"""The configuration of a machine's agent, ready to be put beside the machine."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from wire.identity import MachineId
from wire.timestamps import isoformat

_TIME_ZONE = re.compile(r"^timezone = .*\n", re.MULTILINE)


@dataclass(frozen=True)
class AgentAccess:
    """Where agents find the broker; ``ca`` is the PEM of the authority that signed its certificate."""

    host: str
    port: int
    tls: bool = False
    ca: str | None = None
    mqtt_version: str = "5"


def edge_toml(machine: MachineId, access: AgentAccess, *, username: str, password: str, time_zone: str) -> str:
    """Write an ``edge.toml``; only the file that the machine writes its alarms to is left to correct.

    Whatever stands in it is made of letters, digits and a few signs, or quoted as TOML wants it.
    """
    lines = [
        "# This file lets its holder speak as this machine: keep it readable for the agent alone (chmod 600).",
        "# Start the agent with: alarmcast-edge run --config edge.toml",
        f"site = {_quoted(machine.site)}",
        f"machine = {_quoted(machine.machine)}",
        "",
        "[source]",
        "# Correct the path: the file to which the machine's controller appends a line for each alarm.",
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


def source_lines(*, time_zone: str, serial: str | None, last_at: datetime) -> str:
    """Return lines for ``[source]``: an agent on a log that was loaded as history goes on after its last alarm."""
    since = isoformat(last_at + timedelta(microseconds=1))
    lines = [
        "# As the history was read: what was loaded is not sent again.",
        f"timezone = {_quoted(time_zone)}",
        *([] if serial is None else [f"serial = {_quoted(serial)}"]),
        f"since = {since}",
    ]
    return "\n".join(lines) + "\n"


def with_source(edge_toml: str, lines: str) -> str:
    """Return an ``edge.toml`` of ours with ``lines`` in place of its time zone."""
    return _TIME_ZONE.sub(lambda _found: lines, edge_toml, count=1)


def _quoted(text: str) -> str:
    """Write a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'
