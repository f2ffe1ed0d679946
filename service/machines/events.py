"""Events as they are written and as they are read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol
from uuid import UUID

from forecasting.series import AlarmSeries
from service.database.event_row import EventRow
from service.machines.models import Agent
from wire.events import CodeDescription, TransitionKind
from wire.identity import MachineId
from wire.state import Note

MAX_BODY = 64_000
_machine = itemgetter(0)  # rows of one batch stand together


class GapRow(NamedTuple):
    """A gap as it will stand in the store."""

    machine: int
    epoch: UUID
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    reason: str


class QuarantineRow(NamedTuple):
    """Something that cannot be taken, kept whole with the reason."""

    machine: int | None
    topic: str
    reason: str
    detail: str
    body: bytes


@dataclass
class EventWrite:
    """Grows message by message, is committed in one transaction, then thrown away."""

    received_us: int
    events: list[EventRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)
    quarantined: list[QuarantineRow] = field(default_factory=list)
    agent_states: dict[int, Agent] = field(default_factory=dict)
    seen_machines: set[int] = field(default_factory=set)
    unregistered: set[MachineId] = field(default_factory=set)
    released_quarantine: set[int] = field(
        default_factory=set
    )  # rows of the quarantine that this recording replaces
    # Epochs that were stored before; if one is missing, its machine was erased.
    continued: set[tuple[int, UUID]] = field(default_factory=set)
    renumber_clashes: bool = False  # store events whose number is taken by another event under another number
    duplicate_agents: dict[int, Note] = field(default_factory=dict)  # of machines with a second agent
    codes: list[tuple[int, CodeDescription]] = field(default_factory=list)  # as machines describe them

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        parts = (
            self.events,
            self.gaps,
            self.quarantined,
            self.agent_states,
            self.seen_machines,
            self.unregistered,
            self.released_quarantine,
            self.codes,
        )
        return not any(parts) and not self.duplicate_agents

    @property
    def machines(self) -> set[int]:
        """The rows of all machines that something would be stored of."""
        of_rows = {machine for rows in (self.events, self.gaps) for machine, _ in groupby(rows, _machine)}
        of_bodies = {row.machine for row in self.quarantined if row.machine is not None}
        return of_rows | of_bodies | self.agent_states.keys() | self.seen_machines | self.duplicate_agents.keys()

    def without_machines(self, absent: Collection[int]) -> "EventWrite":
        """Return the same recording without anything of these machines."""
        return replace(
            self,
            events=[row for row in self.events if row.machine not in absent],
            gaps=[row for row in self.gaps if row.machine not in absent],
            quarantined=[row for row in self.quarantined if row.machine not in absent],
            agent_states={machine: agent for machine, agent in self.agent_states.items() if machine not in absent},
            seen_machines=self.seen_machines.difference(absent),
            duplicate_agents={
                machine: note for machine, note in self.duplicate_agents.items() if machine not in absent
            },
            released_quarantine=set(),  # what is not stored stays in the quarantine
        )

    def without_epochs(self, refused: Collection[tuple[int, UUID]]) -> "EventWrite":
        """Return the same recording without the events and gaps of these epochs."""
        return replace(
            self,
            events=[row for row in self.events if (row.machine, row.epoch) not in refused],
            gaps=[row for row in self.gaps if (row.machine, row.epoch) not in refused],
            released_quarantine=set(),
        )


@dataclass(frozen=True)
class WriteResult:
    """What became of a recording's events; ``fresh`` are those that were new, or None if all of them were.

    Nothing is stored of machines that are ``absent``, because they were retired or erased meanwhile, nor of the
    epochs that were ``refused``, because their machine has too many; neither may be acked.
    ``clashed`` are those whose number was used before for another event and that are stored under another one.
    """

    stored: int
    duplicates: int
    conflicts: int
    new_events: tuple[EventRow, ...] | None = field(default=None, compare=False)
    absent: frozenset[int] = frozenset()
    refused: frozenset[tuple[int, UUID]] = frozenset()
    clashed: tuple[EventRow, ...] = field(default=(), compare=False)


class EventWriter(Protocol):
    """Where recordings become durable."""

    def commit(self, recording: EventWrite) -> WriteResult: ...


class StoredAlarm(NamedTuple):
    """One alarm as it stands in the store; ``flag`` says why it is kept out of windows, if it is.

    With a ``kind`` it was not raised but cleared, acknowledged or a reason for a stop.
    """

    at: datetime
    code: int
    received_at: datetime
    flag: str | None
    kind: TransitionKind | None = None


class Cursor(NamedTuple):
    """The place of an alarm in a machine's history; unique, so pages neither skip nor repeat."""

    at_us: int
    code: int
    epoch_id: int
    seq: int


@dataclass(frozen=True)
class PageQuery:
    """Which alarms are asked for, newest first; ``flagged`` asks for those kept out of windows instead."""

    limit: int = 100
    before: Cursor | None = None
    since: datetime | None = None
    until: datetime | None = None
    code: int | None = None
    flagged: bool = False
    kind: TransitionKind | None = None  # raised alarms


@dataclass(frozen=True)
class AlarmPage:
    """Some alarms, newest first, and where to go on."""

    alarms: list[StoredAlarm]
    next: Cursor | None


@dataclass(frozen=True)
class GapRecord:
    """Events an agent had to drop."""

    first_at: datetime
    last_at: datetime
    first_seq: int
    last_seq: int
    reason: str

    @property
    def events(self) -> int:
        """How many events are missing."""
        return self.last_seq - self.first_seq + 1


@dataclass(frozen=True, eq=False)
class Evidence:
    """A machine's alarms in a span, the gaps that touch it, and when its whole history begins and ends."""

    series: AlarmSeries
    gaps: Sequence[GapRecord]
    first_at: datetime | None
    last_at: datetime | None
