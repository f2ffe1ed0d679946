"""A machine, its agent and its neighbours who are not enrolled yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from service.errors import Gone
from service.http.message import Message
from wire.enums import MachineState
from wire.identity import MachineId
from wire.state import Note


@dataclass(frozen=True)
class Machine:
    """A registered machine; ``row`` is its short number in the store."""

    row_id: int
    id: MachineId
    name: str
    time_zone: str
    registered_at: datetime
    state: MachineState = MachineState.REGISTERED
    reason: Message | None = None
    learned_at: datetime | None = None

    def require_active(self) -> None:
        """Raise :class:`Gone` if the machine has been let go."""
        if self.state is MachineState.RETIRED:
            raise Gone(f"{self.id} has been retired. Enrol it again with: alarmcast admin enrol {self.id}")


@dataclass(frozen=True)
class Agent:
    """How an agent was when last heard, in plant time; ``since`` is its first sign of life."""

    online: bool
    last_seen_at: datetime
    version: str | None = None
    epoch: UUID | None = None
    spooled: int | None = None
    skew_ms: int | None = None
    since: datetime | None = None
    state_at: datetime | None = None  # what the state says is true as of then; events are heard later
    skipped: int = 0  # rows of its source that it could not read
    last_skipped: Note | None = None
    warning: Note | None = None
    rival: Note | None = None  # another agent that speaks in the machine's name
    connected_at: datetime | None = None  # known only of states that this process has received


@dataclass(frozen=True)
class UnregisteredMachine:
    """Somebody speaks on the topics of a machine that is not registered."""

    machine: MachineId
    first_at: datetime
    last_at: datetime


class MachineReader(Protocol):
    """Who is registered, how their agents are, who knocks."""

    def get(self, machine: MachineId) -> Machine: ...
    def find(self, machine: MachineId) -> Machine | None: ...
    def all(self, *, retired: bool = False) -> list[Machine]: ...
    def agents(self) -> dict[MachineId, Agent]: ...
    def agent(self, machine: Machine) -> Agent | None: ...
    def unregistered(self) -> list[UnregisteredMachine]: ...
