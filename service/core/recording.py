"""What one commit of the ingester holds: everything that a handful of messages brought, judged."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from service.core.machine import Agent
from wire.identity import MachineId
from wire.state import Note

IN_TIME, FROM_THE_FUTURE, TOO_OLD = 0, 1, 2
MAX_BODY = 64_000


class EventRow(NamedTuple):
    """An event as it will stand in the store."""

    machine: int
    epoch: UUID
    seq: int
    code: int
    at_us: int
    flag: int


class GapRow(NamedTuple):
    """A gap as it will stand in the store."""

    machine: int
    epoch: UUID
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    reason: str


class Quarantined(NamedTuple):
    """Something that cannot be taken, kept whole with the reason."""

    machine: int | None
    topic: str
    reason: str
    detail: str
    body: bytes


@dataclass
class Recording:
    """Grows message by message, is committed in one transaction, then thrown away."""

    received_us: int
    events: list[EventRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    told: dict[int, Agent] = field(default_factory=dict)
    heard: set[int] = field(default_factory=set)
    knocking: set[MachineId] = field(default_factory=set)
    released: set[int] = field(default_factory=set)  # rows of the quarantine that this recording replaces
    renumber_clashes: bool = False  # store events whose number is taken by another event under another number
    rivals: dict[int, Note] = field(default_factory=dict)  # machines in whose name another agent speaks, too

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        parts = (self.events, self.gaps, self.quarantined, self.told, self.heard, self.knocking, self.released)
        return not any(parts) and not self.rivals


@dataclass(frozen=True)
class Recorded:
    """What became of a recording's events; ``fresh`` are those that were new, or None if all of them were.

    ``clashed`` are those whose number was used before for another event and that are stored under another one.
    """

    stored: int
    duplicates: int
    conflicts: int
    fresh: tuple[EventRow, ...] | None = field(default=None, compare=False)
    clashed: tuple[EventRow, ...] = field(default=(), compare=False)
