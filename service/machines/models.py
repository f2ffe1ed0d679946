"""Machines, their agents, limits, quarantined items, and the choice of machines and spans of a query."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from service.errors import Gone, InputRejected, NotFound
from service.http.message import Message
from service.http.principal import Sites
from wire.enums import ConnectionStatus, MachineState
from wire.identity import MachineId
from wire.state import Note
from wire.timestamps import EARLIEST


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
    """The last known state of an agent, in plant time; ``since`` is its first message."""

    online: bool
    last_seen_at: datetime
    version: str | None = None
    epoch: UUID | None = None
    spooled: int | None = None
    skew_ms: int | None = None
    since: datetime | None = None
    state_at: datetime | None = None  # the time of the state; events may arrive later
    skipped: int = 0  # rows of its source that it could not read
    last_skipped: Note | None = None
    warning: Note | None = None
    duplicate: Note | None = None  # another agent that speaks in the machine's name
    connected_at: datetime | None = None  # known only of states that this process has received


@dataclass(frozen=True)
class UnregisteredMachine:
    """A client publishes on the topics of a machine that is not registered."""

    machine: MachineId
    first_at: datetime
    last_at: datetime


class MachineReader(Protocol):
    """Registered machines, the state of their agents, unregistered machines."""

    def get(self, machine: MachineId) -> Machine: ...
    def find(self, machine: MachineId) -> Machine | None: ...
    def all(self, *, retired: bool = False) -> list[Machine]: ...
    def agents(self) -> dict[MachineId, Agent]: ...
    def agent(self, machine: Machine) -> Agent | None: ...
    def unregistered(self) -> list[UnregisteredMachine]: ...


def connection_status(
    agent: Agent | None, now: datetime, *, stale_after: timedelta, silent: bool = False
) -> ConnectionStatus:
    """Return the status from the agent's last state; ``silent`` if alarms have stopped for unusually long."""
    if agent is None:
        return ConnectionStatus.NEVER
    if not agent.online:
        return ConnectionStatus.OFFLINE
    if now - agent.last_seen_at > stale_after:
        return ConnectionStatus.STALE
    return ConnectionStatus.SILENT if silent else ConnectionStatus.ONLINE


def zone_named(name: str, *, pointer: str | None = None) -> ZoneInfo:
    """Return a time zone, or raise :class:`InputRejected`; ``pointer`` says where the name was given."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{name!r} is no time zone; write one like Europe/Rome."
        raise InputRejected(message, pointer=pointer) from None


def chosen_machines(machines: MachineReader, site: str | None, machine: str | None) -> list[Machine]:
    """Return one machine, those of a site, or all; a retired one only if it is named."""
    if machine is not None:
        if site is None:
            raise InputRejected("A machine is named together with its site; give site too.")
        return [machines.get(MachineId(site, machine))]
    found = [one for one in machines.all() if site in (None, one.id.site)]
    if site is not None and not found:
        raise NotFound(f"There is no machine at the site {site}.")
    return found


def chosen_span(
    since: datetime | None, until: datetime | None, *, now: datetime, usual: timedelta, longest: timedelta
) -> tuple[datetime, datetime]:
    """Return the span asked for, or the last ``usual`` before its end."""
    end = until or now
    start = since or max(end - usual, EARLIEST)
    if start >= end:
        raise InputRejected("since must be before until.")
    if end - start > longest:
        raise InputRejected(f"Ask for at most {longest.days} days at once.")
    return start, end


HOUR = timedelta(hours=1)


class HourlyCounts(NamedTuple):
    """Alarms in each hour, oldest first, and the last alarm there ever was."""

    counts: tuple[int, ...]
    last_at: datetime | None = None
    last_code: int | None = None


def hourly_counts_end(now: datetime) -> datetime:
    """Return the end of the hour under way."""
    return now.replace(minute=0, second=0, microsecond=0) + HOUR


@dataclass(frozen=True)
class MachineLimits:
    """The limits of one machine; an ordinary machine stays far below each of them.

    ``unenrolled`` is how many machines are listed, in all, that publish without being enrolled. ``samples`` is
    how many items of each reason are quarantined even when the machine's share is full.
    """

    gaps: int = 1_000
    epochs: int = 10_000
    quarantined: int = 5_000
    quarantined_bytes: int = 16_000_000
    samples: int = 10
    unenrolled: int = 1_000
    codes: int = 2_000  # described by the machine


class ExcessKind(StrEnum):
    """What a machine had too much of."""

    GAPS = "gaps"
    EPOCHS = "epochs"
    QUARANTINE = "quarantine"
    UNENROLLED = "unenrolled"
    CODES = "codes"


class Excess(NamedTuple):
    """What one machine had too much of: how many items, and when. ``machine`` is None where none is known."""

    machine: MachineId | None
    kind: ExcessKind
    items: int
    since: datetime
    last_at: datetime


class QuarantinedItem(NamedTuple):
    """One message or event that was refused; ``body`` is whole."""

    id: int
    received_at: datetime
    machine: MachineId | None
    topic: str
    reason: str
    detail: str
    sha256: str
    body: bytes


@dataclass(frozen=True)
class QuarantineQuery:
    """Which items are asked for, newest first."""

    limit: int = 100
    before: int | None = None
    reason: str | None = None
    machine: MachineId | None = None
    sites: Sites = None  # only of these; of every site unless given


class ReasonCount(NamedTuple):
    """How many items were refused for one reason, and when the last was."""

    reason: str
    items: int
    last_at: datetime


class QuarantineReader(Protocol):
    """What was refused."""

    def page(self, query: QuarantineQuery) -> list[QuarantinedItem]: ...
    def get(self, number: int) -> QuarantinedItem: ...
