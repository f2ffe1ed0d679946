"""Processes that share a database: their roles, leases and health."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from wire.enums import ProcessRole

SILENT_AFTER = timedelta(seconds=15)  # without a heartbeat a process counts as stopped


class Lease(StrEnum):
    """What only one process at a time does."""

    LEADER = "leader"  # forecasts on the grid, notifications, scoring, retention, scheduled refreshes
    AGENT_STATES = "agent_states"  # subscribes to agent states; with MQTT 3.1.1 to events too


@dataclass(frozen=True)
class ProcessInfo:
    """The identity of a process."""

    name: str
    roles: frozenset[ProcessRole]
    since: datetime


@dataclass(frozen=True)
class HealthReport:
    """What a process reports with its heartbeat."""

    ready: bool
    errors: dict[str, str] = field(default_factory=dict)
    leases: tuple[str, ...] = ()
    events_per_second: float = 0.0


@dataclass(frozen=True)
class Process:
    """A process that has sent a heartbeat."""

    name: str
    roles: frozenset[ProcessRole]
    since: datetime
    seen: datetime
    report: HealthReport
