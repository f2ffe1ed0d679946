"""What goes into a spool and what comes out of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from wire.alarm import Alarm
from wire.events import AlarmEvent, AlarmTransition, CodeDescription, Gap, TransitionKind
from wire.state import Note


class Transition(NamedTuple):
    """An alarm that was not raised but changed otherwise, after so many raised ones of its batch."""

    alarm: Alarm
    kind: TransitionKind
    after: int


class NamedCode(NamedTuple):
    """The number that a named alarm got, and how the source describes it."""

    name: str
    code: int
    text: str
    severity: str


@dataclass(frozen=True)
class Appendix:
    """What a source reports beside its alarms, stored in the same transaction.

    ``lost`` is the span of time in which an unknown number of alarms is missing; ``codes`` are new numbers.
    """

    skipped: int = 0
    last_skipped: Note | None = None
    warning: Note | None = None
    lost: tuple[datetime, datetime] | None = None
    codes: tuple[NamedCode, ...] = ()


NOTHING = Appendix()


class Depth(NamedTuple):
    """The number of unacked events and gaps, and the time of the oldest event."""

    events: int
    gaps: int
    oldest: datetime | None


@dataclass(frozen=True)
class Pending:
    """Events and gaps to send, in order, and their epoch."""

    epoch: UUID
    events: list[AlarmEvent]
    gaps: list[Gap]
    transitions: list[AlarmTransition]
    codes: list[CodeDescription]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not (self.events or self.transitions or self.gaps)

    @property
    def last_seq(self) -> int:
        """The highest number of an event or transition, of a gap if there is none, or 0."""
        last = max(rows[-1].seq if rows else 0 for rows in (self.events, self.transitions))
        return last or (self.gaps[-1].seqs[1] if self.gaps else 0)
