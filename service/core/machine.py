"""A machine, its agent and its neighbours who are not enrolled yet."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from wire.identity import MachineId


@dataclass(frozen=True)
class Machine:
    """A registered machine; ``row`` is its short number in the store."""

    row: int
    id: MachineId
    name: str
    time_zone: str
    registered_at: datetime


@dataclass(frozen=True)
class Agent:
    """How an agent was when last heard, in plant time."""

    online: bool
    heard_at: datetime
    version: str | None = None
    epoch: UUID | None = None
    spooled: int | None = None
    skew_ms: int | None = None


@dataclass(frozen=True)
class Knock:
    """Somebody speaks on the topics of a machine that is not registered."""

    machine: MachineId
    first_at: datetime
    last_at: datetime
