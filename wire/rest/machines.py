"""Machines and what they have raised."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import MachineState
from wire.events import TransitionKind
from wire.identity import Identifier
from wire.state import Note
from wire.timestamps import UtcDatetime

EXAMPLE_MACHINE: Final[dict[str, Any]] = {
    "site": "padova",
    "machine": "filler-1",
    "name": "Filler 1",
    "time_zone": "Europe/Rome",
    "registered_at": "2026-10-01T07:00:00.000Z",
    "state": "live",
    "reason": None,
    "learned_at": "2026-11-02T03:12:00.000Z",
    "agent": {
        "online": True,
        "last_seen_at": "2026-11-16T08:06:58.000Z",
        "version": "0.1.0",
        "spooled": 0,
        "skew_ms": -12,
        "state_at": "2026-11-16T08:05:00.000Z",
        "skipped": 0,
        "last_skipped": None,
        "warning": None,
        "duplicate": None,
    },
}
_EXAMPLE_KNOCK: Final[dict[str, Any]] = {
    "site": "padova",
    "machine": "capper-2",
    "first_at": "2026-11-16T07:00:00.000Z",
    "last_at": "2026-11-16T08:06:00.000Z",
}
_EXAMPLE_ALARM: Final[dict[str, Any]] = {
    "at": "2026-11-16T07:47:00.000Z",
    "code": 139,
    "text": "Film torn",
    "severity": "high",
    "received_at": "2026-11-16T07:47:00.310Z",
    "flag": None,
    "kind": None,
}


class AgentView(BaseModel):
    """The last known state of the machine's agent."""

    online: bool
    last_seen_at: UtcDatetime
    version: str | None
    spooled: int | None = Field(description="Events that wait at the machine for an ack.")
    skew_ms: int | None = Field(description="The service's plant clock minus the agent's.")
    state_at: UtcDatetime | None = Field(
        default=None, description="When the agent reported its state: `spooled` and what follows are as of then."
    )
    skipped: int = Field(default=0, description="Rows of its source that it could not read as an alarm.")
    last_skipped: Note | None = Field(default=None, description="The last of these rows: where it is and why.")
    warning: Note | None = Field(default=None, description="The last thing that it asks a person to look at.")
    duplicate: Note | None = Field(
        default=None, description="Another agent that publishes in this machine's name."
    )


class MachineView(BaseModel):
    """A registered machine."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_MACHINE]})

    site: Identifier
    machine: Identifier
    name: str
    time_zone: str
    registered_at: UtcDatetime
    state: MachineState = Field(description="How far it is on the way to a model that knows it.")
    reason: str | None = Field(description="Why it failed, or why the last learning was not taken.")
    learned_at: UtcDatetime | None = Field(description="When it was last learned.")
    agent: AgentView | None = Field(description="Null until the first message of the agent.")


class UnregisteredMachineView(BaseModel):
    """A client that publishes as a machine that is not registered; nothing is stored, agents keep their events."""

    site: Identifier
    machine: Identifier
    first_at: UtcDatetime
    last_at: UtcDatetime


class Fleet(BaseModel):
    """All machines, and those that would like to be."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"machines": [EXAMPLE_MACHINE], "unregistered": [_EXAMPLE_KNOCK]}]}
    )

    machines: list[MachineView]
    unregistered: list[UnregisteredMachineView]


class AlarmView(BaseModel):
    """An alarm the machine raised, or a change of one."""

    at: UtcDatetime
    code: int
    text: str
    severity: str
    received_at: UtcDatetime
    flag: str | None = Field(description="Why it is kept out of windows: from_the_future or too_old.")
    kind: TransitionKind | None = Field(default=None, description="What happened to it; null: it was raised.")


class AlarmsPage(BaseModel):
    """Alarms, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"alarms": [_EXAMPLE_ALARM], "next": "MTc5NDcyOTYyMC4xLjc"}]}
    )

    alarms: list[AlarmView]
    next: str | None
