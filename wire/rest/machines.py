"""Machines and what they have raised."""

from pydantic import BaseModel, Field

from wire.identity import Identifier
from wire.moment import Moment
from wire.words import MachineState


class AgentView(BaseModel):
    """How the machine's agent was when last heard."""

    online: bool
    heard_at: Moment
    version: str | None
    spooled: int | None = Field(description="Events that wait at the machine for an ack.")
    skew_ms: int | None = Field(description="The service's plant clock minus the agent's.")


class MachineView(BaseModel):
    """A registered machine."""

    site: Identifier
    machine: Identifier
    name: str
    time_zone: str
    registered_at: Moment
    state: MachineState = Field(description="How far it is on the way to a model that knows it.")
    reason: str | None = Field(description="Why it failed, or why the last learning was not taken.")
    learned_at: Moment | None = Field(description="When it was last learned.")
    agent: AgentView | None = Field(description="Null until the agent is heard for the first time.")


class KnockView(BaseModel):
    """Somebody who speaks as a machine that is not registered; nothing of it is stored, nothing is lost."""

    site: Identifier
    machine: Identifier
    first_at: Moment
    last_at: Moment


class Fleet(BaseModel):
    """All machines, and those that would like to be."""

    machines: list[MachineView]
    knocking: list[KnockView]


class AlarmView(BaseModel):
    """An alarm the machine raised."""

    at: Moment
    code: int
    text: str
    severity: str
    received_at: Moment
    flag: str | None = Field(description="Why it is kept out of windows: from_the_future or too_old.")


class AlarmsPage(BaseModel):
    """Alarms, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    alarms: list[AlarmView]
    next: str | None
