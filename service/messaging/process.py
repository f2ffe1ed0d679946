"""The processes of one Alarmcast: what each of them does, whose turn it is, and how they are."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from wire.enums import ProcessRole

SILENT_AFTER = timedelta(seconds=15)  # a process that has not reported for so long is away


class Lease(StrEnum):
    """What one process at a time does for all of them."""

    LEADER = "duties"  # forecasts on the grid, notices, scores, retention, the schedule, the broker's memory
    AGENT_STATES = (
        "states"  # hearing whether agents are there; by MQTT 3.1.1, which shares nothing out, all of them
    )


@dataclass(frozen=True)
class ProcessInfo:
    """Which process this is."""

    name: str
    roles: frozenset[ProcessRole]
    since: datetime


@dataclass(frozen=True)
class HealthReport:
    """How a process says that it is."""

    ready: bool
    errors: dict[str, str] = field(default_factory=dict)
    leases: tuple[str, ...] = ()
    events_per_second: float = 0.0


@dataclass(frozen=True)
class Process:
    """A process that was seen at work on the database."""

    name: str
    roles: frozenset[ProcessRole]
    since: datetime
    seen: datetime
    report: HealthReport
